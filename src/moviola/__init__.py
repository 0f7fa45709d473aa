"""moviola: video moment search. Text in, a ranked list of moments (video, start, end, score) out.

Examples:
    >>> import numpy as np
    >>> from moviola import Library
    >>> from moviola.media import write_video
    >>> colours = np.repeat([[200, 40, 40], [40, 40, 200]], 20, axis=0)
    >>> write_video("film.mp4", (np.full((72, 96, 3), one, np.uint8) for one in colours), rate=5)
    >>> with Library("lib", encoder="demo", sentence_encoder="none") as library:
    ...     report = library.index("film.mp4", ocr=False)
    ...     best, *others = library.search("a red door")
    >>> report.added, best.video_id, 0 <= best.start < best.end <= 8
    (['film'], 'film', True)
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from moviola.threads import sleep_while_waiting

if TYPE_CHECKING:
    from moviola.errors import MoviolaError
    from moviola.search import Libraries, Library
    from moviola.types import Moment, Query, Span, Video

# Before NumPy, torch and faiss are loaded: that is when they read it.
sleep_while_waiting(os.environ)

__all__ = ["Libraries", "Library", "Moment", "MoviolaError", "Query", "Span", "Video"]

_MODULES = {"Libraries": "search", "Library": "search", "MoviolaError": "errors"}
"""Modules of the public names that are not those of ``types``."""


def __getattr__(name: str) -> Any:
    """A public name on first use, so that ``import moviola`` stays quick."""
    if name in __all__:
        return getattr(import_module(f"moviola.{_MODULES.get(name, 'types')}"), name)
    raise AttributeError(f"module 'moviola' has no attribute {name!r}")
