"""The on-disk library: catalogue, features, indexes and models in use.

:class:`LibraryStore` opens one and reads from it, :class:`Indexer` writes to it; ``moviola.search.Library``
joins both with searching. ``verify``, ``repair`` and ``compact`` look after it. As a :class:`LibrarySource`
its features can be trained on.
"""

from __future__ import annotations

from moviola.index import Trial
from moviola.library.background import background_of
from moviola.library.captures import Taken, taken_of
from moviola.library.catalogue import Catalogue, CueRow, Job, Reading, ShotRow, VideoRow
from moviola.library.check import Problem, compact, repair, verify
from moviola.library.concepts import (
    Concept,
    concept_name,
    concepts_of,
    forget_concept,
    keep_concept,
    read_concept,
)  # fmt: skip
from moviola.library.indexer import Indexer
from moviola.library.names import NameTable, VideoNames, names_in, stems_of
from moviola.library.places import Copy, Root, present_path, there
from moviola.library.removed import RemovedVideo
from moviola.library.report import IngestProgress, IngestReport
from moviola.library.settings import Settings
from moviola.library.source import LibrarySource, export_features, open_features
from moviola.library.store import LibraryStore
from moviola.library.view import View, Viewer

__all__ = [
    "Catalogue",
    "Concept",
    "Copy",
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
    "RemovedVideo",
    "Root",
    "Settings",
    "ShotRow",
    "Taken",
    "Trial",
    "VideoNames",
    "VideoRow",
    "View",
    "Viewer",
    "background_of",
    "compact",
    "concept_name",
    "concepts_of",
    "export_features",
    "forget_concept",
    "keep_concept",
    "names_in",
    "open_features",
    "present_path",
    "read_concept",
    "repair",
    "stems_of",
    "taken_of",
    "there",
    "verify",
]  # fmt: skip
