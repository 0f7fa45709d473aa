"""Choice of the index type by the number of vectors.

Up to some ten thousand vectors exact search is as fast as any other. From 50,000 on (55 hours of film) codes
are ten times as fast and take a tenth of the memory, with 99 % of the same answers; ``benchmarks/index.md``
has the figures. A library changes back later than it came, so that one about the border is not rebuilt often.
"""

from __future__ import annotations

__all__ = ["AUTO", "suited"]

AUTO = "auto"
"""The setting that leaves the choice to :func:`suited`."""

_MANY, _FEW = 50_000, 25_000


def suited(count: int, present: str = "") -> str:
    """The suitable type for ``count`` vectors, where one of type ``present`` exists already (or none)."""
    return "reranked" if count >= (_FEW if present == "reranked" else _MANY) else "flat"
