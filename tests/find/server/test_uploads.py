"""Videos that are sent in parts, by tus."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Any

import anyio
import numpy as np
import pytest
from fastapi.testclient import TestClient

from moviola.errors import InvalidValue, LibraryError, NotFound
from moviola.media import write_video
from moviola.server import receiving, upload_state
from moviola.server.options import Limits
from moviola.server.problems import Busy
from moviola.server.receiving import Receiving

Serving = Callable[..., TestClient]
TUS = {"Tus-Resumable": "1.0.0"}


def film() -> bytes:
    """A video of 10,240 bytes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        write_video(path, [np.full((48, 64, 3), shade, np.uint8) for shade in range(0, 200, 20)], rate=5)
        return path.read_bytes().ljust(10_240, b"\0")


CONTENT = film()


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """A folder that videos are sent to."""
    folder = (tmp_path / "inbox").resolve()
    folder.mkdir()
    return folder


@pytest.fixture
def client(serving: Serving, folder: Path, inbox: Path) -> Iterator[TestClient]:
    """A client of a server that takes videos."""
    with serving(folder, allow_ingest=(inbox,), limits=Limits(upload_bytes=20_000, uploads=3)) as client:
        yield client


def begin(client: TestClient, length: int = len(CONTENT), name: str = "beach.mp4", **fields: str) -> Any:
    metadata = ",".join(
        f"{key} {base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}"
        for key, value in {"filename": name, **fields}.items()
    )
    headers = {**TUS, "Upload-Length": str(length), "Upload-Metadata": metadata}
    return client.post("/api/uploads", headers=headers)


