"""Roots: the indexed folders, and whether they are there now.

An indexed folder is a *root*, and so is a volume mounted below one. A root is *away* while its drive is not
plugged in, its share not mounted, or another volume is in its place: its videos stay in the library and are
searched. A video belongs to the deepest root above it, and may have several paths.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from moviola.errors import counted
from moviola.files.presence import is_file
from moviola.files.reasons import reason
from moviola.library.disk.contents import content_hash
from moviola.library.disk.database import Database, among
from moviola.library.disk.schema import VideoRow

__all__ = [
    "NOT_THERE", "Copy", "Places", "Root", "held_by", "is_below", "is_there", "moved_path", "present_path",
    "root_of", "there", "volume_of", "why_away",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Root:
    """An indexed folder, without links; the marker of its volume (:func:`volume_of`); patterns of what it
    excludes, as in ``.gitignore``; and whether
    :data:`moviola.library.ingest.ignore_patterns.DEFAULTS` are excluded, too.
    """

    path: str
    volume: str
    patterns: tuple[str, ...] = ()
    defaults: bool = True


@dataclass(frozen=True, slots=True)
class Copy:
    """A further path of a video, with its file's size and modification time."""

    video: int
    path: str
    size: int
    mtime_ns: int


NOT_THERE = reason("root gone")
"""Why a root is away whose folder is gone."""

# Videos of a root that are looked at to know another volume by them.
_SAMPLE = 32
_COPIES = "SELECT video, path, size, mtime_ns FROM copies"


class Places(Database):
    """The ``roots`` and ``copies`` tables of a catalogue."""

    def roots(self) -> list[Root]:
        """The indexed folders, by path."""
        rows = self._rows_of("roots", "SELECT path, volume, patterns, defaults FROM roots ORDER BY path")
        return [
            Root(path, volume, tuple(json.loads(patterns)), bool(defaults))
            for path, volume, patterns, defaults in rows
        ]

    def knows(self, folder: str) -> bool:
        """Whether a folder, without links, is a root or holds one, a video, or a further path of one."""
        tables = {table: f"SELECT path FROM {table}" for table in ("roots", "copies", "videos")}
        return any(
            is_below(path, folder)
            for table, statement in tables.items()
            for (path,) in self._rows_of(table, statement)
        )

    def put_root(self, root: Root) -> None:
        """Store a root, replacing the one of its path."""
        row = (root.path, root.volume, json.dumps(root.patterns), root.defaults)
        self._put_all("roots (path, volume, patterns, defaults)", [row])

    def drop_root(self, path: str) -> None:
        """Delete a root; its videos stay."""
        self._rows("DELETE FROM roots WHERE path = ?", (path,))

    def copies(self, rows: Collection[int] | None = None) -> list[Copy]:
        """The further paths of all or some videos, by path."""
        where, values = among("video", rows)
        found = self._rows_of("copies", f"{_COPIES} WHERE {where} ORDER BY path", values)
        return [Copy(*row) for row in found]

    def copies_of(self, row: int) -> list[Copy]:
        """The further paths of one video, by path."""
        found = self._rows_of("copies", f"{_COPIES} WHERE video = ? ORDER BY path", (row,))
        return [Copy(*copy) for copy in found]

    def put_copy(self, copy: Copy) -> None:
        """Store a further path of a video."""
        self._put_all("copies (video, path, size, mtime_ns)", [astuple(copy)])

    def drop_copy(self, path: str) -> None:
        self._rows("DELETE FROM copies WHERE path = ?", (path,))

    def move_paths(self, old: str, new: str) -> int:
        """Replace a folder by another in the paths of videos, copies and roots; returns the number of files.
        A root that the new folder already has keeps its options.
        """
        moved = 0
        for table in ("videos", "copies", "roots"):
            paths = [path for (path,) in self._rows(f"SELECT path FROM {table}") if is_below(path, old)]
            # Two steps: one folder may lie in the other.
            for path in paths:
                self._rows(f"UPDATE {table} SET path = ? WHERE path = ?", (f"\0{path}", path))
            for path in paths:
                there = moved_path(path, old, new)
                if table == "roots" and self._rows("SELECT 1 FROM roots WHERE path = ?", (there,)):
                    self.drop_root(f"\0{path}")
                self._rows(f"UPDATE {table} SET path = ? WHERE path = ?", (there, f"\0{path}"))
            moved += len(paths) if table != "roots" else 0
        return moved


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both without links."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def moved_path(path: str, old: str, new: str) -> str:
    """A path with a folder replaced that it lies in; any other path unchanged."""
    return str(Path(new, Path(path).relative_to(old))) if is_below(path, old) else path


