"""The on-disk library: catalogue, features, indexes and models in use.

:class:`LibraryStore` opens one and reads from it, :class:`Indexer` writes to it; ``moviola.search.Library``
joins both with searching. ``verify``, ``repair`` and ``compact`` look after it. As a :class:`LibrarySource`
its features can be trained on.
"""

from __future__ import annotations

from moviola.index import Trial
from moviola.library.catalogue import Catalogue, CueRow, Job, Reading, ShotRow, VideoRow
from moviola.library.check import Problem, compact, repair, verify
from moviola.library.indexer import Indexer
from moviola.library.names import NameTable, VideoNames, names_in, stems_of
from moviola.library.report import IngestProgress, IngestReport
from moviola.library.settings import Settings
from moviola.library.source import LibrarySource, export_features, open_features
from moviola.library.store import LibraryStore
from moviola.library.unrelated import read_unrelated
from moviola.library.view import View, Viewer

__all__ = [
    "Catalogue",
    "CueRow",
    "Indexer",
    "IngestProgress",
    "IngestReport",
    "Job",
    "LibrarySource",
    "LibraryStore",
    "NameTable",
    "Problem",
    "Reading",
    "Settings",
    "ShotRow",
    "Trial",
    "VideoNames",
    "VideoRow",
    "View",
    "Viewer",
    "compact",
    "export_features",
    "names_in",
    "open_features",
    "read_unrelated",
    "repair",
    "stems_of",
    "verify",
]  # fmt: skip
