"""The on-disk library: catalogue, features and indexes of a set of videos.

:class:`LibraryStore` opens one, indexes videos into it and reads from it; ``moviola.search.Library`` adds
searching. ``verify``, ``repair`` and ``compact`` look after it.
"""

from __future__ import annotations

from moviola.library.catalogue import Catalogue, CueRow, Extent, Job, VideoRow
from moviola.library.check import Problem, compact, repair, verify
from moviola.library.segments import normalised, segment, unpack_id, unpack_ids
from moviola.library.settings import Settings
from moviola.library.store import IngestProgress, IngestReport, LibraryStore, View

__all__ = [
    "Catalogue",
    "CueRow",
    "Extent",
    "IngestProgress",
    "IngestReport",
    "Job",
    "LibraryStore",
    "Problem",
    "Settings",
    "VideoRow",
    "View",
    "compact",
    "normalised",
    "repair",
    "segment",
    "unpack_id",
    "unpack_ids",
    "verify",
]
