"""A chat model on a server: whatever it answers, or does not, is a short cause and nothing else."""

from __future__ import annotations

import gzip
import json
from threading import Event
from typing import Any

import pytest

from chat_server import ChatModel, ChatServer, said, verdict
from moviola.errors import InvalidValue
from moviola.looker import Endpoint, NoReply
from moviola.search.limited import Answer, NotDone

MESSAGES = [{"role": "user", "content": "a question"}]

SSE = {"Content-Type": "text/event-stream"}

CAUSES: dict[str, tuple[Answer | Exception, str, bool]] = {
    "hangs": (NotDone("not done within 60 s"), "timed out", False),
    "stalls": (NotDone("timed out"), "timed out", False),
    "not there": (NotDone("[Errno 111] Connection refused"), "no connection", True),
    "wrong key": (Answer(401, "{}"), "MOVIOLA_LOOKER_KEY", True),
    "no model": (Answer(404, "model not found"), "no chat at this address", True),
    "too large": (Answer(413, ""), "no request of this size", False),
    "breaks": (Answer(500, "Traceback"), "HTTP 500", False),
    "busy for long": (Answer(429, "", retry_after="3600"), "busy for another 3600 s", True),
    "busy till a date": (Answer(429, "", retry_after="Wed, 21 Oct 2026 07:28:00 GMT"), "is busy", False),
    "points elsewhere": (Answer(302, "", "http://evil.example/"), "another address", True),
    "points elsewhere for good": (Answer(308, "", "http://evil.example/"), "another address", True),
    "floods": (Answer(200, said("yes").body, cut=True), "more than 256 KiB", False),
    "empty": (Answer(200, ""), "not of the chat form", False),
    "html": (Answer(200, "<html>Sign in to the Wi-Fi</html>"), "not of the chat form", False),
    "other json": (Answer(200, '{"choices": []}'), "not of the chat form", False),
    "a list": (Answer(200, "[1]"), "not of the chat form", False),
    "a choice that is none": (Answer(200, '{"choices": [{"message": "yes"}]}'), "not of the chat", False),
    "nested deep": (Answer(200, '{"choices":' + "[" * 100_000), "not of the chat form", False),
    "wrong charset": (Answer(200, '{"choices"\ufffd\ufffd'), "not of the chat form", False),
    "no text": (said(None), "an empty reply", False),
    "spaces": (said(" \n"), "an empty reply", False),
    "a number": (said(7), "an empty reply", False),
    "refuses": (said(None, refusal="I cannot look at people."), "the model refused", False),
}


@pytest.mark.parametrize("name", CAUSES)
def test_anything_but_a_reply_is_a_cause(name: str) -> None:
    """A traceback, a secret, or words of a hostile server in the place of a short cause."""
    answer, cause, all_ = CAUSES[name]
    with pytest.raises(NoReply) as raised:
        ChatModel(answer).endpoint(key="secret").reply(MESSAGES)
    assert cause in str(raised.value) and len(str(raised.value)) < 160
    assert raised.value.all is all_
    assert "secret" not in str(raised.value) and "evil" not in str(raised.value)


def test_replies_of_several_forms_are_read() -> None:
    parts = [{"type": "text", "text": "yes, "}, {"type": "text", "text": "it does"}]
    for reply, text in ((said("yes"), "yes"), (said(parts), "yes, it does")):
        assert ChatModel(reply).endpoint().reply(MESSAGES) == text


def test_a_busy_server_is_asked_once_more_when_it_says_so() -> None:
    """No wait at all, one without an end, or the same request over and over."""
    model = ChatModel(Answer(429, "", retry_after="7"), said("yes"))
    assert model.endpoint().reply(MESSAGES) == "yes"
    assert model.waits == [7.0]
    for_ever = ChatModel(Answer(503, "", retry_after="0"))
    with pytest.raises(NoReply, match="HTTP 503"):
        for_ever.endpoint().reply(MESSAGES)
    assert len(for_ever.asked) == 2
    hurried = ChatModel(Answer(429, "", retry_after="7"))
    with pytest.raises(NoReply, match="another 7 s"):
        hurried.endpoint().reply(MESSAGES, seconds=5)
    assert hurried.waits == []


def test_the_key_comes_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVIOLA_LOOKER_KEY", "of-the-environment")
    endpoint = Endpoint("http://localhost:1/v1", "stand-in")
    assert endpoint.key == "of-the-environment" and "of-the-environment" not in repr(endpoint)
    model = ChatModel(said("yes"))
    model.endpoint(key="k").reply(MESSAGES)
    ChatModel(said("yes")).endpoint().reply(MESSAGES)
    assert model.headers == [{"Authorization": "Bearer k"}]


