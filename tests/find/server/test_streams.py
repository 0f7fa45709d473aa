"""Bytes of videos in ranges, videos made playable, clips."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import av
import pytest
from fastapi.testclient import TestClient

from moviola.search import Library
from moviola.server import converting
from moviola.server.routes import streams

STREAM = "/api/videos/harbour/stream"


@pytest.fixture(scope="session")
def content(films: Path) -> bytes:
    """The file that is streamed."""
    return (films / "harbour.mp4").read_bytes()


def test_the_whole_file(client: TestClient, content: bytes) -> None:
    answer = client.get(STREAM)
    assert (answer.status_code, answer.content) == (200, content)
    assert answer.headers["Accept-Ranges"] == "bytes" and answer.headers["Content-Type"] == "video/mp4"
    assert answer.headers["Content-Length"] == str(len(content))


@pytest.mark.parametrize(("gone", "status"), [("source", 404), ("converted", 503)])
def test_a_file_that_goes_after_it_was_found(
    serving: Callable[..., TestClient], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    gone: str, status: int,
) -> None:  # fmt: skip
    with Library(folder) as library:
        source = Path(library.catalogue.video("harbour").path)
    away = tmp_path / "films"
    shutil.copytree(source.parent, away)
    with Library(folder) as library:
        library.indexer.move(source.parent, away)
    path = away / "harbour.mp4" if gone == "source" else tmp_path / "swept.mp4"

    async def found(*_: object) -> tuple[Path, str]:
        path.unlink(missing_ok=True)
        return path, "video/mp4"

    monkeypatch.setattr(streams, "_playable", found)
    with serving(folder) as client:
        answer = client.get(STREAM)
    assert answer.status_code == status and "harbour" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=0-0", 0, 1), ("bytes=0-99", 0, 100), ("bytes=100-", 100, None), ("bytes=-100", -100, None),
        ("bytes=0-", 0, None), ("bytes=5-999999999999", 5, None), ("bytes=-999999999999", 0, None),
        ("BYTES= 7-8 ", 7, 9),
    ],
)  # fmt: skip
def test_a_part_of_it(client: TestClient, content: bytes, asked: str, start: int, stop: int | None) -> None:
    answer = client.get(STREAM, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (206, content[start:stop])
    first, last, size = answer.headers["Content-Range"].removeprefix("bytes ").replace("/", "-").split("-")
    assert content[int(first) : int(last) + 1] == content[start:stop] and int(size) == len(content)


@pytest.mark.parametrize("asked", ["bytes=999999999-", "bytes=-0", "bytes=999999999-999999999999"])
def test_bytes_that_are_not_there(client: TestClient, content: bytes, asked: str) -> None:
    answer = client.get(STREAM, headers={"Range": asked})
    assert (answer.status_code, answer.headers["Content-Type"]) == (416, "application/json")
    assert answer.headers["Content-Range"] == f"bytes */{len(content)}"
    error = answer.json()["error"]
    assert error["code"] == "range"
    assert error["message"] == f"Range {asked!r}: the file has {len(content)} bytes; ask for some of these"


@pytest.mark.parametrize(
    "asked",
    [
        "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=" + "0-1," * 5000, "bytes=x", "bytes=0-1,x",
        "seconds=0-5", "bytes=5", "bytes=--5", "bytes=0x10-", "bytes=" + "9" * 5000 + "-",
        "bytes=1-2-3", "bytes=9-5",
    ],
)  # fmt: skip
def test_a_header_that_is_no_range_is_passed_over(client: TestClient, content: bytes, asked: str) -> None:
    answer = client.get(STREAM, headers={"Range": asked.encode()})
    assert (answer.status_code, answer.content) == (200, content)


def test_ranges_of_the_page_are_answered_too(client: TestClient) -> None:
    whole = client.get("/static/index.html")
    assert client.get("/static/index.html", headers={"Range": "items=0-1"}).content == whole.content
    past = client.get("/static/index.html", headers={"Range": "bytes=99999999-"})
    assert (past.status_code, past.json()["error"]["code"]) == (416, "range")


def test_several_ranges_at_once(client: TestClient, content: bytes) -> None:
    answer = client.get(STREAM, headers={"Range": "bytes=0-1,5-6"})
    assert answer.status_code == 206 and content[5:7] in answer.content
    assert answer.headers["Content-Type"].startswith("multipart/byteranges")


def test_the_header_alone(client: TestClient, content: bytes) -> None:
    answer = client.head(STREAM, headers={"Range": "bytes=0-9"})
    assert (answer.status_code, answer.content) == (206, b"")
    assert (answer.headers["Content-Length"], client.head(STREAM).headers["Content-Length"]) == (
        "10",
        str(len(content)),
    )


def test_a_range_of_another_state_of_the_file_is_not_given(client: TestClient, content: bytes) -> None:
    headers = client.head(STREAM).headers
    for state, status in ((headers["ETag"], 206), (headers["Last-Modified"], 206), ('"other"', 200)):
        answer = client.get(STREAM, headers={"Range": "bytes=0-9", "If-Range": state})
        assert answer.status_code == status
    for known in (headers["ETag"], f'"other", W/{headers["ETag"]}', "*"):
        assert client.get(STREAM, headers={"If-None-Match": known}).status_code == 304
    assert client.get(STREAM, headers={"If-None-Match": '"other"'}).status_code == 200


def test_what_browsers_do_not_play_is_made_playable_once(client: TestClient) -> None:
    before = client.get("/api/videos/market").json()
    first = client.get("/api/videos/market/stream")
    again = client.get("/api/videos/market/stream", headers={"Range": "bytes=0-99"})
    after = client.get("/api/videos/market").json()
    assert (before["playable"], after["playable"], after["stream_ready"]) == (False, False, True)
    assert first.headers["Content-Type"] == "video/mp4"
    assert first.headers["ETag"] == again.headers["ETag"] and again.content == first.content[:100]
    with av.open(BytesIO(first.content)) as container:
        assert container.streams.video[0].codec_context.name == "h264"
        assert float(container.duration or 0) / 1e6 == pytest.approx(12, abs=0.1)


@pytest.mark.parametrize("mode", ["exact", "key-frames"])
@pytest.mark.parametrize("video", ["harbour", "market"])
def test_a_clip_is_an_mp4_of_its_own(client: TestClient, video: str, mode: str) -> None:
    answer = client.get(f"/api/videos/{video}/clip?start=3&end=6&mode={mode}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
    with av.open(BytesIO(answer.content)) as container:
        seconds = float(container.duration or 0) / 1e6
    assert seconds == pytest.approx(3, abs=0.05) if mode == "exact" else 2.95 <= seconds <= 6.05


def test_modes_of_clips_have_the_names_of_the_command_line(client: TestClient) -> None:
    assert client.get("/api/library").json()["clip_formats"] == ["exact", "key-frames"]
    answer = client.get("/api/videos/harbour/clip?start=3&end=6&mode=copy")
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == "mode 'copy': give 'exact' or 'key-frames'"


@pytest.mark.parametrize(
    "span", ["start=5&end=5", "start=5&end=4", "start=99&end=100", "start=0&end=9999999"]
)
def test_a_clip_that_cannot_be_cut_is_refused(client: TestClient, span: str) -> None:
    answer = client.get(f"/api/videos/harbour/clip?{span}")
    assert answer.status_code == (200 if span.endswith("9999999") else 422), answer.text
    if span.startswith("start=99"):
        assert "harbour: start 99: the video ends at 12 s" in answer.json()["error"]["message"]


def test_a_clip_of_which_nothing_is_sent_leaves_no_file(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for asked, status in (("bytes=9999999-", 416), ("bytes=x", 200), ("bytes=0-9", 206)):
        answer = client.get("/api/videos/harbour/clip?start=3&end=4", headers={"Range": asked})
        assert (answer.status_code, list(tmp_path.iterdir())) == (status, [])


def test_a_file_that_is_gone_is_named(client: TestClient, films: Path) -> None:
    hidden = films / "market.hidden"
    (films / "market.mkv").rename(hidden)
    try:
        answer = client.get("/api/videos/market/clip?start=0&end=1")
        assert answer.status_code == 409 and "market.mkv" in answer.json()["error"]["message"]
        for what in ("still?time=1.234", "strip?count=7"):  # small ones are kept
            assert client.get(f"/api/videos/market/{what}").headers["content-type"] == "image/jpeg"
        assert client.get("/api/videos/market").json()["playable"] is False
    finally:
        hidden.rename(films / "market.mkv")


def test_a_file_that_cannot_be_examined_counts_as_gone(
    serving: Callable[..., TestClient], folder: Path
) -> None:
    with Library(folder) as library, library.catalogue.transaction():
        video = library.catalogue.video("harbour")
        lost = str(folder / ("x" * 300))  # refused by the system, as paths on a drive that fails
        library.catalogue.moved(video.row, lost, video.size, video.mtime_ns, video.sidecars)
    with serving(folder) as client:
        answer = client.get(STREAM)
        assert answer.status_code == 404 and "is not there" in answer.json()["error"]["message"]
        for what in ("still?time=1.234", "strip?count=7"):
            assert client.get(f"/api/videos/harbour/{what}").headers["content-type"] == "image/jpeg"


def test_a_conversion_that_goes_on_says_how_far_it_is(
    serving: Callable[..., TestClient], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    convert = converting.make_playable

    def slow(source: Path, out: Path, track: int | None, progress: Callable[[float], None]) -> None:
        progress(3.0)
        begun.set()
        assert goes_on.wait(30)
        convert(source, out, track, progress)

    monkeypatch.setattr(converting, "make_playable", slow)
    monkeypatch.setattr(converting, "_PATIENCE", 0.001)
    with serving(folder) as client:
        client.get("/api/videos/market/stream")
        assert begun.wait(30)
        answer = client.get("/api/videos/market/stream")
        goes_on.set()
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        error = answer.json()["error"]
        assert (error["code"], error["progress"]) == ("busy", {"share": 0.25, "seconds_left": None})
        while client.get("/api/videos/market/stream").status_code == 503:
            pass
        assert client.get("/api/videos/market/stream").status_code == 200
