"""Edited films: moments, shots and words in pictures are found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from measuring import as_run
from moviola import Library
from moviola.encoders.readers import load_text_reader
from moviola.media import write_video
from moviola.study.datasets import gridhouse
from moviola.study.datasets.gridhouse.edit import Card
from moviola.study.datasets.gridhouse.projection import Projector, signs_seen
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.measures import evaluate, read_qrels

pytestmark = pytest.mark.long(1)
MEASURE = "nDCG@20,IoU>=0.3"
NEAR = 0.08  # seconds: two pictures at 25 a second
SEED = 8_150_006  # nothing was trained or tuned on its films


def test_the_demo_models_and_shots_on_edited_films(tmp_path: Path) -> None:
    world = tmp_path / "world"
    gridhouse.build(world, videos=6, seed=SEED, write_video=write_video, edited=True)
    test = world / "test.json"
    with Library(tmp_path / "library", encoder="demo", sentence_encoder="none") as library:
        library.index(world / "videos", ocr=False)
        library.indexer.use(stage1="demo", refiner="demo")
        queries = read_queries(test)
        answers = library.search_many(queries, top_k=100, by="visual")
        shots = {one.video_id: library.catalogue.shots(one.row)[1:] for one in library.catalogue.videos()}
    assert len(shots) == 6 and queries
    run = as_run(zip([query.query_id for query in queries], answers, strict=True))
    # Random moments have a hundredth (docs/figures.md).
    assert evaluate(run, read_qrels(test), [MEASURE]).measures[MEASURE] > 0.05
    edits = json.loads((world / "edits.json").read_text())
    there = found = right = reported = 0
    for video, own in shots.items():
        true = edits[video]["shots"][1:]
        cuts = [shot["start"] for shot in true if shot["opening"] == "cut"]
        # A dissolve begins anywhere in it, a fade from before it on.
        before = [shot["mixed"] * (shot["opening"] == "fade") + NEAR for shot in true]
        spans = [
            (shot["start"] - early, shot["start"] + shot["mixed"] + NEAR)
            for shot, early in zip(true, before, strict=True)
        ]
        there, reported = there + len(cuts), reported + len(own)
        found += sum(any(abs(shot.start - cut) < NEAR for shot in own) for cut in cuts)
        right += sum(any(begin <= shot.start <= end for begin, end in spans) for shot in own)
    assert found > 0.6 * there > 0 and right > 0.8 * reported


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
