"""What people keep, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from moviola.errors import LibraryError, NotFound
from moviola.library.kept.values import SavedSearch
from moviola.server import Client


def test_entries_are_kept_with_versions(serving: Callable[..., TestClient], folder: Path) -> None:
    with serving(folder) as http:
        client = Client(http=http)
        assert client.kept() == []
        entry = client.keep("search", "days/at the beach", {"text": "a beach"}, version=0)
        assert (entry.version, entry.value) == (1, SavedSearch(text="a beach"))
        assert client.keep("search", "days/at the beach", {"text": "sand"}, version=1).version == 2
        with pytest.raises(LibraryError, match="version 2 is stored"):
            client.keep("search", "days/at the beach", {"text": "sea"}, version=1)
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
        assert [entry.name for entry in client.kept("search")] == ["days/at the beach"]
        assert client.kept("mark") == []
        found = http.get("/api/kept/entry", params={"kind": "search", "name": "days/at the beach"}).json()
        assert found["value"]["text"] == "sand"
        lines = client.export_kept()
        client.unkeep("search", "days/at the beach", version=2)
        assert [entry.version for entry in client.import_kept(lines)] == [2]
        assert client.export_kept() == lines and client.import_kept(lines) == []
        for body in (b"{}", b"\xff"):
            assert http.post("/api/kept/lines", content=body).status_code == 422
        client.unkeep("search", "days/at the beach", version=2)
        with pytest.raises(NotFound):
            client.unkeep("search", "days/at the beach")


def test_what_is_exported_can_be_imported_however_long_it_is(
    serving: Callable[..., TestClient], folder: Path
) -> None:
    moments = [{"video_id": "harbour", "start": 1, "end": 2, "note": "x" * 4_000}] * 300
    with serving(folder) as http:
        client = Client(http=http)
        entry = client.keep("collection", "a long one", {"moments": moments})
        lines = client.export_kept()
        assert sum(map(len, lines)) > 2**20  # more than other requests may have
        client.unkeep("collection", "a long one")
        assert client.import_kept(lines) == [entry]


def test_entries_may_hold_other_ends_of_lines(serving: Callable[..., TestClient], folder: Path) -> None:
    with serving(folder) as http:
        client = Client(http=http)
        entry = client.keep("search", "sand\u2028sea", {"text": "a\x85beach"})
        lines = client.export_kept()
        client.unkeep("search", entry.name)
        assert client.import_kept(lines) == [entry]
        client.unkeep("search", entry.name)
