"""Facets over HTTP, and videos that are processed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fastapi.testclient import TestClient

from distinct import film_like
from moviola.library.userdata.values import Mark
from moviola.search import Library
from moviola.server.options import Limits

Serving = Callable[..., TestClient]


def test_facets_have_all_that_filters_choose_by(serving: Serving, folder: Path, films: Path) -> None:
    with Library(folder, read_only=True) as library:
        library.userdata.mark(Mark(video_id="harbour"), add=["favourite"])
    with serving(folder) as client:
        facets = client.get("/api/facets").json()
        tagged = client.post("/api/search", json={"query": "a wall", "filter": {"tag": "favourite"}}).json()
    assert facets["videos"] == 3
    assert facets["folders"][0] == {"path": str(films), "parent": "", "videos": 3}
    assert sum(day["videos"] for day in facets["days"]) == 3
    assert {"low": 10, "high": 30, "videos": 3} in facets["lengths"]
    assert facets["lengths"][-1]["high"] is None
    assert facets["tags"] == [{"tag": "favourite", "videos": 1}]
    assert facets["evidence"] == [
        {"by": "visual", "videos": 3},
        {"by": "subtitles", "videos": 1},
        {"by": "named", "videos": 3},
    ]
    assert {moment["video_id"] for moment in tagged["moments"]} == {"harbour"}


def test_a_video_is_encoded_or_read_again(serving: Serving, folder: Path, films: Path) -> None:
    with serving(folder) as client:
        answer = client.post("/api/videos/harbour/again")
        assert answer.status_code == 403 and "--allow-ingest" in answer.json()["error"]["message"]
    with serving(folder, allow_ingest=(films,)) as client:
        for pictures in ("true", "false"):
            before = client.get("/api/videos/harbour").json()
            job = client.post("/api/videos/harbour/again", params={"pictures": pictures}).json()
            with client.stream("GET", f"/api/jobs/{job['job']}/events") as events:
                assert any("event: done" in line for line in events.iter_lines())
            done = client.get(f"/api/jobs/{job['job']}").json()
            assert (done["state"], done["error"], done["refused"]) == ("done", "", [])
            after = client.get("/api/videos/harbour").json()
            assert after["version"] != before["version"]
            assert (after["state"], after["error"], after["modified"]) == ("ready", "", before["modified"])
            assert client.get("/api/videos/harbour/cues").json()["cues"][0]["text"] == "The umbrella is gone."


def test_a_video_that_cannot_be_encoded_again_stays_as_it_is(
    serving: Serving, folder: Path, films: Path, tmp_path: Path
) -> None:
    (tmp_path / "incoming").mkdir()
    film = film_like(films / "harbour.mp4", tmp_path / "incoming" / "away.mp4")
    with Library(folder) as library:
        library.index(film, ocr=False)
    with serving(folder, allow_ingest=(film.parent,), limits=Limits(jobs=0)) as client:
        before = client.get("/api/videos/away").json()
        answer = client.post("/api/videos/away/again")
        assert (answer.status_code, client.get("/api/videos/away").json()) == (503, before)
        film.unlink()
        answer = client.post("/api/videos/away/again")
    assert answer.status_code == 404 and "plug its drive in" in answer.json()["error"]["message"]


def test_names_that_begin_so(serving: Serving, folder: Path) -> None:
    with Library(folder, read_only=True) as library:
        library.userdata.mark(Mark(video_id="harbour"), add=["Strand", "market day"])
        library.userdata.mark(Mark(video_id="removed since"), add=["Strand", "market stall"])
    with serving(folder) as client:

        def completions(text: str, **more: int) -> tuple[list[str], list[str]]:
            found = client.get("/api/completions", params={"text": text, **more}).json()
            return [one["video_id"] for one in found["videos"]], [one["tag"] for one in found["tags"]]

        assert completions("STRA") == (["deep/Straße #1 ?50%&ü"], ["Strand"])
        assert completions("strasse") == (["deep/Straße #1 ?50%&ü"], [])
        assert completions("arbour") == ([], [])
        assert completions("50") == (["deep/Straße #1 ?50%&ü"], [])
        assert completions("d") == ([], ["market day"])
        assert completions("stall") == ([], [])
        tags = client.get("/api/completions", params={"text": "strand"}).json()["tags"]
        assert tags == [{"tag": "Strand", "videos": 1}]
        assert completions("broken") == ([], []), "refused"
        assert completions("  ") == ([], [])
        assert client.get("/api/completions", params={"text": ""}).status_code == 422


def test_near_copies_are_compared_where_the_library_may_be_changed(
    serving: Serving, folder: Path, films: Path, tmp_path: Path
) -> None:
    none = {"copies": [], "comparing": None, "error": ""}
    with serving(folder) as client:
        assert client.get("/api/near-copies").json() == none
        assert client.post("/api/near-copies").status_code == 403
    with serving(folder, allow_ingest=(films,)) as client:
        assert client.post("/api/near-copies").json() == none
        assert client.delete("/api/near-copies/comparison").status_code == 204


def test_marks_of_alerts(serving: Serving, folder: Path) -> None:
    with serving(folder) as client:
        assert client.get("/api/kept/alerted").json() == {"alerted": {}}
        with Library(folder, read_only=True) as library:
            library.userdata.alert_to("beach days", 2)
        assert client.get("/api/kept/alerted").json() == {"alerted": {"beach days": 2}}


def test_orders_follow_the_library(serving: Serving, folder: Path) -> None:
    with serving(folder) as client:

        def ids(**asked: str) -> list[str]:
            return [video["video_id"] for video in client.get("/api/videos", params=asked).json()["videos"]]

        before = ids(sort="added")
        with Library(folder) as library:
            library.indexer.remove(["harbour"])
        assert ids(sort="added") == [name for name in before if name != "harbour"]
        assert "harbour" not in ids()
