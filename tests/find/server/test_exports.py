"""Moments out of the server are what :mod:`moviola.export` writes."""

from __future__ import annotations

import csv
import json
import threading
import zipfile
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import av
import pytest
from fastapi.testclient import TestClient

from moviola.errors import InvalidValue, MoviolaError
from moviola.export import FORMATS, write_moments
from moviola.search import Library
from moviola.server.routes import exports
from moviola.types import Moment

MOMENTS: list[dict[str, Any]] = [
    {
        "video_id": "harbour",
        "start": 1.0,
        "end": 4.0,
        "score": 0.5,
        "title": "the umbrella",
        "note": "shorter",
    },
    {"video_id": "market", "start": 3.0, "end": 6.0},
]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_written(client: TestClient, name: str) -> None:
    of_one_video = name in ("vtt", "edl-markers-video")
    moments = MOMENTS[:1] if of_one_video else MOMENTS
    answer = client.post(
        "/api/export", json={"format": name, "title": "Ein Schnitt: 1/2", "moments": moments}
    )
    assert answer.status_code == 200, answer.text
    suffix = FORMATS[name].suffix or ".zip"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="Ein_Schnitt_1_2{suffix}"'
    assert answer.content


def test_a_kept_collection_is_exported_by_its_name(
    serving: Callable[..., TestClient], folder: Path, two: list[Path]
) -> None:
    """As its moments would be; of several libraries, too. Both at once, or neither, is refused."""
    kept = [{"title": "", "note": "", **one} for one in MOMENTS]
    for one in kept:
        one.pop("score", None)
    for place in (folder, two[1]):
        with Library(place, read_only=True) as library:
            library.userdata.put("collection", "our cut", {"moments": kept})
    for served in (folder, two):
        with serving(served) as client:

            def exported(client: TestClient = client, **what: Any) -> Any:
                return client.post("/api/export", json={"format": "edl", **what})

            by_name = exported(collection="our cut")
            by_moments = exported(moments=kept, title="our cut")
            assert by_name.content == by_moments.content and "the umbrella" in by_name.text
            assert by_name.headers["Content-Disposition"] == 'attachment; filename="our_cut.edl"'
            assert exported(collection="their cut").status_code == 404
            for wrong in ({}, {"moments": kept, "collection": "our cut"}):
                assert exported(**wrong).json()["error"]["field"] == "moments"


def test_tables_hold_titles_and_notes_in_order(client: TestClient) -> None:
    request = {"format": "csv", "moments": list(reversed(MOMENTS))}
    rows = list(csv.DictReader(StringIO(client.post("/api/export", json=request).text)))
    assert [(row["video_id"], row["title"], row["note"]) for row in rows] == [
        ("market", "", ""), ("harbour", "the umbrella", "shorter"),
    ]  # fmt: skip
    found = client.post("/api/export", json={"format": "json", "moments": MOMENTS}).json()
    assert [(row["start"], row["end"]) for row in found] == [(1.0, 4.0), (3.0, 6.0)]


def test_the_score_says_the_band_of_a_moment(client: TestClient) -> None:
    """One without a score was chosen by hand."""
    scored = [MOMENTS[0] | {"score": score} for score in (0.5, 0.2)]
    steps = [{"start": 1.0, "end": 2.0, "score": 0.9}, {"start": 3.0, "end": 4.0, "score": 0.3}]
    request = {
        "format": "json",
        "moments": [*scored, MOMENTS[1], scored[1] | {"band": "strong", "steps": steps}],
    }
    found = client.post("/api/export", json=request).json()
    assert [row["band"] for row in found] == ["strong", "possible", "strong", "strong"]
    assert [(one["start"], one["end"], one["score"]) for one in found[3]["steps"]] == [
        (1, 2, 0.9),
        (3, 4, 0.3),
    ]


def test_clips_come_in_a_zip_and_play(client: TestClient) -> None:
    answer = client.post(
        "/api/export", json={"format": "clips", "moments": MOMENTS, "options": {"mode": "exact"}}
    )
    with zipfile.ZipFile(BytesIO(answer.content)) as archive:
        names = archive.namelist()
        assert len(names) == 2 and all(Path(name).name == name for name in names)
        for name in names:
            with av.open(BytesIO(archive.read(name))) as container:
                assert float(container.duration or 0) / 1e6 == pytest.approx(3, abs=0.1)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"format": "nix"}, 422), ({"options": {"nix": 1}}, 422), ({"moments": []}, 422),
        ({"options": {"progress": 1}}, 422), ({"options": {"out": "a"}}, 422),
        ({"format": "clips", "options": {"mode": "nix"}}, 422),
        ({"format": "edl", "options": {"rate": "x"}}, 422),
        ({"format": "edl", "options": {"rate": 0.0001}}, 422),
        ({"format": "edl", "options": {"title": 5}}, 422),
        ({"format": "edl", "options": {"start_timecode": 5}}, 422),
        ({"format": "film", "options": {"size": 5}}, 422),
        ({"format": "sheet", "options": {"columns": "5"}}, 422),
        ({"format": "sheet", "options": {"columns": 2.5}}, 422),
        ({"format": "sheet", "options": {"columns": 10**9}}, 200),
        ({"moments": [{"video_id": "nix", "start": 0, "end": 1}]}, 404),
        ({"moments": [{"video_id": "harbour", "start": 2, "end": 1}]}, 422),
        ({"moments": [{"video_id": "harbour", "start": 99, "end": 100}]}, 422),
        ({"moments": [{"video_id": "harbour", "start": 0, "end": 9000}]}, 200),
        ({"moments": [{"video_id": "../harbour", "start": 0, "end": 1}]}, 404),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(client: TestClient, change: dict[str, Any], status: int) -> None:
    answer = client.post("/api/export", json={"format": "csv", "moments": MOMENTS, **change})
    assert answer.status_code == status, answer.text


