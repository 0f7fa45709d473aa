"""Judging over HTTP: what raters see, what is refused, what comes out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from fastapi.testclient import TestClient

from moviola import Library
from moviola.errors import InvalidValue, NotFound
from moviola.media import write_video
from moviola.server import Options, create_app
from moviola.study.datasets.building.annotation_files import read_ratings
from moviola.study.datasets.building.candidate_pairs import GUIDELINE, Pair
from moviola.study.judging import JudgingTask, TaskSettings
from moviola.study.measures import read_qrels

SECONDS = 12


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films; not to be changed."""
    folder = tmp_path_factory.mktemp("judging")
    for number, name in enumerate(("one", "two")):
        frames = np.random.default_rng(number).integers(0, 255, (5 * SECONDS, 48, 64, 3), np.uint8)
        write_video(folder / "films" / f"{name}.mp4", frames, rate=5)
    with Library(folder / "library", encoder="demo") as opened:
        opened.index(folder / "films")
    return folder / "library"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Two queries of three moments each."""
    pairs = [
        Pair(
            f"{query}:{video}:{start}", str(query), text, video, start, start + 3.0, SECONDS, "", 1 / rank,
            rank,
        )
        for query, text in enumerate(("a robot", "a red door"), start=1)
        for rank, (video, start) in enumerate((("one", 0.0), ("two", 2.0), ("one", 6.0)), start=1)
    ]  # fmt: skip
    JudgingTask.create(tmp_path / "task.sqlite", pairs, TaskSettings()).close()
    return tmp_path / "task.sqlite"


def client_of(library: Path, task: Path | None) -> Iterator[TestClient]:
    app = create_app(library, Options(additions={} if task is None else {"judging": task}))
    yield TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
    asyncio.run(app.state.service.close())


@pytest.fixture
def client(library: Path, task: Path) -> Iterator[TestClient]:
    """A server of library and task."""
    yield from client_of(library, task)


def judge_all(client: TestClient, rater: str, level: int | None) -> int:
    """Judge batch after batch; gives the number of moments."""
    rater = client.post("/api/judging/sign-in", json={"rater": rater}).json()["rater"]
    done = 0
    while batch := client.post("/api/judging/next", json={"rater": rater}).json()["batch"]:
        for moment in batch["moments"]:
            if moment["level"] is None and not moment["passed"]:
                said = {"rater": rater, "pair_id": moment["pair_id"], "level": level}
                assert client.post("/api/judging/answers", json=said).json() == said
                done += 1
    return done


def test_two_raters_to_consensus_and_out(client: TestClient, task: Path, tmp_path: Path) -> None:
    about = client.get("/api/judging").json()
    assert (about["queries"], about["moments"], about["raters"], about["names"]) == (2, 6, 2, [])
    assert [(row["level"], row["meaning"]) for row in about["levels"]] == [
        (level, GUIDELINE[level]) for level in (4, 3, 2, 1, 0)
    ]
    assert judge_all(client, "Anna", 3) == 6
    waiting = client.post("/api/judging/next", json={"rater": "Anna"}).json()
    assert waiting == {"batch": None, "open": 6}
    assert judge_all(client, "Ben", 4) == 6
    assert client.post("/api/judging/next", json={"rater": "Ben"}).json()["open"] == 0

    found = client.get("/api/judging/progress").json()
    assert [row["agreed"] for row in found["queries"]] == [3, 3]
    assert {row["name"]: row["distance"] for row in found["raters"]} == {"Anna": 0.5, "Ben": 0.5}
    assert found["levels"] == [0, 0, 0, 0, 6] and found["low_high"][3][4] == 6
    assert found["kappa"] is not None

    forms = {row["name"] for row in client.get("/api/judging").json()["export_formats"]}
    for form in forms - {"pairs"}:
        answer = client.get("/api/judging/export", params={"form": form})
        assert answer.status_code == 200
        name = answer.headers["content-disposition"].split('"')[1]
        assert name.startswith(f"task-{form}.")
        (tmp_path / name).write_bytes(answer.content)
    assert read_qrels(tmp_path / "task-tvr_ranking.json").relevance.tolist() == [4.0] * 6
    assert len(read_ratings(tmp_path / "task-ratings.csv")) == 12
    answer = client.get("/api/judging/export", params={"form": "pairs"})
    assert answer.status_code == 422 and "no moment is left to rate" in answer.json()["error"]["message"]


def test_raters_see_nothing_that_would_lead_them(client: TestClient) -> None:
    judge_all(client, "Anna", 4)
    client.post("/api/judging/sign-in", json={"rater": "Ben"})
    batch = client.post("/api/judging/next", json={"rater": "Ben"}).json()["batch"]
    assert set(batch) == {"query_id", "query", "moments"}
    assert {field for moment in batch["moments"] for field in moment} == {
        "pair_id", "video_id", "start", "end", "level", "passed"
    }  # fmt: skip
    assert all(moment["level"] is None for moment in batch["moments"])


def test_an_answer_can_be_changed_passed_over_and_taken_back(client: TestClient) -> None:
    client.post("/api/judging/sign-in", json={"rater": "Anna"})
    batch = client.post("/api/judging/next", json={"rater": "Anna"}).json()["batch"]
    said = {"rater": "Anna", "pair_id": batch["moments"][0]["pair_id"]}

    def first() -> tuple[int | None, bool]:
        moment = client.post("/api/judging/next", json={"rater": "Anna"}).json()["batch"]["moments"][0]
        assert moment["pair_id"] == said["pair_id"]
        return moment["level"], moment["passed"]

    for level in (1, 4, None):
        assert client.post("/api/judging/answers", json={**said, "level": level}).status_code == 200
        assert first() == (level, level is None)
    assert client.post("/api/judging/undo", json=said).status_code == 200
    assert first() == (None, False)
    assert client.post("/api/judging/undo", json=said).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("sign-in", {"rater": " "}, 422, "give 1 to 60 letters"),
        ("sign-in", {"rater": "x" * 61}, 422, "give 1 to 60 letters"),
        ("sign-in", {"rater": "a\x00b"}, 422, "control character"),
        ("sign-in", {}, 422, "rater: is missing"),
        ("next", {"rater": "Zoe"}, 404, "sign in first"),
        ("answers", {"rater": "Zoe", "pair_id": "1:one:0.0", "level": 3}, 404, "sign in first"),
        ("answers", {"rater": "Anna", "pair_id": "9", "level": 3}, 404, "not in this task"),
        (
            "answers",
            {"rater": "Anna", "pair_id": "1:one:0.0", "level": 5},
            422,
            "level 5: give a number below 5",
        ),
        ("answers", {"rater": "Anna", "pair_id": "1:one:0.0", "level": -1}, 422, "level -1: give at least 0"),
        ("answers", {"rater": "Anna", "pair_id": "1:one:0.0"}, 422, "level: is missing"),
        ("undo", {"rater": "Anna", "pair_id": "1:one:0.0"}, 404, "nothing to withdraw"),
    ],
)
def test_wrong_requests_are_refused(
    client: TestClient, path: str, body: dict[str, object], status: int, message: str
) -> None:
    client.post("/api/judging/sign-in", json={"rater": "Anna"})
    answer = client.post(f"/api/judging/{path}", json=body)
    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]


def test_a_third_rater_learns_that_others_have_judged(client: TestClient) -> None:
    judge_all(client, "Anna", 3)
    judge_all(client, "Ben", 3)
    client.post("/api/judging/sign-in", json={"rater": "Carla"})
    answer = client.post("/api/judging/answers", json={"rater": "Carla", "pair_id": "1:one:0.0", "level": 3})
    assert answer.status_code == 409 and "others have judged it" in answer.json()["error"]["message"]


def test_exports_bear_the_name_of_their_task(library: Path, task: Path) -> None:
    for client in client_of(library, task.rename(task.with_name("задача №1.sqlite"))):
        answer = client.get("/api/judging/export", params={"form": "pairs"})
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
        assert quote("задача №1-pairs.csv") in answer.headers["Content-Disposition"]


def test_nothing_is_exported_of_what_nobody_judged(client: TestClient) -> None:
    answer = client.get("/api/judging/export")
    assert answer.status_code == 422 and "agree on no moment yet" in answer.json()["error"]["message"]
    assert client.get("/api/judging/export", params={"form": "xml"}).status_code == 422


def test_without_a_task_the_server_says_what_to_do(library: Path) -> None:
    for client in client_of(library, None):
        answer = client.get("/api/judging")
        assert answer.status_code == 404 and "--judge TASK" in answer.json()["error"]["message"]


def test_a_task_of_another_library_is_refused(library: Path, tmp_path: Path) -> None:
    pairs = [Pair("1", "1", "a robot", "elsewhere", 0.0, 1.0, 9.0, "", 1.0, 1)]
    JudgingTask.create(tmp_path / "other.sqlite", pairs, TaskSettings()).close()
    with pytest.raises(InvalidValue, match=r"judges 1 video that .* lacks \(elsewhere"):
        create_app(library, Options(additions={"judging": tmp_path / "other.sqlite"}))
    with pytest.raises(NotFound, match="no such judging task"):
        create_app(library, Options(additions={"judging": tmp_path / "none.sqlite"}))


def test_every_route_is_described(client: TestClient) -> None:
    document = client.get("/api/openapi.json").json()
    for path, methods in document["paths"].items():
        if path.startswith("/api/judging"):
            assert all(one.get("description") for one in methods.values()), path
    assert "GivenAnswer" in json.dumps(document)
