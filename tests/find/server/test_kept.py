"""What people keep, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from fastapi.testclient import TestClient

from http_calls import error, keep, kept, lines_of_kept, ok, take_lines, unkeep


def test_entries_are_kept_with_versions(serving: Callable[..., TestClient], folder: Path) -> None:
    with serving(folder) as http:
        assert kept(http) == []
        entry = ok(keep(http, "search", "days/at the beach", {"text": "a beach"}, version=0))
        assert (entry["version"], entry["value"]["text"]) == (1, "a beach")
        assert ok(keep(http, "search", "days/at the beach", {"text": "sand"}, version=1))["version"] == 2
        refused = error(keep(http, "search", "days/at the beach", {"text": "sea"}, version=1))
        assert refused[:2] == (409, "unavailable") and "version 2 is stored" in refused[2]
        refused = http.put("/api/kept", json={"kind": "mark", "name": "a", "value": {"video_id": "b"}})
        assert refused.status_code == 422 and "the name of this mark" in refused.json()["error"]["message"]
        odd = {"kind": "search", "name": "odd", "value": {"text": "a", "filter": {"colour": "red"}}}
        for refused in (
            http.put("/api/kept", json=odd), http.post("/api/kept/lines", content=json.dumps(odd)),
        ):  # fmt: skip
            message = refused.json()["error"]["message"]
            assert refused.status_code == 422 and "filter 'colour' does not exist" in message
        late = {"moments": [{"video_id": "harbour", "start": 500, "end": 600}]}
        refused = http.put("/api/kept", json={"kind": "collection", "name": "late", "value": late})
        assert refused.status_code == 422
        assert "harbour: start 500: the video ends at 12 s" in refused.json()["error"]["message"]
        assert [entry["name"] for entry in kept(http, "search")] == ["days/at the beach"]
        assert kept(http, "mark") == []
        found = http.get("/api/kept/entry", params={"kind": "search", "name": "days/at the beach"}).json()
        assert found["value"]["text"] == "sand"
        lines = lines_of_kept(http)
        ok(unkeep(http, "search", "days/at the beach", version=2))
        assert [entry["version"] for entry in take_lines(http, lines)] == [2]
        assert lines_of_kept(http) == lines and take_lines(http, lines) == []
        for body in (b"{}", b"\xff"):
            assert http.post("/api/kept/lines", content=body).status_code == 422
        ok(unkeep(http, "search", "days/at the beach", version=2))
        assert error(unkeep(http, "search", "days/at the beach"))[:2] == (404, "not_found")


def test_what_is_exported_can_be_imported_however_long_it_is(
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
        entry = ok(keep(http, "search", "sand\u2028sea", {"text": "a\x85beach"}))
        lines = lines_of_kept(http)
        ok(unkeep(http, "search", entry["name"]))
        assert take_lines(http, lines) == [entry]
        ok(unkeep(http, "search", entry["name"]))
