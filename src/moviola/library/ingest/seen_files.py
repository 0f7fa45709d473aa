"""Files that were examined, and the subtitle files that lie beside any path of a content."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.places import Copy
from moviola.library.ingest.file_states import changed_at
from moviola.library.ingest.plan import FoundFile

__all__ = ["Seen", "join_subtitles"]


@dataclass(slots=True)
class Seen:
    """A file that was examined: its path without links and below the source, the signature of the subtitle
    files beside it and these, the hash of its content, and what the catalogue has of its path.
    """

    path: Path
    name: Path
    status: os.stat_result
    sidecars: str
    beside: tuple[Path, ...]
    hash: str
    known: VideoRow | None
    copy: Copy | None

    @property
    def as_known(self) -> bool:
        """Whether it is as the catalogue has it, subtitle files included."""
        now = (self.status.st_size, changed_at(self.status), self.sidecars)
        known = self.known
        return known is not None and now == (known.size, known.mtime_ns, known.sidecars)

    def found(self, video_id: str) -> FoundFile:
        """The file, under the id of a video."""
        size, changed = self.status.st_size, changed_at(self.status)
        return FoundFile(self.path, video_id, size, changed, self.hash, self.sidecars, self.beside)


Elsewhere = Callable[[VideoRow], tuple[Collection[Path], bool]]
"""Gives the subtitle files beside paths of a video that were not examined, and whether all were listed."""


def join_subtitles(
    seen: Iterable[Seen],
    known: Mapping[str, VideoRow],
    examined: Container[str],
    elsewhere: Elsewhere,
    sign: Callable[[Path, Iterable[Path], VideoRow | None], str],
) -> list[tuple[VideoRow, FoundFile]]:
    """Give each file the subtitle files of all paths of its content, its own first: which path a video goes
    by depends on the order of folders.

    Args:
        known: videos by hash.
        examined: all paths that were examined.
        sign: makes the signature of the subtitle files of a path.

    Returns:
        videos whose own path was not examined, and which have other subtitle files now.
    """
    alike: dict[str, list[Seen]] = {}
    for one in seen:
        alike.setdefault(one.hash, []).append(one)
    others = []
    for content, files in alike.items():
        video = known.get(content)
        more, all_listed = elsewhere(video) if video else ((), True)
        joined = sorted({*chain.from_iterable(one.beside for one in files), *more})
        for one in files:
            if more_beside := set(_distinct((*one.beside, *joined))) - set(one.beside):
                one.beside = (*one.beside, *sorted(more_beside))
                one.sidecars = sign(one.path, one.beside, one.known)
            if one.known is video and video and not all_listed and _holds(video.sidecars, one.sidecars):
                one.sidecars = video.sidecars
        if video and all_listed and video.path not in examined and _is_unchanged(video):
            home = Path(video.path)
            beside = _distinct(sorted(joined, key=lambda path: not path.is_relative_to(home.parent)))
            if (signed := sign(home, beside, video)) != video.sidecars:
                size, mtime_ns, content = video.size, video.mtime_ns, video.hash
                found = FoundFile(home, video.video_id, size, mtime_ns, content, signed, beside)
                others.append((video, found))
    return others


def _distinct(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Files, but of those that were copied with their time only the first."""
    kept: dict[object, Path] = {}
    for path in paths:
        try:
            status = path.stat()
            kept.setdefault((path.name, status.st_size, status.st_mtime_ns), path)
        except OSError:
            kept.setdefault(path, path)
    return tuple(kept.values())


def _is_unchanged(video: VideoRow) -> bool:
    try:
        status = Path(video.path).stat()
    except OSError:
        return False
    return (status.st_size, changed_at(status)) == (video.size, video.mtime_ns)


def _holds(before: str, now: str) -> bool:
    """Whether a signature has all subtitle files of another one."""
    return set(now.split("|")) - {""} <= set(before.split("|"))
