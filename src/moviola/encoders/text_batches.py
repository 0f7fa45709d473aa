"""Texts as encoders take them: checked, and their tokens in batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue

__all__ = ["FEW_TEXTS", "batches", "check_texts"]

FEW_TEXTS = 16
"""Up to this many texts are encoded by the NumPy towers."""


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list.

    Raises:
        InvalidValue: one string in place of a list, or something that is no string.
    """
    if isinstance(texts, str):
        raise InvalidValue(f"texts {texts!r}: give a list of strings, for instance [{texts!r}]")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidValue(f"texts[{position}]: {type(text).__name__} {text!r} is no string")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(
                f"texts[{position}] {text!r:.200}: not Unicode text ({error.reason}); correct it"
            ) from error
    return list(texts)


def batches(
    rows: list[list[int]], size: int
) -> Iterator[tuple[list[int], NDArray[np.int64], NDArray[np.bool_]]]:
    """Token rows of any lengths, at most ``size`` of similar length together: none is over twice as long.

    Yields:
        The places of b rows, their ids (b, n), filled up with zeros, and which of these are real (b, n).
    """
    by_length = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    while by_length:
        longest = 2 * len(rows[by_length[0]])
        chosen = [place for place in by_length[:size] if len(rows[place]) <= longest]
        by_length = by_length[len(chosen) :]
        ids = np.zeros((len(chosen), len(rows[chosen[-1]])), dtype=np.int64)
        present = np.zeros(ids.shape, dtype=bool)
        for line, place in enumerate(chosen):
            ids[line, : len(rows[place])] = rows[place]
            present[line, : len(rows[place])] = True
        yield chosen, ids, present
