"""What indexing tells: where it stands, and what it did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from moviola.types import CueKind

__all__ = ["IngestProgress", "IngestReport"]


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """Where a step of indexing stands: videos done of those that need work, one that is worked on and its
    seconds done. Pictures of several videos may be encoded at a time. Steps follow each other: pictures, then
    text in them, then speech.
    """

    done: int
    total: int
    video_id: str
    seconds: float
    step: Literal["pictures"] | CueKind = "pictures"


@dataclass(slots=True)
class IngestReport:
    """What indexing did, by video id. ``refused``, ``partial`` and ``subtitle_problems`` carry reasons.

    ``missing`` are videos whose file is gone, ``left_out`` those that patterns leave out now; they stay in
    unless pruning was asked for (``removed``), and where that would take too many, which ``not_pruned`` says.
    ``away`` are videos of folders that are not there now, which ``offline`` names with the reason; they stay.
    ``moved`` videos lie elsewhere, or were touched; ``copies`` are new paths of videos that were there
    already or came in now, ``restored`` videos that had been removed; none of them was encoded.
    ``excluded`` are paths of folders and video files that were left out, ``waiting`` of files that are still
    being written.
    ``ignored`` are paths of files that are no videos by their suffix. ``shots_found`` are unchanged videos of
    a library that was built before shots were looked for. ``read`` are videos that a reader went through, by
    kind of cues, ``reading_problems`` those it could not; ``not_read`` says of a kind that nobody reads how
    to have it read. ``frames`` are the frames that now have features, ``repeats`` those of them that repeat
    an earlier one and were not encoded themselves.
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
    read: dict[str, list[str]] = field(default_factory=lambda: {"text": [], "speech": []})
    reading_problems: dict[str, str] = field(default_factory=dict)
    not_read: dict[str, str] = field(default_factory=dict)
    frames: int = 0
    repeats: int = 0