def send(client: TestClient, place: str, offset: int, content: Any, **more: str | bytes) -> Any:
    headers = {**TUS, "Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset), **more}
    return client.patch(place, headers=headers, content=content)


def test_the_protocol_of_uploads_is_described(client: TestClient) -> None:
    answer = client.options("/api/uploads")
    assert (answer.status_code, answer.headers["Tus-Version"]) == (204, "1.0.0")
    assert answer.headers["Tus-Max-Size"] == "20000"
    assert answer.headers["Tus-Extension"] == "creation,termination,checksum,expiration"
    assert "sha1" in answer.headers["Tus-Checksum-Algorithm"].split(",")


def test_a_video_in_parts_is_whole_under_its_name(client: TestClient, inbox: Path) -> None:
    for expected in ("beach.mp4", "beach (2).mp4"):
        begun = begin(client)
        assert (begun.status_code, begun.headers["Upload-Offset"]) == (201, "0")
        place = begun.headers["Location"]
        for start in range(0, len(CONTENT), 4000):
            status = client.head(place, headers=TUS)
            assert (status.headers["Upload-Offset"], status.headers["Upload-Length"]) == (str(start), "10240")
            assert status.headers["Cache-Control"] == "no-store" and status.headers["Upload-Expires"]
            assert not (inbox / expected).exists()
            sent = send(client, place, start, CONTENT[start : start + 4000])
            assert (sent.status_code, sent.headers["Tus-Resumable"]) == (204, "1.0.0"), sent.text
        assert (inbox / expected).read_bytes() == CONTENT
        state = client.get(place).json()
        assert (state["path"], state["offset"], state["bytes"]) == (str(inbox / expected), 10_240, 10_240)
        assert client.head(place, headers=TUS).headers["Upload-Offset"] == "10240"
    assert {path.name for path in inbox.iterdir()} == {"beach.mp4", "beach (2).mp4"}


def test_an_upload_goes_on_on_another_server(
    serving: Serving, folder: Path, inbox: Path, client: TestClient
) -> None:
    place = begin(client).headers["Location"]
    send(client, place, 0, CONTENT[:5000])
    with serving(folder, allow_ingest=(inbox,)) as other:
        assert other.head(place, headers=TUS).headers["Upload-Offset"] == "5000"
        assert send(other, place, 5000, CONTENT[5000:]).status_code == 204
    assert (inbox / "beach.mp4").read_bytes() == CONTENT


def test_an_upload_is_finished_where_the_server_was_killed_after_its_last_byte(
    client: TestClient, inbox: Path
) -> None:
    place = begin(client).headers["Location"]
    (part,) = inbox.glob(".moviola-*.part")
    part.write_bytes(CONTENT)
    assert client.head(place, headers=TUS).headers["Upload-Offset"] == "10240"
    assert client.get(place).json()["path"] == str(inbox / "beach.mp4")
    assert [path.name for path in inbox.iterdir()] == ["beach.mp4"]
    assert (inbox / "beach.mp4").read_bytes() == CONTENT


def test_what_has_arrived_before_the_connection_broke_stays(start: Callable[..., Any], inbox: Path) -> None:
    server = start("--allow-ingest", str(inbox))
    port = int(server.url.rsplit(":", 1)[1].partition("/")[0])

    def request(head: str, rest: str, body: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.settimeout(60)
        lines = f"{head} HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\n{rest}\r\n\r\n"
        connection.sendall(lines.encode() + body)
        return connection

    def patch(offset: int, length: int, body: bytes) -> socket.socket:
        kind = "Content-Type: application/offset+octet-stream"
        return request(
            f"PATCH {place}", f"Upload-Offset: {offset}\r\n{kind}\r\nContent-Length: {length}", body
        )

    metadata = "Upload-Metadata: filename YmVhY2gubXA0\r\nContent-Length: 0"
    with request("POST /api/uploads", f"Upload-Length: 10240\r\n{metadata}") as connection:
        begun = connection.recv(4000).decode().split("\r\n")
    (place,) = [line.split(": ")[1] for line in begun if line.startswith("location")]
    (part,) = inbox.glob(".moviola-*.part")
    with patch(0, 10_240, CONTENT[:3000]):
        while part.stat().st_size < 3000:
            time.sleep(0.01)
    answer = b"HTTP/1.1 503"
    while answer.startswith(b"HTTP/1.1 503"):  # until the server has noticed that the first one is gone
        with patch(3000, 0, b"") as connection:
            answer = connection.recv(4000)
    assert b"upload-offset: 3000" in answer
    assert part.read_bytes() == CONTENT[:3000]


@pytest.mark.parametrize(
    ("more", "offset", "status"),
    [
        ({"Tus-Resumable": "0.2.2"}, 100, 412), ({"Tus-Resumable": ""}, 100, 412),
        ({"Content-Type": "video/mp4"}, 100, 415), ({}, 0, 409), ({}, 101, 409),
        ({"Upload-Checksum": "sha1 " + base64.b64encode(b"x" * 20).decode()}, 100, 460),
        ({"Upload-Checksum": "crc32 AAAA"}, 100, 422), ({"Upload-Checksum": "sha1 %"}, 100, 422),
        ({"Upload-Checksum": "sha1 é".encode("latin-1")}, 100, 422),
    ],
)  # fmt: skip
def test_a_part_that_does_not_fit_changes_nothing(
    client: TestClient, more: dict[str, str | bytes], offset: int, status: int
) -> None:
    place = begin(client).headers["Location"]
    send(client, place, 0, CONTENT[:100])
    answer = send(client, place, offset, CONTENT[100:200], **more)
    assert answer.status_code == status and answer.json()["error"]["message"]
    assert answer.headers["Tus-Resumable"] == "1.0.0"
    assert (answer.headers.get("Tus-Version") == "1.0.0") == (status == 412)
    assert client.head(place, headers=TUS).headers["Upload-Offset"] == "100"


def test_a_name_that_is_no_base64_is_refused(client: TestClient) -> None:
    for name in (b"%", "é".encode("latin-1"), b"/w=="):
        headers = {**TUS, "Upload-Length": "10", "Upload-Metadata": b"filename " + name}
        answer = client.post("/api/uploads", headers=headers)
        assert (answer.status_code, "base64" in answer.text) == (422, True)


@pytest.mark.parametrize("algorithm", receiving.ALGORITHMS)
def test_a_part_with_its_checksum_counts(client: TestClient, algorithm: str) -> None:
    place = begin(client).headers["Location"]
    digest = hashlib.new(algorithm, CONTENT[:100]).digest()
    checksum = f"{algorithm} {base64.b64encode(digest).decode()}"
    sent = send(client, place, 0, CONTENT[:100], **{"Upload-Checksum": checksum})
    assert sent.headers["Upload-Offset"] == "100"


def test_more_than_was_announced_or_is_allowed_is_refused(client: TestClient, inbox: Path) -> None:
    assert begin(client, 20_001).status_code == 413
    place = begin(client, 1000).headers["Location"]
    for content in (b"x" * 1001, (b"x" * 100 for _ in range(20)), b"x" * 20_001):
        assert send(client, place, 0, content).status_code == 413
        assert client.head(place, headers=TUS).headers["Upload-Offset"] == "0"
    assert begin(client, 0).status_code == 422
    assert [path.suffix for path in sorted(inbox.iterdir())] == [".part"]


@pytest.mark.parametrize(
    "name",
    [
        "../x.mp4", "/x.mp4", "..", ".x.mp4", "a\\b.mp4", "x.sh", "x", "a\0.mp4", "x" * 300 + ".mp4", "",
        "\ud800.mp4",
    ],
)  # fmt: skip
def test_names_that_are_not_of_a_video_are_refused(client: TestClient, inbox: Path, name: str) -> None:
    assert begin(client, name=name).status_code == 422
    assert list(inbox.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("What now? Part 1: the start.mp4", "?: in it, which not every system takes"),
        ("東" * 80 + ".mp4", "244 bytes of UTF-8, more than 200"),
        (" beach.mp4", "spaces around it"),
        (".beach.mp4", "a hidden file"),
    ],
)
def test_it_is_said_what_is_wrong_with_a_name(client: TestClient, name: str, reason: str) -> None:
    assert f"{reason}; rename the file" in begin(client, name=name).json()["error"]["message"]


def test_only_into_folders_that_are_allowed(serving: Serving, folder: Path, client: TestClient) -> None:
    assert begin(client, folder="/etc").status_code == 404
    with serving(folder) as reading:
        assert begin(reading).json()["error"]["code"] == "forbidden"
    for name in ("x", "../../etc/passwd", "..%2f..", "0" * 32):
        assert client.head(f"/api/uploads/{name}", headers=TUS).status_code == 404


def test_a_cancelled_upload_leaves_nothing(client: TestClient, inbox: Path) -> None:
    place = begin(client).headers["Location"]
    send(client, place, 0, CONTENT[:100])
    assert client.delete(place, headers=TUS).status_code == 204
    assert client.delete(place, headers=TUS).status_code == 404
    assert list(inbox.iterdir()) == []
    whole = begin(client).headers["Location"]
    send(client, whole, 0, CONTENT)
    client.delete(whole, headers=TUS)
    assert (inbox / "beach.mp4").read_bytes() == CONTENT


def test_a_file_that_is_no_video_is_refused_when_it_is_whole_and_deleted(
    client: TestClient, inbox: Path
) -> None:
    place = begin(client, 2000).headers["Location"]
    assert send(client, place, 0, b"words" * 200).status_code == 204
    refused = send(client, place, 1000, b"words" * 200)
    assert refused.status_code == 422
    assert refused.json()["error"]["message"].startswith("beach.mp4: a text file")
    assert client.get(place).status_code == 404
    assert list(inbox.iterdir()) == []


def receiving_into(inbox: Path, most: int = 10) -> Receiving:
    """As a server of a library beside the inbox has it."""
    home = inbox.parent / "home"
    home.mkdir(exist_ok=True)
    return Receiving([inbox], 20_000, most, states=home / "cache" / "uploads", home=home)


def test_many_who_begin_at_once_are_counted(inbox: Path) -> None:
    received, together = receiving_into(inbox, 3), Barrier(12)

    def one(number: int) -> bool:
        together.wait()
        try:
            received.begin(f"film {number}.mp4", 10)
        except Busy:
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(one, range(12))) == 3
    assert len(list(inbox.glob(".moviola-*.part"))) == 3


