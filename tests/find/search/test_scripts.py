"""Subtitles in scripts without spaces between words are found by parts of what they say."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviola.search import Library, SearchQuery, Text

LINES = (
    "一只狗跳进水里",
    "猫在桌子上睡觉",
    "สุนัขกระโดดลงน้ำ",
    "今日は電話を買った",
    "the dog jumps",
    "我买了iPhone手机",
    "ポケモンはPokémon",
    "我喜欢running",
    "Größe und Gasse",
)


@pytest.fixture(scope="module")
def library(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """A library of one film by its subtitles alone; each line is apart from the next."""
    videos = tmp_path_factory.mktemp("scripts") / "videos"
    videos.mkdir()
    shutil.copy(films / "film2.mp4", videos)
    cues = (f"{n + 1}\n00:00:0{n},000 --> 00:00:0{n},300\n{line}\n" for n, line in enumerate(LINES))
    (videos / "film2.srt").write_text("\n".join(cues), encoding="utf-8")
    with Library(videos.parent / "library", encoder="none", sentence_encoder="none") as made:
        made.index(videos)
        assert [cue.text for cue in made.catalogue.cues(1)] == [*LINES]
        yield made


@pytest.mark.parametrize(
    ("query", "line", "words"),
    [
        ("狗", 0, ("狗",)),
        ("水里", 0, ("水里",)),
        ("狗跳", 0, ("狗跳",)),
        ("桌子上", 1, ("桌子上",)),
        ("สุนัข", 2, ("สุนัข",)),
        ("買った", 3, ("買った",)),
        ("dog", 4, ("dog",)),
        ("iphone", 5, ("iPhone",)),
        ("iPhone手机", 5, ("iPhone", "手机")),
        ("Pokémon", 6, ("Pokémon",)),
        ("pokemon", 6, ("Pokémon",)),
        ("running", 7, ("running",)),
        ("run", 7, ("running",)),
        ("GRÖSSE", 8, ("Größe",)),
        ("gaße", 8, ("Gasse",)),
    ],
)
def test_a_part_of_a_line_is_found(library: Library, query: str, line: int, words: tuple[str, ...]) -> None:
    best = library.search(query, by="said")[0]
    assert best.snippet == LINES[line]
    (why,) = best.why
    assert why.words == words


def test_letters_that_no_line_has_find_nothing(library: Library) -> None:
    assert library.search("鱼", by="said") == []
    assert library.search("狼", by="said") == []
    assert library.search("phone", by="said") == []


def test_a_long_query_is_searched_too(library: Library) -> None:
    assert library.search("狗跳进水里" * 200, by="said")[0].snippet == LINES[0]
    library.search(" ".join(f"iphone{n}" for n in range(5000)), by="said")


def test_letters_that_the_sentence_encoder_does_not_know_mean_nothing(films: Path, tmp_path: Path) -> None:
    """All such texts have one vector."""
    videos = tmp_path / "videos"
    videos.mkdir()
    shutil.copy(films / "film2.mp4", videos)
    (videos / "film2.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\n🐱\n", encoding="utf-8")
    with Library(tmp_path / "library", encoder="none", sentence_encoder="minilm") as library:
        library.index(videos)
        assert library.search("🐶", by="said", weak=True) == []
        assert library.search(Text("🐶") + Text("a cat"), by="said", weak=True) == []


def test_they_say_nothing_about_pictures_either(films: Path, tmp_path: Path) -> None:
    with Library(tmp_path / "library", encoder="conse-lite1", sentence_encoder="none") as library:
        library.index(films / "film2.mp4", ocr=False)

        def scores(query: SearchQuery) -> list[float]:
            return [moment.score for moment in library.search(query, by="visual", weak=True)]

        unknown, known = Text("🐶"), Text("a dog")
        assert scores(unknown) == [] and scores(known) != []
        assert scores(Text("?!")) == [] and scores(Text("…")) == [], "punctuation alone"
        assert scores(known.without(unknown)) == pytest.approx(scores(known), abs=2**-11)
        assert max(scores(unknown + known)) > 1e-6


def test_a_misspelt_word_of_pictures_is_offered_right(films: Path, tmp_path: Path) -> None:
    """Words of the library, and English words that the encoder reads: not "no “botles” here" alone. The
    nearest comes first, wherever it is from, and what is like nothing gets no offer.
    """
    videos = tmp_path / "videos"
    videos.mkdir()
    shutil.copy(films / "film2.mp4", videos / "umbrellas.mp4")
    shutil.copy(films / "film1.mp4", videos / "kites.mp4")
    with Library(tmp_path / "library", encoder="conse-lite1", sentence_encoder="minilm") as library:
        library.index(videos, ocr=False)
        for text, offered in (
            ("botles on a shelf", "bottles"), ("a submarne", "submarine"), ("umbrelas", "umbrellas"),
            ("a qwrtzkp", ""), ("a gitar", "guitar"), ("gitar", "guitar"),  # of Turkish
            ("elefant", "elephant"), ("muzik", "music"),
            ("bycicle", "bicycle"), ("a giraf", "giraffe"), ("the kitex", "kites"),
        ):  # fmt: skip
            notes = [note for note in library.search(text).notes if note.kind == "unknown word"]
            assert [" ".join(note.others) for note in notes] == [offered], text
        said = library.search("botles on a shelf", by="named").notes
        assert [note.others for note in said if note.about == "botles"] == [()], "pictures are not searched"
