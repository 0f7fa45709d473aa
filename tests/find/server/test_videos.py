"""What the library holds: itself, its videos, shots, words, and stills that are made once."""

from __future__ import annotations

import math
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from moviola.errors import MissingModel
from moviola.files.caches import cache_of
from moviola.media import frame_at, write_video
from moviola.search import Library
from moviola.server.stills import FileCache

Serving = Callable[..., TestClient]


def test_the_library_says_what_it_is(client: TestClient, original: Path) -> None:
    about = client.get("/api/library").json()
    assert about["name"] == ", ".join(about["libraries"]) and about["videos"] == 3
    assert about["libraries"] in (["library"], ["first", "second"]) and about["can_tag"]
    assert about["writable"] == (len(about["libraries"]) == 1)
    lengths = [video["duration"] for video in client.get("/api/videos?state=ready").json()["videos"]]
    assert about["seconds"] == pytest.approx(sum(lengths)) and sum(lengths) == pytest.approx(36, abs=1)
    assert (about["encoder"], about["evidence"]) == ("demo", ["visual", "subtitle"])
    assert (
        about["segments"] == sum(math.ceil(length / 4) for length in lengths) and about["can_ingest"] is False
    )
    assert {"csv", "edl", "clips"} <= {format["name"] for format in about["export_formats"]}
    assert about["limits"]["query_characters"] == 2000


def test_videos_are_listed_page_by_page(client: TestClient) -> None:
    everything = client.get("/api/videos").json()
    ids = [video["video_id"] for video in everything["videos"]]
    assert everything["total"] == 4 and ids == sorted(ids)
    page = client.get("/api/videos?offset=1&limit=2").json()
    assert page["total"] == 4 and [video["video_id"] for video in page["videos"]] == ids[1:3]
    refused = client.get("/api/videos?state=refused").json()["videos"]
    assert [(video["video_id"], "text file" in video["error"]) for video in refused] == [("broken", True)]
    assert client.get("/api/videos?text=HARB").json()["total"] == 1
    assert client.get("/api/videos?offset=99").json()["videos"] == []


def test_one_video_with_its_shots_and_words(client: TestClient) -> None:
    about = client.get("/api/videos/harbour").json()
    assert (about["duration"], about["width"], about["height"], about["fps"]) == (12.0, 96, 72, 5.0)
    assert about["playable"] and about["stream_ready"] and about["shots"] == 4
    shots = client.get("/api/videos/harbour/shots").json()["shots"]
    assert [(shot["start"], shot["end"]) for shot in shots] == [(0, 3), (3, 6), (6, 9), (9, 12)]
    cues = client.get("/api/videos/harbour/cues").json()["cues"]
    said = {"start": 2.0, "end": 5.0, "text": "The umbrella is gone.", "kind": "subtitle"}
    assert cues == [said | {"language": "", "form": ""}]
    assert client.get("/api/videos/harbour/cues?start=5").json()["cues"] == []
    assert len(client.get("/api/videos/harbour/cues?start=4.9&end=99").json()["cues"]) == 1


def picture(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(data)).convert("RGB"), dtype=float)


def test_a_still_is_the_frame_on_screen(client: TestClient, films: Path) -> None:
    for time in (0, 4.5, 11.9, 99):
        still = picture(client.get(f"/api/videos/harbour/still?time={time}&width=96").content)
        assert np.abs(still - frame_at(films / "harbour.mp4", time, 96)).mean() < 8


def test_a_strip_has_stills_side_by_side(client: TestClient) -> None:
    strip = picture(client.get("/api/videos/harbour/strip?count=4&width=96").content)
    assert strip.shape == (72, 4 * 96, 3)
    for place in range(4):
        still = picture(client.get(f"/api/videos/harbour/still?time={1.5 + 3 * place}&width=96").content)
        assert np.abs(strip[:, place * 96 : (place + 1) * 96] - still).mean() < 8


def test_a_strip_of_a_few_milliseconds_repeats_its_stills(client: TestClient) -> None:
    strip = picture(client.get("/api/videos/harbour/strip?start=1&end=1.003&count=6&width=96").content)
    still = picture(client.get("/api/videos/harbour/still?time=1&width=96").content)
    assert strip.shape == (72, 6 * 96, 3) and np.abs(strip - np.tile(still, (1, 6, 1))).mean() < 8


