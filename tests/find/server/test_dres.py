"""Submissions to an evaluation server, against a stand-in for one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dres_server import DresServer
from moviola.addons.dres import dres
from moviola.addons.dres.dres import Dres, DresError
from moviola.errors import InvalidValue

Serving = Callable[..., TestClient]


@pytest.fixture
def evaluation() -> Iterator[DresServer]:
    with DresServer() as server:
        yield server


@pytest.fixture
def account(evaluation: DresServer) -> Iterator[Dres]:
    yield Dres(f"{evaluation.url}/", "team", "secret")


def test_a_moment_reaches_the_active_evaluation_in_milliseconds(
    evaluation: DresServer, account: Dres
) -> None:
    outcome = account.submit("00123", 12.3456, 15.0)
    assert (outcome.verdict, outcome.evaluation) == ("correct", "VBS 2026")
    assert outcome.description == "Submission correct!"
    answers = [{"mediaItemName": "00123", "start": 12_346, "end": 15_000}]
    assert evaluation.submitted == [("e-1", {"answerSets": [{"answers": answers}]})]
    account.submit("00123", 1, 1)
    assert evaluation.signed_in == 1
    evaluation.sessions.clear()  # they expire
    assert account.submit("00123", 2, 2).verdict == "correct"
    assert evaluation.signed_in == 2 and len(evaluation.submitted) == 3
    assert not any("session" in address for address in evaluation.addresses)  # as logs have them


@pytest.mark.parametrize(
    ("status", "said", "verdict"),
    [
        (200, {"submission": "WRONG", "description": "x"}, "wrong"),
        (200, {"submission": "INDETERMINATE"}, "undecided"),
        (200, {"submission": "UNDECIDABLE"}, "undecided"),
        (202, {"status": True, "description": "waits for a judge"}, "pending"),
    ],
)  # fmt: skip
def test_verdicts(evaluation: DresServer, account: Dres, status: int, said: Any, verdict: str) -> None:
    evaluation.outcome = (status, said)
    assert account.submit("00123", 1, 1).verdict == verdict


@pytest.mark.parametrize(
    ("status", "said", "message"),
    [
        (412, {"description": "Submission limit reached"}, "Submission limit reached .*wait for the next"),
        (404, {"description": "Evaluation not found"}, "check the name after # in --dres"),
        (400, b"<html>", r"refused \(400\); ask the organisers"), (500, ["x"], "ask the organisers"),
        (200, b"<html>", "is it a DRES server"), (200, ["x"], "is it a DRES server"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(
    evaluation: DresServer, account: Dres, status: int, said: Any, message: str
) -> None:
    evaluation.outcome = (status, said)
    with pytest.raises(DresError, match=message):
        account.submit("00123", 1, 1)


def test_the_evaluation_is_the_only_active_one_or_named(evaluation: DresServer) -> None:
    def submit(name: str = "") -> str:
        return Dres(evaluation.url, "team", "secret", name).submit("00123", 1, 1).evaluation

    with pytest.raises(DresError, match=r"'LSC' is not active for team .active: VBS 2026"):
        submit("LSC")
    evaluation.evaluations[1]["status"] = "ACTIVE"
    with pytest.raises(DresError, match=r"VBS 2026, a rehearsal.*name one at the end of --dres"):
        submit()
    assert (submit("a rehearsal"), submit("e-1")) == ("a rehearsal", "VBS 2026")
    evaluation.evaluations.clear()
    with pytest.raises(DresError, match="no evaluation is active"):
        submit()


@pytest.mark.parametrize("lacking", ["id", "name", "status"])
def test_a_list_of_evaluations_that_lacks_a_field_is_refused(
    evaluation: DresServer, account: Dres, lacking: str
) -> None:
    del evaluation.evaluations[0][lacking]
    with pytest.raises(DresError, match=rf"{evaluation.url}: lists an evaluation without name, id or status"):
        account.submit("00123", 1, 1)


@pytest.mark.parametrize("session", ["", "a; b=c", "a\r\nHost: x", "é", "x" * 501, 7, None, ["x"]])
def test_a_session_that_is_none_goes_into_no_header(
    evaluation: DresServer, account: Dres, monkeypatch: pytest.MonkeyPatch, session: object
) -> None:
    answered = evaluation.answer
    monkeypatch.setattr(
        evaluation, "answer",
        lambda method, path, *rest: (200, {"sessionId": session}) if path.endswith("/login") else answered(
            method, path, *rest
        ),
    )  # fmt: skip
    with pytest.raises(DresError, match=r"gave no session|the session is refused"):
        account.submit("00123", 1, 1)


def test_an_answer_that_drips_is_not_waited_for(
    account: Dres, evaluation: DresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit was one of each read, and all other submissions waited meanwhile."""
    monkeypatch.setattr(dres, "_PATIENCE", 0.5)
    monkeypatch.setattr(dres, "_WAITING", 0.0)
    over = threading.Event()

    def dripping(*_: object) -> tuple[int, object]:
        over.wait()
        return 200, {}

    monkeypatch.setattr(evaluation, "answer", dripping)
    with pytest.raises(DresError, match=r"does not answer .not done within 0\.5 s|timed out"):
        account.submit("00123", 1, 1)
    with account._lock, pytest.raises(DresError, match="an earlier submission is not answered yet"):
        account.submit("00123", 1, 1)
    over.set()