def root_of(path: str, roots: Iterable[Root]) -> Root | None:
    """The deepest root above a path."""
    above = (root for root in roots if is_below(path, root.path))
    return max(above, key=lambda root: len(root.path), default=None)


def volume_of(folder: Path) -> str:
    """A marker of the volume of a folder: the file system's id from ``statvfs``, else the device number.

    It is constant while that volume is mounted; some file systems get another one with each mount, so a
    different marker alone proves nothing.

    Raises:
        OSError: the folder cannot be read.
    """
    if hasattr(os, "statvfs") and (number := os.statvfs(folder).f_fsid):
        return f"fs-{number:x}"
    return f"device-{folder.stat().st_dev:x}"


def why_away(folder: Path, volume: str, held: Iterable[VideoRow]) -> str:
    """Why a root with a volume (empty if unknown) and videos is away; empty where it is there. On the same
    volume a single one of these files, found with its size, proves that; on another one most of them must be
    there, with their content: a copy of one film does not make it the same.
    """
    try:
        with os.scandir(folder) as entries:
            empty = next(entries, None) is None
    except FileNotFoundError:
        return NOT_THERE
    except OSError as error:
        return reason("root unreadable", why=error.strerror)
    videos = list(held)
    if empty and videos:
        return reason("root empty", videos=counted(len(videos), "video"))
    if not videos or volume_of(folder) == volume:  # if none is there, they were deleted
        return ""
    if not volume and any(is_there(video.path, video.size) for video in videos):
        return ""
    return _another_volume(folder, videos)


def _another_volume(folder: Path, videos: Sequence[VideoRow]) -> str:
    """What another volume lacks of a root's videos; empty where it has most of them."""
    sample = videos[:: -(-len(videos) // _SAMPLE)]
    found = sum(map(_is_same, sample))
    if 2 * found > len(sample):
        return ""
    whole, place = counted(len(videos), "video"), shlex.quote(str(folder))
    if not found:
        return reason("root of none", videos=whole)
    return reason("root of some", found=found, sample=len(sample), videos=whole, place=place)


def _is_same(video: VideoRow) -> bool:
    """Whether the file of a video is there with its content."""
    try:
        status = Path(video.path).stat()
        return status.st_size == video.size and (
            status.st_mtime_ns == video.mtime_ns or content_hash(Path(video.path), video.size) == video.hash
        )
    except OSError:
        return False


def is_there(path: str | os.PathLike[str], size: int) -> bool:
    """Whether a file of a size is there."""
    try:
        return Path(path).stat().st_size == size
    except OSError:
        return False


def present_path(video: VideoRow, copies: Sequence[Copy], roots: Sequence[Root]) -> Path | None:
    """The first path of a video that exists; None where its drives are away, or it is gone. A path that leads
    elsewhere by now does not count.
    """
    paths = (video.path, *(copy.path for copy in copies))
    there = (path for path in paths if is_file(path) and not _leads_elsewhere(path, roots))
    return next(map(Path, there), None)


def _leads_elsewhere(path: str, roots: Sequence[Root]) -> bool:
    """Whether a link has come to stand on a path, below its root, since it was indexed: paths are kept
    without links, and others may write to the folder, who would so have any file shown.
    """
    root, file = root_of(path, roots), Path(path)
    base = Path(root.path) if root else file.parent
    try:
        return os.path.realpath(file) != str(Path(os.path.realpath(base), file.relative_to(base)))
    except (OSError, ValueError):
        return True


def there(video: VideoRow, places: Places) -> VideoRow:
    """A video with a path that exists now, if there is one."""
    present = present_path(video, places.copies_of(video.row), places.roots())
    return replace(video, path=str(present or video.path))


def held_by(videos: Iterable[VideoRow], roots: Sequence[Root]) -> Mapping[str, list[VideoRow]]:
    """Videos by the path of their root; those without one are left out."""
    held: dict[str, list[VideoRow]] = {root.path: [] for root in roots}
    for video in videos:
        if root := root_of(video.path, roots):
            held[root.path].append(video)
    return held
