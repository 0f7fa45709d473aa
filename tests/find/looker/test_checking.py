"""Moments that a model has looked at: its verdicts are evidence, and whatever else it does costs nothing."""

from __future__ import annotations

import base64
import json
import sqlite3
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from chat_server import ChatModel, said, verdict
from moviola.errors import InvalidValue
from moviola.library import VerdictStore, compact
from moviola.looker import Looker, Sending
from moviola.looker.looker import read_verdict
from moviola.search import Asked, Library, LikeMoment, SearchOptions, SearchResult
from moviola.search.alerts import AlertOptions, Alerts
from moviola.search.checking import Judgement, checked_answers, words_of_query
from moviola.search.limited import Answer, NotDone
from moviola.search.queries import Marked, MarkedMoment, Text, as_query
from moviola.types import Moment, Reason, band_of


def looking(lib: Library, model: ChatModel, **more: Any) -> list[Sending]:
    """Let a stand-in look at moments of a library; what is said of what is sent."""
    sent: list[Sending] = []
    lib.checker = Looker(lib.store, model.endpoint(), announce=sent.append, **more)
    return sent


def texts(message: Any) -> list[str]:
    return [part["text"] for part in message["content"] if part["type"] == "text"]


# -- scores --------------------------------------------------------------------------------------------------


class Verdicts:
    """A checker that says what it was given."""

    name, right = "stand-in", 0.8

    def __init__(self, *said: Judgement) -> None:
        self._said = said

    def judge(self, question: str, moments: Any) -> list[Judgement]:
        assert question == "a dog" and len(moments) == len(self._said)
        return [*self._said]


def found(*scores: float) -> SearchResult:
    answer = SearchResult(
        [
            Moment(f"film{rank}", 0.0, 2.0, score, rank, band=band_of(score))
            for rank, score in enumerate(scores, 1)
        ]
    )
    answer.query = Text("a dog")
    return answer


def test_a_verdict_multiplies_the_odds_by_what_it_is_worth() -> None:
    """Scores that are more, or less, than the probability that follows from the verdict's calibration."""
    judged = [
        Judgement("no", "a cat"),
        Judgement("yes", "a dog"),
        Judgement("partly", ""),
        Judgement(None, "late"),
    ]
    (answer,) = checked_answers(
        [found(0.8, 0.5, 0.4, 0.3, 0.6)], SearchOptions(check=4, top_k=4), Verdicts(*judged)
    )
    # Odds 4 / 4, 1 * 4, as they were, as they were; the fifth was not looked at.
    assert [(one.video_id, round(one.score, 9), one.rank) for one in answer] == [
        ("film2", 0.8, 1), ("film5", 0.6, 2), ("film1", 0.5, 3), ("film3", 0.4, 4)
    ]  # fmt: skip
    assert [one.band for one in answer] == ["strong", "strong", "strong", "possible"]
    assert answer[0].why == (Reason("looked", 0.8, ("yes", "a dog")),)
    assert answer[2].why == (Reason("looked", 0.2, ("no", "a cat")),)
    assert list(map(str, answer.notes)) == [
        "stand-in judged 3 of 4: 1 yes, 1 partly, 1 no; a verdict is taken to be right with a probability of "
        "0.80",
        "1 of 4 was not judged: late",
    ]


def test_certainty_and_impossibility_stay(lib: Library) -> None:
    (answer,) = checked_answers(
        [found(1.0, 0.0)], SearchOptions(check=2), Verdicts(Judgement("no", ""), Judgement("yes", ""))
    )
    assert [one.score for one in answer] == [1.0, 0.0]


def test_an_answer_is_confident_where_a_strong_moment_is_left() -> None:
    options = SearchOptions(check=1, top_k=1)
    refused = Verdicts(Judgement("no", ""))
    for scores, confident in (((0.7, 0.1), False), ((0.7, 0.6), True)):
        (answer,) = checked_answers([found(*scores)], options, refused)
        assert answer.confident is confident and len(answer) == 1


def test_moments_below_the_least_score_can_be_raised_above_it() -> None:
    (answer,) = checked_answers(
        [found(0.6, 0.4)], SearchOptions(check=2, min_score=0.5),
        Verdicts(Judgement("no", ""), Judgement("yes", "")),
    )  # fmt: skip
    assert [one.video_id for one in answer] == ["film2"]


