"""Several libraries served as one: what changes goes to the library of its video, or is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from http_calls import error, keep, kept, of_video, ok, search, unkeep
from moviola.errors import InvalidValue
from moviola.search import Asked, Library, LikePicture, Text

Serving = Callable[..., TestClient]


def ids(client: TestClient) -> set[str]:
    return {video["video_id"] for video in ok(client.get("/api/videos"))["videos"]}


def test_the_answer_is_that_of_one_library(
    serving: Serving, folder: Path, two: list[Path], films: Path
) -> None:
    """To the byte, whatever is asked, whichever library has the video."""
    queries = ["a wall", "umbrella", {"terms": [{"text": "a wall"}, {"video_id": "harbour", "time": 2.0}]}]
    answers = []
    for served in (folder, two):
        with serving(served) as client:
            found = [search(client, query) for query in queries]
            curve = client.post("/api/curve", json={"query": "umbrella", "video_id": "harbour"})
            lists = ok(client.get("/api/completions?text=har")), ok(client.get("/api/facets"))
            # Numbers and versions are the libraries' own.
            rows = [
                [{**one, "number": 0, "version": ""} for one in answer["moments"]] + [answer["notes"]]
                for answer in found
            ]
            answers.append((rows, ok(curve), *lists))
    assert answers[0] == answers[1] and all(rows[0] for rows in answers[0][0])


@pytest.mark.slow
def test_what_changes_goes_to_the_library_of_the_video(
    serving: Serving, two: list[Path], films: Path
) -> None:
    """Also where both have a video of that id: under the id that it has there, and not in the other one."""
    with Library(two[0]) as first:
        first.indexer.restore(["harbour"])
    with serving(two, allow_ingest=(films,)) as client:
        name = "second:harbour"
        assert {name, "first:harbour"} <= ids(client) and "harbour" not in ids(client)
        about = ok(client.get(of_video(name)))
        assert (about["library"], about["path"]) == ("second", str(films / "harbour.mp4"))
        mark = {"video_id": name, "tags": ["favourite"]}
        assert ok(keep(client, "mark", name, mark, version=0))["name"] == name
        assert [entry["name"] for entry in kept(client)] == [name]
        assert ok(client.put(of_video(name, "language"), json={"language": "de"})) == {"cues": 1}
        with client.stream("GET", f"/api/jobs/{_again(client, name)['job']}/events") as events:
            assert any("event: done" in line for line in events.iter_lines())
        assert ok(client.delete(of_video(name))) == {"video_id": name}
        assert "harbour" in ids(client)  # that of the first library, which no other has now
        ok(client.post(of_video(name, "restore")))
        assert {name, "first:harbour"} <= ids(client)
        assert ok(client.get(of_video(name)))["tracks"][0]["language"] == "de"
        assert error(client.post(of_video(name, "restore")))[:2] == (404, "not_found")
        assert ok(client.post("/api/near-copies"))["error"] == ""
        assert unkeep(client, "mark", name).status_code == 204
        ok(keep(client, "mark", name, mark, version=0))
    for folder, tags, language in ((two[0], {}, ""), (two[1], {"favourite": {"harbour"}}, "de")):
        with Library(folder, read_only=True) as library:
            assert library.userdata.tagged() == tags
            row = library.catalogue.video("harbour").row
            assert library.catalogue.tracks([row])[row][0].language == language


def _again(client: TestClient, name: str) -> dict[str, str]:
    job: dict[str, str] = ok(client.post(of_video(name, "again"), params={"pictures": "false"}))
    assert job["library"] == "second"
    return job


@pytest.mark.slow
def test_what_belongs_to_one_library_is_refused(serving: Serving, two: list[Path], films: Path) -> None:
    """With the names of the libraries, without their paths, and with a remedy; nothing of it is written."""
    taught = {"title": "wall", "query": {"right": [{"video_id": "harbour", "start": 0, "end": 2}]}}
    moments = {"moments": [{"video_id": "harbour", "start": 0, "end": 2}]}
    with serving(two, allow_ingest=(films,)) as client:
        for refused in (
            keep(client, "search", "walls", {"query": "a wall"}),
            keep(client, "collection", "walls", moments),
            client.get("/api/kept/opened"),
            client.get("/api/kept/alerted"),
            client.get("/api/kept/lines"),
            client.post("/api/kept/lines", content="{}"),
            client.post("/api/concepts", json=taught),
            client.delete("/api/concepts/wall"),
        ):
            status, code, message = error(refused)
            assert (status, code) == (409, "unavailable"), message
            assert message.startswith("first, second: searched as one, but ") and "alone" in message
            assert str(two[0].parent) not in message
        for given in ({}, {"library": "third"}):
            refused = client.post("/api/jobs", json={"sources": [str(films)], **given})
            assert refused.json()["error"]["field"] == "library"
            assert error(refused)[2].endswith("name one of first, second")
        job = ok(client.post("/api/jobs", json={"sources": [str(films)], "library": "second", "ocr": False}))
        with client.stream("GET", f"/api/jobs/{job['job']}/events") as events:
            assert any("event: done" in line for line in events.iter_lines())
    with Library(two[0], read_only=True) as first, Library(two[1], read_only=True) as second:
        assert len(first) == 1 and len(second) == 3  # all films were brought into the one that was named
        assert not first.userdata.entries() and not second.userdata.entries()
    with pytest.raises(InvalidValue, match="moviola watch FOLDER --library LIBRARY"):
        serving(two, watch=(films,))


def test_collections_and_saved_searches_of_all_are_read(
    serving: Serving, two: list[Path], tmp_path: Path
) -> None:
    """Not those of the first library alone. A saved search asks all, also with a picture that only one of
    them keeps; collections are shown beside those of the browser.
    """
    picture = tmp_path / "wall.png"
    Image.new("RGB", (64, 48), "red").save(picture)
    moment = {"video_id": "harbour", "start": 0, "end": 2}
    for folder in two:
        with Library(folder, read_only=True) as library:
            library.userdata.put("collection", "walls", {"moments": [moment]})
            library.saved.save("wall", Asked(Text("a wall")))
    with Library(two[1], read_only=True) as library:
        library.saved.save("like", Asked(LikePicture(picture)))
    with serving(two, token="a-secret", read_token="another") as client:
        client.headers["Authorization"] = "Bearer another"
        about = ok(client.get("/api/library"))
        assert (about["right"], about["writable"], about["can_tag"]) == ("read", False, False)
        assert [entry["name"] for entry in kept(client, "collection")] == ["first:walls", "second:walls"]
        saved = {entry["name"]: entry["value"]["query"] for entry in kept(client, "search")}
        assert saved.keys() == {"first:wall", "second:wall", "like"}
        for query in saved.values():
            found = {one["video_id"] for one in search(client, query)["moments"]}
            assert found == ids(client) - {"broken"}
        client.headers["Authorization"] = "Bearer a-secret"
        assert error(unkeep(client, "search", "like"))[:2] == (409, "unavailable")
        client.headers["Authorization"] = "Bearer another"
        refused = keep(client, "mark", "harbour", {"video_id": "harbour", "tags": ["a"]})
        assert error(refused)[:2] == (403, "forbidden")
        client.headers["Authorization"] = "Bearer nobody"
        assert error(client.get("/api/library"))[0] == 401


def test_pictures_lie_in_the_cache_of_their_library(serving: Serving, two: list[Path]) -> None:
    """By its own numbers: served in another order, or beside another library, none is taken for that of
    another video.
    """
    shown = []
    for served in (two, two[::-1], two[1]):
        with serving(served) as client:
            shown.append(client.get(of_video("harbour", "still?time=2&width=96")).content)
    assert shown[0] == shown[1] == shown[2]
    made = [[*(folder / "cache" / "stills").rglob("*.jpg")] for folder in two]
    assert [len(files) for files in made] == [0, 1]


def test_a_library_that_fails_makes_the_server_unready(
    serving: Serving, two: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer without the videos of one would say that they are not there."""
    for shard in (two[1] / "features").glob("frames*"):
        shard.unlink()
    shutil.rmtree(two[1] / "index")
    with serving(two) as client:
        assert client.portal is not None
        client.portal.call(client.app.state.service.warm)  # type: ignore[attr-defined]
        ready = client.get("/readyz")
        assert ready.status_code == 503 and "second" in ready.json()["reason"]
        assert error(client.post("/api/search", json={"query": "a wall"}))[1] == "unavailable"
