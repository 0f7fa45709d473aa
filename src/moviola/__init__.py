"""moviola: video moment search. Text in, a ranked list of moments (video, start, end, score) out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from moviola.errors import MoviolaError
from moviola.types import Moment, Query, Span, Video

if TYPE_CHECKING:
    from moviola.search import Library

# Decoding and encoding run side by side. OpenMP threads that spin while they wait starve the decoder: on
# two busy cores 22 frames a second were encoded, and 380 with waiting threads asleep. torch reads this when
# it is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__all__ = ["Library", "Moment", "MoviolaError", "Query", "Span", "Video"]


def __getattr__(name: str) -> Any:
    """``moviola.Library`` on first use, so that ``import moviola`` stays quick."""
    if name == "Library":
        from moviola.search import Library

        return Library
    raise AttributeError(f"module 'moviola' has no attribute {name!r}")
