"""moviola: video moment search. Text in, a ranked list of moments (video, start, end, score) out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from moviola.errors import MoviolaError
from moviola.threads import sleep_while_waiting
from moviola.types import Moment, Query, Span, Video

if TYPE_CHECKING:
    from moviola.search import Library

# Before NumPy, torch and faiss are loaded: that is when they read it.
sleep_while_waiting(os.environ)

__all__ = ["Library", "Moment", "MoviolaError", "Query", "Span", "Video"]


def __getattr__(name: str) -> Any:
    """``moviola.Library`` on first use, so that ``import moviola`` stays quick."""
    if name == "Library":
        from moviola.search import Library

        return Library
    raise AttributeError(f"module 'moviola' has no attribute {name!r}")