@pytest.mark.parametrize("said", [b"[" * 100_000, b"x" * 5_000_000, b"\xff\xfe", b'{"a": 1e999999}'])
def test_a_hostile_server_is_refused(evaluation: DresServer, account: Dres, said: bytes) -> None:
    evaluation.outcome = (200, said)
    try:
        assert account.submit("00123", 1, 1).verdict == "pending"
    except DresError as error:
        assert "is it a DRES server" in str(error)


def test_a_sign_in_that_gives_no_session_is_refused(
    evaluation: DresServer, account: Dres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "answer", lambda *_: (200, {"username": "team"}))
    with pytest.raises(DresError, match="gave no session; is it a DRES server"):
        account.submit("00123", 1, 1)


def test_accounts_and_servers_that_are_none(evaluation: DresServer) -> None:
    for url, password, message in (
        (
            evaluation.url,
            "wrong",
            "Invalid credentials.*check the account in --dres and MOVIOLA_DRES_PASSWORD",
        ),
        ("http://127.0.0.1:1", "secret", "does not answer .*check --dres"),
    ):
        with pytest.raises(DresError, match=message):
            Dres(url, "team", password).submit("00123", 1, 1)
    for url, user, password in (("dres.example.org", "team", "x"), (evaluation.url, "", "x"),
                                (evaluation.url, "team", "")):  # fmt: skip
        with pytest.raises(InvalidValue, match="--dres"):
            Dres(url, user, password)


def test_over_http(serving: Serving, original: Path, evaluation: DresServer) -> None:
    account = (evaluation.url, "team", "secret", "")
    with serving(original, additions={"dres": account}, token="changes", read_token="reads") as client:
        change, read = ({"Authorization": f"Bearer {token}"} for token in ("changes", "reads"))
        assert client.get("/api/library", headers=change).json()["additions"] == ["dres"]
        assert client.get("/api/library", headers=read).json()["additions"] == []
        moment = {"video_id": "deep/Straße #1 ?50%&ü", "start": 3.5}
        assert client.post("/api/dres/submissions", json=moment, headers=read).status_code == 403
        answer = client.post("/api/dres/submissions", json=moment, headers=change)
        assert answer.json()["verdict"] == "correct", answer.text
        (submitted,) = evaluation.submitted
        answers = [{"mediaItemName": "Straße #1 ?50%&ü", "start": 3500, "end": 3500}]
        assert submitted[1] == {"answerSets": [{"answers": answers}]}
        for wrong, status in (
            ({"video_id": "nix", "start": 1}, 404),
            ({"video_id": "harbour", "start": 99}, 422),
            ({"video_id": "harbour", "start": 2, "end": 1}, 422),
        ):
            assert client.post("/api/dres/submissions", json=wrong, headers=change).status_code == status
        evaluation.outcome = (412, {"description": "too late"})
        refused = client.post("/api/dres/submissions", json=moment, headers=change)
        assert refused.status_code == 409 and "too late" in refused.json()["error"]["message"]
    with serving(original) as client:
        answer = client.post("/api/dres/submissions", json={"video_id": "harbour", "start": 1})
        assert answer.status_code == 404 and "--dres" in answer.json()["error"]["message"]