def test_unfinished_uploads_are_limited_and_expire(client: TestClient, inbox: Path) -> None:
    places = [begin(client).headers["Location"] for _ in range(3)]
    assert begin(client).status_code == 503
    for part in inbox.glob("*.part"):
        if part.name.removeprefix(".moviola-")[:32] in places[0]:
            os.utime(part, (0, 0))
    assert begin(client).status_code == 201
    found = [client.head(place, headers=TUS).status_code for place in places]
    assert found == [404, 200, 200]


@pytest.mark.parametrize("half", [".moviola-ID.part", ".moviola-ID.json", "draft of a note"])
def test_what_a_killed_server_had_just_begun_expires(inbox: Path, tmp_path: Path, half: str | Path) -> None:
    uploads = receiving_into(inbox)
    uploads.begin("film.mp4", 10)
    (note,) = (tmp_path / "home").rglob("*.json")
    half = inbox / str(half).replace("ID", "0" * 32)
    if "draft" in half.name:
        half = note.with_name(f".{note.name}.0123456789abcdef.tmp")
    half.touch()
    uploads.sweep()
    assert half.exists()
    os.utime(half, (0, 0))
    uploads.sweep()
    assert not half.exists()


def test_an_upload_that_cannot_be_begun_leaves_nothing(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(upload_state, "write_json", full)
    with pytest.raises(InvalidValue, match="make room"):
        receiving_into(inbox).begin("film.mp4", 10)
    assert list(inbox.iterdir()) == []


def test_files_that_are_no_uploads_are_left_alone(inbox: Path) -> None:
    for name in (".moviola-x.json", ".moviola-" + "0" * 32 + ".json", "film.part"):
        (inbox / name).write_text("not JSON")
    uploads = receiving_into(inbox)
    with pytest.raises(NotFound, match="begin again"):
        uploads.find("0" * 32)
    uploads.sweep()
    assert len(list(inbox.iterdir())) == 3


# ---- others write to the folder, too -----------------------------------------------------------------------

ID = "ab" * 16


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the server's user, outside of all folders."""
    path = tmp_path / "secret.mp4"
    path.write_bytes(b"secret")
    return path


def planted(what: str, place: Path, secret: Path) -> None:
    """Something in place of a file that is read."""
    contents = {
        "no JSON": "{", "a list": "[]", "a number": "7", "deep": "[" * 100_000,
        "out": json.dumps({"name": "../x.mp4", "length": 10}),
        "absolute": json.dumps({"name": str(secret), "length": 10}),
        "of today": state(name="../x.mp4"), "elsewhere": state(folder="/tmp"), "no name": state(name=7),
        "many": state(length=2**70), "named": state(named="../x.mp4", whole=True), "empty": "",
    }  # fmt: skip
    if what == "pipe":
        os.mkfifo(place)
    elif what == "device":
        place.symlink_to("/dev/zero")
    elif what == "link":
        place.symlink_to(secret)
    elif what == "other name":
        os.link(secret, place)
    elif what == "folder":
        place.mkdir()
    else:
        place.write_text(contents[what].replace("INBOX", str(place.parent)))


def state(**changes: object) -> str:
    known = {"name": "x.mp4", "length": 10, "folder": "INBOX", "named": "", "number": 0, "whole": False}
    return json.dumps(known | changes)


CONTENTS = (
    "no JSON", "a list", "a number", "deep", "out", "absolute", "of today", "elsewhere", "no name", "many",
    "named", "empty", "pipe", "device", "link", "folder",
)  # fmt: skip


def test_what_others_note_in_the_folder_is_not_believed(
    client: TestClient, inbox: Path, tmp_path: Path, secret: Path
) -> None:
    """A name there led out of the folder; a pipe, or a type, stopped every upload that began later."""
    ids = {what: f"{number:032x}" for number, what in enumerate(CONTENTS)}
    for what, name in ids.items():
        planted(what, inbox / f".moviola-{name}.json", secret)
        (inbox / f".moviola-{name}.part").write_bytes(CONTENT[:10])
    before = {path for path in tmp_path.rglob("*") if path.is_file() and "cache" not in path.parts}
    for what, name in ids.items():
        place = f"/api/uploads/{name}"
        assert client.head(place, headers=TUS).status_code == 404, what
        assert send(client, place, 10, b"more").status_code == 404, what
        assert client.delete(place, headers=TUS).status_code == 404, what
        assert (inbox / f".moviola-{name}.part").read_bytes() == CONTENT[:10]
    begun = begin(client)
    assert begun.status_code == 201 and send(client, begun.headers["Location"], 0, CONTENT).status_code == 204
    after = {path for path in tmp_path.rglob("*") if path.is_file() and "cache" not in path.parts}
    assert after - before == {inbox / "beach.mp4"} and secret.read_bytes() == b"secret"


@pytest.mark.parametrize("what", CONTENTS)
def test_what_the_server_has_noted_is_checked_too(
    inbox: Path, tmp_path: Path, secret: Path, what: str
) -> None:
    """Nor is a library's folder always its own."""
    uploads = receiving_into(inbox)
    begun = uploads.begin("film.mp4", 10)
    (note,) = (tmp_path / "home").rglob("*.json")
    note.unlink()
    planted(what, note, secret)
    (inbox / f".moviola-{begun.upload}.part").write_bytes(b"x" * 10)
    with pytest.raises(NotFound):
        uploads.find(begun.upload)
    assert uploads.begin("other.mp4", 10).folder == inbox
    os.utime(note, (0, 0), follow_symlinks=False)
    uploads.sweep()
    assert not os.path.lexists(note) or what == "folder"
    assert secret.read_bytes() == b"secret" and not (tmp_path / "x.mp4").exists()


def test_bytes_go_to_no_other_file(serving: Serving, folder: Path, inbox: Path, secret: Path) -> None:
    """A link in place of a part let anybody append to any file of the server's user, and truncate it."""
    wrong = "sha1 " + base64.b64encode(b"x" * 20).decode()
    with serving(folder, allow_ingest=(inbox,)) as client:
        for what in ("link", "other name", "pipe", "device", "folder"):
            place = begin(client, 10).headers["Location"]
            part = inbox / f".moviola-{place.rpartition('/')[2]}.part"
            part.unlink()
            planted(what, part, secret)
            for offset in (0, 6):
                for more in ({}, {"Upload-Checksum": wrong}):
                    assert send(client, place, offset, b"1234", **more).status_code == 404, what
            assert client.head(place, headers=TUS).status_code == 404, what
        assert begin(client, 10).status_code == 201
    assert secret.read_bytes() == b"secret"


def test_a_noted_folder_that_is_none_of_the_servers_is_not_believed(inbox: Path, tmp_path: Path) -> None:
    """A film got its name wherever the note said, once a part lay there."""
    uploads = receiving_into(inbox)
    begun = uploads.begin("film.mp4", len(CONTENT))
    (note,) = (tmp_path / "home").rglob("*.json")
    other = tmp_path / "other"
    other.mkdir()
    (other / begun.part.name).write_bytes(CONTENT)
    note.write_text(state(folder=str(other), name="film.mp4", length=len(CONTENT)))
    with pytest.raises(NotFound):
        uploads.find(begun.upload)
    assert [path.name for path in other.iterdir()] == [begun.part.name]


@pytest.mark.parametrize("what", ["link", "other name", "pipe"])
def test_bytes_go_to_no_file_that_comes_to_lie_there(
    inbox: Path, secret: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """What was a part when it was looked for is another file when it is opened."""
    uploads = receiving_into(inbox)
    begun = uploads.begin("film.mp4", 10)
    find = uploads.find

    def swapped(name: str) -> Any:
        found = find(name)
        begun.part.unlink()
        planted(what, begun.part, secret)
        return found

    async def send_ten() -> None:
        async def parts() -> AsyncIterator[bytes]:
            yield b"1234567890"

        await uploads.take(begun.upload, 0, parts())

    monkeypatch.setattr(uploads, "find", swapped)
    with pytest.raises(InvalidValue):
        anyio.run(send_ten)
    assert secret.read_bytes() == b"secret" and not (inbox / "film.mp4").exists()


def test_a_film_that_comes_this_moment_is_not_written_over(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name was free when it was chosen."""
    uploads = receiving_into(inbox)
    begun = uploads.begin("film.mp4", len(CONTENT))
    begun.part.write_bytes(CONTENT)
    write = uploads._states.write

    def beside(upload: upload_state.Upload) -> None:
        write(upload)
        if upload.named == "film.mp4" and not upload.whole:
            (inbox / "film.mp4").write_bytes(b"theirs")

    monkeypatch.setattr(uploads._states, "write", beside)
    whole = uploads.find(begun.upload)
    assert whole.path is not None and whole.path.name == "film (2).mp4" and whole.path.read_bytes() == CONTENT
    assert (inbox / "film.mp4").read_bytes() == b"theirs"


def test_a_part_that_becomes_a_link_while_it_is_found_is_not_followed(
    inbox: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = receiving_into(inbox)
    begun = uploads.begin("film.mp4", 10)
    begun.part.write_bytes(b"x" * 10)
    found, link = receiving._open_part, os.link

    def swapped(*arguments: Any, **options: Any) -> int:
        opened = found(*arguments, **options)
        begun.part.unlink()
        begun.part.symlink_to(secret)
        return opened

    monkeypatch.setattr(receiving, "_open_part", swapped)
    with pytest.raises(InvalidValue, match="replaced by another file"):
        uploads.find(begun.upload)
    monkeypatch.setattr(os, "link", link)
    assert not (inbox / "film.mp4").exists() and secret.read_bytes() == b"secret"


def test_a_name_that_is_a_link_is_taken(client: TestClient, inbox: Path, tmp_path: Path) -> None:
    (inbox / "beach.mp4").symlink_to(tmp_path / "elsewhere.mp4")
    place = begin(client).headers["Location"]
    send(client, place, 0, CONTENT)
    assert client.get(place).json()["path"] == str(inbox / "beach (2).mp4")
    assert not (tmp_path / "elsewhere.mp4").exists() and (inbox / "beach.mp4").is_symlink()


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("at", range(8))
def test_a_server_that_is_killed_while_it_names_a_video(
    inbox: Path, monkeypatch: pytest.MonkeyPatch, at: int, links: bool
) -> None:
    """One left an empty file of its name; another let the client begin again, though the film was in."""
    uploads = receiving_into(inbox)
    begun = uploads.begin("beach.mp4", len(CONTENT))
    begun.part.write_bytes(CONTENT)
    steps = iter(range(100))

    def step(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **options: Any) -> Any:
            if next(steps) == at:
                raise Killed
            done = call(*arguments, **options)
            if next(steps) == at:
                raise Killed
            return done

        return instead

    def one_name_only(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as killed:
        killed.setattr(upload_state, "write_json", step(upload_state.write_json))
        link = os.link if links else one_name_only
        killed.setattr(os, "link", step(link))
        killed.setattr(os, "supports_follow_symlinks", {*os.supports_follow_symlinks, os.link})
        killed.setattr(Path, "touch", step(Path.touch))
        killed.setattr(Path, "replace", step(Path.replace))
        killed.setattr(Path, "unlink", step(Path.unlink))
        try:
            uploads.find(begun.upload)
        except Killed:
            pass
        else:
            assert at > 4
    if not links:
        monkeypatch.setattr(os, "link", one_name_only)
    again = receiving_into(inbox).find(begun.upload)
    assert again.path == inbox / "beach.mp4" and again.offset == len(CONTENT)
    assert [path.name for path in inbox.iterdir()] == ["beach.mp4"]
    assert (inbox / "beach.mp4").read_bytes() == CONTENT
    assert receiving_into(inbox).find(begun.upload).path == again.path


def test_a_client_that_has_missed_the_last_answer_learns_that_the_film_is_in(
    serving: Serving, folder: Path, inbox: Path, client: TestClient
) -> None:
    """Also by another server, and when the film has been moved since."""
    place = begin(client).headers["Location"]
    send(client, place, 0, CONTENT)
    with serving(folder, allow_ingest=(inbox,)) as other:
        assert other.head(place, headers=TUS).headers["Upload-Offset"] == "10240"
        (inbox / "beach.mp4").unlink()
        assert send(other, place, 10_240, b"").headers["Upload-Offset"] == "10240"
        assert begin(other).status_code == 201  # it counts for no unfinished one


def test_whole_uploads_are_not_remembered_for_ever(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_state, "_REMEMBERED", 2)
    uploads = receiving_into(inbox)
    for number in range(5):
        begun = uploads.begin(f"film {number}.mp4", len(CONTENT))
        begun.part.write_bytes(CONTENT)
        uploads.find(begun.upload)
    uploads.sweep()
    assert len(list((inbox.parent / "home").rglob("*.json"))) == 2 and len(list(inbox.iterdir())) == 5


def test_a_name_that_was_taken_and_not_filled_is_given_back(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client never comes back to an upload that was killed while it was named."""

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    def one_name_only(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    uploads = receiving_into(inbox)
    begun = uploads.begin("beach.mp4", len(CONTENT))
    begun.part.write_bytes(CONTENT)
    with monkeypatch.context() as context:
        context.setattr(os, "link", one_name_only)
        context.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            uploads.find(begun.upload)
    os.utime(begun.part, (0, 0))
    receiving_into(inbox).sweep()
    assert list(inbox.iterdir()) == []


def test_nothing_is_made_where_the_library_was(inbox: Path, tmp_path: Path) -> None:
    uploads = receiving_into(inbox)
    shutil.move(tmp_path / "home", tmp_path / "away")
    with pytest.raises(LibraryError, match="put the library back"):
        uploads.begin("film.mp4", 10)
    with pytest.raises(LibraryError, match="put the library back"):
        uploads.find(ID)
    assert not (tmp_path / "home").exists() and list(inbox.iterdir()) == []
