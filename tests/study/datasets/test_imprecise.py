"""Imprecise queries: checks, journal, review, and an endpoint that misbehaves."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue
from moviola.study.datasets.annotations import Collector
from moviola.study.datasets.building.chat import ChatEndpoint, EndpointFailure
from moviola.study.datasets.building.imprecise import (
    Check,
    Rewrite,
    by_rules,
    finder_by_lexicon,
    finder_by_spacy,
    load_name_finder,
    make_imprecise,
    read_journal,
    read_review,
    with_captions,
    write_review,
)
from moviola.study.datasets.building.person_names import learn_names
from moviola.study.datasets.building.steps import rewrite_captions

CAPTIONS = [f"So Castle opens door {number}." for number in range(7)] + ["A dog barks."]
LEXICON = learn_names(CAPTIONS)


class Letters:
    """Counts letters: a rewrite that keeps most words keeps most of the vector."""

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        return np.array(rows, np.float32) + np.float32(1e-3)


CHECK = Check(Letters(), finder_by_lexicon(LEXICON))
Answer = tuple[int, bytes] | None


class Server:
    """A chat endpoint on loopback that gives the answers of a test, then good ones."""

    def __init__(self) -> None:
        self.answers: list[Callable[[list[str]], Answer]] = []
        self.asked: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append(body)
                sentences = json.loads(body["messages"][1]["content"])
                answer = (server.answers.pop(0) if server.answers else good)(sentences)
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1])

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def endpoint(self, **options: Any) -> ChatEndpoint:
        waits = {"attempts": 2, "back_off": 0.0, "timeout": 5.0, **options}
        return ChatEndpoint(f"http://127.0.0.1:{self.http.server_port}/v1", "m", **waits)


def completion(content: str) -> Answer:
    return 200, json.dumps({"choices": [{"message": {"content": content}}]}).encode()


def good(sentences: list[str]) -> Answer:
    return completion(json.dumps([sentence.replace("Castle", "a man") for sentence in sentences]))


def status(code: int) -> Callable[[list[str]], Answer]:
    return lambda _: (code, b"{}")


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.http.shutdown()
    running.thread.join()
    running.http.server_close()


BAD: dict[str, Callable[[list[str]], Answer]] = {
    "429": status(429),
    "500": status(500),
    "cut off": lambda _: None,
    "no JSON": lambda _: (200, b"<html>"),
    "no choices": lambda _: (200, b'{"choices": []}'),
    "no text": lambda _: (200, b'{"choices": [{"message": {"content": null}}]}'),
    "too few": lambda sentences: completion(json.dumps(sentences[1:])),
    "too many": lambda sentences: completion("\n".join([*sentences, "And that is all."])),
    "not sentences": lambda _: completion("[1, 2]"),
}


@pytest.mark.parametrize("kind", BAD)
def test_one_bad_answer_is_asked_again(server: Server, tmp_path: Path, kind: str) -> None:
    server.answers = [BAD[kind]]
    outcome = make_imprecise(CAPTIONS, server.endpoint().rewrite, CHECK, tmp_path / "j")
    assert outcome.done == {caption: caption.replace("Castle", "a man") for caption in CAPTIONS}
    assert outcome.failed == outcome.open == outcome.trouble == ()
    assert len(server.asked) == 2 and server.asked[0]["temperature"] == 0


@pytest.mark.parametrize("kind", ["429", "500", "cut off"])
def test_a_resumed_run_asks_only_for_what_failed(server: Server, tmp_path: Path, kind: str) -> None:
    server.answers = [good, BAD[kind], BAD[kind], good]
    run = {"check": CHECK, "journal": tmp_path / "j", "batch": 3}
    first = make_imprecise(CAPTIONS, server.endpoint().rewrite, **run)
    assert list(first.open) == CAPTIONS[3:6] and len(first.trouble) == 1 and len(first.done) == 5
    server.asked.clear()
    second = make_imprecise(CAPTIONS, server.endpoint().rewrite, **run)
    assert [json.loads(body["messages"][1]["content"]) for body in server.asked] == [CAPTIONS[3:6]]
    assert second.open == () and len(second.done) == len(CAPTIONS)


def test_a_batch_that_is_never_answered_line_for_line_is_halved(server: Server, tmp_path: Path) -> None:
    server.answers = [BAD["too few"]] * 2
    outcome = make_imprecise(CAPTIONS[:4], server.endpoint().rewrite, CHECK, tmp_path / "j")
    assert len(outcome.done) == 4
    sizes = [len(json.loads(body["messages"][1]["content"])) for body in server.asked]
    assert sizes == [4, 4, 2, 2]


def test_a_time_out_leaves_the_caption_open(server: Server) -> None:
    released = threading.Event()

    def late(_: list[str]) -> Answer:
        released.wait(5)
        return None

    server.answers = [late]
    with pytest.raises(EndpointFailure, match="timed out"):
        server.endpoint(timeout=0.05, attempts=1).rewrite(["Castle waves."], 0.0)
    released.set()


def test_a_wrong_key_is_the_users_matter(server: Server) -> None:
    server.answers = [status(401)]
    with pytest.raises(InvalidValue, match=r"HTTP 401.*key"):
        server.endpoint().rewrite(["Castle waves."], 0.0)
    with pytest.raises(InvalidValue, match="http://"):
        ChatEndpoint("localhost", "m")


def test_waits_grow_between_attempts(server: Server) -> None:
    waits: list[float] = []
    server.answers = [status(503)] * 4
    with pytest.raises(EndpointFailure, match="HTTP 503, 4 times"):
        server.endpoint(attempts=4, back_off=1.0, sleep=waits.append).rewrite(["Castle waves."], 0.0)
    assert waits == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "content",
    [
        '```json\n["One.", "Two."]\n```',
        "1. One.\n2. Two.",
        'Sure: ["One.", "Two."]. Done.',
        "- One.\n\n- Two.",
        '"One."\n"Two."',
    ],
)
def test_forms_of_an_answer(server: Server, content: str) -> None:
    server.answers = [lambda _: completion(content)]
    assert server.endpoint().rewrite(["x", "y"], 0.0) == ["One.", "Two."]


def test_what_fails_is_tried_warmer_then_reviewed(server: Server, tmp_path: Path) -> None:
    def same(sentences: list[str]) -> Answer:
        return completion(json.dumps(sentences))

    server.answers = [
        same,
        lambda s: completion(json.dumps(["zzz", *(x.replace("Castle", "a man") for x in s[1:])])),
    ]
    outcome = make_imprecise(CAPTIONS, server.endpoint().rewrite, CHECK, tmp_path / "j")
    assert [body["temperature"] for body in server.asked] == [0.0, 0.2]
    assert json.loads(server.asked[1]["messages"][1]["content"]) == CAPTIONS[:7]
    assert [(one.caption, one.rewrite) for one in outcome.failed] == [(CAPTIONS[0], "zzz")]
    write_review(outcome.failed, tmp_path / "review.csv")
    assert read_review(tmp_path / "review.csv") == {}
    with (tmp_path / "review.csv").open() as file:
        rows = list(csv.DictReader(file))
    rows[0]["final"] = "Somebody opens a door."
    with (tmp_path / "review.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    reviewed = read_review(tmp_path / "review.csv")
    again = make_imprecise(CAPTIONS, by_rules(LEXICON), CHECK, tmp_path / "j", reviewed=reviewed)
    assert again.failed == () and again.done[CAPTIONS[0]] == "Somebody opens a door."


def test_rules_and_a_journal_that_was_cut_off(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    make_imprecise(CAPTIONS[:3], by_rules(LEXICON), CHECK, journal)
    with journal.open("a") as file:
        file.write('{"caption": "So Castle op')
    outcome = make_imprecise(CAPTIONS, by_rules(LEXICON), CHECK, journal)
    assert outcome.done[CAPTIONS[4]] == "So a person opens door 4."
    assert read_journal(journal) == outcome.done
    with pytest.raises(InvalidValue, match="batch=0"):
        make_imprecise([], by_rules(LEXICON), CHECK, journal, batch=0)
    journal.write_text('{"caption": "x"}\n')
    with pytest.raises(DataError, match="line 1: the field 'rewrite'"):
        read_journal(journal)


@pytest.mark.parametrize("similarity, passes", [(0.4, True), (0.3999, False)])
def test_the_least_similarity_of_a_rewrite_is_enough(similarity: float, passes: bool) -> None:
    assert CHECK.passes(Rewrite("A dog barks.", "An animal barks.", similarity)) is passes


def test_what_a_journal_holds_is_checked_by_the_checks_of_now(tmp_path: Path) -> None:
    journal = tmp_path / "j"
    first = make_imprecise(CAPTIONS, by_rules(LEXICON), CHECK, journal)
    assert len(first.done) == len(CAPTIONS) and not first.failed
    strict = replace(CHECK, threshold=0.9999)
    again = make_imprecise(CAPTIONS, by_rules(LEXICON), strict, journal)
    assert again == make_imprecise(CAPTIONS, by_rules(LEXICON), strict, tmp_path / "new")
    assert list(again.done) == ["A dog barks."] and len(again.failed) == 7
    named = replace(CHECK, find_names=lambda texts: [("person",) if "person" in t else () for t in texts])
    assert [one.names for one in make_imprecise(CAPTIONS, by_rules(LEXICON), named, journal).failed] == [
        ("person",)
    ] * 7
    assert make_imprecise(CAPTIONS, by_rules(LEXICON), CHECK, journal) == first
    # What people decided is not checked.
    decided = {CAPTIONS[0]: "Somebody opens a door."}
    assert make_imprecise(CAPTIONS[:1], by_rules(LEXICON), strict, journal, reviewed=decided).done == decided


def test_a_journal_of_another_model_is_refused(server: Server, tmp_path: Path) -> None:
    found = Collector("test")
    found.add_video("v", 10)
    for caption in CAPTIONS:
        found.add("v", 0, 1, caption)

    def rewritten(endpoint: ChatEndpoint | None, journal: str) -> set[str]:
        files = tmp_path / journal, tmp_path / f"{journal}.csv"
        made = rewrite_captions(found.made(), Letters(), *files, names="lexicon", endpoint=endpoint)
        return set(made.outcome.done.values())

    rules, chat = rewritten(None, "rules"), rewritten(server.endpoint(), "chat")
    for endpoint, journal, said in (
        (
            server.endpoint(),
            "rules",
            "rewritten by rules, now by model m; go on as before, or give another --out",
        ),
        (None, "chat", "rewritten by model m, now by rules"),
    ):
        with pytest.raises(InvalidValue, match=f"{journal}: line 1: {said}"):
            rewritten(endpoint, journal)
    # A journal from before does not say who wrote it, and is continued.
    (tmp_path / "old").write_text((tmp_path / "chat").read_text().replace(', "by": "model m"', ""))
    assert '"by"' not in (tmp_path / "old").read_text()
    assert rewritten(None, "old") == chat != rules


def test_what_looks_for_names_is_not_what_put_nouns_for_them() -> None:
    """The rules know Castle alone; a recogniser that knows nothing of them finds whom they left."""
    captions = ["So Castle meets Sarah Williams.", "So Castle holds a mug."]
    rewrites = by_rules(LEXICON)(["So Castle meets a friend.", captions[1]], 0.0)
    rewrites[0] = rewrites[0].replace("a friend", "Dmitri Petrov")
    assert finder_by_lexicon(LEXICON)(rewrites) == [(), ()]
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'moviola[language]'")
    assert finder_by_spacy(LEXICON)(rewrites) == [("Dmitri Petrov",), ()]
    judged = Check(Letters(), finder_by_spacy(LEXICON)).judge(captions, rewrites)
    assert [one.names for one in judged] == [("Dmitri Petrov",), ()]
    with pytest.raises(InvalidValue, match="choose spacy, lexicon"):
        load_name_finder("flair", LEXICON)


def test_identical_captions_merge_and_moments_stay() -> None:
    found = Collector("test")
    found.add_video("v", 10)
    for caption in ("Castle sits.", "Ross sits.", "Rain falls."):
        found.add("v", 0, 1, caption)
    made = with_captions(found.made(), {"Castle sits.": "A man sits.", "Ross sits.": "A man sits."})
    assert made.captions == ("A man sits.", "A man sits.") and len(made.video) == 2


def test_one_poisonous_caption_costs_only_itself(server: Server, tmp_path: Path) -> None:
    def refuse_five(sentences: list[str]) -> Answer:
        return completion("No.\n" * 9) if CAPTIONS[5] in sentences else good(sentences)

    server.answers = [refuse_five] * 50
    outcome = make_imprecise(CAPTIONS, server.endpoint().rewrite, CHECK, tmp_path / "j")
    assert [one.caption for one in outcome.failed] == [CAPTIONS[5]] and len(outcome.done) == 7


def test_an_endpoint_that_is_down_is_not_asked_for_every_batch(server: Server, tmp_path: Path) -> None:
    server.answers = [good, *[status(500)] * 50]
    outcome = make_imprecise(CAPTIONS, server.endpoint().rewrite, CHECK, tmp_path / "j", batch=1)
    assert list(outcome.done) == CAPTIONS[:1] and list(outcome.open) == CAPTIONS[1:]
    assert len(outcome.trouble) == 3 and len(server.asked) == 1 + 3 * 2


def test_the_endpoint_says_how_long_to_wait() -> None:
    from email.message import Message
    from urllib.error import HTTPError

    from moviola.study.datasets.building.chat import _retry_after

    headers = Message()
    headers["Retry-After"] = "7"
    assert _retry_after(HTTPError("", 429, "", headers, None)) == 7.0
    assert _retry_after(HTTPError("", 429, "", Message(), None)) == 0.0


def test_a_moment_without_a_caption_is_no_line_of_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_text(json.dumps({"caption": "", "rewrite": "", "similarity": 1.0, "names": []}) + "\n")
    for _ in range(2):
        outcome = make_imprecise(["", CAPTIONS[0]], by_rules(LEXICON), CHECK, journal)
        assert outcome.done[""] == ""
    assert list(read_journal(journal)) == [CAPTIONS[0]]


@pytest.mark.parametrize(("path", "key"), [("v1", "key\n"), ("v1", "“key”"), ("v ü", "key")])
def test_a_key_or_an_address_that_cannot_be_sent_is_refused(path: str, key: str) -> None:
    with pytest.raises(InvalidValue, match="character that a request cannot"):
        ChatEndpoint(f"http://localhost/{path}", "m", key)