@pytest.mark.parametrize(
    ("query", "question"),
    [
        ("a dog", ("a dog", True)),
        (Text("a dog").without("snow"), ("a dog, not snow", True)),
        (as_query("a dog").then("it jumps"), ("a dog, then it jumps", True)),
        (Text("a dog") + LikeMoment("film1", 2.0), ("a dog", False)),
        (Marked(Text("a dog"), (MarkedMoment("film1", 0, 1),)), ("a dog", False)),
        (LikeMoment("film1", 2.0), ("", False)),
        (Text("a dog").then(LikeMoment("film1", 2.0)), ("", False)),
    ],
)  # fmt: skip
def test_a_model_is_asked_by_words(query: Any, question: tuple[str, bool]) -> None:
    """A path of this machine, or the id of a video, in the place of what is looked for."""
    assert words_of_query(as_query(query)) == question


# -- what is sent --------------------------------------------------------------------------------------------


def test_stills_and_words_are_sent_apart_from_the_question_and_said_before(lib: Library) -> None:
    """Words of a film in the place of the question or the order; stills that nobody knows of."""
    model = ChatModel(verdict("yes"))
    sent: list[Sending] = []
    before: list[int] = []

    def announce(sending: Sending) -> None:
        sent.append(sending)
        before.append(len(model.asked))

    lib.checker = Looker(lib.store, model.endpoint(), announce=announce)
    answer = lib.search("umbrella", check=2, top_k=2)
    assert before == [0] and len(model.asked) == 2 and len(answer) == 2
    stills = letters = size = 0
    for system, user in model.asked:
        assert system["role"] == "system" and "umbrella" not in system["content"].lower()
        question, data = texts(user)
        assert question == 'QUESTION:\n"umbrella"'
        label, _, written = data.partition("\n")
        assert "never instructions" in label
        about = json.loads(written)
        assert about.keys() == {"start", "end", "stills_at", "lines"}
        letters += sum(len(line["text"]) for line in about["lines"])
        pictures = [part["image_url"]["url"] for part in user["content"] if part["type"] == "image_url"]
        assert 3 <= len(pictures) <= 5 and len(pictures) == len(about["stills_at"])
        assert all(about["start"] <= at < about["end"] for at in about["stills_at"])
        for one in pictures:
            jpeg = base64.b64decode(one.removeprefix("data:image/jpeg;base64,"))
            assert max(Image.open(BytesIO(jpeg)).size) <= 512
            stills, size = stills + 1, size + len(jpeg)
    assert sent == [Sending("localhost:1", "stand-in", 2, stills, size, letters)]
    assert letters >= len("The umbrella is gone.")
    assert f"{stills} stills of up to 512 pixels" in str(sent[0])


def test_nothing_is_sent_unless_a_search_wants_it(lib: Library) -> None:
    """A model that is named, in config.toml for instance, gets to see what nobody wanted to show it."""
    model = ChatModel(verdict("yes"))
    looking(lib, model)
    lib.search("umbrella")
    lib.saved.save("kept", Asked("umbrella", SearchOptions(check=3)))
    assert lib.saved.asked("kept") == Asked("umbrella") and "check" not in json.dumps(
        lib.userdata.entry("search", "kept").model_dump()
    )
    # One that another version, or a file, has brought in with it.
    lib.userdata.put("search", "brought", {"query": "umbrella", "check": 3})
    assert lib.saved.asked("brought") == Asked("umbrella")
    lib.saved.search("brought")
    with Alerts(lib, AlertOptions(command=("true",))) as alerts:
        lib.userdata.alert_to("brought", 0)
        lib.userdata.alert_to("kept", 0)
        alerts.queue()
    assert model.asked == []
    lib.saved.search("kept", check=1)
    assert len(model.asked) == 1


def test_it_is_an_error_to_ask_for_a_look_of_nobody(lib: Library) -> None:
    with pytest.raises(InvalidValue, match="--looker-model"):
        lib.search("umbrella", check=3)
    looking(lib, ChatModel(verdict("yes")))
    with pytest.raises(InvalidValue, match="no words"):
        lib.search(LikeMoment("harbour", 1.0), check=3)
    refused: list[Any] = []
    answers = lib.search_many(
        [Text("umbrella"), LikeMoment("harbour", 1.0)], check=1, refuse=lambda *one: refused.append(one)
    )
    assert [place for place, _ in refused] == [1] and answers[0] and not answers[1]


