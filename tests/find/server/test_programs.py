"""A library as another program sees it: values that fit together, ids in addresses, errors with codes."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from http_calls import error, of_video, ok, search
from moviola.export import read_moments
from moviola.server import schemas
from moviola.server.routes.exports import ExportMoment


def test_the_library_and_its_videos(client: TestClient) -> None:
    assert ok(client.get("/api/library"))["videos"] == 3
    assert ok(client.get("/api/videos", params={"text": "harbour"}))["total"] == 1
    name = ok(client.get("/api/videos", params={"state": "ready"}))["videos"][0]["video_id"]
    assert "/" in name and ok(client.get(of_video(name)))["video_id"] == name
    assert len(ok(client.get(of_video("harbour", "shots")))["shots"]) == 4
    cues = ok(client.get(of_video("harbour", "cues"), params={"start": 0, "end": 3}))["cues"]
    assert cues[0]["kind"] == "subtitle"
    still = client.get(of_video("harbour", "still"), params={"time": 1.5})
    assert still.content.startswith(b"\xff\xd8")
    assert ok(client.get("/api/jobs"))["jobs"] == []


def test_moments_are_exported_as_they_were_found(client: TestClient, tmp_path: Path) -> None:
    answer = search(client, {"terms": [{"text": "umbrella"}]}, top_k=2)
    assert len(answer["moments"]) == 2 and answer["confident"]
    fields = ExportMoment.model_fields
    rows = [{key: moment[key] for key in fields if key in moment} for moment in answer["moments"]]
    found = client.post("/api/export", json={"format": "csv", "title": "moments", "moments": rows})
    (tmp_path / "found.csv").write_bytes(found.content)
    assert found.text.count("\n") == 3
    for selected, moment in zip(read_moments(tmp_path / "found.csv")[0], answer["moments"], strict=True):
        known = ("rank", "video_id", "start", "end", "score", "band", "source", "snippet", "snippet_kind")
        assert [getattr(selected.moment, name) for name in known] == [moment[name] for name in known]
    clip = client.get(of_video("harbour", "clip"), params={"start": 1, "end": 2})
    assert clip.status_code == 200 and b"ftyp" in clip.content[:12]
    curve = ok(client.post("/api/curve", json={"query": "umbrella", "video_id": "harbour"}))
    assert len(curve["scores"]) == 12


def test_answers_are_the_values_of_the_schemas(client: TestClient) -> None:
    """They are parsed by :mod:`moviola.server.schemas`, as programs in Python do it, without a loss."""
    for answer, model in (
        (client.post("/api/search", json={"query": "umbrella"}), schemas.Answer),
        (client.get("/api/library"), schemas.LibraryInfo),
        (client.get("/api/videos"), schemas.VideoList),
        (client.get("/api/videos/nix"), schemas.ProblemAnswer),
    ):
        assert model.model_validate_json(answer.content).model_dump(mode="json") == answer.json()


def test_a_picture_is_searched_with(client: TestClient) -> None:
    still = client.get(of_video("market", "still"), params={"time": 4}).content
    sent = ok(client.post("/api/pictures", content=still, headers={"Content-Type": "image/*"}))
    answer = search(client, {"terms": [{"picture": sent["picture"]}]})
    assert answer["moments"][0]["video_id"] == "market"


def test_errors_have_codes(client: TestClient) -> None:
    for answer, status, code, words in (
        (client.get(of_video("nix")), 404, "not_found", "nix"),
        (client.post("/api/search", json={"query": "a", "top_k": 0}), 422, "invalid_value", "top_k"),
        (client.post("/api/search", json={"query": "a", "by": "speech"}), 409, "unavailable", "speech"),
        (client.post("/api/jobs", json={"sources": ["nix"]}), 403, "forbidden", "--allow-ingest"),
        (client.get("/api/jobs/nix/events"), 404, "not_found", "unknown since"),
    ):
        found = error(answer)
        assert found[:2] == (status, code) and words in found[2]
