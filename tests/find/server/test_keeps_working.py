"""Servers whose library goes away, whose clients are slow or want too much, and that are killed."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from PIL import Image
from starlette.types import Receive, Scope, Send
from threadpoolctl import threadpool_info, threadpool_limits

from moviola import threads
from moviola.errors import InvalidValue, LibraryError
from moviola.library import Catalogue
from moviola.search import Library
from moviola.server import running
from moviola.server.stills import FileCache
from moviola.server.uploads import Uploads

Serving = Callable[..., TestClient]


# ---- the library -------------------------------------------------------------------------------------------


def test_a_library_that_is_moved_away_and_comes_back(serving: Serving, folder: Path) -> None:
    with serving(folder) as client:
        before = client.post("/api/search", json={"query": "a red square"}).json()["moments"]
        folder.rename(folder.with_name("elsewhere"))
        gone = client.post("/api/search", json={"query": "a red square"})
        assert gone.status_code == 409 and "put the library back" in gone.json()["error"]["message"]
        for path in ("/api/library", "/api/videos", "/api/videos/harbour"):
            assert client.get(path).status_code in (200, 409), path
        assert client.get("/api/videos/harbour/still?time=1.5&width=48").status_code == 409
        assert not folder.exists()  # else it could not be put back
        folder.with_name("elsewhere").rename(folder)
        assert client.post("/api/search", json={"query": "a red square"}).json()["moments"] == before


def test_a_video_that_is_removed_while_an_answer_is_described(
    serving: Serving, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described, removed = Catalogue.videos_named, []

    def after_a_removal(self: Catalogue, video_ids: set[str]) -> Any:
        if not removed:
            removed.append("harbour")
            with Library(folder) as writer:
                writer.indexer.remove(removed)
        return described(self, video_ids)

    monkeypatch.setattr(Catalogue, "videos_named", after_a_removal)
    with serving(folder) as client:
        answer = client.post("/api/search", json={"query": "umbrella", "top_k": 20})
    assert answer.status_code == 200 and removed
    moments = answer.json()["moments"]
    assert moments and "harbour" not in {moment["video_id"] for moment in moments}
    assert [moment["rank"] for moment in moments] == list(range(1, len(moments) + 1))


def test_no_error_shows_where_things_lie(serving: Serving, folder: Path, films: Path) -> None:
    with Library(folder) as library, library.catalogue.transaction():
        video = library.catalogue.video("harbour")
        library.catalogue.moved(video.row, str(films / "gone.mp4"), 1, 1, "")
    with serving(folder) as client:
        clip = client.get("/api/videos/harbour/clip?start=0&end=1")
        said = client.post("/api/search", json={"query": "a", "by": "text"})
    for answer, named in ((clip, "gone.mp4"), (said, folder.name)):
        assert answer.status_code == 409
        message = answer.json()["error"]["message"]
        assert named in message and str(folder) not in message and str(films) not in message


@pytest.mark.parametrize("place", ["~root", "~nobody/films", "{loop}", "a\0b", "x/" * 3000])
def test_folders_to_search_in_that_lead_nowhere(client: TestClient, tmp_path: Path, place: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    named = place.format(loop=tmp_path / "loop")
    answer = client.post("/api/search", json={"query": "a", "filter": {"folder": named}})
    assert answer.status_code in (404, 422), answer.text
    assert "/root" not in answer.text


# ---- links -------------------------------------------------------------------------------------------------


def test_a_link_that_was_put_there_while_a_job_waited(folder: Path, films: Path, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    order = {"library": str(folder), "sources": [str(inbox)], "allowed": [str(inbox)], "ocr": False}
    (inbox / "film.mp4").symlink_to(films / "harbour.mp4")
    for sources in ([str(inbox)], [str(inbox / "film.mp4")]):
        # Its input stays open: it ends when that does.
        with subprocess.Popen(
            [sys.executable, "-m", "moviola.server.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as run:  # fmt: skip
            assert run.stdin is not None and run.stdout is not None
            run.stdin.write(json.dumps(order | {"sources": sources}) + "\n")
            run.stdin.flush()
            assert "a link out of" in json.loads(run.stdout.readline())["error"]


def test_a_link_that_comes_to_stand_where_a_video_was_shows_nothing(
    serving: Serving, folder: Path, films: Path, tmp_path: Path
) -> None:
    """On a share anybody could have had any file of the server's user sent: as a video, a clip, a still."""
    share = Path(shutil.copytree(films, tmp_path / "share"))
    with Library(folder) as library:
        library.indexer.move(films, share)
    (share / "harbour.mp4").rename(tmp_path / "private.mp4")
    (share / "harbour.mp4").symlink_to(tmp_path / "private.mp4")
    with serving(folder) as client:
        for path in ("stream", "clip?start=0&end=1", "stream?track=1"):
            answer = client.get(f"/api/videos/harbour/{path}")
            assert answer.status_code == 404 and "not there" in answer.json()["error"]["message"], path
        small = client.get("/api/videos/harbour/still?time=0&width=64")
        assert small.status_code == 200 and small.headers["etag"].count("-away") == 1
        moments = [{"video_id": "harbour", "start": 0, "end": 1}]
        for format in ("clips", "film"):
            answer = client.post("/api/exports", json={"format": format, "moments": moments})
            assert answer.status_code == 404 and "a link" in answer.json()["error"]["message"]
        about = client.get("/api/videos/harbour").json()
        assert about["away"] and about["fps"] is None