# -- what comes back -----------------------------------------------------------------------------------------

HOSTILE: dict[str, tuple[Answer | Exception, str]] = {
    "hangs": (NotDone("not done within 60 s"), "timed out"),
    "breaks": (Answer(500, ""), "HTTP 500"),
    "floods": (Answer(200, "{}", cut=True), "more than 256 KiB"),
    "html": (Answer(200, "<html>"), "not of the chat form"),
    "empty": (Answer(200, ""), "not of the chat form"),
    "prose": (said("Yes! I am certain."), "no verdict in the reply"),
    "other words": (verdict("definitely"), "no verdict in the reply"),
    "both": (said('{"verdict": "yes"} or rather {"verdict": "no"}'), "no verdict in the reply"),
    "a score": (said('{"verdict": 1.0, "why": "sure"}'), "no verdict in the reply"),
    "a list": (said('[["verdict", "yes"]]'), "no verdict in the reply"),
    "braces": (said("{" * 200_000), "no verdict in the reply"),
    "refuses": (said(None, refusal="no"), "the model refused"),
    "another host": (Answer(307, "", "http://evil.example"), "another address"),
    "busy": (Answer(429, "", retry_after="999"), "busy for another 999 s"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_reply_without_a_verdict_costs_the_verdict_alone(lib: Library, name: str) -> None:
    """An answer that is lost, changed, or not accounted for, since its model failed."""
    reply, cause = HOSTILE[name]
    plain = lib.search("umbrella", top_k=4)
    looking(lib, ChatModel(reply))
    answer = lib.search("umbrella", top_k=4, check=4)
    assert list(answer) == list(plain)
    looked = min(4, len(plain))
    notes = [note for note in answer.notes if note.kind == "not looked"]
    assert any(cause in note.about for note in notes)
    assert sum(int(note.others[0]) for note in notes) == looked
    assert not any(note.kind == "looked" for note in answer.notes)


def test_a_model_that_fails_again_and_again_is_not_waited_for(lib: Library) -> None:
    """Fifty moments of a server that hangs for a minute each."""
    model = ChatModel(NotDone("not done within 60 s"))
    looking(lib, model)
    moments = [Moment("harbour", float(at), at + 1.0, 0.5, at + 1) for at in range(8)]
    assert lib.checker is not None
    causes = [one.why for one in lib.checker.judge("a dog", moments)]
    assert causes == ["timed out"] * 3 + ["not asked, since the model did not answer before"] * 5
    assert len(model.asked) == 3
    some = ChatModel(NotDone("timed out"), NotDone("timed out"), verdict("no"))
    looking(lib, some)
    assert [one.said for one in lib.checker.judge("a dog", moments)] == [None, None, *["no"] * 6]


def test_a_file_that_is_away_is_seen_by_its_small_stills_or_not_judged(lib: Library) -> None:
    model = ChatModel(verdict("yes"))
    looking(lib, model)
    assert lib.checker is not None
    here = lib.store.file_of("street")
    assert here is not None
    moved = here.rename(here.with_suffix(".away"))
    try:
        one = Moment("street", 0.0, 8.0, 0.5, 1)
        (said_of,) = lib.checker.judge("a dog", [one])
        assert said_of == Judgement("yes", "so it is")
        with sqlite3.connect(lib.folder / "stills.sqlite") as db:
            db.execute("DELETE FROM stills")
        db.close()
        (none,) = lib.checker.judge("a cat", [one])
        assert none == Judgement(None, "the file is away")
    finally:
        moved.rename(here)


@pytest.mark.parametrize(
    ("reply", "said_of"),
    [
        ('{"verdict": "YES", "why": "a dog"}', Judgement("yes", "a dog")),
        ('```json\n{"verdict": "no", "why": "a\\ncat"}\n```', Judgement("no", "a cat")),
        ('<think>{"verdict": "yes"}?</think>{"verdict": "partly"}', Judgement("partly", "")),
        ('It is so. {"verdict": "yes", "why": {"deep": 1}}', Judgement("yes", "")),
        ('{"verdict": "yes", "why": "\\u001b[31mred\\u202e"}', Judgement("yes", "\ufffd[31mred\ufffd")),
    ],
)
def test_verdicts_are_read_as_models_write_them(reply: str, said_of: Judgement) -> None:
    assert read_verdict(reply) == said_of


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "flood", ["<think>", "<thinking>", "{", '{"verdict":', "</think>", "<think></think>"]
)
def test_a_flood_in_a_verdict_is_gone_through_once(flood: str) -> None:
    """Beginnings of thoughts without an end took minutes: from each one the rest was searched."""
    assert read_verdict(flood * (250_000 // len(flood))).said is None
    ended = f'{"<think>" * 30_000}{{"verdict": "no"}}</think>{{"verdict": "yes"}}<think> on'
    assert read_verdict(ended).said == "yes"


def test_a_reason_is_short() -> None:
    assert len(read_verdict(json.dumps({"verdict": "yes", "why": "w" * 10_000})).why) == 200


# -- the cache -----------------------------------------------------------------------------------------------


def test_nobody_is_asked_the_same_twice(lib: Library) -> None:
    """A verdict on another question, moment or model; or one that was none."""
    model = ChatModel(NotDone("timed out"), verdict("yes", "first"), verdict("no", "second"))
    sent = looking(lib, model)
    one, other = (Moment("harbour", at, at + 2.0, 0.5, 1) for at in (0.0, 4.0))
    assert lib.checker is not None
    assert lib.checker.judge("a dog", [one])[0].said is None
    assert lib.checker.judge("a dog", [one]) == [Judgement("yes", "first")]
    assert lib.checker.judge("a dog", [one]) == [Judgement("yes", "first")]
    assert len(model.asked) == len(sent) == 2
    assert [got.why for got in lib.checker.judge("a dog", [one, other])] == ["first", "second"]
    assert lib.checker.judge("a cat", [one])[0].why == "second"
    assert len(model.asked) == 4 and sent[-1].moments == 1
    lib.checker = Looker(lib.store, ChatModel(verdict("no", "third")).endpoint(seconds=9))
    assert lib.checker.judge("a dog", [one])[0].why == "first"


def test_the_cache_is_bounded_and_may_be_damaged_or_newer(tmp_path: Path) -> None:
    library = tmp_path / "lib"
    (library / "cache").mkdir(parents=True)
    store = VerdictStore(library, most=10)
    for number in range(25):
        store.put(f"key{number}", f"content{number % 2}", "yes", str(number))
    assert store.get("key24") == ("yes", "24") and store.get("key0") is None
    path = library / "cache" / "verdicts.sqlite"
    with sqlite3.connect(path) as db:
        assert 9 <= db.execute("SELECT count(*) FROM verdicts").fetchone()[0] <= 10
    store.keep_only(["content0"])
    assert store.get("key24") and store.get("key23") is None
    store.close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    newer = VerdictStore(library)
    newer.put("mine", "content", "no", "")
    assert newer.get("key24") is None and path.exists()
    for rest in library.glob("cache/*"):
        rest.unlink()
    path.write_bytes(b"nothing of a database" * 500)
    damaged = VerdictStore(library)
    assert damaged.get("key24") is None
    damaged.put("mine", "content", "no", "")
    assert damaged.get("mine") == ("no", "")
    damaged.close()


def test_a_compaction_forgets_what_was_said_of_removed_videos(lib: Library) -> None:
    looking(lib, ChatModel(verdict("yes")))
    assert lib.checker is not None
    moments = [Moment(name, 0.0, 2.0, 0.5, 1) for name in ("harbour", "street")]
    lib.checker.judge("a dog", moments)
    with Library(lib.folder) as writer:
        writer.indexer.remove(["street"])
        compact(writer.store)
        with sqlite3.connect(lib.folder / "cache" / "verdicts.sqlite") as db:
            contents = {row[0] for row in db.execute("SELECT content FROM verdicts")}
        db.close()
        assert contents == {writer.catalogue.video("harbour").hash}


def test_a_share_that_is_none_is_refused(lib: Library) -> None:
    for right in (0.5, 1.0, 2.0, float("nan")):
        with pytest.raises(InvalidValue, match="looker_right"):
            Looker(lib.store, ChatModel(verdict("yes")).endpoint(), right=right)
