"""Frames that do not change are encoded once: static shots, slides and lectures cost a fraction.

A frame is taken for a repeat of an earlier one of its batch while no field of :data:`FIELD` x :data:`FIELD`
pixels differs from that in its mean by :data:`SAME` or more, in any colour. Means even out the noise of
cameras and codecs; whatever moves, letters too, changes some field by far more. Frames are compared with the
one that stands in for them, not with their neighbours, so that slow changes add up.

How much a change of pixels matters only the encoder knows. So of all repeats of a batch the one that differs
most is encoded all the same: where its features have a cosine below :data:`LEAST_COSINE` with those that
would stand in for them, none of the batch is taken for a repeat. `benchmarks/ingest/repeats.py` measures what
is saved, and how near the others are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["FIELD", "LEAST_COSINE", "SAME", "encode_changes"]

FIELD = 4
"""Pixels of a side of the fields whose means are compared, of frames as the encoder gets them."""

SAME = 6.0
"""Difference of means, of 255, from which on a field is not the same."""

LEAST_COSINE = 0.99
"""Between the features of a frame and those that stand in for them, for the least alike of a batch."""

Frames = NDArray[np.uint8]
Rows = NDArray[np.float32]


def encode_changes(images: Frames, encode: Callable[[Frames], Rows]) -> tuple[Rows, int]:
    """Features of frames, of which those that repeat another are not encoded.

    Args:
        images: (n, height, width, 3) uint8 RGB, in order of time.
        encode: makes rows of features (n, d) float32 of frames.

    Returns:
        (n, d) float32, and how many of these rows are copies of others.
    """
    stand_ins, differences = _compared(_field_means(images))
    repeats = np.flatnonzero(stand_ins != np.arange(len(images)))
    if not len(repeats):
        return encode(images), 0
    probe = int(repeats[differences[repeats].argmax()])
    encoded = np.union1d(stand_ins, [probe])
    some = encode(images[encoded])
    rows = np.empty((len(images), some.shape[1]), np.float32)
    rows[encoded] = some
    copied = np.setdiff1d(repeats, [probe])
    if _cosine(rows[probe], rows[stand_ins[probe]]) < LEAST_COSINE:
        if len(copied):
            rows[copied] = encode(images[copied])
        return rows, 0
    rows[copied] = rows[stand_ins[copied]]
    return rows, len(copied)


def _field_means(images: Frames) -> Rows:
    """(n, rows, columns, 3) means of the fields; a rest at the edges makes smaller ones."""
    _, height, width, _ = images.shape
    rows, columns = np.arange(0, height, FIELD), np.arange(0, width, FIELD)
    sums = np.add.reduceat(images, columns, axis=2, dtype=np.float32)
    sums = np.add.reduceat(sums, rows, axis=1)
    pixels = np.outer(np.diff([*rows, height]), np.diff([*columns, width]))
    return np.asarray(sums / pixels[..., None], np.float32)


def _compared(means: Rows) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Which frame stands in for each (n,), itself where it repeats none; and how far the two differ (n,)."""
    stand_ins = np.arange(len(means))
    differences = np.zeros(len(means))
    current = 0
    for place in range(1, len(means)):
        difference = float(np.abs(means[place] - means[current]).max())
        if difference < SAME:
            stand_ins[place], differences[place] = current, difference
        else:
            current = place
    return stand_ins, differences


def _cosine(one: Rows, other: Rows) -> float:
    """Cosine of two vectors; 1 where both are zero."""
    lengths = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    if not lengths:
        return float(not one.any() and not other.any())
    return float(np.dot(one.astype(np.float64), other.astype(np.float64))) / lengths
