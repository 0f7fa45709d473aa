"""A chat endpoint on loopback that misbehaves: nothing is lost, and a resumed run redoes only what failed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.datasets.chat import ChatEndpoint, EndpointDown, parse_answer
from moviola.datasets.imprecise import Checks, Journal, rewrite_all
from moviola.errors import InvalidValue

Reply = tuple[int, dict[str, str], bytes]
CAPTIONS = [f"Ross opens door {number}." for number in range(12)]


def answer(sentences: list[str]) -> Reply:
    """What a model in good health says."""
    return content(json.dumps([s.replace("Ross", "A man") for s in sentences]))


def content(text: str) -> Reply:
    return 200, {}, json.dumps({"choices": [{"message": {"content": text}}]}).encode()


class Server:
    """Answers each request by the next behaviour; the last one stays."""

    def __init__(self, *behaviours: Callable[[list[str]], Reply]) -> None:
        self.behaviours = list(behaviours)
        self.asked: list[list[str]] = []
        self.temperatures: list[float] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                sentences = json.loads(body["messages"][1]["content"])
                outer.asked.append(sentences)
                outer.temperatures.append(body["temperature"])
                behave = outer.behaviours.pop(0) if len(outer.behaviours) > 1 else outer.behaviours[0]
                status, headers, payload = behave(sentences)
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    if "Content-Length" not in headers:
                        self.send_header("Content-Length", str(len(payload)))
                    self.end_headers()
                    self.wfile.write(payload)
                except OSError:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*behaviours: Callable[[list[str]], Reply]) -> Server:
        servers.append(Server(*behaviours))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def endpoint(server: Server, waits: list[float] | None = None, **options: Any) -> ChatEndpoint:
    waited = [] if waits is None else waits
    return ChatEndpoint(server.url, "m", sleep=waited.append, **options)


def same(texts: list[str]) -> Any:
    return np.ones((len(texts), 1), np.float32)


CHECKS = Checks(encode=same, names=lambda text: [word for word in text.split() if word == "Ross"])


def status(code: int, **headers: str) -> Callable[[list[str]], Reply]:
    return lambda sentences: (code, {k.replace("_", "-"): v for k, v in headers.items()}, b"no")


def test_refusals_and_breakdowns_are_waited_out(serve: Callable[..., Server]) -> None:
    server = serve(status(429, Retry_After="7"), status(500), status(503), answer)
    waits: list[float] = []
    assert endpoint(server, waits).rewrite(["Ross sits."], 0.0) == ["A man sits."]
    assert waits == [7.0, 2.0, 4.0]


def test_a_time_out_and_a_cut_answer_are_repeated(serve: Callable[..., Server]) -> None:
    release = threading.Event()

    def hang(sentences: list[str]) -> Reply:
        release.wait(5)
        return answer(sentences)

    def cut(sentences: list[str]) -> Reply:
        return 200, {"Content-Length": "9999", "Connection": "close"}, b"{"

    server = serve(hang, cut, answer)
    try:
        got = endpoint(server, timeout=0.2).rewrite(["Ross sits."], 0.0)
    finally:
        release.set()
    assert got == ["A man sits."]
    assert len(server.asked) == 3


def test_a_wrong_key_is_said_at_once(serve: Callable[..., Server]) -> None:
    server = serve(status(401))
    with pytest.raises(InvalidValue, match="refused with 401"):
        endpoint(server).rewrite(["Ross sits."], 0.0)
    assert len(server.asked) == 1


def test_a_batch_with_a_wrong_number_of_lines_is_halved(serve: Callable[..., Server]) -> None:
    def short_of_one(sentences: list[str]) -> Reply:
        return answer(sentences[1:]) if len(sentences) > 2 else answer(sentences)

    server = serve(short_of_one)
    got = endpoint(server).rewrite(CAPTIONS[:8], 0.0)
    assert got == [caption.replace("Ross", "A man") for caption in CAPTIONS[:8]]


def test_one_poisonous_sentence_costs_only_itself(serve: Callable[..., Server]) -> None:
    def refuse_five(sentences: list[str]) -> Reply:
        return content("No.\n" * 7) if CAPTIONS[5] in sentences else answer(sentences)

    got = endpoint(serve(refuse_five)).rewrite(CAPTIONS, 0.0)
    assert [place for place, text in enumerate(got) if text != CAPTIONS[place].replace("Ross", "A man")] == [
        5
    ]


@pytest.mark.parametrize(
    "text",
    ['["a", "b"]', '```json\n["a", "b"]\n```', 'Sure: ["a", "b"] done', "1. a\n2) b\n", "- a\n\n- b"],
)
def test_answers_come_in_many_forms(text: str) -> None:
    assert parse_answer(text, 2) == ["a", "b"]


def test_a_resumed_run_redoes_only_what_failed(serve: Callable[..., Server], tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    dying = serve(answer, answer, status(500))

    def tries(server: Server) -> list[Callable[[Any], Any]]:
        chat = endpoint(server, retries=1)
        return [lambda some: chat.rewrite(some, 0.0), lambda some: chat.rewrite(some, 0.2)]

    with pytest.raises(EndpointDown, match="no answer after 2 requests"):
        rewrite_all(CAPTIONS * 2, tries(dying), CHECKS, Journal(journal), batch=2)
    assert len(Journal(journal).answers) == 4
    with journal.open("a") as file:
        file.write('{"source": "cut off by a ki')

    well = serve(answer)
    outcome = rewrite_all(CAPTIONS * 2, tries(well), CHECKS, Journal(journal), batch=2)
    assert [s for batch in well.asked for s in batch] == CAPTIONS[4:]
    assert outcome.texts == {caption: caption.replace("Ross", "A man") for caption in CAPTIONS}
    again = rewrite_all(CAPTIONS, tries(well), CHECKS, Journal(journal), batch=2)
    assert again.asked == 0
    assert again.texts == outcome.texts


def test_what_fails_a_check_is_asked_again_warmer(serve: Callable[..., Server], tmp_path: Path) -> None:
    def keeps_name_of_three(sentences: list[str]) -> Reply:
        return content(json.dumps([s if s == CAPTIONS[3] else s.replace("Ross", "A man") for s in sentences]))

    server = serve(keeps_name_of_three)
    chat = endpoint(server)
    tries = [lambda some: chat.rewrite(some, 0.0), lambda some: chat.rewrite(some, 0.2)]
    outcome = rewrite_all(CAPTIONS, tries, CHECKS, Journal(tmp_path / "j"), batch=12)
    assert server.asked == [CAPTIONS, [CAPTIONS[3]]]
    assert server.temperatures == [0.0, 0.2]
    assert [a.source for a in outcome.failed] == [CAPTIONS[3]]
    assert outcome.failed[0].reason == "names Ross"
    assert len(outcome.texts) == 11
