"""Lines by their words and by their meaning: words come first, and meaning counts only where it is read."""

from __future__ import annotations

import gc
import json
import shutil
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from moviola.encoders import MINILM, SentenceMatch, load_sentence_encoder
from moviola.encoders.sentence_models import MINILM_FOLDER
from moviola.encoders.sentences import SentenceEncoder
from moviola.errors import DataError
from moviola.library import unrelated_of
from moviola.library.derived.encoder_background import unrelated_cosines
from moviola.search import Library, cues
from moviola.search.meaning import EXACT, Meaning
from moviola.types import STRONG, Cue, CueKind, band_of
from moviola.words import asked_of, joined_numbers, terms_of_text, terms_of_word, words_in

LINES = {
    "film0": (
        "The old lighthouse keeper lost his umbrella in the storm.",
        "It has been raining since Monday.",
        "Мы купили две большие собаки",
    ),
    "film1": ("The hotel had no hot water.", "Der Zug nach Köln fährt gleich ab.", "今天去火车站接奶奶"),
    "film2": (
        "She is allergic to penicillin.",
        "Take the tablets after a meal.",
        "Τα παιδιά έπαιζαν στην παραλία",
    ),
}


def subtitles(lines: Sequence[str], seconds: int) -> str:
    """A line of a second every few seconds."""
    starts = ((number, seconds * number, line) for number, line in enumerate(lines))
    return "\n".join(f"{n + 1}\n00:00:{at:02},000 --> 00:00:{at + 1:02},000\n{x}\n" for n, at, x in starts)


