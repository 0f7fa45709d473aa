"""Queries over HTTP give what the library gives."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from chat_server import ChatModel, verdict
from moviola.library.disk.models_in_use import DEMO_MODELS
from moviola.search import Filter, Library, LikeMoment, Marked, MarkedMoment, Text, WeightedSum
from moviola.server.options import Limits

Serving = Callable[..., TestClient]

QUERIES: dict[str, tuple[Any, Any]] = {
    "text": ("a red wall", Text("a red wall")),
    "sum": (
        {"terms": [{"text": "a wall", "weight": 2}, {"video_id": "harbour", "time": 3.5}]},
        WeightedSum.of([(Text("a wall"), 2.0), (LikeMoment("harbour", 3.5), 1.0)]),
    ),
    "sequence": (
        {"terms": [{"text": "a wall"}], "then": [{"terms": [{"text": "a door"}], "gap": 5}]},
        Text("a wall").then("a door", gap=5),
    ),
    "exclusion": (
        {
            "terms": [{"text": "a wall"}],
            "without": ["a door", {"terms": [{"video_id": "market", "time": 1}]}],
        },
        Text("a wall").without("a door", LikeMoment("market", 1)),
    ),
    "marks, later steps and exclusions": (
        {
            "right": [{"video_id": "harbour", "start": 1, "end": 3}],
            "then": [{"terms": [{"text": "a door"}], "gap": 5}],
            "without": ["snow"],
        },
        Marked(None, (MarkedMoment("harbour", 1, 3),)).then("a door", gap=5).without("snow"),
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_those_of_the_library(client: TestClient, original: Path, name: str) -> None:
    sent, query = QUERIES[name]
    answer = client.post("/api/search", json={"query": sent, "top_k": 5}).raise_for_status().json()
    with Library(original, read_only=True) as library:
        wanted = library.search(query, top_k=5)
    assert answer["query"] == str(query)
    assert answer["confident"] == wanted.confident
    assert [
        (m["rank"], m["video_id"], m["start"], m["end"], m["score"], len(m["steps"]))
        for m in answer["moments"]
    ] == [(m.rank, m.video_id, m.start, m.end, m.score, len(m.steps)) for m in wanted]
    assert answer["moments"] and answer["timings"]["total"] >= answer["timings"]["search"] > 0


def test_filters_are_written_as_on_the_command_line(client: TestClient, original: Path) -> None:
    texts = {"where": "50%..", "moment_length": "..4", "video_length": "5..1:00", "folder": "*/deep/*"}
    answer = client.post("/api/search", json={"query": "a wall", "filter": texts}).raise_for_status().json()
    with Library(original, read_only=True) as library:
        wanted = library.search("a wall", top_k=24, filter=Filter.parse(**texts))
    assert [(m["video_id"], m["start"]) for m in answer["moments"]] == [(m.video_id, m.start) for m in wanted]
    assert wanted


def test_speech_comes_with_its_words(client: TestClient) -> None:
    moment = client.post("/api/search", json={"query": "umbrella"}).json()["moments"][0]
    assert (moment["video_id"], moment["snippet"]) == ("harbour", "The umbrella is gone.")
    assert moment["snippet_kind"] == "subtitle"


def test_a_picture_is_searched_with_and_its_place_stays_hidden(client: TestClient) -> None:
    still = client.get("/api/videos/harbour/still?time=4&width=96").content
    sent = client.post("/api/pictures", content=still, headers={"Content-Type": "image/jpeg"}).json()
    assert (sent["width"], sent["height"]) == (96, 72)
    answer = client.post("/api/search", json={"query": {"terms": [{"picture": sent["picture"]}]}}).json()
    assert answer["query"] == f"like picture {sent['picture']}"
    best = answer["moments"][0]
    assert best["video_id"] == "harbour" and best["start"] <= 4 < best["end"]


@pytest.mark.parametrize("what", ["nothing", "text", "svg", "cut", "bomb"])
def test_a_file_without_a_picture_is_refused(client: TestClient, what: str) -> None:
    still = client.get("/api/videos/harbour/still?time=4").content
    large = BytesIO()
    Image.new("1", (20_000, 20_000)).save(large, "PNG")
    data = {
        "nothing": b"", "text": b"GIF89a but no", "svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "cut": still[:200], "bomb": large.getvalue(),
    }[what]  # fmt: skip
    answer = client.post("/api/pictures", content=data)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_value")


def test_the_curve_has_a_score_for_every_second(client: TestClient) -> None:
    curve = client.post("/api/curve", json={"query": "umbrella", "video_id": "harbour"}).json()
    assert curve["times"] == [second + 0.5 for second in range(12)]
    assert min(curve["scores"][2:5]) > max(curve["scores"][:2] + curve["scores"][5:])


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"terms": [{"video_id": "nix", "time": 0}]}, 404),
        ({"terms": [{"video_id": "broken", "time": 0}]}, 409),
        ({"terms": [{"video_id": "harbour", "time": 99}]}, 422),
        ({"terms": [{"picture": "0" * 32}]}, 404),
        (" \t", 422),
        ({"terms": [{"text": "@logo"}, {"text": "a wall"}]}, 422),
    ],
)
def test_what_cannot_be_asked_is_said(client: TestClient, query: Any, status: int) -> None:
    answer = client.post("/api/search", json={"query": query})
    assert answer.status_code == status, answer.text


def test_evidence_that_the_library_lacks_is_named(client: TestClient) -> None:
    answer = client.post("/api/search", json={"query": "a", "by": "speech"})
    assert answer.status_code == 409 and "no recognised speech" in answer.json()["error"]["message"]
    assert "extra `speech`" in answer.json()["error"]["message"]


def test_no_more_is_asked_than_the_limits_allow(client: TestClient) -> None:
    half = {"text": "wall " * 210}
    for body in ({"query": {"terms": [half, half]}}, {"query": "a", "top_k": 501}):
        answer = client.post("/api/search", json=body)
        assert answer.status_code == 422 and "at most" in answer.json()["error"]["message"]


@pytest.mark.parametrize("title", ["Unser Löwe", "我们的狮子" * 12])
def test_a_concept_of_any_script_is_taught_and_deleted(serving: Serving, folder: Path, title: str) -> None:
    query = {"right": [{"video_id": "harbour", "start": 1, "end": 3}], "without": ["snow"]}
    with serving(folder) as client:
        name = client.post("/api/concepts", json={"title": title, "query": query}).json()["name"]
        assert [one["name"] for one in client.get("/api/concepts").json()["concepts"]] == [name]
        for status in (204, 404):
            answer = client.delete(f"/api/concepts/{quote(f'@{name}', safe='')}")
            assert answer.status_code == status
        assert f"@{name}: no such concept" in answer.json()["error"]["message"]
        assert client.delete("/api/concepts/%FF").status_code == 422


def test_a_full_queue_answers_busy(serving: Serving, folder: Path) -> None:
    with serving(folder, limits=Limits(waiting=-2)) as client:  # as if both threads were at work
        answer = client.post("/api/search", json={"query": "a"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
    assert answer.headers["Retry-After"] == "1"


def test_what_another_process_commits_is_found(serving: Serving, folder: Path, films: Path) -> None:
    with Library(folder) as library:
        library.indexer.remove(["harbour"])
    with serving(folder) as client:
        before = client.post("/api/search", json={"query": "umbrella"}).json()["moments"]
        with Library(folder) as library:
            library.index(films, ocr=False)
        after = client.post("/api/search", json={"query": "umbrella"}).json()["moments"]
    assert "harbour" not in {m["video_id"] for m in before}
    assert after[0]["video_id"] == "harbour"


def test_models_that_another_process_puts_in_use_are_searched_with(serving: Serving, folder: Path) -> None:
    with serving(folder) as client:
        before = client.post("/api/search", json={"query": "a red ball"}).json()["moments"]
        with Library(folder) as library:
            library.indexer.use(stage1="demo", refiner="demo")
        with Library(folder, read_only=True, resident=True) as library:  # as a server has it
            wanted = library.search("a red ball", top_k=24)
        after = client.post("/api/search", json={"query": "a red ball"}).json()["moments"]
    assert [m["score"] for m in after] == [m.score for m in wanted]
    assert after != before


def test_a_curve_needs_no_models_that_another_process_has_replaced(serving: Serving, folder: Path) -> None:
    with Library(folder) as library:
        library.indexer.use(stage1=DEMO_MODELS["stage1"], refiner=DEMO_MODELS["refiner"])
        with serving(folder) as client:
            library.indexer.use(stage1="none", refiner="none")
            answer = client.post("/api/curve", json={"query": "a red ball", "video_id": "harbour"})
        assert answer.status_code == 200, answer.json()
        assert answer.json()["scores"] == library.curve("a red ball", "harbour")[1].tolist()


# -- a model that looks --------------------------------------------------------------------------------------

TOKENS = {"token": "may-change", "read_token": "may-read"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_model_looks_for_those_who_may_change_something(
    serving: Callable[..., TestClient], folder: Path
) -> None:
    """Stills that a reader sends to another server at the expense of others; a key that is shown."""
    model = ChatModel(verdict("yes", "an umbrella"))
    endpoint = model.endpoint(key="hunter2")
    request = {"query": "umbrella", "check": 2, "top_k": 5}
    with serving(folder, looker=endpoint, looker_right=0.9, **TOKENS) as client:
        client.post("/api/search", json={"query": "umbrella"}, headers=bearer("may-change"))
        shown = client.get("/api/library", headers=bearer("may-change"))
        assert shown.json()["looker"] == {
            "model": "stand-in", "host": "localhost:1", "stills": 5, "longest_side": 512, "letters": 1500,
            "question_stills": 48,
        }  # fmt: skip
        assert "hunter2" not in shown.text
        assert client.get("/api/library", headers=bearer("may-read")).json()["looker"] is None
        refused = client.post("/api/search", json=request, headers=bearer("may-read"))
        assert refused.status_code == 403 and not model.asked
        found = client.post("/api/search", json=request, headers=bearer("may-change")).json()
        saved = {"kind": "search", "name": "rain", "value": request}
        kept = client.put("/api/kept", json=saved, headers=bearer("may-change"))
        assert kept.status_code < 300 and "check" not in kept.json()["value"]
    assert len(model.asked) == 2
    reasons = [one["why"] for one in found["moments"]]
    assert {"kind": "looked", "score": 0.9, "words": ["yes", "an umbrella"]} in reasons[0]
    (note,) = (one for one in found["notes"] if one["kind"] == "looked")
    assert note["about"] == "stand-in" and note["others"] == ["2", "0", "0", "2", "0.90", "measured"]


def test_a_look_of_nobody_is_an_error_of_its_field(client: TestClient) -> None:
    for check, message in ((3, "no model that looks is named"), (51, "50"), (0, "1")):
        refused = client.post("/api/search", json={"query": "umbrella", "check": check})
        error = refused.json()["error"]
        assert refused.status_code == 422 and error["field"] == "check" and message in error["message"]
