"""Saved searches that say so when something new answers them: once, by a command or a webhook."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from PIL import Image
from tests.find.library.conftest import scene

from moviola.errors import InvalidValue
from moviola.media import frame_at, write_video
from moviola.search import Asked, Library, LikePicture, Marked, MarkedMoment, SearchOptions
from moviola.search import alerts as module
from moviola.search.alerts import AlertOptions, Alerts
from moviola.search.deliveries import Deliveries, NotDelivered, post, run_command
from moviola.types import Cue

WRITES = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read() + b'\\n')"


def film(path: Path, words: str, seed: int) -> Path:
    write_video(path, scene((20 * seed, 90, 30), 20, seed), rate=5, subtitles=[Cue(1.0, 3.0, words)])
    return path


@pytest.fixture
def films(tmp_path: Path) -> Path:
    (tmp_path / "films").mkdir()
    film(tmp_path / "films" / "old.mp4", "The lighthouse keeper lost his umbrella.", 1)
    return tmp_path / "films"


@pytest.fixture
def library(films: Path, tmp_path: Path) -> Iterator[Library]:
    with Library(tmp_path / "lib", encoder="none", sentence_encoder="none") as library:
        library.index(films)
        library.userdata.put("search", "umbrellas", {"query": "umbrella"})
        yield library


def test_a_new_video_is_reported_once(library: Library, films: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.jsonl"
    options = AlertOptions(command=(sys.executable, "-c", WRITES, str(out)))
    assert Alerts(library, options).check() == 0  # what is there already is not new
    film(films / "new.mp4", "Another umbrella was found.", 2)
    film(films / "other.mp4", "Nobody came.", 3)
    library.index(films)
    assert Alerts(library, options).check() == 1
    (found,) = map(json.loads, out.read_text().splitlines())
    assert (found["search"], found["video_id"]) == ("umbrellas", "new")
    assert found["path"] == str(films / "new.mp4") and found["moments"][0]["end"] > 1
    # Neither again, nor after a restart, nor when the same bytes come back under another row.
    library.indexer.remove(["new"])
    library.index(films)
    assert Alerts(library, options).check() == 0
    assert len(out.read_text().splitlines()) == 1


def test_a_long_video_leaves_room_for_the_others(library: Library, films: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.jsonl"
    alerts = Alerts(library, AlertOptions(command=(sys.executable, "-c", WRITES, str(out))))
    assert alerts.check() == 0
    often = [Cue(4.0 * place, 4.0 * place + 1, "An umbrella.") for place in range(30)]
    write_video(films / "long.mp4", scene((40, 90, 30), 120, 2), rate=1, subtitles=often)
    film(films / "new.mp4", "My umbrella, please.", 3)
    library.index(films)
    assert alerts.check() == 2
    found = {one["video_id"]: len(one["moments"]) for one in map(json.loads, out.read_text().splitlines())}
    assert found == {"long": 10, "new": 1}


class Receiver(HTTPServer):
    """Answers each POST with the status that a test has set, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.location, self.bodies = 200, "", list[dict[str, object]]()
        self.address = f"http://127.0.0.1:{self.server_port}/found"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(json.loads(body))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def raw(serve: Callable[[socket.socket, threading.Event], object]) -> Iterator[str]:
    """The address of a server that does anything with each connection, until an event is set."""
    over = threading.Event()
    with ExitStack() as connections, socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            while not over.is_set():
                with suppress(OSError):
                    connection, _ = listening.accept()
                    connections.enter_context(connection)
                    serve(connection, over)

        thread = threading.Thread(target=run)
        thread.start()
        port = listening.getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}/found"
        finally:
            over.set()
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                pass
            thread.join()


def silent(connection: socket.socket, over: threading.Event) -> None:
    over.wait()


def dripping(connection: socket.socket, over: threading.Event) -> None:
    """A letter of an answer now and then, for ever."""
    with suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while not over.wait(0.05):
            connection.sendall(b"a")


def mumbling(connection: socket.socket, _: threading.Event) -> None:
    connection.recv(4096)
    connection.sendall(b"?\r\n\r\n")
    connection.close()


