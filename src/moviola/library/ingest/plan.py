"""The plan of an indexing run: how files and catalogue differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from moviola.errors import printable
from moviola.library.disk.places import Copy, Root
from moviola.library.disk.removed import RemovedVideo
from moviola.library.disk.schema import State, VideoRow

__all__ = ["FoundFile", "Plan", "only_renamed"]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A video file on disk, with its present or future id."""

    path: Path
    video_id: str
    size: int
    mtime_ns: int
    hash: str
    sidecars: str

    def row(self, state: State, **known: Any) -> VideoRow:
        """The file as a video that is to be stored; ``known`` are further fields."""
        own = {**asdict(self), "path": str(self.path)}
        return VideoRow(row=0, state=state, **own, **known)


@dataclass(slots=True)
class Plan:
    """The plan: every file is in exactly one of the lists.

    What has the name of a field of :class:`IngestReport` means the same.

    Attributes:
        new, changed: to be encoded.
        moved: known content at another path, or a file that was only touched.
        overwritten: known videos whose path has other known content now.
        kept_paths: former paths of moved videos, which may come back since their root is away.
        copies: further paths of the content of a known video, or of a new one, by its id; each has an id of
            its own, for where that one is refused.
        lost_copies: paths of copies that are gone.
        subtitles: new subtitles, the same pictures.
        missing: known videos of the given folders whose file is gone, though its root is there.
        roots: folders that were read, and volumes mounted in them.
        refused: files that cannot even be read, by their present or future id, with the reason. They are not
            stored; what the library has of them stays.
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


def only_renamed(video: VideoRow, found: FoundFile) -> bool:
    """Whether the subtitle files beside a video are those from before, but for the name that all share."""

    def endings(path: Path, signature: str) -> list[str]:
        return [part.removeprefix(printable(path.stem)) for part in signature.split("|")]

    return endings(Path(video.path), video.sidecars) == endings(found.path, found.sidecars)