# ---- stills ------------------------------------------------------------------------------------------------


def test_all_times_past_the_end_are_one_still(serving: Serving, folder: Path) -> None:
    with serving(folder) as client:
        length = client.get("/api/videos/harbour").json()["duration"]
        for time in (length, length + 1, 5000, 86_399.123):
            assert client.get(f"/api/videos/harbour/still?time={time}&width=64").status_code == 200
    assert len(list((folder / "cache" / "stills").rglob("*.jpg"))) == 1


def test_small_files_count_by_what_they_take(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, tmp_path, most_bytes=1 << 18)
    for number in range(300):
        cache._made(f"{number % 3}/{number}.jpg", lambda path: path.write_bytes(b"x" * 100) and None)
    left = sum(path.is_file() for path in tmp_path.rglob("*"))
    taken = sum(path.stat().st_blocks * 512 for path in tmp_path.rglob("*") if path.is_file())
    assert 10 < left < 60 and taken <= 1 << 18


def test_no_still_is_made_where_the_library_was(tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "library" / "cache", tmp_path / "library", most_bytes=1 << 18)
    with pytest.raises(LibraryError, match="put the library back"):
        cache._made("1/0.jpg", lambda path: path.write_bytes(b"x") and None)
    assert not list(tmp_path.iterdir())


# ---- pictures ----------------------------------------------------------------------------------------------


def picture(path: Path) -> bytes:
    Image.new("RGB", (8, 8)).save(path / "x.png")
    return (path / "x.png").read_bytes()


def test_pictures_of_a_server_that_was_killed_are_deleted_by_the_next(tmp_path: Path) -> None:
    data = picture(tmp_path)
    killed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, sys; from pathlib import Path; from moviola.server.uploads import Uploads\n"
            "uploads = Uploads(10**6); uploads.add(Path(sys.argv[1]).read_bytes())\n"
            "print(uploads._folder, flush=True); os.kill(os.getpid(), 9)",
            str(tmp_path / "x.png"),
        ],
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    left = Path(killed.stdout.strip())
    assert killed.returncode == -signal.SIGKILL and left.is_dir() and left.parent == Path(gettempdir())
    others = Uploads(10**6)
    others.add(data)
    assert others._folder is not None
    for folder in (left, others._folder):
        os.utime(folder, (0, 0))
    uploads = Uploads(10**6)
    uploads.add(data)
    assert not left.exists() and others._folder.is_dir()
    uploads.close()
    others.close()
    assert not others._folder.exists()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a signal of POSIX")
def test_a_closed_terminal_ends_a_server_in_peace(
    start: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(own))  # other servers have pictures in the common one
    server = start()
    port = int(server.url.rsplit(":", 1)[1].partition("/")[0])
    data = picture(tmp_path)
    with socket.create_connection(("127.0.0.1", port)) as asked:
        head = f"POST /api/pictures HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
        asked.sendall(head.encode() + data)
        assert asked.recv(100).startswith(b"HTTP/1.1 200")
    assert list(own.glob("moviola-pictures-*"))
    server.process.send_signal(signal.SIGHUP)
    server.process.wait(30)
    assert not list(own.glob("moviola-pictures-*"))


