"""Segments and queries, made up or from a folder of features.

Made segments: videos of 19 segments are random walks in 64 dimensions, which a random network of two layers
takes to ``dim`` numbers; a common mean and a little noise are added (a mean cosine of about .5, as CLIP's
pictures have among each other), and the length is 1. A smaller library is the beginning of a larger one.

Made queries by *picture* are segments with noise and an offset. Those by *text* lie off all segments, as
texts do for CLIP and SigLIP: .85 of one direction in which no segment lies, .3 of where a segment lies beside
the mean, .4 of noise; their best cosine is about .26.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from moviola.files.writing import draft_of

__all__ = ["PER_VIDEO", "made_queries", "made_segments", "unit"]

PER_VIDEO = 19
"""Segments of a made video: 76 s, the average of TVR."""

_LATENT, _HIDDEN = 64, 256
_VIDEOS_AT_ONCE = 512

Floats = NDArray[np.float32]


def unit(rows: NDArray[np.floating[Any]]) -> Floats:
    """Rows (n, d) at length 1."""
    found: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


def made_segments(path: Path, count: int, dim: int, seed: int = 0) -> Floats:
    """Segments (count, dim) float32 as a map of a ``.npy`` file, written if it has fewer."""
    if not path.is_file() or len(np.load(path, mmap_mode="r")) < count:
        generator = np.random.default_rng(seed)
        first = generator.standard_normal((_LATENT, _HIDDEN), np.float32) / np.float32(8)
        second = generator.standard_normal((_HIDDEN, dim), np.float32) / np.float32(16)
        mean = unit(generator.standard_normal((1, dim)))
        with draft_of(path) as draft:
            rows = open_memmap(draft, "w+", np.float32, (count, dim))
            for begin in range(0, count, _VIDEOS_AT_ONCE * PER_VIDEO):
                part = _block(np.random.default_rng([seed, begin]), first, second, mean)
                rows[begin : begin + len(part)] = part[: count - begin]
            rows.flush()
    found: Floats = np.load(path, mmap_mode="r")[:count]
    return found


def _block(generator: np.random.Generator, first: Floats, second: Floats, mean: Floats) -> Floats:
    """All segments of some videos."""
    start = generator.standard_normal((_VIDEOS_AT_ONCE, 1, _LATENT), np.float32)
    steps = generator.standard_normal((_VIDEOS_AT_ONCE, PER_VIDEO, _LATENT), np.float32)
    walks = start + np.cumsum(steps * np.float32(0.25), axis=1)
    seen = np.tanh(walks.reshape(-1, _LATENT) @ first) @ second
    noise = generator.standard_normal(seen.shape, np.float32) * np.float32(0.15 / seen.shape[1] ** 0.5)
    return unit(seen / np.linalg.norm(seen, axis=1).mean() + mean + noise)


def made_queries(segments: Floats, count: int, seed: int = 1) -> dict[str, Floats]:
    """Queries (count, dim) by picture and by text, each about a segment of its own."""
    generator = np.random.default_rng(seed)
    dim, mean = segments.shape[1], segments[::97].mean(axis=0)
    about = segments[np.sort(generator.choice(len(segments), count, replace=False))]
    noise = unit(generator.standard_normal((count, dim)))
    offset = unit(generator.standard_normal((1, dim)))
    gap = generator.standard_normal(dim)
    off = unit((gap - gap @ mean * mean / (mean @ mean))[None])
    return {
        "picture": unit(about + 0.4 * noise + 0.3 * offset),
        "text": unit(0.3 * unit(about - mean) + 0.85 * off + 0.4 * noise + 0.1 * mean),
    }