def found(library: Library, films: Path, name: str = "new", seed: int = 2) -> None:
    """Something new that answers the search."""
    film(films / f"{name}.mp4", "Another umbrella was found.", seed)
    library.index(films)


def test_a_webhook_that_failed_is_asked_again(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_PAUSES", (0.0,))
    with receiving() as server, Alerts(library, AlertOptions(webhook=server.address)) as alerts:
        assert alerts.check() == 0
        found(library, films)
        server.status = 503
        assert alerts.check() == 0 and "not reported to the webhook: it answers 503" in caplog.text
        assert len(server.bodies) == 2
        server.status = 204
        assert alerts.check() == 1 and alerts.check() == 0
    assert [one["video_id"] for one in server.bodies] == ["new"] * 3


@pytest.mark.parametrize("status", [301, 302, 307, 400])
def test_an_answer_other_than_2xx_is_no_delivery(
    library: Library,
    films: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    """A redirect was followed, to any host and as a GET; the finding was lost and counted as delivered."""
    monkeypatch.setattr(module, "_PAUSES", ())
    with receiving() as other, receiving() as server:
        alerts = Alerts(library, AlertOptions(webhook=server.address))
        alerts.check()
        found(library, films)
        server.status, server.location = status, other.address if status < 400 else ""
        assert alerts.check() == 0 and f"it answers {status}" in caplog.text
        assert status == 400 or f"to {other.address}; redirects are not followed" in caplog.text
        server.status, server.location = 200, ""
        assert alerts.check() == 1 and len(server.bodies) == 2 and other.bodies == []
        alerts.close()


@pytest.mark.parametrize(
    ("serve", "seconds", "reason"),
    [(dripping, 1, "not done within"), (silent, 1, "(timed out|not done within)"), (mumbling, 60, r"\?")],
)
def test_an_answer_that_is_none_is_a_failure_in_limited_time(
    serve: Callable[[socket.socket, threading.Event], object], seconds: float, reason: str
) -> None:
    """The limit was one of each read: a letter every two seconds stopped watching for ever."""
    with raw(serve) as address, pytest.raises(NotDelivered, match=reason) as refusal:
        post(address, b"{}", threading.Event(), seconds=seconds)
    assert refusal.value.all


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/a b", f"http://{'a' * 100}.example/", "http://[::1]:9/"]
)
def test_an_address_that_cannot_be_asked_is_a_failure(address: str) -> None:
    with pytest.raises(NotDelivered):
        post(address, b"{}", threading.Event())


def test_a_receiver_that_does_not_answer_keeps_nothing_waiting(library: Library, films: Path) -> None:
    """Neither the watcher, nor the command, nor the end; and nothing is lost by it."""
    stop, ran = threading.Event(), threading.Event()
    with raw(silent) as address:
        alerts = Alerts(library, AlertOptions(command=("x",), webhook=address), stop)
        alerts._receivers["command"]._give = lambda _: ran.set()
        assert alerts.check() == 0
        before = library.userdata.alerted()["umbrellas"]
        found(library, films)
        assert alerts.queue() == 1
        found(library, films, "newer", 3)
        assert alerts.queue() == 2
        ran.wait()
        alerts.close()
        assert not any(
            receiver._thread.is_alive() for receiver in alerts._receivers.values() if receiver._thread
        )
    assert library.userdata.alerted()["umbrellas"] == before
    with receiving() as server, Alerts(library, AlertOptions(webhook=server.address)) as again:
        assert again.check() == 2 and again.check() == 0
    assert sorted(str(one["video_id"]) for one in server.bodies) == ["new", "newer"]
    assert library.userdata.alerted()["umbrellas"] == max(library.store.searchable())


def test_a_receiver_that_is_away_is_not_asked_for_each_finding(
    library: Library, films: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[bytes] = []

    def give(body: bytes) -> None:
        asked.append(body)
        raise NotDelivered("away", all=True)

    with Alerts(library, AlertOptions(webhook="http://127.0.0.1:9/found")) as alerts:
        alerts.check()
        for seed, name in enumerate(("x", "y", "z"), 2):
            film(films / f"{name}.mp4", "Another umbrella was found.", seed)
        library.index(films)
        alerts._receivers["webhook"]._give = give
        assert alerts.check() == 0
        assert 1 <= len(asked) <= 3 and "away" in caplog.text
        alerts._receivers["webhook"]._give = lambda _: None
        assert alerts.check() == 3


def test_a_finding_that_is_refused_keeps_no_other_from_its_receiver(library: Library, films: Path) -> None:
    def give(body: bytes) -> None:
        if json.loads(body)["video_id"] == "x":
            raise NotDelivered("it answers 400", all=False)

    with Alerts(library, AlertOptions(webhook="http://127.0.0.1:9/found")) as alerts:
        alerts.check()
        for seed, name in enumerate(("x", "y", "z"), 2):
            film(films / f"{name}.mp4", "Another umbrella was found.", seed)
        library.index(films)
        alerts._receivers["webhook"]._give = give
        assert alerts.check() == 2 and alerts.check() == 0
        alerts._receivers["webhook"]._give = lambda _: None
        assert alerts.check() == 1


def test_a_fault_of_our_own_keeps_no_other_finding_from_a_receiver(caplog: pytest.LogCaptureFixture) -> None:
    """The thread ended by it, and callers that waited for the receiver waited for ever."""
    done: list[tuple[str, bool]] = []

    def give(body: bytes) -> None:
        if body == b"1":
            raise RuntimeError("not expected")

    stop = threading.Event()
    deliveries = Deliveries("webhook", give, lambda key, delivered: done.append((key, delivered)), stop)
    for number in ("1", "2"):
        deliveries.add(number, number.encode())
    deliveries.wait()
    assert done == [("1", False), ("2", True)] and "not expected" in caplog.text
    stop.set()
    deliveries.end(5)


def test_a_command_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(NotDelivered, match=r"not done within 0\.5 s"):
        run_command(
            (sys.executable, "-c", "import threading; threading.Event().wait()"),
            b"{}",
            threading.Event(),
            0.5,
        )
    with pytest.raises(NotDelivered, match="No such file"):
        run_command((str(tmp_path / "none"),), b"{}", threading.Event())
    with pytest.raises(NotDelivered, match="ended with code 3"):
        run_command((sys.executable, "-c", "raise SystemExit(3)"), b"{}", threading.Event())


@pytest.mark.slow
def test_watching_ends_by_a_signal_while_a_receiver_does_not_answer(
    library: Library, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("[watch]\nsettle = 0.1\n")
    monkeypatch.setenv("MOVIOLA_CONFIG", str(tmp_path / "config.toml"))
    with raw(dripping) as address:
        Alerts(library, AlertOptions(webhook=address)).check()
        film(films / "new.mp4", "Another umbrella was found.", 2)
        words = ["watch", str(films), "-l", str(library.folder), "--alert-to", address]
        with subprocess.Popen([sys.executable, "-m", "moviola", *words], stdout=subprocess.PIPE) as watching:
            assert watching.stdout is not None
            watching.stdout.readline()  # it has brought the film in
            watching.send_signal(signal.SIGTERM)
            assert watching.wait(60) == 0
    assert library.userdata.alerted()["umbrellas"] < max(library.store.searchable())


def test_one_receiver_that_fails_does_not_repeat_the_other(
    library: Library, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, failing = tmp_path / "found.jsonl", {"webhook"}
    options = AlertOptions(
        command=(sys.executable, "-c", WRITES, str(out)), webhook="http://127.0.0.1:9/found"
    )
    posted: list[bytes] = []

    def post(_: Alerts, body: bytes) -> None:
        if failing:
            raise NotDelivered("refused", all=True)
        posted.append(body)

    monkeypatch.setattr(Alerts, "_post", post)
    alerts = Alerts(library, options)
    assert alerts.check() == 0
    film(films / "new.mp4", "Another umbrella was found.", 2)
    library.index(films)
    assert alerts.check() == 0 and alerts.check() == 0
    assert len(out.read_text().splitlines()) == 1 and not posted
    # The other way round as well: a command that fails does not keep a finding from the webhook.
    film(films / "newer.mp4", "A third umbrella.", 4)
    library.index(films)
    failing.clear()
    broken = Alerts(library, AlertOptions(command=("false",), webhook=options.webhook))
    assert broken.check() == 1 and len(posted) == 2
    assert alerts.check() == 1 and alerts.check() == 0
    assert len(out.read_text().splitlines()) == 2 and len(posted) == 2


@pytest.mark.parametrize("webhook", ["file:///etc", "http://[::1", "http://a:x/found", "found"])
def test_an_address_is_one(webhook: str) -> None:
    with pytest.raises(InvalidValue, match="give an address"):
        AlertOptions(webhook=webhook)
    assert not AlertOptions() and AlertOptions(command=("true",))


def test_all_that_could_not_be_delivered_is_tried_again(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only the last of several videos."""
    posted, failing = list[str](), {"webhook"}

    def post(_: Alerts, body: bytes) -> None:
        if failing:
            raise NotDelivered("refused", all=True)
        posted.append(json.loads(body)["video_id"])

    monkeypatch.setattr(Alerts, "_post", post)
    alerts = Alerts(library, AlertOptions(webhook="http://127.0.0.1:9/found"))
    assert alerts.check() == 0
    for seed, name in enumerate(("a", "b", "c"), 2):
        film(films / f"{name}.mp4", "Another umbrella was found.", seed)
    library.index(films)
    assert alerts.check() == 0
    failing.clear()
    assert alerts.check() == 3 and sorted(posted) == ["a", "b", "c"]


def test_a_name_that_no_search_has_is_said_at_once(
    library: Library, films: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "found.jsonl"
    command = (sys.executable, "-c", WRITES, str(out))
    alerts = Alerts(library, AlertOptions(("umbrela", "umbrellas"), command))
    assert alerts.check() == 0
    assert "umbrela" in caplog.text and "umbrela" not in library.userdata.alerted()
    film(films / "new.mp4", "Another umbrella was found.", 2)
    library.index(films)
    assert alerts.check() == 1


def test_a_search_of_single_videos_reports_those_and_no_more_moments_than_it_asks_for(
    library: Library, films: Path, tmp_path: Path
) -> None:
    out = tmp_path / "found.jsonl"
    library.userdata.delete("search", "umbrellas")
    for name, videos in (("one", ["new"]), ("other", ["old"])):
        library.saved.save(name, Asked("umbrella", SearchOptions(videos=videos, per_video=1)))
    alerts = Alerts(library, AlertOptions(command=(sys.executable, "-c", WRITES, str(out))))
    assert alerts.check() == 0
    film(films / "new.mp4", "An umbrella. Another umbrella.", 2)
    film(films / "more.mp4", "No more umbrella.", 3)
    library.index(films)
    assert alerts.check() == 1
    (found,) = map(json.loads, out.read_text().splitlines())
    assert (found["search"], found["video_id"], len(found["moments"])) == ("one", "new", 1)


def test_a_picture_and_marks_are_watched_for(films: Path, tmp_path: Path) -> None:
    """Of which the picture's file is gone by then."""
    out, picture = tmp_path / "found.jsonl", tmp_path / "x.png"
    with Library(tmp_path / "seen", encoder="demo", sentence_encoder="none") as library:
        library.index(films, ocr=False)
        Image.fromarray(frame_at(films / "old.mp4", 2.0, 96)).save(picture)
        marks = (MarkedMoment("old", 0, 3),)
        library.saved.save("alike", Asked(LikePicture(picture)))
        library.saved.save("marked", {"query": {"right": [{"video_id": "old", "start": 0, "end": 3}]}})
        assert library.saved.asked("marked").query == Marked(None, marks)
        picture.unlink()
        alerts = Alerts(library, AlertOptions(command=(sys.executable, "-c", WRITES, str(out))))
        assert alerts.check() == 0
        film(films / "again.mp4", "Something else.", 1)
        library.index(films, ocr=False)
        assert alerts.check() == 2
    found = map(json.loads, out.read_text().splitlines())
    assert {(one["search"], one["video_id"]) for one in found} == {("alike", "again"), ("marked", "again")}
