"""The on-disk library: catalogue, features, indexes and models in use.

:class:`LibraryStore` opens one and reads from it, :class:`Indexer` writes to it; ``moviola.search.Library``
joins both with searching. ``verify``, ``repair`` and ``compact`` look after it. As a :class:`LibrarySource`
its features can be trained on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.first_use import on_first_use

if TYPE_CHECKING:
    from moviola.library.check import Problem, verify
    from moviola.library.derived.encoder_background import background_of, calibrated, unrelated_of
    from moviola.library.derived.name_table import NameTable, descriptions_in, names_in
    from moviola.library.derived.recordings import Recording, common_recording, recordings_of
    from moviola.library.derived.sound_classes import SoundClasses, sound_classes
    from moviola.library.derived.verdicts import VerdictStore
    from moviola.library.derived.video_names import VideoNames, stems_in
    from moviola.library.derived.view import View, Viewer
    from moviola.library.disk.accounts import Account
    from moviola.library.disk.captures import Taken, taken_of
    from moviola.library.disk.catalogue import Catalogue, CueRow, Job, Reading, ShotRow, VideoRow
    from moviola.library.disk.columns import Facts
    from moviola.library.disk.cue_words import CueTrack, WantedCues
    from moviola.library.disk.places import Copy, Root, present_path, there
    from moviola.library.disk.protected_paths import require_no_library, require_outside
    from moviola.library.disk.removed import RemovedVideo
    from moviola.library.disk.settings import Settings
    from moviola.library.disk.sounds import log_odds
    from moviola.library.disk.store import LibraryStore
    from moviola.library.ingest.change_of_encoder import BegunChange, ChangePlan, EncoderChange, change_begun
    from moviola.library.ingest.footage import about_seconds
    from moviola.library.ingest.indexer import Indexer
    from moviola.library.ingest.plan import IngestProgress, IngestReport, Paused
    from moviola.library.ingest.said_languages import say_language
    from moviola.library.library_source import LibrarySource, export_features, open_features
    from moviola.library.mending import compact, ends_with_compaction, mend_settings, repair
    from moviola.library.userdata.concepts import (
        Concept,
        concept_name,
        concepts_of,
        forget_concept,
        keep_concept,
        read_concept,
    )  # fmt: skip

__all__ = [
    "Account", "BegunChange", "Catalogue", "ChangePlan", "Concept", "Copy", "CueRow", "CueTrack",
    "EncoderChange", "Facts", "Indexer", "IngestProgress", "IngestReport", "Job", "LibrarySource",
    "LibraryStore", "NameTable", "Paused", "Problem", "Reading", "Recording", "RemovedVideo", "Root",
    "Settings", "ShotRow", "SoundClasses", "Taken", "VerdictStore", "VideoNames", "VideoRow", "View",
    "Viewer", "WantedCues",
    "about_seconds", "background_of", "calibrated", "change_begun", "common_recording", "compact",
    "concept_name", "concepts_of", "descriptions_in", "ends_with_compaction", "export_features",
    "forget_concept", "keep_concept", "log_odds", "mend_settings", "names_in", "open_features",
    "present_path", "read_concept", "recordings_of", "repair", "require_no_library", "require_outside",
    "say_language", "sound_classes", "stems_in", "taken_of", "there", "unrelated_of", "verify",
]  # fmt: skip

__getattr__ = on_first_use(
    __name__,
    {
        "derived.encoder_background": ("background_of", "calibrated", "unrelated_of"),
        "derived.name_table": ("NameTable", "descriptions_in", "names_in"),
        "derived.recordings": ("Recording", "common_recording", "recordings_of"),
        "derived.sound_classes": ("SoundClasses", "sound_classes"),
        "derived.verdicts": ("VerdictStore",),
        "derived.video_names": ("VideoNames", "stems_in"),
        "derived.view": ("View", "Viewer"),
        "disk.accounts": ("Account",),
        "disk.captures": ("Taken", "taken_of"),
        "disk.catalogue": ("Catalogue", "CueRow", "Job", "Reading", "ShotRow", "VideoRow"),
        "disk.columns": ("Facts",),
        "disk.cue_words": ("CueTrack", "WantedCues"),
        "disk.places": ("Copy", "Root", "present_path", "there"),
        "disk.protected_paths": ("require_no_library", "require_outside"),
        "disk.removed": ("RemovedVideo",),
        "disk.settings": ("Settings",),
        "disk.sounds": ("log_odds",),
        "disk.store": ("LibraryStore",),
        "userdata.concepts": (
            "Concept", "concept_name", "concepts_of", "forget_concept", "keep_concept", "read_concept",
        ),
        "check": ("Problem", "verify"),
        "ingest.change_of_encoder": ("BegunChange", "ChangePlan", "EncoderChange", "change_begun"),
        "ingest.footage": ("about_seconds",),
        "ingest.indexer": ("Indexer",),
        "ingest.plan": ("IngestProgress", "IngestReport", "Paused"),
        "ingest.said_languages": ("say_language",),
        "library_source": ("LibrarySource", "export_features", "open_features"),
        "mending": ("compact", "ends_with_compaction", "mend_settings", "repair"),
    },
)  # fmt: skip
