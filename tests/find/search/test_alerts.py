"""Saved searches that say so when something new answers them: once, by a command or a webhook."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.client import BadStatusLine, InvalidURL
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.find.library.conftest import scene

from moviola.errors import InvalidValue
from moviola.media import write_video
from moviola.search import Library
from moviola.search import alerts as module
from moviola.search.alerts import AlertOptions, Alerts
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
        library.kept.put("search", "umbrellas", {"text": "umbrella"})
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
    library.remove(["new"])
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


class _Receiver(BaseHTTPRequestHandler):
    status, bodies = 200, list[dict[str, object]]()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.status == 200:
            self.bodies.append(json.loads(body))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_webhook_that_failed_is_asked_again(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_PAUSES", (0.0,))
    server = HTTPServer(("127.0.0.1", 0), _Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        alerts = Alerts(library, AlertOptions(webhook=f"http://127.0.0.1:{server.server_port}/found"))
        assert alerts.check() == 0
        film(films / "new.mp4", "Another umbrella was found.", 2)
        library.index(films)
        monkeypatch.setattr(_Receiver, "status", 503)
        assert alerts.check() == 0 and "not reported" in caplog.text
        monkeypatch.setattr(_Receiver, "status", 200)
        assert alerts.check() == 1 and alerts.check() == 0
    finally:
        server.shutdown()
        server.server_close()
    assert [one["video_id"] for one in _Receiver.bodies] == ["new"]


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
            raise OSError("refused")
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


@pytest.mark.parametrize("error", [BadStatusLine("?"), InvalidURL("a blank"), UnicodeError("a long label")])
def test_an_answer_that_is_none_is_a_failure(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:  # fmt: skip
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(module, "_PAUSES", (0.0,))
    monkeypatch.setattr(module, "urlopen", fails)
    alerts = Alerts(library, AlertOptions(webhook="http://127.0.0.1:9/found"))
    finding = {"search": "umbrellas", "video_id": "new", "path": "new.mp4", "moments": []}
    assert not alerts._deliver(finding, "hash") and "not reported to the webhook" in caplog.text
    assert library.kept.remember_alert("umbrellas", "hash", "webhook")  # to be tried again


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
            raise OSError("refused")
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
    assert "umbrela" in caplog.text and "umbrela" not in library.kept.alerted()
    film(films / "new.mp4", "Another umbrella was found.", 2)
    library.index(films)
    assert alerts.check() == 1
