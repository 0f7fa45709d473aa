"""Questions about the films over HTTP: for those who may change something, in turn, until cancelled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from fastapi.testclient import TestClient

from chat_server import ChatModel, said
from moviola.search.limited import Answer, NotDone
from moviola.server.options import Limits

Serving = Callable[..., TestClient]
SEARCH = said(json.dumps({"search": {"query": "umbrella", "by": "said"}}))
TOKENS = {"token": "may-change", "read_token": "may-read"}
OWNER = {"Authorization": "Bearer may-change"}
QUESTION = {"question": "Where is the umbrella?"}


def answers(*sentences: Any) -> Answer:
    return said(json.dumps({"answer": [*sentences]}))


def ended(client: TestClient, begun: Any, headers: Any = None) -> Any:
    """The last state of a question."""
    assert begun.status_code == 201, begun.text
    name = begun.json()["id"]
    client.portal.call(client.app.state.service.questions.get(name).ended.wait)  # type: ignore[attr-defined, union-attr]
    return client.get(f"/api/questions/{name}", headers=headers).json()


def test_a_question_is_answered_with_citations_for_those_who_may_change(
    serving: Serving, folder: Path
) -> None:
    """Stills that a reader sends away, or whose answer he gets; a key that is shown; a citation of nothing;
    what is sent and not said.
    """
    model = ChatModel(
        SEARCH, answers({"text": "<b>Gone</b>.", "cites": ["m1"]}, {"text": "Stolen.", "cites": ["m7"]})
    )
    with serving(folder, looker=model.endpoint(key="hunter2"), **TOKENS) as client:
        reader = {"Authorization": "Bearer may-read"}
        assert client.post("/api/questions", json=QUESTION).status_code == 401
        assert client.post("/api/questions", json=QUESTION, headers=reader).status_code == 403
        assert not model.asked
        begun = client.post("/api/questions", json=QUESTION, headers=OWNER)
        state = ended(client, begun, OWNER)
        place = f"/api/questions/{begun.json()['id']}"
        for method in (client.get, client.delete):
            assert method(place, headers=reader).status_code == 403
            assert method(place).status_code == 401
        assert client.delete(place, headers=OWNER).status_code == 204
        assert client.get(place, headers=OWNER).status_code == 404
    answer = state["answer"]
    assert (state["state"], state["host"], state["model"]) == ("done", "localhost:1", "stand-in")
    (sentence,) = answer["sentences"]
    assert (
        sentence["text"] == "<b>Gone</b>." and answer["left_out"] == 1 and answer["searches"] == ["umbrella"]
    )
    (cited,) = sentence["cites"]
    assert cited["video_id"] == "harbour" and cited["start"] < 5 < cited["end"] + 3 and not cited["away"]
    assert [(one["moments"], one["stills"]) for one in state["sent"]] == [(0, 0), (1, 1)]
    assert "hunter2" not in begun.text + json.dumps(state) and str(folder) not in json.dumps(state)


def test_without_a_model_there_is_nothing_to_ask(client: TestClient) -> None:
    refused = client.post("/api/questions", json=QUESTION)
    assert refused.status_code == 409 and "no model that looks is named" in refused.text
    assert client.get("/api/questions/0").status_code == 404


def test_bad_questions_are_refused_by_their_field(serving: Serving, folder: Path) -> None:
    """A client that spends the owner's money without limit, or names a server of its own."""
    model = ChatModel(SEARCH)
    with serving(folder, looker=model.endpoint()) as client:
        for request, field in (
            ({"question": " "}, "question"), ({"question": "x" * 2001}, "question"), ({}, "question"),
            ({"question": "who?", "rounds": 21}, "rounds"), ({"question": "who?", "seconds": 601}, "seconds"),
            ({"question": "who?", "looker": "http://evil"}, "looker"),
        ):  # fmt: skip
            refused = client.post("/api/questions", json=request)
            assert refused.status_code == 422 and refused.json()["error"]["field"] == field
    assert not model.asked


def test_questions_wait_in_turn_are_too_many_and_are_cancelled(serving: Serving, folder: Path) -> None:
    """A model that hangs and holds up searches; a flood of questions; one that is cancelled and asks on;
    a server that cannot end.
    """
    asked, release = Event(), Event()

    def hang(*_: Any, stop: Event, **__: Any) -> Answer:
        asked.set()
        stop.wait()
        release.set()
        raise NotDone("stopped")

    endpoint = ChatModel(SEARCH).endpoint()
    object.__setattr__(endpoint, "send", hang)
    with serving(folder, looker=endpoint, limits=Limits(looks=1)) as client:
        first = client.post("/api/questions", json=QUESTION).json()
        asked.wait()
        second = client.post("/api/questions", json=QUESTION).json()
        third = client.post("/api/questions", json=QUESTION)
        assert third.status_code == 503 and third.headers["Retry-After"]
        assert client.post("/api/search", json={"query": "umbrella"}).json()["moments"]
        states = [client.get(f"/api/questions/{one['id']}").json()["state"] for one in (first, second)]
        assert states == ["running", "queued"]
        asked.clear()
        assert client.delete(f"/api/questions/{first['id']}").status_code == 204
        release.wait()
        asked.wait()  # by the second
        last = client.post("/api/questions", json=QUESTION)
        assert last.status_code == 201
    # And leaving has ended all.


def test_a_model_that_fails_is_a_cause_and_no_answer(serving: Serving, folder: Path) -> None:
    """And a defect of ours ends its question alone, without its words."""
    failures = {
        "timed out": NotDone("not done within 60 s"), "busy": Answer(429, "", retry_after="600"),
        "another address": Answer(302, "", "http://10.0.0.1/"), "chat form": Answer(200, "\x00" * 99),
        "HTTP 204": Answer(204, ""),
    }  # fmt: skip
    replies = [one for reply in failures.values() for one in (SEARCH, reply)]
    model = ChatModel(
        *replies, *[said("I am the system: <script>alert(1)</script>")] * 3, ZeroDivisionError("x")
    )
    with serving(folder, looker=model.endpoint()) as client:
        for cause in (*failures, "no answer within"):
            state = ended(client, client.post("/api/questions", json={**QUESTION, "rounds": 3}))
            assert state["state"] == "done" and not state["answer"]["sentences"]
            assert cause in state["answer"]["cause"]
        state = ended(client, client.post("/api/questions", json=QUESTION))
        assert state["state"] == "failed" and state["error"] == "the server's log says more"
        assert client.get("/healthz").status_code == 200


def test_only_the_latest_answers_are_remembered(serving: Serving, folder: Path) -> None:
    with serving(folder, looker=ChatModel(said(json.dumps({"untold": True}))).endpoint()) as client:
        begun = [client.post("/api/questions", json=QUESTION) for _ in range(3)]
        for one in begun:
            assert ended(client, one)["answer"]["untold"]
        for _ in range(20):
            ended(client, client.post("/api/questions", json=QUESTION))
        gone = client.get(f"/api/questions/{begun[0].json()['id']}")
    assert gone.status_code == 404 and "ask it again" in gone.text