def test_places_of_the_server_are_not_said(client: TestClient) -> None:
    message = client.post("/api/export", json={"format": "vtt", "moments": MOMENTS}).json()["error"][
        "message"
    ]
    assert message.startswith("moments.vtt: moments of 2 videos")


def test_titles_never_lead_out_of_the_folder(client: TestClient) -> None:
    for title in ("../../x", "/etc/passwd", "..", "a/b", "😀", "con:", "\u202egpj", "東" * 150):
        answer = client.post("/api/export", json={"format": "json", "title": title, "moments": MOMENTS})
        name = answer.headers["Content-Disposition"]
        assert answer.status_code == 200 and "/" not in name and ".." not in name.replace(".json", "")
        assert json.loads(answer.content)


# ---- exports that take long --------------------------------------------------------------------------------


def begin(client: TestClient, **options: Any) -> Any:
    return client.post(
        "/api/exports", json={"format": "clips", "title": "cut", "moments": MOMENTS, **options}
    )


def test_an_export_is_fetched_when_it_is_done(client: TestClient) -> None:
    state = begin(client, options={"mode": "exact"}).json()
    while state["state"] == "running":
        state = client.get(f"/api/exports/{state['export']}").json()
    assert (state["state"], state["file"], state["share"], state["error"]) == ("done", "cut.zip", 1.0, "")
    for _ in range(2):
        answer = client.get(f"/api/exports/{state['export']}/file")
        assert answer.headers["Content-Disposition"] == 'attachment; filename="cut.zip"'
        assert len(zipfile.ZipFile(BytesIO(answer.content)).namelist()) == 2
    assert client.delete(f"/api/exports/{state['export']}").status_code == 204
    for method, what in (("GET", ""), ("GET", "/file"), ("DELETE", "")):
        assert client.request(method, f"/api/exports/{state['export']}{what}").status_code == 404


@pytest.mark.parametrize(("change", "status"), [({"format": "nix"}, 422), ({"moments": []}, 422)])
def test_what_cannot_be_exported_is_said_at_once(
    client: TestClient, change: dict[str, Any], status: int
) -> None:
    assert begin(client, **change).status_code == status


def test_a_cancelled_export_ends_with_the_next_picture(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    halfway, goes_on, ended = threading.Event(), threading.Event(), threading.Event()
    folders: list[Path] = []

    def slow(service: Any, request: Any, folder: Path, progress: Callable[[float], None]) -> Path:
        folders.append(folder)
        (folder / "draft").write_bytes(b"half")
        progress(0.0)
        progress(0.5)
        halfway.set()
        assert goes_on.wait(30)
        try:
            progress(0.6)
        finally:
            ended.set()
        return folder / "draft"

    monkeypatch.setattr(exports, "_written", slow)
    monkeypatch.setattr(exports, "_PATIENCE", 0.001)
    begun = begin(client).json()
    assert halfway.wait(30)
    state = client.get(f"/api/exports/{begun['export']}").json()
    assert (state["state"], state["share"], state["file"]) == ("running", 0.5, "")
    assert client.get(f"/api/exports/{begun['export']}/file").status_code == 503
    assert client.delete(f"/api/exports/{begun['export']}").status_code == 204
    goes_on.set()
    assert ended.wait(30)
    while folders[0].exists():
        client.get("/healthz")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [(InvalidValue("no room"), 422, "no room"), (MoviolaError("torn"), 409, "torn")],
)
def test_the_file_of_an_export_that_has_failed_is_not_waited_for(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, error: MoviolaError, status: int, message: str
) -> None:
    goes_on = threading.Event()

    def fails(*_: object) -> Path:
        assert goes_on.wait(30)
        raise error

    monkeypatch.setattr(exports, "_written", fails)
    monkeypatch.setattr(exports, "_PATIENCE", 0.001)
    address = f"/api/exports/{begin(client).json()['export']}"
    goes_on.set()
    while (state := client.get(address).json())["state"] == "running":
        pass
    answer = client.get(f"{address}/file")
    assert (state["state"], state["error"]) == ("failed", message)
    assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)


@pytest.mark.parametrize("name", ["clips", "film"])
def test_what_encodes_says_how_far_it_is_and_ends_at_once(
    client: TestClient, tmp_path: Path, name: str
) -> None:
    service = client.app.state.service  # type: ignore[attr-defined]
    chosen = [Moment(one["video_id"], one["start"], one["end"], 0.5, 1) for one in MOMENTS]
    paths = service.library.store.paths_of({one.video_id: None for one in chosen})[0]
    shares: list[float] = []
    write_moments(chosen, paths, tmp_path / "whole", name, progress=shares.append)
    assert len(shares) > 10 and shares == sorted(shares) and 0.7 < shares[-1] <= 1.01

    class Enough(Exception):
        pass

    def stop(share: float) -> None:
        if share > 0.5:
            raise Enough

    with pytest.raises(Enough):
        write_moments(chosen, paths, tmp_path / "part", name, progress=stop)
    assert not list(tmp_path.rglob("*.part")) and len(list(tmp_path.glob("part/*"))) < 2
