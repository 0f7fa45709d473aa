"""Where the videos of a library lie: the folders that were indexed, and whether they are there now.

A folder that was indexed is a *root*, and so is what lies mounted below one. A root whose drive is not
plugged in, whose share is not mounted, or in whose place another volume lies, is *away*: what it holds stays
in the library and is searched. A video belongs to the deepest root above it, and may lie at several paths.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moviola.library.disk.database import Database
from moviola.library.disk.video_row import VideoRow

__all__ = [
    "Copy",
    "Places",
    "Root",
    "is_below",
    "present_path",
    "root_of",
    "there",
    "volume_of",
    "why_away",
]


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that was indexed.

    Attributes:
        path: without links.
        volume: marker of the volume that lay there, see :func:`volume_of`.
        patterns: what is left out of it, as in ``.gitignore``.
        defaults: whether :data:`moviola.library.ingest.ignore_patterns.DEFAULTS` are, too.
    """

    path: str
    volume: str
    patterns: tuple[str, ...] = ()
    defaults: bool = True


@dataclass(frozen=True, slots=True)
class Copy:
    """A further path at which the bytes of a video lie, with its file's size and time of change."""

    video: int
    path: str
    size: int
    mtime_ns: int


class Places(Database):
    """The tables ``roots`` and ``copies`` of a catalogue."""

    def roots(self) -> list[Root]:
        """The folders that were indexed, by path."""
        if not self._has("roots"):
            return []
        rows = self._rows("SELECT path, volume, patterns, defaults FROM roots ORDER BY path")
        return [
            Root(path, volume, tuple(json.loads(patterns)), bool(defaults))
            for path, volume, patterns, defaults in rows
        ]

    def put_root(self, root: Root) -> None:
        """Store a root in place of what stood under its path."""
        self._rows(
            "INSERT OR REPLACE INTO roots (path, volume, patterns, defaults) VALUES (?, ?, ?, ?)",
            (root.path, root.volume, json.dumps(root.patterns), root.defaults),
        )

    def drop_root(self, path: str) -> None:
        """Forget a root; its videos stay."""
        self._rows("DELETE FROM roots WHERE path = ?", (path,))

    def copies(self) -> list[Copy]:
        """All further paths of videos, by path."""
        if not self._has("copies"):
            return []
        return [
            Copy(*row) for row in self._rows("SELECT video, path, size, mtime_ns FROM copies ORDER BY path")
        ]

    def copies_of(self, row: int) -> list[Copy]:
        """The further paths of one video, by path."""
        if not self._has("copies"):
            return []
        found = self._rows(
            "SELECT video, path, size, mtime_ns FROM copies WHERE video = ? ORDER BY path", (row,)
        )
        return [Copy(*row) for row in found]

    def put_copy(self, copy: Copy) -> None:
        """Note that a video lies at a further path."""
        self._rows(
            "INSERT OR REPLACE INTO copies (video, path, size, mtime_ns) VALUES (?, ?, ?, ?)",
            (copy.video, copy.path, copy.size, copy.mtime_ns),
        )

    def drop_copy(self, path: str) -> None:
        """The bytes of a video do not lie at that path any more."""
        self._rows("DELETE FROM copies WHERE path = ?", (path,))

    def move_paths(self, old: str, new: str) -> int:
        """What lies in a folder lies in another now: videos, copies, roots, and what was removed.

        Returns:
            how many files of videos.
        """
        moved = 0
        for table in ("videos", "copies", "roots", "removed"):
            found = [path for (path,) in self._rows(f"SELECT path FROM {table}") if is_below(path, old)]
            # Two steps, since the new folder may lie in the old one, or the other way round.
            for path in found:
                self._rows(f"UPDATE {table} SET path = ? WHERE path = ?", (f"\0{path}", path))
            for path in found:
                there = str(Path(new, Path(path).relative_to(old)))
                self._rows(f"UPDATE {table} SET path = ? WHERE path = ?", (there, f"\0{path}"))
            moved += len(found) if table in ("videos", "copies") else 0
        return moved


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both without links."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def root_of(path: str, roots: Iterable[Root]) -> Root | None:
    """The deepest root above a path."""
    above = (root for root in roots if is_below(path, root.path))
    return max(above, key=lambda root: len(root.path), default=None)


def volume_of(folder: Path) -> str:
    """A marker of the volume that a folder lies on; the same as long as that volume is mounted there.

    It is the id of the file system, as ``statvfs`` has it; where there is none, the number of the device.
    Some file systems get another one when they are mounted again, so that another marker alone proves
    nothing.

    Raises:
        OSError: the folder cannot be looked at.
    """
    if hasattr(os, "statvfs") and (number := os.statvfs(folder).f_fsid):
        return f"fs-{number:x}"
    return f"device-{folder.stat().st_dev:x}"


def why_away(folder: Path, volume: str, held: Iterable[VideoRow]) -> str:
    """Why what a folder held cannot be there now; an empty text where it can.

    A single file of those that it held, there with its size, proves that it is there.

    Args:
        folder: a root.
        volume: its marker; empty where that is not known.
        held: videos that lay in it.
    """
    try:
        with os.scandir(folder) as entries:
            empty = next(entries, None) is None
    except FileNotFoundError:
        return "it is not there"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    videos = list(held)
    if not videos or any(_is_there(video.path, video.size) for video in videos):
        return ""
    if empty:
        return f"it is empty, and held {len(videos)} videos"
    if volume_of(folder) != volume:
        return f"another volume lies there, which has none of its {len(videos)} videos"
    return ""


def _is_there(path: str, size: int) -> bool:
    try:
        return Path(path).stat().st_size == size
    except OSError:
        return False


def present_path(video: VideoRow, copies: Sequence[Copy]) -> Path | None:
    """The first path of a video at which a file is; None where its drives are away, or it is gone."""
    return next((path for path in map(Path, (video.path, *(c.path for c in copies))) if path.is_file()), None)


def there(video: VideoRow, places: Places) -> VideoRow:
    """A video with a path at which its file is now, if there is one."""
    return replace(video, path=str(present_path(video, places.copies_of(video.row)) or video.path))


def held_by(videos: Iterable[VideoRow], roots: Sequence[Root]) -> Mapping[str, list[VideoRow]]:
    """Videos by the path of their root; those of none are left out."""
    held: dict[str, list[VideoRow]] = {root.path: [] for root in roots}
    for video in videos:
        if root := root_of(video.path, roots):
            held[root.path].append(video)
    return held
