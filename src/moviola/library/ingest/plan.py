"""What indexing has to do, as a comparison of files with the catalogue finds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from moviola.library.disk.places import Copy, Root
from moviola.library.disk.removed import RemovedVideo
from moviola.library.disk.video_row import VideoRow

__all__ = ["FoundFile", "Held", "Plan"]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A video file as it lies on disk now, and the id that it has or will have."""

    path: Path
    video_id: str
    size: int
    mtime_ns: int
    hash: str
    sidecars: str


@dataclass(frozen=True, slots=True)
class Held:
    """What a library holds, besides its videos, that decides about files.

    Attributes:
        roots: folders that were indexed.
        copies: further paths of videos.
        removed: videos that were taken out and can be brought back.
    """

    roots: Sequence[Root] = ()
    copies: Sequence[Copy] = ()
    removed: Sequence[RemovedVideo] = ()


@dataclass(slots=True)
class Plan:
    """What indexing has to do: every file is in exactly one of the lists.

    Attributes:
        new, changed: to be encoded.
        moved: known content at another path, or a file that was only touched.
        overwritten: known videos whose path holds another known content now.
        kept_paths: paths that moved videos had and may have again, since their root is away.
        copies: content of a known video, or of one that is new, by its id, at a further path.
        lost_copies: paths of copies that are gone.
        restored: content that was removed before.
        subtitles: other subtitles, the same pictures.
        unchanged: known videos.
        missing: known videos of the given folders whose file is gone, though its root is there.
        away: known videos of the given folders whose root is away.
        left_out: known videos that patterns leave out now.
        offline: roots that are away, with the reason.
        roots: folders that were looked into, and what lies mounted in them.
        waiting: files that are still being written.
        refused: files, by the id that they have or would have, that cannot even be looked at, with the
            reason. They are not stored; what the library holds of them stays.
        ignored: files that are no videos by their suffix.
        excluded: folders and video files that were left out.
    """

    new: list[FoundFile] = field(default_factory=list)
    changed: list[FoundFile] = field(default_factory=list)
    moved: list[tuple[VideoRow, FoundFile]] = field(default_factory=list)
    overwritten: list[VideoRow] = field(default_factory=list)
    kept_paths: list[Copy] = field(default_factory=list)
    copies: list[tuple[str, FoundFile]] = field(default_factory=list)
    lost_copies: list[str] = field(default_factory=list)
    restored: list[tuple[RemovedVideo, FoundFile]] = field(default_factory=list)
    subtitles: list[tuple[VideoRow, FoundFile]] = field(default_factory=list)
    unchanged: list[VideoRow] = field(default_factory=list)
    missing: list[VideoRow] = field(default_factory=list)
    away: list[VideoRow] = field(default_factory=list)
    left_out: list[VideoRow] = field(default_factory=list)
    offline: dict[str, str] = field(default_factory=dict)
    roots: list[Root] = field(default_factory=list)
    waiting: list[Path] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    ignored: list[Path] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
