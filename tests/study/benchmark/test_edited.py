"""Edited films through the command line: moments, shots and words in pictures are found."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edited import MEASURES, measured
from moviola.encoders.readers import load_text_reader
from moviola.media import write_video
from moviola.study.datasets import gridhouse
from moviola.study.datasets.gridhouse.edit import Card
from moviola.study.datasets.gridhouse.projection import Projector, signs_seen

pytestmark = pytest.mark.long(1)
SEED = 8_150_006  # nothing was trained or tuned on its films


def test_the_demo_models_and_shots_on_edited_films(tmp_path: Path) -> None:
    gridhouse.build(tmp_path / "world", videos=6, seed=SEED, write_video=write_video, edited=True)
    found = measured(tmp_path / "world", tmp_path / "library")
    assert found["films"] == 6 and found["test queries"] > 0
    # Random moments have a hundredth (docs/figures.md).
    assert found["demo models"][MEASURES[0]] > 0.05
    cuts, there = found["shots"]["found of"]["cut"]
    right, reported = found["shots"]["right of those found"]
    assert cuts > 0.6 * there and right > 0.8 * reported


def readable() -> Iterator[tuple[NDArray[np.uint8], str]]:
    """A frame with words on it, and the words: a card and a sign of each of some films."""
    films = (gridhouse.edited(SEED, number=number) for number in range(20))
    for film in islice((film for film in films if film.format.picture[1] >= 240), 2):
        card = film.shots[0].shows
        assert isinstance(card, Card)
        yield Projector(film).frame(film.shots[0].stop // 3), card.text
        start, end, word = signs_seen(film)[0]
        yield Projector(film).frame(round((start + end) / 2 * film.format.rate)), word


def test_cards_and_signs_can_be_read() -> None:
    reader = load_text_reader("rapidocr")
    for frame, words in readable():
        assert words in " ".join(line.text for line in reader.read(frame))