def test_a_tall_film_keeps_its_shape(serving: Serving, tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    write_video(tmp_path / "films" / "tower.mp4", [np.full((640, 16, 3), 200, np.uint8)] * 20, rate=5)
    with Library(tmp_path / "library", encoder="demo", sentence_encoder="none") as library:
        library.index(tmp_path / "films", ocr=False)
    with serving(tmp_path / "library") as client:
        still = picture(client.get("/api/videos/tower/still?width=1920").content)
        strip = picture(client.get("/api/videos/tower/strip?width=100&count=3").content)
    assert still.shape == (4080, 102, 3)
    assert strip.shape == (200, 300, 3)
    assert strip[:, 48:52].min() > 150 and strip[:, :40].max() < 50  # in the middle of its tile


@pytest.mark.parametrize("span", ["start=5&end=5", "start=6&end=5", "start=12", "start=99&end=100"])
def test_a_strip_of_nothing_is_refused(client: TestClient, span: str) -> None:
    assert client.get(f"/api/videos/harbour/strip?{span}").status_code == 422


def test_a_still_of_a_known_version_is_kept_for_ever(client: TestClient) -> None:
    """Its file is part of it: a browser showed stills of the library that was served there before."""
    version = client.get("/api/videos/harbour").json()["version"]
    still = "/api/videos/harbour/still?time=2"
    assert "immutable" in client.get(f"{still}&v={version}").headers["Cache-Control"]
    number, digest = version.split("-")
    for other in ("", "&v=0", "&v=%00", f"&v={number}", f"&v={number}-{digest[::-1]}"):
        answer = client.get(still + other)
        assert answer.headers["Cache-Control"] == "private, no-cache"
        for etag in (answer.headers["ETag"], "*"):
            known = client.get(still + other, headers={"If-None-Match": etag})
            assert (known.status_code, known.content) == (304, b"")


def test_a_still_is_made_once_and_lies_in_the_library(
    serving: Serving, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[float] = []

    def counted(path: Path, time: float, width: int) -> np.ndarray:
        made.append(time)
        return frame_at(path, time, width)

    monkeypatch.setattr("moviola.server.stills.frame_at", counted)
    for _ in range(2):  # another server finds it too
        with serving(folder) as client:
            assert client.get("/api/videos/harbour/still?time=2").status_code == 200
            assert client.get("/api/videos/harbour/still?time=2.0001").status_code == 200
    assert made == [2.0]
    assert len(list((folder / "cache" / "stills").rglob("*.jpg"))) == 1


def test_a_library_that_cannot_be_written_is_served(
    serving: Serving, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviola.files.caches.os.access", lambda *_: False)
    monkeypatch.setattr("moviola.files.caches.user_cache", lambda: tmp_path / "user")
    with serving(folder) as client:
        assert client.get("/api/videos/harbour/still?time=2").status_code == 200
    assert not (folder / "cache" / "stills").exists()
    assert len(list(tmp_path.glob("user/libraries/*/stills/*/*.jpg"))) == 1
    assert cache_of(folder) != cache_of(tmp_path)


def test_the_cache_forgets_what_was_used_longest_ago(tmp_path: Path) -> None:
    import os

    cache = FileCache(tmp_path / "cache", tmp_path, 5 * 5120)  # a page and an entry for each
    for number in range(10):
        path = cache._made(f"{number}", lambda path: path.write_bytes(b"x" * 20) and None)
        os.utime(path, (number, number))
        if number == 3:
            assert cache.find("0") is not None  # which marks it as new
    left = {path.name for path in (tmp_path / "cache").iterdir()}
    assert "9" in left and "0" in left and "1" not in left and len(left) <= 5


def test_readiness_and_figures(client: TestClient) -> None:
    assert client.get("/healthz").text == "ok"
    assert [client.head(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]
    client.post("/api/search", json={"query": "a wall"})
    assert client.get("/readyz").json() == {"ready": True, "reason": ""}
    figures = client.get("/metrics").text
    assert 'moviola_requests_total{method="POST",route="/api/search",status="200"}' in figures
    assert "moviola_videos 3.0" in figures and "moviola_ready 1.0" in figures
    client.get("/api/videos/harbour/still")
    assert 'route="/api/videos/{video_id}/still"' in client.get("/metrics").text
    assert "harbour" not in client.get("/metrics").text


@pytest.mark.parametrize(
    "error, status, reason",
    [
        (MissingModel("demo: not on this machine"), 409, "demo: not on this machine"),
        (ZeroDivisionError("a defect"), 500, "a first query failed; the server's log says where"),
    ],
)
def test_a_library_that_cannot_be_searched_says_so(
    serving: Serving, folder: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, error: Exception, status: int, reason: str,
) -> None:  # fmt: skip
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Library, "search", failing)
    with serving(folder) as client:
        assert client.get("/readyz").json() == {"ready": False, "reason": reason}
        assert f"no query can be answered: {error}" in caplog.text
        assert client.post("/api/search", json={"query": "a wall"}).status_code == status


def test_stills_of_a_drive_that_is_away(serving: Callable[..., TestClient], folder: Path) -> None:
    """Those that are kept, which the browser asks for again; and it is said that the video is away."""
    with Library(folder) as library:
        video = library.catalogue.video("harbour")
        with library.catalogue.transaction():
            library.catalogue.moved(video.row, "/away/x.mp4", video.size, video.mtime_ns, video.sidecars)
    with serving(folder) as http:
        for what in ("still?time=2&width=200", "strip?count=3&width=100"):
            answer = http.get(f"/api/videos/harbour/{what}&v={video.version}")
            assert answer.status_code == 200 and answer.headers["cache-control"] == "private, no-cache"
            assert Image.open(BytesIO(answer.content)).width in (200, 300)
        about = http.get("/api/videos", params={"text": "harbour"}).json()["videos"][0]
        assert about["away"] is True and about["paths"] == ["/away/x.mp4"]
        found = http.post("/api/search", json={"query": "umbrella"}).json()["moments"]
        assert {moment["video_id"]: moment["away"] for moment in found}["harbour"] is True


def test_the_folder_of_a_video_is_opened_where_the_server_is(
    serving: Serving, original: Path, started_programs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviola.export.players.shutil.which", lambda name: f"/bin/{name}")
    with serving(original) as client:
        assert client.get("/api/library").json()["opens_folders"] is True
        assert client.post("/api/videos/harbour/folder").status_code == 204
        path = Path(client.get("/api/videos/harbour").json()["path"])
    [command] = started_programs
    assert str(path.parent) in command[-1]
    with serving(original, host="0.0.0.0", token="a-long-secret", read_token="another-secret") as client:
        client.headers["Authorization"] = "Bearer a-long-secret"
        assert client.get("/api/library").json()["opens_folders"] is False
        refused = client.post("/api/videos/harbour/folder")
        assert (refused.status_code, len(started_programs)) == (403, 1)
        assert "copy the path" in refused.json()["error"]["message"]
        client.headers["Authorization"] = "Bearer another-secret"
        assert client.post("/api/videos/harbour/folder").status_code == 403
