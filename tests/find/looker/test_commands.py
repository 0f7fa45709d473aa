"""``moviola search --check`` and ``moviola ask``, with a model on a socket of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chat_server import ChatServer, said, verdict
from command_line import Outcome
from moviola.search import Library

Command = Callable[..., Outcome]


@pytest.fixture
def folder(lib: Library) -> Path:
    """The library's folder."""
    return lib.folder


def test_a_search_says_what_it_sends_and_shows_the_verdicts(
    moviola: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Stills that are sent without a word, an unnamed server that is asked, a verdict nobody sees."""
    config = tmp_path / "config.toml"
    with ChatServer(verdict("no", "no \x1b[31mumbrella").body.encode()) as server:
        config.write_text(f'looker = "{server.url}"\nlooker_model = "stand-in"\nlooker_right = 0.9\n')
        monkeypatch.setenv("MOVIOLA_CONFIG", str(config))
        monkeypatch.setenv("MOVIOLA_LOOKER_KEY", "hunter2")
        words = ("search", "umbrella", "--library", folder, "--weak", "--why", "--top-k", 2)
        plain = moviola(*words)
        assert not server.requests and "looked" not in plain.out
        looked = moviola(*words, "--check", 2)
        assert len(server.requests) == 2 and server.requests[0][1]["Authorization"] == "Bearer hunter2"
        again = moviola(*words, "--check", 2)
        assert len(server.requests) == 2 and again.out == looked.out
    host = server.url.removeprefix("http://").removesuffix("/v1")
    assert f"sent to stand-in at {host}: the question, and of 2 moments " in looked.err
    assert "sent to" not in again.err and "hunter2" not in looked.err
    assert "2 of 2: 0 yes, 0 partly, 2 no; a verdict is taken to be right with a probability of 0.90" in (
        looked.err
    )
    assert "looked 0.10 (no, no \ufffd[31mumbrella)" in looked.out


def test_a_saved_search_is_looked_at_where_one_asks_for_it(moviola: Command, folder: Path) -> None:
    with ChatServer(verdict("yes").body.encode()) as server:
        named = ("--library", folder, "--looker", server.url, "--looker-model", "stand-in", "--json")
        saved = moviola("search", "umbrella", "--check", 1, "--save", "rain", *named)
        assert "--check is not saved" in saved.err and len(server.requests) == 1
        (_,) = moviola("kept", "list", "--library", folder, "--json").rows
        plain = moviola("kept", "run", "rain", *named).rows[0]["why"]
        assert "looked" not in {one["kind"] for one in plain}
        assert len(server.requests) == 1
        reasons = moviola("kept", "run", "rain", "--check", 2, *named).rows[0]["why"]
        assert {"kind": "looked", "score": 0.75, "words": ["yes", "so it is"]} in reasons
        # Marks ask again, by the question without the look.
        done = len(server.requests)
        assert moviola("mark", 1, "--right", "--library", folder).code in (0, 2)
        assert len(server.requests) == done


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("search", "umbrella", "--check", 3), 1, "no model that looks is named"),
        (("search", "umbrella", "--check", 3, "--looker", "http://localhost:1/v1"), 2, "--looker-model"),
        (("search", "umbrella", "--check", 3, "--looker-model", "x"), 2, "--looker"),
        (("search", "umbrella", "--check", 0), 2, "--check"),
        (("ask", "who?"), 1, "no model is named"),
        (("ask", "who?", "--looker", "http://a:hunter2@b/v1", "--looker-model", "x"), 1, "a key comes in"),
    ],
)  # fmt: skip
def test_a_model_that_is_not_named_is_an_error(
    moviola: Command, folder: Path, words: tuple[object, ...], code: int, message: str
) -> None:
    outcome = moviola(*words, "--library", folder)
    assert outcome.code == code and message in " ".join(outcome.err.split()) and "hunter2" not in outcome.err


def test_a_server_that_is_not_there_is_one_line(moviola: Command, folder: Path) -> None:
    with ChatServer(b"") as gone:
        named = ("--looker", gone.url, "--looker-model", "stand-in", "--library", folder)
    looked = moviola("search", "umbrella", "--weak", "--check", 2, *named)
    assert looked.code == 0 and looked.out
    assert "1 of 2 was not judged: no connection (Connection refused)" in looked.err
    outcome = moviola("ask", "who?", *named)
    assert outcome.code == 3 and "no answer: no connection" in outcome.err and not outcome.out


@pytest.fixture
def ask(moviola: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """``moviola ask`` of a model that takes some steps."""

    def run(*steps: object, options: tuple[object, ...] = ()) -> Outcome:
        replies = [said(json.dumps(step)).body.encode() for step in steps]
        with ChatServer(replies[0]) as server:
            server.later = replies[1:]
            named = ("--looker", server.url, "--looker-model", "stand-in", "--library", folder)
            return moviola("ask", "Where is the umbrella?", *named, *options)

    return run


SEARCH = {"search": {"query": "umbrella", "by": "said"}}


def test_an_answer_is_sentences_with_citations_that_can_be_played(
    ask: Callable[..., Outcome], moviola: Command, folder: Path
) -> None:
    answer = {"answer": [{"text": "It is gone.", "cites": ["m1"]}, {"text": "The butler has it."}]}
    outcome = ask(SEARCH, answer)
    assert outcome.out == "It is gone. [harbour 0:02–0:05]\n" and outcome.code == 3
    assert "searched for: umbrella" in outcome.err and "was not checked" in outcome.err
    assert "1 sentence not shown" in outcome.err and "butler" not in outcome.out + outcome.err
    (row,) = ask(SEARCH, answer, options=("--json",)).rows
    (cited,) = row["answer"][0]["cites"]
    assert (cited["video_id"], cited["start"], cited["end"]) == ("harbour", 2.0, 5.0)
    assert Path(cited["path"]).is_file() and row["left_out"] == 1 and not row["untold"]
    cut = moviola("cut", 1, "--library", folder, "--out", folder.parent / "cut.mp4")
    assert cut.code == 0 and (folder.parent / "cut.mp4").is_file()


def test_films_that_do_not_say_it(ask: Callable[..., Outcome]) -> None:
    outcome = ask(SEARCH, {"untold": True})
    assert (outcome.code, outcome.out) == (0, "The films do not say.\n")
    assert ask(SEARCH, {"untold": True}, options=("--json",)).rows[0]["untold"] is True
