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
from typing import TYPE_CHECKING

from moviola.first_use import on_first_use
from moviola.threads import sleep_while_waiting

if TYPE_CHECKING:
    from moviola.errors import MoviolaError
    from moviola.search import Libraries, Library
    from moviola.types import Moment, Query, Span, Video

# Before NumPy, torch and faiss are loaded: that is when they read it.
sleep_while_waiting(os.environ)

__all__ = ["Libraries", "Library", "Moment", "MoviolaError", "Query", "Span", "Video"]

__getattr__ = on_first_use(
    __name__,
    {
        "search": ("Libraries", "Library"),
        "errors": ("MoviolaError",),
        "types": ("Moment", "Query", "Span", "Video"),
    },
)
