"""Sounds that everybody knows, computed: ten seconds each, float32 in [-1, 1] at RATE."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RATE = 16_000

_TIME = np.arange(10 * RATE) / RATE


def _levelled(samples: NDArray[np.float64]) -> NDArray[np.float32]:
    return (0.5 * samples / np.abs(samples).max()).astype(np.float32)


def siren() -> NDArray[np.float32]:
    """A tone that rises and falls between 400 and 1,200 Hz."""
    phase = 2 * np.pi * np.cumsum(800 + 400 * np.sin(2 * np.pi * 0.4 * _TIME)) / RATE
    return _levelled(0.3 * np.sign(np.sin(phase)) + np.sin(phase))


def birds() -> NDArray[np.float32]:
    """Short trills between 3 and 5 kHz."""
    draw = np.random.default_rng(0)
    samples = draw.normal(0, 0.01, len(_TIME))
    for _ in range(25):
        first, length = int(draw.integers(0, len(_TIME) - 3000)), 2000
        trill = draw.uniform(3000, 4500) + 800 * np.sin(2 * np.pi * 25 * np.arange(length) / RATE)
        samples[first : first + length] += np.sin(2 * np.pi * np.cumsum(trill) / RATE) * np.hanning(length)
    return _levelled(samples)


def telephone() -> NDArray[np.float32]:
    """The ringing tone of American telephones: two seconds in six."""
    rings = np.sin(2 * np.pi * 440 * _TIME) + np.sin(2 * np.pi * 480 * _TIME)
    return _levelled(rings * (_TIME % 6 < 2))


def water() -> NDArray[np.float32]:
    """White noise."""
    return _levelled(np.random.default_rng(1).normal(size=len(_TIME)))