@pytest.fixture(scope="module")
def spoken(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of lines in several languages, seconds apart; not to be changed."""
    videos = tmp_path_factory.mktemp("spoken") / "films"
    videos.mkdir()
    for name, lines in LINES.items():
        shutil.copy(films / f"{name}.mp4", videos)
        (videos / f"{name}.srt").write_text(subtitles(lines, 5), encoding="utf-8")
    with Library(videos.parent / "library", encoder="none", sentence_encoder="minilm") as made:
        made.index(videos)
    return videos.parent / "library"


@pytest.fixture
def library(spoken: Path) -> Iterator[Library]:
    with Library(spoken, read_only=True) as opened:
        yield opened


def best(library: Library, text: str) -> tuple[str, str]:
    """The best line for a text, and its band."""
    found = library.search(text, by="said")
    return (found[0].snippet, found[0].band) if found else ("", "")


def test_all_words_of_a_query_make_a_line_strong_and_a_share_of_them_possible(library: Library) -> None:
    """A misspelt word hides nothing: it weighs nothing, is named, and words of the library are offered."""
    line = LINES["film0"][0]
    assert best(library, "lighthouse umbrella") == best(library, "the lighthouse") == (line, "strong")
    found = library.search("lighthouse umbrela", by="said")
    assert (found[0].snippet, found[0].band) == (line, "possible") and found[0].why[0].words == (
        "lighthouse",
    )
    (note,) = found.notes
    assert (note.kind, note.about, note.others) == ("unknown word", "umbrela", ("umbrella",))
    assert str(note) == "no “umbrela” here; umbrella?"
    assert library.search("xylophone", by="said") == []
    assert [str(note) for note in library.search("xylophone", by="said").notes] == ["no “xylophone” here"]


def test_words_count_as_they_are_said_in_any_language(library: Library) -> None:
    """With letters as they are spelt or without marks, stemmed; what no line holds is never strong."""
    assert best(library, "Koln") == best(library, "KÖLN") == (LINES["film1"][1], "strong")
    assert best(library, "собаки") == (LINES["film0"][2], "strong")
    assert best(library, "火车站") == (LINES["film1"][2], "strong")
    assert best(library, "παιδιά") == (LINES["film2"][2], "strong")
    for absent in ("зонтик", "слон", "大象", "παραπλεύρως", "Regenschirm", "มด", "코끼리"):
        assert not library.search(absent, top_k=50).confident, absent


def test_meaning_counts_where_the_encoder_reads_both(library: Library) -> None:
    """A paraphrase is found, below any line that holds the words, and nothing in a script that is all
    alike.
    """
    found = library.search("wet weather", by="said")
    assert found[0].snippet == LINES["film0"][1] and found[0].score < EXACT and not found[0].why[0].words
    for text in ("wet weather", "medicine", "a railway departure", "собака бежит", "一只狗"):
        for moment in library.search(text, by="said", top_k=50):
            assert moment.why[0].words or moment.snippet.isascii(), (text, moment.snippet)


def test_a_library_that_is_closed_lets_its_encoder_go(spoken: Path) -> None:
    """A program that opens libraries again and again had 70 MB more of weights each time."""
    with Library(spoken, read_only=True) as opened:
        assert best(opened, "it is pouring outside")[0]
        encoder = weakref.ref(opened.store.encoders.sentences)
    del opened
    gc.collect()
    assert encoder() is None


def test_lines_that_follow_each_other_hold_words_together(spoken: Path, films: Path, tmp_path: Path) -> None:
    """Half of a sentence stands in the next line. What says much less does not make the moment longer."""
    videos = tmp_path / "films"
    videos.mkdir()
    shutil.copy(films / "film0.mp4", videos)
    lines = ("the keeper came", "of the lighthouse", "and the keeper slept", "far away")
    (videos / "film0.srt").write_text(subtitles(lines, 2), encoding="utf-8")
    with Library(tmp_path / "library", encoder="none", sentence_encoder="none") as library:
        library.index(videos)
        (found,) = library.search("lighthouse keeper came", by="said")
        assert found.strong and (found.start, found.end) == (0.0, 3.0)


def test_an_encoder_that_nobody_measured_is_cautious_and_says_so(library: Library, tmp_path: Path) -> None:
    """Whatever cosines it gives to unrelated texts, meaning alone is possible at best."""
    meaning = Meaning.of(library.store)
    assert meaning is not None and meaning.measured
    unmeasured = replace(meaning, reader=_Stated(SentenceMatch()))  # type: ignore[arg-type]
    assert unmeasured.line_scores(np.array([1.0])).max() < STRONG
    # e5 gives .75 to texts that have nothing in common: only what stands out from that says anything.
    high = replace(unmeasured, unrelated=replace(meaning.unrelated, mean=0.75, texts=0.83))
    low, line, top = high.line_scores(np.array([0.75, 0.83, 0.9])).tolist()
    assert low < 0.01 and line == pytest.approx(STRONG - 0.01) == top
    assert (meaning.name_shares(np.array([0.6, 0.7])) > 0).tolist() == [False, True]


class _Stated:
    def __init__(self, match: SentenceMatch) -> None:
        self.match = match


def test_the_packaged_numbers_are_those_that_are_measured(library: Library) -> None:
    """What a checkpoint states of unrelated texts is what a library finds that has to measure it."""
    encoder = load_sentence_encoder(MINILM)
    stated, measured = encoder.unrelated, unrelated_cosines(encoder.encode_text)
    assert stated is not None and unrelated_of(library.store) == stated
    for name in ("mean", "texts", "words"):
        assert getattr(stated, name) == pytest.approx(getattr(measured, name), abs=0.005)


def test_an_encoder_that_states_nothing_is_measured_once(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(MINILM_FOLDER, folder)
    (folder / "moviola.json").unlink()
    (folder / "README.md").write_text("---\nlanguage: en\n---\n")
    shutil.copytree(films, tmp_path / "films")
    with Library(tmp_path / "library", encoder="none", sentence_encoder=str(folder)) as library:
        library.index(tmp_path / "films")
        found = library.search("rain gear of a seaman", by="said")
        assert [note.about for note in found.notes if note.kind == "unmeasured"] == [str(folder)]
        assert not found.confident
        calls: list[int] = []
        monkeypatch.setattr(SentenceEncoder, "encode_text", lambda self, texts: calls.append(len(texts)))
        assert unrelated_of(library.store).mean == pytest.approx(0.103, abs=0.005) and not calls


@pytest.mark.parametrize(
    ("name", "stated", "attribute"),
    [
        ("sentences", {"slope": 0, "line": 1}, "match"),
        ("sentences", {"slope": 1}, "match"),
        ("unrelated", {"mean": 0.5, "texts": 0.4, "words": 0.6}, "unrelated"),
        ("unrelated", [1, 2, 3], "unrelated"),
        ("languages", "en", "languages"),
        ("languages", [1], "languages"),
    ],
)
def test_what_a_checkpoint_states_wrongly_is_named(
    tmp_path: Path, name: str, stated: object, attribute: str
) -> None:
    shutil.copytree(MINILM_FOLDER, tmp_path / "encoder")
    (tmp_path / "encoder" / "moviola.json").write_text(json.dumps({name: stated}))
    with pytest.raises(DataError, match=rf"moviola.json: {name} is "):
        getattr(load_sentence_encoder(str(tmp_path / "encoder")), attribute)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("The children are playing football in the garden.", True),
        ("cauliflower", True),
        ("a carburettor", True),
        ("Die Kinder liefen über die Wiesen zum Fluss", False),
        ("Les chevaux couraient dans les champs", False),
        ("Los niños jugaban en el jardín", False),
        ("Мы купили собаку", False),
        ("今天去火车站", False),
        ("नई किताबें खरीदीं", False),
        ("🐶", False),
        ("...", False),
    ],
)
def test_which_texts_an_english_encoder_reads(text: str, read: bool) -> None:
    assert load_sentence_encoder(MINILM).reads(text) == read


@pytest.mark.parametrize(
    ("text", "language", "read"),
    [
        ("documento de rol", "", True), ("documento de rol", "es", False), ("veya daha fazla", "tr", False),
        ("hot water", "es", True), ("Take the tablets after a meal.", "en", True),
    ],
)  # fmt: skip
def test_a_short_line_in_a_language_that_is_known_is_no_english(
    library: Library, text: str, language: str, read: bool
) -> None:
    """Pieces of a foreign line were near to anything, and strong."""
    meaning = Meaning.of(library.store)
    assert (cues._meant(0.7, Cue(0.0, 1.0, text, language=language), meaning) > 0) == read


@pytest.mark.parametrize(
    ("card", "languages"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n# A model\n", ("en",)),
        ("---\ntags:\n- x\nlanguage:\n- en\n- de\n---\n", ("en", "de")),
        ("# language: en\n", ()),
        (None, ()),
    ],
)
def test_a_model_card_says_which_languages_were_learnt(
    tmp_path: Path, card: str | None, languages: tuple[str, ...]
) -> None:
    """Without it, an encoder reads what it has tokens for."""
    shutil.copytree(
        MINILM_FOLDER, tmp_path / "encoder", ignore=shutil.ignore_patterns("moviola.json", "README.md")
    )
    if card:
        (tmp_path / "encoder" / "README.md").write_text(card)
    encoder = load_sentence_encoder(str(tmp_path / "encoder"))
    assert encoder.languages == languages
    assert encoder.reads("Die Kinder liefen über die Wiesen zum Fluss") == (languages != ("en",))
    assert not encoder.reads("เด็กๆกำลังเล่นอยู่ในสวน")


def test_a_word_is_compared_without_its_marks_and_endings() -> None:
    assert words_in("Größe, das größte – 一只狗 iPhone file_name मैदान!") == [
        "größe", "das", "größte", "iphone", "file", "name", "मैदान",
    ]  # fmt: skip
    assert terms_of_word("grosse", "de") & terms_of_word("größe", "de")
    assert terms_of_word("running", "en") == {"run·en"} and terms_of_word("मैदान", "") == {"मैदान"}
    assert terms_of_word("clés", "fr") & terms_of_word("cles", "fr")
    for asked, text in [
        ("dont", "I don't know"),
        ("1299000", "costs 1 299 000 now"),
        ("obrien", "Mrs. O'Brien"),
    ]:
        assert terms_of_word(asked, "en") & {*terms_of_text(text, "en")}, asked
    assert not terms_of_word("poet", "en") & {*terms_of_text("a pot of tea", "en")}


@pytest.mark.parametrize(
    ("language", "asked", "said"),
    [
        ("de", "kochen", "Heute kocht mein Bruder"), ("de", "spielen", "Er hat gespielt"),
        ("en", "run", "The child ran home"), ("en", "children", "a lost child"),
        ("en", "brought", "Bring it here"), ("he", "ילד", "הילדים שיחקו"), ("he", "הילדים", "שני ילדים"),
        ("es", "pez", "quedaban pocos peces"), ("es", "felices", "un perro feliz"),
        ("fr", "manger", "Ils mangent des pommes"), ("fr", "chanter", "Nous chantions"),
        ("ru", "кошка", "кормит кошек"), ("ru", "кошек", "моя кошка"), ("ru", "пить", "Он пил чай"),
        ("tr", "yazmak", "mektup yazdı"), ("tr", "koşmak", "parkta koşuyordu"), ("tr", "araba", "arabası"),
    ],
)  # fmt: skip
def test_forms_that_stemmers_leave_apart_are_one_word(language: str, asked: str, said: str) -> None:
    (word,) = asked_of([asked], asked, [language]).words
    assert word.terms & {*terms_of_text(said, language)}


def test_a_form_that_is_a_word_of_its_own_finds_itself_alone() -> None:
    """ "A saw" is a tool, and no "see"."""
    (word,) = asked_of(["saw"], "saw", ["en"]).words
    assert not word.terms & {*terms_of_text("I see", "en")}


def test_words_with_other_marks_come_after_those_that_are_asked_for() -> None:
    """In Vietnamese "cho" gives and "chó" barks; without marks on the keyboard both are found."""
    lines = [Cue(0.0, 1.0, text, language="vi") for text in ("Cho tôi cốc nước", "Con chó sủa suốt đêm")]

    def scores(asked: str) -> list[float]:
        words = cues._Words(asked_of([asked], asked, ["vi"]), {asked: 1.0}, ())
        return [words.score(words.held_by(line), 1.0) for line in lines]

    assert scores("chó")[1] > scores("chó")[0] >= EXACT and scores("cho")[0] > scores("cho")[1] >= EXACT
    together = [cues._Held(frozenset({"a"}), marked=frozenset(own)) for own in ({"a"}, set[str]())]
    assert together[0].and_of(together[1]).marked == together[1].and_of(together[0]).marked == frozenset()


@pytest.mark.parametrize(
    ("asked", "line", "kind", "band"),
    [
        ("%00", "30.000\n1.001\n00:00:01;00", "text", "possible"),
        ("00 12", "00:12", "text", "possible"),
        ("12", "00 12 07", "subtitle", "possible"),
        ("30", "recorded on 2024-11-30", "subtitle", "possible"),
        ("24 hours", "open 24/7, hours may differ", "subtitle", "possible"),
        ("7", "7", "text", "possible"),
        ("7", "the answer is 7", "speech", "strong"),
        ("take 7", "TAKE 7 00:12:31", "text", "strong"),
        ("12 o'clock", "12:30? It is 12 o'clock.", "speech", "strong"),
        ("00:12", "00:21:12;05", "text", "possible"),
        ("00:12", "REC 00:12:05", "text", "strong"),
        ("open 24/7", "open 24/7", "subtitle", "strong"),
        ("1990", "1990-2000", "text", "strong"),
        ("1990", "1990", "text", "strong"),
    ],
)
def test_digits_of_clocks_and_counters_are_no_words(asked: str, line: str, kind: CueKind, band: str) -> None:
    """ "%00" found films with a timecode in the picture, strong: any of them holds any two digits."""
    wanted = asked_of(words_in(asked), asked, [])
    weights = dict.fromkeys((unit.text for unit in wanted.units), 1.0)
    words = cues._Words(wanted, weights, (), tuple(joined_numbers(asked)))
    assert band_of(words.score(words.held_by(Cue(0.0, 1.0, line, kind)), 0.0)) == band


def test_letters_of_a_japanese_verb_are_those_that_stay() -> None:
    """Lines with the kana of "食べる" came before one with "食べた", since all its letters counted alike."""
    assert asked_of([], "食べる", ["ja"]).letters == ("食",) and asked_of([], "りんご", ["ja"]).letters
