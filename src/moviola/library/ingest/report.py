"""Progress and report of indexing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from moviola.types import CueKind

__all__ = ["IngestProgress", "IngestReport", "Paused"]


class Paused(Exception):
    """Raised by a callback of indexing to end the call between two steps; what is finished is in, and is
    reported.
    """


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """Progress of one step of indexing: videos done of those that need work, and the current video with its
    seconds done. Pictures of several videos may be encoded at a time.
    """

    done: int
    total: int
    video_id: str
    seconds: float
    step: Literal["pictures"] | CueKind = "pictures"


@dataclass(slots=True)
class IngestReport:
    """What indexing did, by video id. ``refused``, ``partial`` and ``subtitle_problems`` hold reasons.

    ``missing`` are videos whose file is gone, ``left_out`` those that patterns exclude now; both stay unless
    pruning is on (``removed``), and if that would remove too many, ``not_pruned`` says so. ``away`` are
    videos of folders that are not there now, named in ``offline`` with the reason; they stay.
    ``moved`` videos have a new path, or were touched; ``copies`` are new paths of videos that are in or came
    in now, ``restored`` had been removed; none of them was encoded.
    ``excluded`` are excluded folders and video files, ``waiting`` files that are still being written,
    ``ignored`` files that are no videos by their suffix. ``shots_found`` are unchanged videos of a library
    older than shot detection, ``fingerprinted`` those older than fingerprints; both were decoded again, not
    encoded. ``read`` are videos that a reader read, by kind of cues, ``reading_problems``
    those it could not; ``not_read`` says how to read a kind that has no reader. ``frames`` is the number of
    frames that now have features, ``repeats`` that of frames that reuse the features of an earlier one.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    copies: dict[str, list[str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    offline: dict[str, str] = field(default_factory=dict)
    not_pruned: str = ""
    excluded: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    partial: dict[str, str] = field(default_factory=dict)
    subtitle_problems: dict[str, str] = field(default_factory=dict)
    shots_found: list[str] = field(default_factory=list)
    fingerprinted: list[str] = field(default_factory=list)
    read: dict[str, list[str]] = field(default_factory=lambda: {"text": [], "speech": []})
    reading_problems: dict[str, str] = field(default_factory=dict)
    not_read: dict[str, str] = field(default_factory=dict)
    frames: int = 0
    repeats: int = 0
