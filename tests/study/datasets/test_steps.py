"""Whole steps of building a ranked data set."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.building.nearest import embed, unit_rows
from moviola.study.datasets.building.steps import rewrite_captions
from moviola.study.datasets.readers import read_query_keys, read_tvr

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters:
    """Counts letters, and remembers what it was given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def encode_text(self, texts: list[str]) -> NDArray[np.float32]:
        self.given += texts
        return np.array([[text.count(letter) for letter in LETTERS] for text in texts], np.float32)


def annotations(path: Path, captions: dict[int, str], kind: str = "v") -> Annotations:
    rows = [
        {"vid_name": "v", "duration": 60, "ts": [n, n + 2], "type": kind, "desc_id": n, "desc": caption}
        for n, caption in captions.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_tvr(path)


def test_each_text_is_encoded_once_and_zeros_stay_zeros() -> None:
    encoder = Letters()
    rows = unit_rows(embed(["aab", "?", "aab"], encoder))
    assert encoder.given == ["aab", "?"]
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 1], atol=1e-6)


def test_keys_are_of_the_captions_as_they_are_read(tmp_path: Path) -> None:
    """Real captions of TVR have blanks around them, one of eight in val."""
    found = annotations(tmp_path / "tvr", {7: "A man sits. ", 8: " A dog."})
    assert read_query_keys([tmp_path / "tvr"], "desc_id") == dict(zip(found.captions, "78", strict=True))


def test_only_the_types_asked_for_are_rewritten(tmp_path: Path) -> None:
    found = annotations(tmp_path / "tvr", {1: "Ross sits down.", 2: "Ross sits down."}, kind="t")
    files = tmp_path / "journal", tmp_path / "review.csv"
    with pytest.raises(InvalidValue, match=r"types v: no moment of TVR has one; there are t"):
        rewrite_captions(found, Letters(), *files, types=["v"])
    with pytest.raises(InvalidValue, match=r"threshold 5: a similarity lies between -1 and 1"):
        rewrite_captions(found, Letters(), *files, threshold=5)
    made = rewrite_captions(found, Letters(), *files, types=["t"])
    assert (len(made.moments), made.captions, made.reviewed) == (2, 1, 0)
