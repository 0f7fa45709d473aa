"""BM25 by counts of several catalogues is that of one catalogue with all of their cues."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviola.library import Catalogue, WantedCues
from moviola.library.disk.bm25 import totals_of
from moviola.library.united_catalogue import STRIDE, UnitedCatalogue
from moviola.types import Cue
from moviola.words import letters_of, terms_of_word

WORDS = ("dog", "dogs", "red", "house", "the", "Häuser", "straße", "東京", "12", "it's", "dog dog red")
LANGUAGES = ("en", "de", "")

Line = tuple[list[str], str]
lines = st.tuples(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), st.sampled_from(LANGUAGES))


def _catalogue(folder: Path, videos: Sequence[Sequence[Line]]) -> Catalogue:
    folder.mkdir()
    Catalogue.create(folder)
    catalogue = Catalogue(folder)
    with catalogue.transaction():
        for row, own in enumerate(videos, 1):
            cues = [
                Cue(float(at), at + 1.0, " ".join(words), language=language)
                for at, (words, language) in enumerate(own)
            ]
            catalogue.put_cues(row, cues, {})
    return catalogue


@settings(max_examples=40)
@given(
    parts=st.lists(
        st.lists(st.lists(lines, min_size=1, max_size=5), max_size=5), min_size=2, max_size=3
    ).filter(any),
    asked=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    limit=st.integers(1, 6),
)
def test_scores_and_order_are_those_of_one_catalogue(
    parts: list[list[list[Line]]], asked: list[str], limit: int
) -> None:
    """Words that are rare in one part and frequent in another weigh as in all, however few are wanted: a part
    whose own scores are in another order gives the same best. The words of an unknown one are those of all.
    """
    terms = set().union(*(terms_of_word(word, one) for word in asked for one in LANGUAGES))
    letters = {letter for word in asked for letter in letters_of(word)}
    with tempfile.TemporaryDirectory() as folder:
        own = [_catalogue(Path(folder, str(at)), videos) for at, videos in enumerate(parts)]
        whole = _catalogue(Path(folder, "all"), [video for videos in parts for video in videos])
        united = UnitedCatalogue(own, [str(at) for at in range(len(own))])
        rows = [at * STRIDE + row for at, videos in enumerate(parts) for row in range(1, len(videos) + 1)]
        wanted = whole.match_cues(WantedCues(terms, letters), limit)
        found = united.match_cues(WantedCues(terms, letters), limit)
        assert [(rows.index(one.video) + 1, one.number) for one in found] == [
            (one.video, one.number) for one in wanted
        ]
        # SQLite may be compiled to multiply and add in one step.
        assert [one.score for one in found] == pytest.approx([one.score for one in wanted], rel=1e-12)
        assert united.words_near("dgo") == whole.words_near("dgo")
        assert united.languages() == whole.languages()
        for catalogue in (united, whole):
            catalogue.close()


def test_the_record_of_averages() -> None:
    """Numbers above 127 take several bytes."""
    assert totals_of(bytes.fromhex("860C00000000000000A9598302")) == (780, 5337 + 386)
    assert totals_of(b"") == (0, 0)
