"""What is there and what has changed: files on disk against the catalogue, before any decoding."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from moviola.errors import NotFound
from moviola.library.catalogue import VideoRow
from moviola.media import VIDEO_SUFFIXES, find_videos, sidecars
from moviola.media.subtitles import SUBTITLE_SUFFIXES

__all__ = ["FoundFile", "Plan", "make_plan"]

_CHUNK = 256 * 1024
_CHUNKS = 4


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A video file as it lies on disk now, and the id that it has or will have."""

    path: Path
    video_id: str
    size: int
    mtime_ns: int
    hash: str
    sidecars: str


@dataclass(slots=True)
class Plan:
    """What indexing has to do: every file is in exactly one of the lists."""

    new: list[FoundFile] = field(default_factory=list)
    changed: list[FoundFile] = field(default_factory=list)
    moved: list[tuple[VideoRow, FoundFile]] = field(default_factory=list)
    subtitles: list[tuple[VideoRow, FoundFile]] = field(default_factory=list)
    unchanged: list[VideoRow] = field(default_factory=list)
    missing: list[VideoRow] = field(default_factory=list)
    ignored: list[Path] = field(default_factory=list)


def make_plan(sources: Sequence[Path], known: Iterable[VideoRow]) -> Plan:
    """Compare files and folders (searched recursively) with the catalogue.

    A file counts as unchanged while its path, size, modification time and sidecars are; otherwise its content
    decides: known content at a new path whose old path is gone was moved. Refused files are tried again.
    Videos of the given folders whose file is gone are ``missing``; nothing is taken out here. Files of a
    folder that are no videos by their suffix are ``ignored``; one that is named itself is always tried.

    Raises:
        NotFound: a source does not exist.
    """
    planner = _Planner(known)
    for source in sources:
        for path, name in _files(source):
            planner.look_at(path, name)
        planner.plan.ignored.extend(_others(source.resolve()))
    planner.find_missing([source.resolve() for source in sources])
    return planner.plan


def _files(source: Path) -> list[tuple[Path, Path]]:
    """Files of a source with the names that their ids come from: the path below the source."""
    root = source.resolve()
    if root.is_dir():
        return [(path.resolve(), path.relative_to(root)) for path in find_videos(root)]
    if root.is_file():
        return [(root, Path(root.name))]
    raise NotFound(f"{source}: no such file or folder")


def _others(root: Path) -> list[Path]:
    """Files of a folder that are neither videos by their suffix, nor subtitles, nor hidden."""
    return [
        path
        for path in sorted(root.rglob("*"))
        if path.suffix.lower() not in VIDEO_SUFFIXES.union(SUBTITLE_SUFFIXES)
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
        and path.is_file()
    ]


class _Planner:
    """Sorts one file after another into a plan."""

    def __init__(self, known: Iterable[VideoRow]) -> None:
        self.plan = Plan()
        self._by_path = {video.path: video for video in known}
        videos = self._by_path.values()
        self._by_hash = {video.hash: video for video in videos if video.state != "refused"}
        self._taken = {video.video_id for video in videos}
        self._seen: set[str] = set()

    def look_at(self, path: Path, name: Path) -> None:
        """Decide about one file; ``name`` is its path below the source."""
        if str(path) in self._seen:
            return
        self._seen.add(str(path))
        known = self._by_path.get(str(path))
        try:
            stat = path.stat()
            beside = _signature(sidecars(path))
            now = (stat.st_size, stat.st_mtime_ns, beside)
            if known and known.state != "refused" and now == (known.size, known.mtime_ns, known.sidecars):
                self.plan.unchanged.append(known)
                return
            digest = content_hash(path, stat.st_size)
        except OSError:
            return  # vanished while we looked, or a dangling link: the next run sees what is true then
        origin = known or self._moved_from(digest)
        video_id = origin.video_id if origin else self._new_id(path, name)
        found = FoundFile(path, video_id, stat.st_size, stat.st_mtime_ns, digest, beside)
        if origin is None:
            self.plan.new.append(found)
        elif origin.hash != digest or origin.state == "refused":
            self.plan.changed.append(found)
        elif origin.path == str(path) and origin.sidecars != beside:
            self.plan.subtitles.append((origin, found))
        else:
            self.plan.moved.append((origin, found))  # or only touched

    def find_missing(self, folders: Sequence[Path]) -> None:
        """Known videos of these folders that were not seen and whose file is gone."""
        moved = {video.row for video, _ in self.plan.moved}
        self.plan.missing = [
            video
            for path, video in self._by_path.items()
            if path not in self._seen and video.row not in moved and _gone_from(Path(path), folders)
        ]

    def _moved_from(self, digest: str) -> VideoRow | None:
        """The video with this content whose file is gone; each is found once."""
        origin = self._by_hash.get(digest)
        if origin is None or Path(origin.path).exists():
            return None
        return self._by_hash.pop(digest)

    def _new_id(self, path: Path, name: Path) -> str:
        """The path below the source, without suffix; longer forms only where that is taken."""
        short, full = name.with_suffix("").as_posix(), name.as_posix()
        numbered = (f"{full}~{number}" for number in count(2))
        candidates = chain((short, full, f"{path.parent.name}/{full}"), numbered)
        video_id = next(candidate for candidate in candidates if candidate not in self._taken)
        self._taken.add(video_id)
        return video_id


def _gone_from(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders) and not path.exists()


def _signature(paths: Iterable[Path]) -> str:
    """Names, sizes and times of the subtitle files beside a video: another signature, another reading."""
    parts = []
    for path in paths:
        stat = path.stat()
        parts.append(f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}")
    return "|".join(parts)


def content_hash(path: Path, size: int) -> str:
    """BLAKE2 over the size and four pieces of 256 KiB spread evenly: a whole film need not be read."""
    digest = hashlib.blake2b(str(size).encode(), digest_size=20)
    with path.open("rb") as file:
        for piece in range(_CHUNKS):
            file.seek(max(0, (size - _CHUNK) * piece // (_CHUNKS - 1)))
            digest.update(file.read(_CHUNK))
    return digest.hexdigest()