def test_a_reply_that_holds_the_key_is_not_read() -> None:
    """It would stand in an answer, in its cache, in JSON and in logs, in letters or in escapes of them."""
    key = 'sk-hunter/2"x'
    for why in (json.dumps(f"see {key}")[1:-1], "".join(f"\\u{ord(letter):04X}" for letter in key)):
        model = ChatModel(said(f'{{"verdict": "yes", "why": "{why}"}}'))
        with pytest.raises(NoReply, match="a reply with the key") as raised:
            model.endpoint(key=key).reply(MESSAGES)
        assert "hunter" not in str(raised.value) and not raised.value.all
        assert model.endpoint(key="other-hunter").reply(MESSAGES)
    assert ChatModel(said("none")).endpoint(key="none").reply(MESSAGES) == "none"


@pytest.mark.parametrize(
    "url",
    ["ftp://host/v1", "localhost:11434", "", "http://", "http://user:hunter2@host/v1", "ftp://u:hunter2@h", "http://host/v1?key=hunter2",
     "http://host/v1#hunter2", "http://host:hunter2/v1", "http://[::1/v1", "http://host/a b"],
)  # fmt: skip
def test_an_address_holds_no_secret(url: str) -> None:
    """A key in an address would stand in logs, in config.toml, and in the message of this error."""
    with pytest.raises(InvalidValue, match="--looker") as raised:
        Endpoint(url, "stand-in")
    assert "hunter2" not in str(raised.value) and raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "host"),
    [("http://localhost:1/v1", "localhost:1"), ("https://ai.example/v1", "ai.example"),
     ("http://10.0.0.7:8000/v1", "10.0.0.7:8000 (unencrypted)")],
)  # fmt: skip
def test_it_is_said_where_pictures_go_unencrypted(url: str, host: str) -> None:
    assert Endpoint(url, "stand-in").host == host


def test_no_redirect_gets_key_or_pictures() -> None:
    """urllib's own opener sends the key of a request on to wherever a server points."""
    with ChatServer(said("yes").body.encode()) as other:
        moved = {"Location": f"{other.url}/chat/completions"}
        with (
            ChatServer(b"", 307, moved) as server,
            pytest.raises(NoReply, match="another address") as raised,
        ):
            Endpoint(server.url, "stand-in", "k").reply(MESSAGES)
        assert [path for path, _ in server.requests] == ["/v1/chat/completions"]
        assert server.requests[0][1]["Authorization"] == "Bearer k"
        assert raised.value.all and not other.requests


@pytest.mark.parametrize(
    ("body", "status", "headers", "outcome"),
    [
        (verdict("yes").body.encode(), 200, {}, "yes"),
        ('{"choices": [{"message": {"content": "käme"}}]}'.encode("latin-1"), 200, {}, "k\ufffdme"),
        (b" " * (1 << 20), 200, {}, "more than 256 KiB"),
        (b"", 429, {"Retry-After": "900"}, "busy for another 900 s"),
        (b"", 429, {"Retry-After": "-5"}, "is busy"),
        (b"", 429, {"Retry-After": "0x10"}, "is busy"),
        (verdict("yes").body.encode(), 200, {"Content-Type": "image/png"}, "yes"),
        # A bomb is not unpacked: a gigabyte of zeros in a megabyte would fill the memory.
        (gzip.compress(verdict("yes").body.encode()), 200, {"Content-Encoding": "gzip"}, "not of the chat"),
        (b'data: {"choices": [{"delta": {"content": "{"}}]}\n\nda', 200, SSE, "not of the chat form"),
        (b"HTTP/1.1 200 OK\r\n" * 1000, 200, {}, "not of the chat form"),
        (b'{"choices": [{"message": {"content": NaN}}]}', 200, {}, "an empty reply"),
        (b"", 200, {"X-Flood": "x" * 70_000}, "no connection"),
        (b"", 999, {}, "HTTP 999"),
    ],
)  # fmt: skip
def test_a_server_on_a_socket(body: bytes, status: int, headers: Any, outcome: str) -> None:
    """What the stand-in of this process leaves out: bytes, letters of another charset, headers, a flood,
    packed bodies, streams that nobody wanted.
    """
    with ChatServer(body, status, headers) as server:
        try:
            got = Endpoint(server.url, "stand-in").reply(MESSAGES)
        except NoReply as error:
            got = str(error)
    assert outcome in got


def test_a_reply_that_hangs_ends_with_its_time_or_when_nobody_waits_any_more() -> None:
    """A server that takes a request and is silent; a wait for a busy one that cannot be broken off."""
    with ChatServer(said("yes").body.encode()) as server:
        server.gate.clear()
        with pytest.raises(NoReply, match="timed out"):
            Endpoint(server.url, "stand-in", seconds=0.3).reply(MESSAGES)
        server.gate.set()
    with ChatServer(b"") as another:
        stop = Event()
        stop.set()
        with pytest.raises(NoReply, match="stopped") as raised:
            Endpoint(another.url, "stand-in").reply(MESSAGES, stop=stop)
    assert raised.value.all and another.requests == []
    busy = ChatModel(Answer(429, "", retry_after="7"))
    endpoint = busy.endpoint()
    object.__setattr__(endpoint, "pause", lambda stop, _: stop.set())
    with pytest.raises(NoReply, match="stopped"):
        endpoint.reply(MESSAGES)
    assert len(busy.asked) == 1
