"""Looking after a library over HTTP: folders, order, copies, videos taken out and back in."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from moviola.errors import InvalidValue
from moviola.search import Library
from moviola.server.comparing import Comparing

Serving = Callable[..., TestClient]


def ids(client: TestClient, **asked: str) -> list[str]:
    return [video["video_id"] for video in client.get("/api/videos", params=asked).json()["videos"]]


def test_roots_say_how_they_stand(serving: Serving, folder: Path, films: Path) -> None:
    with serving(folder, watch=()) as client:
        (root,) = client.get("/api/roots").json()["roots"]
    # Of the four files one is broken, which is no video.
    assert (root["path"], root["videos"], root["away"], root["watched"]) == (str(films), 3, "", False)


@pytest.mark.parametrize("sort", ["name", "date", "length", "added"])
def test_videos_in_an_order(client: TestClient, sort: str) -> None:
    found = ids(client, sort=sort)
    assert len(found) == 4 and ids(client, sort=sort, descending="true") == found[::-1]
    if sort == "length":
        assert found[0] == "broken"


def test_a_video_that_is_taken_out_comes_back(serving: Serving, folder: Path, films: Path) -> None:
    with serving(folder) as client:
        assert client.delete("/api/videos/harbour").json()["error"]["code"] == "forbidden"
    with serving(folder, allow_ingest=(films,)) as client:
        before = client.post("/api/search", json={"query": "umbrella"}).json()["moments"]
        assert client.delete("/api/videos/harbour").json() == {"video_id": "harbour"}
        assert "harbour" not in ids(client) and (films / "harbour.mp4").is_file()
        assert client.get("/api/videos/harbour").status_code == 404
        found = client.post("/api/search", json={"query": "umbrella"}).json()["moments"]
        assert "harbour" not in {moment["video_id"] for moment in found}
        assert client.post("/api/videos/harbour/restore").status_code == 200
        after = client.post("/api/search", json={"query": "umbrella"}).json()["moments"]
        assert [m["video_id"] for m in after] == [m["video_id"] for m in before]
        again = client.post("/api/videos/harbour/restore")
        assert again.status_code == 404 and "not among the removed" in again.json()["error"]["message"]


def test_the_language_of_subtitles_is_corrected(serving: Serving, folder: Path, films: Path) -> None:
    """It could be by a command alone; a server that only reads changes nothing."""
    address = "/api/videos/harbour/language"
    with serving(folder) as client:
        assert client.put(address, json={"language": "de"}).json()["error"]["code"] == "forbidden"
    with serving(folder, allow_ingest=(films,)) as client:
        assert client.get("/api/videos/harbour").json()["tracks"] == [
            {"kind": "subtitle", "language": "", "cues": 1}
        ]
        assert client.put(address, json={"language": "German", "before": ""}).json() == {"cues": 1}
        assert client.get("/api/videos/harbour").json()["tracks"][0]["language"] == "de"
        for wrong, status in (
            ({"language": "Klingonish"}, 422),
            ({"language": "fr", "before": "nl"}, 404),
            ({"language": "fr", "kind": "speech"}, 404),
            ({"language": "fr", "kind": "chapter"}, 422),
        ):
            assert client.put(address, json=wrong).status_code == status, wrong
        assert client.get("/api/videos/harbour").json()["tracks"][0]["language"] == "de"


def test_videos_that_are_there_twice(serving: Serving, folder: Path, films: Path, tmp_path: Path) -> None:
    shutil.copy(films / "harbour.mp4", tmp_path / "again.mp4")
    with Library(folder) as library:
        library.index(tmp_path / "again.mp4", ocr=False)
    with serving(folder) as client:
        (one,) = client.get("/api/duplicates").json()["duplicates"]
    assert set(one["paths"]) == {str(films / "harbour.mp4"), str(tmp_path / "again.mp4")}
    assert one["wasted"] == one["bytes"] == (films / "harbour.mp4").stat().st_size


def test_a_comparison_goes_on_beside_requests_and_can_be_ended() -> None:
    """It held its request open for as long as it took, without a share, and nobody could end it."""

    async def compared() -> list[object]:
        comparing, go, seen = Comparing(), asyncio.Event(), []

        async def compare(progress: Callable[[float], None]) -> None:
            seen.append("began")
            for number in (1, 2):
                progress(number / 4)
                await go.wait()

        await comparing.begin(compare, 0.0)
        await asyncio.sleep(0)
        assert comparing.progress is not None
        seen.append(comparing.progress.share)
        await comparing.begin(compare, 0.0)  # one is running already
        comparing.cancel()
        go.set()
        await comparing.begin(compare, 60.0)
        seen.append(comparing.progress)

        async def fail(_: Callable[[float], None]) -> None:
            raise InvalidValue("no room")

        with pytest.raises(InvalidValue, match="no room"):
            await comparing.begin(fail, 60.0)
        return [*seen, str(comparing.error)]

    assert asyncio.run(compared()) == ["began", 0.25, None, "no room"]
