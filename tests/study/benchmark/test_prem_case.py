"""What PREM reads of a query and where it sees boundaries, as numbers and figures."""

from __future__ import annotations

import csv
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import prem_case
from comparison.world import World
from moviola.errors import InvalidValue, NotFound
from moviola.study.models.prem import Prem
from moviola.study.models.pretrained import build, save_pretrained
from moviola.study.training.one_video import run_in_one_video
from moviola.study.training.recipes.prem import PREM
from prem_case import prem_cases, token_names
from toy_world import DIM, SUBTITLE_DIM

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'moviola[studies]'")

DROPS, WAITS, DOOR = "test-2", "test-4", "test-0"
"""Queries of five words and as many rows, of three words and four rows, and of five words and three rows."""

WORDS = ("the", "robot", "drops", "a", "ball", "waits")


def prem(**more: int) -> Prem:
    torch.manual_seed(0)
    sizes = {"visual_size": DIM, "subtitle_size": SUBTITLE_DIM, "query_size": DIM}
    small = {"hidden_size": 16, "heads": 2, "feed_forward_size": 32, "max_clips": 40, "longest_span": 40}
    made = build("prem", sizes | small | {"clip_seconds": 1.0} | more)
    assert isinstance(made, Prem)
    return made.eval()


@pytest.fixture(scope="module")
def model() -> Prem:
    return prem()


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """Splits at blanks."""
    words = Tokenizer(WordLevel({"?": 0} | {word: 1 + n for n, word in enumerate(WORDS)}, unk_token="?"))
    words.pre_tokenizer = Whitespace()
    path = tmp_path / "tokenizer.json"
    words.save(str(path))
    return path


def test_confidence_is_highest_where_the_answer_is(world: World, model: Prem) -> None:
    split = world.split("test")
    case, other = prem_cases(model, split, [WAITS, DROPS])
    assert (case.query, other.query) == (WAITS, DROPS)
    for weights in (*case.weights.values(), *other.weights.values()):
        assert weights.min() > 0 and weights.sum() == pytest.approx(1)
    assert list(case.weights) == ["pictures", "subtitles"] and len(case.weights["pictures"]) == 4
    seconds = world.features.durations[case.video]
    assert all(
        len(curve) == seconds and curve.sum() == pytest.approx(1) for curve in case.boundaries.values()
    )
    start, end = (case.boundaries[name] for name in ("start", "end"))
    first, last = np.unravel_index(np.triu(np.outer(start, end)).argmax(), (len(start), len(end)))
    best = run_in_one_video(partial(PREM.run, model), split).rows()[WAITS][0]
    assert (best["start"], best["end"]) == (first, last + 1) and best["video_id"] == case.video
    answers = split.pairs.qrels.rows()[WAITS]
    here = [(row["start"], row["end"]) for row in answers if row["video_id"] == case.video]
    assert sorted(case.true) == sorted(here)


def test_tokens_have_names(world: World, model: Prem, tokenizer: Path) -> None:
    short = prem(max_tokens=3)  # reads the first two tokens and the last
    drops, waits, door = prem_cases(model, world.split("test"), [DROPS, WAITS, DOOR])
    assert token_names(drops, tokenizer) == ["the", "robot", "drops", "a", "ball"]
    assert token_names(waits, tokenizer) == ["(sentence)", "the", "robot", "waits"]
    assert token_names(waits, None) == ["1", "2", "3", "4"]
    (cut,) = prem_cases(short, world.split("test"), [WAITS])
    assert cut.rows == 4 and token_names(cut, tokenizer) == ["(sentence)", "the", "waits"]
    assert token_names(cut, None) == ["1", "2", "4"]
    with pytest.raises(InvalidValue, match="'test-0': 3 rows of features, but 5 tokens by"):
        token_names(door, tokenizer)
    with pytest.raises(InvalidValue, match="nowhere: no readable tokenizer"):
        token_names(door, Path("nowhere"))


def test_a_query_without_an_answer_is_named(world: World, model: Prem) -> None:
    with pytest.raises(NotFound, match="query 'nobody': no moment of these videos answers it"):
        prem_cases(model, world.split("test"), [DROPS, "nobody"])


def test_command_leaves_figures_and_numbers(
    world: World, model: Prem, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "model", tmp_path / "out"
    save_pretrained(model, folder, card="A test's.")
    given = [folder, world.folder / "features", world.pairs("test"), "--out", out, "--tokenizer", tokenizer]
    queries = ["--query", WAITS, "--query", DROPS]
    monkeypatch.setattr(sys, "argv", ["prem_case.py", *map(str, given), *queries])
    prem_case.main()
    assert sorted(path.name for path in out.iterdir()) == [
        f"prem-case-{number}.{kind}" for number in (1, 2) for kind in ("csv", "png", "svg")
    ]
    with (out / "prem-case-1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["query"] for row in rows} == {WAITS}
    words = [row["token"] for row in rows if row["curve"] == "subtitles"]
    assert words == ["(sentence)", "the", "robot", "waits"]
    for curve in ("pictures", "subtitles", "start", "end"):
        assert sum(float(row["value"]) for row in rows if row["curve"] == curve) == pytest.approx(1)
