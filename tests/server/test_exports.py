"""Moments out of the server are what :mod:`moviola.export` writes."""

from __future__ import annotations

import csv
import json
import zipfile
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import av
import pytest
from fastapi.testclient import TestClient

from moviola.export import FORMATS

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


def test_tables_hold_titles_and_notes_in_order(client: TestClient) -> None:
    asked = {"format": "csv", "moments": list(reversed(MOMENTS))}
    rows = list(csv.DictReader(StringIO(client.post("/api/export", json=asked).text)))
    assert [(row["video_id"], row["title"], row["note"]) for row in rows] == [
        ("market", "", ""), ("harbour", "the umbrella", "shorter"),
    ]  # fmt: skip
    found = client.post("/api/export", json={"format": "json", "moments": MOMENTS}).json()
    assert [(row["start"], row["end"]) for row in found] == [(1.0, 4.0), (3.0, 6.0)]


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
        ({"format": "clips", "options": {"mode": "nix"}}, 422),
        ({"format": "edl", "options": {"rate": "x"}}, 422),
        ({"moments": [{"video_id": "nix", "start": 0, "end": 1}]}, 404),
        ({"moments": [{"video_id": "harbour", "start": 2, "end": 1}]}, 422),
        ({"moments": [{"video_id": "harbour", "start": 99, "end": 100}]}, 422),
        ({"moments": [{"video_id": "harbour", "start": 0, "end": 9000}]}, 422),
        ({"moments": [{"video_id": "../harbour", "start": 0, "end": 1}]}, 404),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_refused(client: TestClient, change: dict[str, Any], status: int) -> None:
    answer = client.post("/api/export", json={"format": "csv", "moments": MOMENTS, **change})
    assert answer.status_code == status, answer.text


def test_titles_never_lead_out_of_the_folder(client: TestClient) -> None:
    for title in ("../../x", "/etc/passwd", "..", "a/b", "😀", "con:", "\u202egpj"):
        answer = client.post("/api/export", json={"format": "json", "title": title, "moments": MOMENTS})
        name = answer.headers["Content-Disposition"]
        assert answer.status_code == 200 and "/" not in name and ".." not in name.replace(".json", "")
        assert json.loads(answer.content)
