"""What is there and what has changed: files on disk against the catalogue, before any decoding."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from moviola.errors import MediaError, NotFound, UnreadableMedia, printable
from moviola.library.catalogue import VideoRow
from moviola.media import SUBTITLE_SUFFIXES, VIDEO_SUFFIXES, regular_file, sidecars, walk_files

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
    """What indexing has to do: every file is in exactly one of the lists.

    ``refused`` are files, by the id that they have or would have, that cannot even be looked at, with the
    reason. They are not stored; what the library holds of them stays.
    """

    new: list[FoundFile] = field(default_factory=list)
    changed: list[FoundFile] = field(default_factory=list)
    moved: list[tuple[VideoRow, FoundFile]] = field(default_factory=list)
    subtitles: list[tuple[VideoRow, FoundFile]] = field(default_factory=list)
    unchanged: list[VideoRow] = field(default_factory=list)
    missing: list[VideoRow] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    ignored: list[Path] = field(default_factory=list)


def make_plan(sources: Sequence[Path], known: Iterable[VideoRow]) -> Plan:
    """Compare files and folders (searched recursively) with the catalogue.

    A file counts as unchanged while its path, size, modification time and sidecars are; otherwise its content
    decides: known content at a new path whose old path is gone was moved. The hash reads only pieces of a
    file, so one that was incomplete (``partial``) counts as changed whatever the hash says. Refused files are
    tried again. Videos of the given folders whose file is gone are ``missing``; nothing is taken out here.
    Files of a folder that are no videos by their suffix are ``ignored``; one that is named itself is always
    tried.

    Raises:
        NotFound: a source does not exist.
    """
    planner = _Planner(known)
    folders = []
    for source in sources:
        root = _resolved(source)
        if root.is_dir():
            folders.append(root)
            planner.look_into(root)
        elif os.path.lexists(root):
            planner.look_at(root, Path(root.name))
        else:
            raise NotFound(f"{printable(source)}: no such file or folder")
    planner.find_missing(folders)
    return planner.plan


def _resolved(path: Path) -> Path:
    """The path without links; as it is where they lead nowhere, which opening the file will tell."""
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError):
        return path.absolute()


class _Planner:
    """Sorts one file after another into a plan."""

    def __init__(self, known: Iterable[VideoRow]) -> None:
        self.plan = Plan()
        self._by_path = {video.path: video for video in known}
        videos = self._by_path.values()
        self._by_hash = {video.hash: video for video in videos if video.state != "refused"}
        self._taken = {video.video_id for video in videos}
        self._seen: set[str] = set()

    def look_into(self, folder: Path) -> None:
        """Decide about every file below a folder."""
        for path in sorted(walk_files(folder, self._note_unreadable)):
            suffix = path.suffix.lower()
            if suffix in VIDEO_SUFFIXES:
                self.look_at(_resolved(path), path.relative_to(folder))
            elif suffix not in SUBTITLE_SUFFIXES:
                self.plan.ignored.append(path)

    def look_at(self, path: Path, name: Path) -> None:
        """Decide about one file; ``name`` is its path below the source."""
        if str(path) in self._seen:
            return
        self._seen.add(str(path))
        known = self._by_path.get(str(path))
        try:
            _require_unicode(path, name)
            status = regular_file(path)
            beside = _signature(sidecars(path))
            now = (status.st_size, status.st_mtime_ns, beside)
            if known and known.state != "refused" and now == (known.size, known.mtime_ns, known.sidecars):
                self.plan.unchanged.append(known)
                return
            digest = content_hash(path, status.st_size)
        except (MediaError, OSError) as error:
            self._refuse(path, name, known, error)
            return
        origin = known or self._moved_from(digest)
        video_id = origin.video_id if origin else self._new_id(path, name)
        found = FoundFile(path, video_id, status.st_size, status.st_mtime_ns, digest, beside)
        if origin is None:
            self.plan.new.append(found)
        elif origin.hash != digest or origin.state == "refused" or _may_be_complete(origin, found):
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
            if path not in self._seen
            and video.row not in moved
            and any(Path(path).is_relative_to(folder) for folder in folders)
            and _is_gone(Path(path))
        ]

    def _refuse(self, path: Path, name: Path, known: VideoRow | None, error: MediaError | OSError) -> None:
        if isinstance(error, MediaError):
            reason = error.reason
        else:
            reason = f"cannot be read ({error.strerror}); check its permissions and its disk"
        video_id = known.video_id if known else printable(self._new_id(path, name))
        self.plan.refused[video_id] = f"{printable(path.name)}: {reason}; skipped"

    def _note_unreadable(self, error: OSError) -> None:
        """A folder that cannot be listed."""
        folder = printable(error.filename)
        self.plan.refused[folder] = f"{folder}: cannot be read ({error.strerror}); skipped"

    def _moved_from(self, digest: str) -> VideoRow | None:
        """The video with this content whose file is gone; each is found once."""
        origin = self._by_hash.get(digest)
        if origin is None or not _is_gone(Path(origin.path)):
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


def _require_unicode(*paths: Path) -> None:
    """Ids and paths are stored and printed as text, which a name of arbitrary bytes is not."""
    for path in paths:
        if printable(path) != str(path):
            raise UnreadableMedia(path, f"its path is not UTF-8 ({printable(path)}); rename it")


def _may_be_complete(origin: VideoRow, found: FoundFile) -> bool:
    """Whether a file that was damaged or still being written was written to since."""
    before = (origin.size, origin.mtime_ns)
    return origin.state == "partial" and before != (found.size, found.mtime_ns)


def _is_gone(path: Path) -> bool:
    """Whether a file is sure not to be there any more; one that cannot be looked at may be."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _signature(paths: Iterable[Path]) -> str:
    """Names, sizes and times of the subtitle files beside a video: another signature, another reading."""
    parts = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            parts.append(f"{printable(path.name)}:unreadable")
        else:
            parts.append(f"{printable(path.name)}:{status.st_size}:{status.st_mtime_ns}")
    return "|".join(parts)


def content_hash(path: Path, size: int) -> str:
    """BLAKE2 over the size and four pieces of 256 KiB spread evenly: a whole film need not be read."""
    digest = hashlib.blake2b(str(size).encode(), digest_size=20)
    with path.open("rb") as file:
        for piece in range(_CHUNKS):
            file.seek(max(0, (size - _CHUNK) * piece // (_CHUNKS - 1)))
            digest.update(file.read(_CHUNK))
    return digest.hexdigest()