def test_a_picture_for_which_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, kept = picture(tmp_path), Uploads(10**6)

    def half(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", half)
        with pytest.raises(InvalidValue, match="cannot be stored on the server"):
            kept.add(data)
    assert kept._folder is not None and not list(kept._folder.glob("[!.]*"))
    name, *_ = kept.add(data)
    assert kept.path(name).read_bytes() == data
    kept.close()


# ---- slow and long requests --------------------------------------------------------------------------------


@contextmanager
def listening(app: Any) -> Iterator[int]:
    """An app on a port, with the protocol of the server."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        config = uvicorn.Config(app, log_level="error", http=running.Impatient, lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=asyncio.run, args=(server.serve(sockets=[sock]),))
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.sleep(0.3 if scope["path"] == "/slow" else 0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def answered(port: int) -> socket.socket:
    """A connection that has got an answer which took longer than a head may. One that was closed before its
    head was sent, since this thread was held up, is tried again.
    """
    for _ in range(20):
        client, answer = socket.create_connection(("127.0.0.1", port), timeout=60), b""
        with suppress(ConnectionError):
            client.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            while more := client.recv(1000):
                answer += more
                if answer.endswith(b"hi"):
                    return client
        client.close()
    pytest.fail("no answer that took longer than a head came")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n", b"G"])
@pytest.mark.parametrize("asked_before", [False, True])
def test_half_a_head_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, asked_before: bool
) -> None:
    monkeypatch.setattr(running, "HEAD_SECONDS", 0.1)
    with listening(hello) as port:
        own = answered(port) if asked_before else socket.create_connection(("127.0.0.1", port), timeout=60)
        with own as client, suppress(ConnectionError):
            client.sendall(sent)
            assert client.recv(1000) == b""


async def listener(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await hello(scope, receive, send)


def test_half_a_film_is_no_defect(
    serving: Serving, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that leaves while it sends: nothing is kept, and the log has no traceback."""
    inbox, left = tmp_path / "inbox", threading.Event()
    inbox.mkdir()
    app = serving(folder, allow_ingest=(inbox,)).app

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        finally:
            left.set()

    with listening(noted) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            head = "POST /api/uploads?name=x.mp4 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
            client.sendall(head.encode() + b"half")
        assert left.wait(60)
    assert not list(inbox.iterdir())
    assert "Traceback" not in caplog.text and "failed" not in caplog.text


@pytest.mark.parametrize("sent", [b"", b"half of"])
def test_half_a_body_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(running, "BODY_SECONDS", 0.1)
    with listening(listener) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n" + sent)
        with suppress(ConnectionResetError):
            assert client.recv(1000) == b""


def test_connections_beyond_the_cap_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "CONNECTIONS", 2)
    with listening(hello) as port, ExitStack() as all_of_them:
        first, _, third = (
            all_of_them.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            for _ in range(3)
        )
        with suppress(ConnectionResetError):
            assert third.recv(1000) == b""
        first.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert first.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_body_in_chunks_is_not_read_to_its_end(serving: Serving, folder: Path) -> None:
    """Chunks are sent for as long as the server takes them."""
    app = serving(folder).app
    taken = 0
    with listening(app) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
        with suppress(ConnectionError):
            while taken < 400:
                client.sendall(chunk)
                taken += 1
    assert taken < 400


# ---- what sweeps temporary folders -------------------------------------------------------------------------


def test_pictures_that_were_swept_away_can_be_sent_again(
    serving: Serving, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searching by a picture was dead until the next start: for this one and any other."""
    (own := tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    data = picture(tmp_path)
    with serving(folder) as client:

        def searched() -> int:
            sent = client.post("/api/pictures", content=data)
            assert sent.status_code == 200, sent.text
            query = {"terms": [{"picture": sent.json()["picture"]}]}
            return client.post("/api/search", json={"query": query}).status_code

        assert searched() == 200
        name = client.post("/api/pictures", content=data).json()["picture"]
        for left in ("folder", "file", "another's folder", "a link"):
            (place,) = own.glob("moviola-pictures-*")
            if left == "file":
                (place / name).unlink()
            else:
                shutil.rmtree(place)
            if left == "another's folder":
                place.mkdir()
                (place / name).write_bytes(b"")
            if left == "a link":
                (tmp_path / "elsewhere").mkdir()
                place.symlink_to(tmp_path / "elsewhere")
            gone = client.post("/api/search", json={"query": {"terms": [{"picture": name}]}})
            assert gone.status_code == 404 and "send it again" in gone.json()["error"]["message"], left
            assert searched() == 200, left
            for other in own.glob("moviola-pictures-*"):
                if other.is_symlink() or not (other / name).stat().st_size:
                    other.unlink() if other.is_symlink() else shutil.rmtree(other)
        assert not list((tmp_path / "elsewhere").iterdir())
        shutil.rmtree(own)
        refused = client.post("/api/pictures", content=data)
        assert refused.status_code == 422 and "make that folder" in refused.json()["error"]["message"]
        own.mkdir()
        assert searched() == 200


def test_an_export_that_was_swept_away_is_begun_again(
    serving: Serving, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own := tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    wanted = {"format": "csv", "moments": [{"video_id": "harbour", "start": 0, "end": 1}]}
    with serving(folder) as client:
        begun = client.post("/api/exports", json=wanted).json()
        assert client.get(f"/api/exports/{begun['export']}/file").status_code == 200
        shutil.rmtree(own)
        for path in ("", "/file"):
            gone = client.get(f"/api/exports/{begun['export']}{path}")
            assert gone.status_code == 404 and "begin it again" in gone.json()["error"]["message"]
        refused = client.post("/api/exports", json=wanted)
        assert refused.status_code == 422 and "temporary folder" in refused.json()["error"]["message"]
        own.mkdir()
        assert client.post("/api/exports", json=wanted).status_code == 201


def test_what_a_server_computes_takes_one_blas_thread(
    serving: Serving, original: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches requests of 700 ms: small products that wait for threads that other work keeps from running."""

    def blas() -> set[int]:
        return {
            library["num_threads"]
            for library in threadpool_info()
            if library["user_api"] == "blas" and library["threading_layer"] != "openmp"
        }

    # Another test's server may still serve.
    monkeypatch.setattr(threads, "_inside", [])
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas()
        with serving(original):
            assert blas() == {1}
        assert blas() == before
