"""Submissions to a DRES evaluation server (VBS, LSC), by version 2 of its API (github.com/dres-dev/DRES).

The session goes as the cookie that the server itself sets for browsers, not in the address, which it and all
between write to their logs. A request has a limit of the whole, since others wait for it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal
from urllib.parse import quote

from moviola.addons.dres import EXAMPLE, PASSWORD
from moviola.errors import InvalidValue, MoviolaError
from moviola.search.limited import Answer, NotDone, ask

__all__ = ["Dres", "DresError", "Outcome"]

_PATIENCE = 10.0  # seconds for a request
_WAITING = 30.0  # seconds until a submission gives way to an earlier one that does not end
_MOST_BYTES = 1 << 20  # of an answer
_SESSION = re.compile(r"[\w.~+/=-]{1,500}")  # as it may stand in a cookie
_LONGEST = 300  # characters of a server's message that are passed on

Verdict = Literal["correct", "wrong", "undecided", "pending"]
# An answer without a verdict is pending.
_VERDICTS: dict[str, Verdict] = {"CORRECT": "correct", "WRONG": "wrong", "": "pending"}


class DresError(MoviolaError):
    """A submission that did not reach the evaluation, or that it has refused."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The evaluation's verdict on a submission, ``"undecided"`` where it stays open, in its own words."""

    verdict: Verdict
    description: str
    evaluation: str


class Dres:
    """An account on an evaluation server. Safe for threads.

    Args:
        url: address of the server, without ``/api``.
        user, password: of the account.
        evaluation: name or id of the evaluation; empty for the only active one.

    Raises:
        InvalidValue: no address of HTTP, or an account without a name or password.

    >>> Dres("https://dres.example.org", "team-7", "secret").submit("00123", 12.0, 12.0)  # doctest: +SKIP
    Outcome(verdict='correct', description='Submission correct!', evaluation='VBS 2026')
    """

    def __init__(self, url: str, user: str, password: str, evaluation: str = "") -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidValue(f"--dres {url}: give an address such as {EXAMPLE}")
        if not user or not password:
            raise InvalidValue(
                f"--dres {url}: name the account, as in {EXAMPLE}, and its password in {PASSWORD}"
            )
        self.url, self._user, self._password, self._wanted = url.rstrip("/"), user, password, evaluation
        self._session = ""
        self._lock = Lock()

    def submit(self, item: str, start: float, end: float) -> Outcome:
        """Submit a part of a video as the answer to the current task.

        Args:
            item: name of the video as the evaluation knows it.
            start, end: seconds; the same for one picture. They are sent in whole milliseconds.

        Raises:
            DresError: no connection, a refused account, no active evaluation (or several), a refused
                submission. Says what to do.
        """
        answer = {"mediaItemName": item, "start": round(start * 1000), "end": round(end * 1000)}
        if not self._lock.acquire(timeout=_WAITING):
            raise DresError(f"{self.url}: an earlier submission is not answered yet; try again")
        try:
            name, evaluation = self._evaluation()
            body = {"answerSets": [{"answers": [answer]}]}
            said = self._answer_to("POST", f"/submit/{quote(evaluation, safe='')}", body)
        finally:
            self._lock.release()
        verdict = _VERDICTS.get(str(said.get("submission", "")), "undecided")
        return Outcome(verdict, str(said.get("description", ""))[:_LONGEST], name)

    def _evaluation(self) -> tuple[str, str]:
        listed = self._answer_to("GET", "/client/evaluation/list", kind=list)
        try:
            active = [(str(one["name"]), str(one["id"])) for one in listed if one["status"] == "ACTIVE"]
        except (KeyError, TypeError) as error:
            raise DresError(
                f"{self.url}: lists an evaluation without name, id or status; is it a DRES server of version "
                "2? If so, ask the organisers of the evaluation"
            ) from error
        wanted = [one for one in active if not self._wanted or self._wanted in one]
        if len(wanted) == 1:
            return wanted[0]
        names = ", ".join(name for name, _ in active) or "none"
        if wanted:
            raise DresError(
                f"{self.url}: several evaluations are active ({names}); name one at the end of --dres, as in "
                f"{EXAMPLE}#NAME"
            )
        which = f"{self._wanted!r} is not active" if self._wanted else "no evaluation is active"
        raise DresError(f"{self.url}: {which} for {self._user} (active: {names}); wait until it begins")

    def _answer_to(self, method: str, path: str, body: object = None, *, kind: type = dict) -> Any:
        """The answer to a request; signs in where there is no session, or no more."""
        if not self._session:
            self._sign_in()
        answer = self._sent(method, path, body)
        if answer.status == 401:  # the session has ended
            self._sign_in()
            answer = self._sent(method, path, body)
        if answer.status in (200, 202):
            return _content(answer, kind)
        reasons = {
            401: "the session is refused; sign out elsewhere, or ask the organisers about the account",
            404: "no such evaluation, or none of this account; check the name after # in --dres",
            412: "the rules of the task refuse it; wait for the next task, or submit another moment",
        }
        remedy = reasons.get(answer.status, "ask the organisers of the evaluation")
        raise DresError(f"{self.url}: {_message(answer)} ({answer.status}); {remedy}")

    def _sign_in(self) -> None:
        self._session = ""
        answer = self._sent("POST", "/login", {"username": self._user, "password": self._password})
        if answer.status != 200:
            raise DresError(
                f"{self.url}: no sign-in as {self._user}, {_message(answer)} ({answer.status}); check "
                f"the account in --dres and {PASSWORD}"
            )
        self._session = str(_content(answer, dict).get("sessionId") or "")
        if not _SESSION.fullmatch(self._session):
            self._session = ""
            raise DresError(
                f"{self.url}: sign-in as {self._user} gave no session; is it a DRES server of version 2?"
            )

    def _sent(self, method: str, path: str, body: object) -> Answer:
        headers = {"Cookie": f"SESSIONID={self._session}"} if self._session else {}
        given = None if body is None else json.dumps(body)
        try:
            return ask(
                method, f"{self.url}/api/v2{path}", given, seconds=_PATIENCE, headers=headers,
                most=_MOST_BYTES,
            )  # fmt: skip
        except NotDone as error:
            raise DresError(f"{self.url}: does not answer ({error}); check --dres and the network") from error

    def close(self) -> None:
        """Forget the session. No connection is held."""
        self._session = ""


def _content(answer: Answer, kind: type) -> Any:
    """What a server says, of a kind that JSON has."""
    with suppress(ValueError, RecursionError):
        if isinstance(said := json.loads(answer.body), kind):
            return said
    raise DresError("the evaluation server answers what DRES does not; is it a DRES server?")


def _message(answer: Answer) -> str:
    with suppress(DresError):
        return str(_content(answer, dict).get("description") or "refused")[:_LONGEST]
    return "refused"
