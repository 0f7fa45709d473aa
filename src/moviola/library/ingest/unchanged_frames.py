"""Reuse of features for frames that repeat: static shots, slides and lectures cost a fraction.

A frame counts as a repeat of an earlier one of its batch while no field of :data:`FIELD` x :data:`FIELD`
pixels differs in its mean by :data:`SAME` or more, in any colour. Means even out the noise of cameras and
codecs; motion, even of letters, changes some field by far more. Frames are compared with the encoded frame,
not with their neighbours, so that slow changes add up.

Only the encoder knows how much a change of pixels matters: some turn noise into other features. So some
repeats are encoded as a check: the one that differs most in the batch, and, for each encoded frame, its most
different repeat, if that differs by :data:`SURE` or more. Where one of them has a cosine below
:data:`PROBED_COSINE` with the features it would get, none of the batch counts as a repeat. The others then
have cosines of :data:`LEAST_COSINE` and more (`benchmarks/ingest/README.md`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from moviola.compiled.module import least_cosine

__all__ = ["LEAST_COSINE", "encode_changes"]

FIELD = 4
"""Side of the compared fields in pixels, of frames as the encoder gets them."""

SAME = 6.0
"""Difference of means, of 255, from which on a field has changed."""

SURE = 2.0
"""Difference below which repeats are not checked one by one."""

LEAST_COSINE, PROBED_COSINE = 0.99, 0.995
"""Minimum cosines with the reused features: of all repeats, and of those that are checked."""

Frames = NDArray[np.uint8]
Rows = NDArray[np.float32]
Places = NDArray[np.intp]


def encode_changes(images: Frames, encode: Callable[[Frames], Rows]) -> tuple[Rows, int]:
    """Features (n, d) float32 of frames (n, height, width, 3) uint8 RGB in order of time, of which those that
    repeat another are not encoded; and the number of rows that are copies of others.
    """
    stand_ins, differences = _compared(_field_means(images))
    repeats = np.flatnonzero(stand_ins != np.arange(len(images)))
    if not len(repeats):
        return encode(images), 0
    # The repeats that are encoded as a check, see above.
    by_difference = repeats[np.argsort(-differences[repeats], kind="stable")]
    worst = by_difference[np.unique(stand_ins[by_difference], return_index=True)[1]]
    probes = np.union1d(by_difference[:1], worst[differences[worst] >= SURE])
    copied = np.setdiff1d(repeats, probes)
    encoded = np.setdiff1d(np.arange(len(images)), copied)
    some = encode(images[encoded])
    rows = np.empty((len(images), some.shape[1]), np.float32)
    rows[encoded] = some
    if least_cosine([rows[probes]], [rows[stand_ins[probes]]]) >= PROBED_COSINE:
        rows[copied] = rows[stand_ins[copied]]
        return rows, len(copied)
    if len(copied):
        rows[copied] = encode(images[copied])
    return rows, 0


def _field_means(images: Frames) -> Rows:
    """(n, rows, columns, 3) means of the fields; fields at the edges may be smaller."""
    _, height, width, _ = images.shape
    rows, columns = np.arange(0, height, FIELD), np.arange(0, width, FIELD)
    sums = np.add.reduceat(images, columns, axis=2, dtype=np.float32)
    sums = np.add.reduceat(sums, rows, axis=1)
    pixels = np.outer(np.diff([*rows, height]), np.diff([*columns, width]))
    return np.asarray(sums / pixels[..., None], np.float32)


def _compared(means: Rows) -> tuple[Places, NDArray[np.float64]]:
    """For each frame (n,) the encoded frame, itself if no repeat; and the difference of the two (n,)."""
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
