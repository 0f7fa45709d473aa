"""What people keep, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from http_calls import error, keep, kept, lines_of_kept, ok, take_lines, unkeep
from moviola.search.filters import FILTERS


def test_entries_are_kept_with_versions(serving: Callable[..., TestClient], folder: Path) -> None:
    with serving(folder) as http:
        assert kept(http) == []
        entry = ok(keep(http, "search", "days/at the beach", {"query": "a beach"}, version=0))
        assert (entry["version"], entry["value"]["query"]) == (1, "a beach")
        assert ok(keep(http, "search", "days/at the beach", {"query": "sand"}, version=1))["version"] == 2
        refused = error(keep(http, "search", "days/at the beach", {"query": "sea"}, version=1))
        assert refused[:2] == (409, "unavailable") and "version 2 is stored" in refused[2]
        refused = http.put("/api/kept", json={"kind": "mark", "name": "a", "value": {"video_id": "b"}})
        assert refused.status_code == 422 and "the name of this mark" in refused.json()["error"]["message"]
        odd = {"kind": "search", "name": "odd", "value": {"query": "a", "filter": {"colour": "red"}}}
        refused = http.put("/api/kept", json=odd)
        assert refused.json()["error"]["field"] == "value.filter.colour"
        refused = http.post("/api/kept/lines", content=json.dumps({"format": 2, **odd}))
        message = refused.json()["error"]["message"]
        assert refused.status_code == 422 and "filter 'colour' does not exist" in message
        late = {"moments": [{"video_id": "harbour", "start": 500, "end": 600}]}
        refused = http.put("/api/kept", json={"kind": "collection", "name": "late", "value": late})
        assert refused.status_code == 422
        assert "harbour: start 500: the video ends at 12 s" in refused.json()["error"]["message"]
        assert [entry["name"] for entry in kept(http, "search")] == ["days/at the beach"]
        assert kept(http, "mark") == []
        found = http.get("/api/kept/entry", params={"kind": "search", "name": "days/at the beach"}).json()
        assert found["value"]["query"] == "sand"
        lines = lines_of_kept(http)
        ok(unkeep(http, "search", "days/at the beach", version=2))
        assert [entry["version"] for entry in take_lines(http, lines)] == [2]
        assert lines_of_kept(http) == lines and take_lines(http, lines) == []
        for body in (b"{}", b"\xff"):
            assert http.post("/api/kept/lines", content=body).status_code == 422
        ok(unkeep(http, "search", "days/at the beach", version=2))
        assert error(unkeep(http, "search", "days/at the beach"))[:2] == (404, "not_found")


def test_news_of_a_search_is_known_to_all_who_open_it(
    serving: Callable[..., TestClient], folder: Path
) -> None:
    """Each browser had numbers of its own: what one had seen was new in the next."""
    with serving(folder) as http:
        assert http.get("/api/kept/opened").json() == {"opened": {}}
        refused = http.put("/api/kept/opened", json={"name": "walls", "version": 2})
        assert refused.status_code == 404
        ok(keep(http, "search", "walls", {"query": "a wall"}))
        for version, stored in ((2, 2), (3, 3), (1, 3)):  # an older page does not make old ones new
            answer = http.put("/api/kept/opened", json={"name": "walls", "version": version})
            assert answer.json() == {"opened": {"walls": stored}}
    with serving(folder, token="a", read_token="b") as http:
        http.headers["Authorization"] = "Bearer b"
        assert http.get("/api/kept/opened").json() == {"opened": {"walls": 3}}
        assert http.put("/api/kept/opened", json={"name": "walls", "version": 4}).status_code == 403


def test_exports_can_be_imported_however_long_they_are(
    serving: Callable[..., TestClient], folder: Path
) -> None:
    moments = [{"video_id": "harbour", "start": 1, "end": 2, "note": "x" * 4_000}] * 300
    with serving(folder) as http:
        entry = ok(keep(http, "collection", "a long one", {"moments": moments}))
        lines = lines_of_kept(http)
        assert len(lines) > 2**20  # more than other requests may have
        ok(unkeep(http, "collection", "a long one"))
        assert take_lines(http, lines) == [entry]


def test_entries_may_hold_other_ends_of_lines(serving: Callable[..., TestClient], folder: Path) -> None:
    with serving(folder) as http:
        entry = ok(keep(http, "search", "sand\u2028sea", {"query": "a\x85beach"}))
        lines = lines_of_kept(http)
        ok(unkeep(http, "search", entry["name"]))
        assert take_lines(http, lines) == [entry]
        ok(unkeep(http, "search", entry["name"]))


def test_a_search_is_kept_with_its_pictures(serving: Callable[..., TestClient], folder: Path) -> None:
    """Uploads end with the server, and what users keep does not."""
    with serving(folder) as http:
        still = http.get("/api/videos/harbour/still?time=4&width=96").content
        sent = http.post("/api/pictures", content=still).json()["picture"]
        shown = http.get(f"/api/pictures/{sent}")
        assert shown.headers["Content-Type"] == "image/webp"
        query = {"terms": [{"picture": sent, "weight": 2.0}, {"text": "a wall"}], "without": ["snow"]}
        question = {"query": query, "filter": {"video_length": "5..1:00"}, "refine": False}
        entry = ok(keep(http, "search", "alike", question))
        assert entry["value"] == question  # as it was written
        first = http.post("/api/search", json=question).json()
        lines = lines_of_kept(http)
    with serving(folder) as http:
        again = http.post("/api/search", json=question).json()
        assert again["moments"] == first["moments"] and again["query"] == first["query"]
        assert http.get(f"/api/pictures/{sent}").content == shown.content
        ok(unkeep(http, "search", "alike"))
        assert ok(keep(http, "search", "alike", question, version=0))["value"] == question  # undone
        ok(unkeep(http, "search", "alike"))
    with serving(folder) as http:
        gone = http.post("/api/search", json=question)
        assert gone.status_code == 404 and gone.json()["error"]["field"] == "query.terms.1.picture"
        assert take_lines(http, lines)[0]["value"] == question
        assert http.post("/api/search", json=question).json()["moments"] == first["moments"]
        for name, status in (("0" * 32, 404), ("..%2fetc", 422)):
            assert http.get(f"/api/pictures/{name}").status_code == status


@pytest.mark.parametrize(
    ("value", "field", "said"),
    [
        ({"text": "a"}, "value.query", "is missing"),
        (
            {"query": {"terms": [{"text": "a" * 3000}]}},
            "value.query.terms.1.text",
            "at most 2,000 characters",
        ),
        ({"query": "a", "filter": {"taken": "soon"}}, "value.filter.taken", "'soon'"),
        ({"query": {"terms": [{"picture": "0" * 32}]}}, "value.query.terms.1.picture", "no longer here"),
        (
            {"query": {"terms": [{"picture": "/etc/hostname"}]}},
            "value.query.terms.1.picture",
            "32 hexadecimal digits",
        ),
    ],
)
def test_a_search_that_cannot_be_asked_is_not_kept(
    serving: Callable[..., TestClient], original: Path, value: object, field: str, said: str
) -> None:
    with serving(original) as http:
        refused = http.put("/api/kept", json={"kind": "search", "name": "odd", "value": value})
        assert refused.status_code in (404, 422)
        problem = refused.json()["error"]
        assert problem["field"] == field and said in problem["message"]
        assert http.get("/api/kept").json()["entries"] == []


def test_the_fields_of_a_question_are_listed(client: TestClient) -> None:
    fields = {one["name"]: one for one in client.get("/api/fields").json()["fields"]}
    assert {name for name, one in fields.items() if one["filter"]} == FILTERS.keys()
    assert (
        fields["taken"]["form"] == "times" and fields["by"]["choices"][0] == fields["by"]["default"] == "all"
    )
