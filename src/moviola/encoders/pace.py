"""How long an encoder computes on this machine, estimated without its weights."""

from __future__ import annotations

import time

import numpy as np

from moviola.devices import available_device

__all__ = ["seconds_of_work"]

_LAYER = (784, 768, 3072)
"""A product of a transformer: the patches of four pictures, and the widths of a layer of ViT-B."""

_BY_EIGHT_BITS = 2.5
"""How many times as fast graphs are at most, in 8 bits (`benchmarks/runtimes.md`)."""


def seconds_of_work(operations: float) -> tuple[float, float] | None:
    """Least and most seconds that a number of floating-point operations takes on the CPU, from the time of a
    product of matrices; None where a GPU would compute, whose pace does not follow from that.
    """
    if available_device("auto") != "cpu":
        return None
    rows, inner, columns = _LAYER
    left, right = np.ones((rows, inner), np.float32), np.ones((inner, columns), np.float32)
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        left @ right
        taken.append(time.perf_counter() - begun)
    most = operations * min(taken) / (2.0 * rows * inner * columns)
    return most / _BY_EIGHT_BITS, most
