"""Which type of index suits how many vectors.

Up to some ten thousand vectors exact search is as fast as any other and needs no learning. From 50,000 on
(55 hours of film) codes are ten times as fast and take a tenth of the memory, at 99 % of the same answers;
``benchmarks/index.md`` has the figures. A library that shrinks goes back later than it came, so that one that
grows and shrinks about the border is not made anew each time.
"""

from __future__ import annotations

__all__ = ["AUTO", "suited"]

AUTO = "auto"
"""The setting that leaves the choice to :func:`suited`."""

_MANY, _FEW = 50_000, 25_000


def suited(count: int, present: str = "") -> str:
    """The name of the type for so many vectors, where one of type ``present`` is there already (or none)."""
    return "reranked" if count >= (_FEW if present == "reranked" else _MANY) else "flat"
