"""Comparison of files on disk with the catalogue, before any decoding."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType

from moviola.errors import MediaError, NotFound, printable
from moviola.files.names import no_such
from moviola.files.presence import is_folder, is_gone
from moviola.files.reasons import read_reason, reason
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.contents import content_hash
from moviola.library.disk.places import (
    NOT_THERE,
    Copy,
    Root,
    held_by,
    is_below,
    is_there,
    root_of,
    volume_of,
    why_away,
)
from moviola.library.disk.removed import RemovedVideo
from moviola.library.disk.schema import encoding_of, with_encoding
from moviola.library.ingest.file_states import changed_at, require_unicode, resolved, signature, suffix_of
from moviola.library.ingest.ignore_patterns import LeavingOut
from moviola.library.ingest.plan import FoundFile, Plan, why_unreadable
from moviola.library.ingest.seen_files import Seen, join_subtitles
from moviola.library.ingest.vanished import forget_vanished
from moviola.media import (
    SUBTITLE_SUFFIXES,
    VIDEO_SUFFIXES,
    FolderNames,
    is_animated,
    read_through,
    regular_file,
    sidecars,
)

__all__ = ["make_plan"]


def make_plan(
    sources: Sequence[Path],
    known: Iterable[VideoRow],
    *,
    roots: Iterable[Root] = (),
    copies: Iterable[Copy] = (),
    removed: Sequence[RemovedVideo] = (),
    exclude: Sequence[str] | None = None,
    default_excludes: bool | None = None,
    settled: Callable[[Path, os.stat_result], bool] | None = None,
    links_out: bool = True,
    subtitle_encoding: str | None = None,
    suffixes: Sequence[str] = (),
    checksums: Mapping[int, str] = MappingProxyType({}),
) -> Plan:
    """Compare files and folders (searched recursively) with the catalogue.

    A file is unchanged while its path, size, modification time and sidecars are. Of others the content
    decides: known content at a new path was moved if the old path is gone, and is a copy if not. The hash
    reads only pieces of a file, so copies are compared byte by byte, one that was written to at its place is
    read to its end and compared by its checksum, and one that was incomplete (``partial``) counts as changed
    in any case. Refused files are tried again. Nothing is removed here. A file that is named itself is always
    tried, whatever its suffix.

    Options are those of :meth:`moviola.library.Indexer.index`; the rest is what the catalogue knows.

    Raises:
        NotFound: a source does not exist, and the library has nothing of it.
        InvalidValue: a pattern that cannot be read, or no suffix.
    """
    planner = _Planner(
        known, roots, copies, removed, settled=settled, links_out=links_out,
        subtitle_encoding=subtitle_encoding, suffixes=frozenset(map(suffix_of, suffixes)),
        checksums=checksums,
    )  # fmt: skip
    folders = []
    for source in sources:
        root = resolved(source)
        there = os.path.lexists(root)
        if is_folder(root):
            if planner.enter(root, exclude, default_excludes):
                folders.append(root)
        elif not there and planner.lacks(gone := os.path.realpath(source)):
            folders.append(Path(gone))
        elif not there and is_gone(root):
            raise NotFound(no_such(source, "file or folder"))
        else:  # where it cannot be examined, it is reported
            planner.look_at(root, Path(root.name))
    planner.decide()
    planner.find_missing(folders)
    planner.forget_vanished()
    return planner.plan


class _Planner:
    """Examines one file after another, then sorts them into a plan."""

    def __init__(
        self,
        known: Iterable[VideoRow],
        roots: Iterable[Root],
        copies: Iterable[Copy],
        removed: Sequence[RemovedVideo],
        *,
        settled: Callable[[Path, os.stat_result], bool] | None,
        links_out: bool,
        subtitle_encoding: str | None,
        suffixes: frozenset[str],
        checksums: Mapping[int, str],
    ) -> None:
        self.plan = Plan()
        self._links_out = links_out
        self._by_path = {video.path: video for video in known}
        videos = self._by_path.values()
        self._by_row = {video.row: video for video in videos}
        self._by_hash = {video.hash: video for video in videos if video.state != "refused"}
        self._taken = {video.video_id for video in videos}
        self._copies = {copy.path: copy for copy in copies if copy.video in self._by_row}
        self._copies_of: dict[int, list[str]] = {}
        for copy in self._copies.values():
            self._copies_of.setdefault(copy.video, []).append(copy.path)
        self._removed = {video.hash: video for video in reversed(removed)}
        self._roots = {root.path: root for root in roots}
        self._settled = settled
        self._seen: dict[str, Seen | None] = {}
        self._away = cache(self._why_away)
        self._names = cache(FolderNames.of)
        self._encoding = subtitle_encoding
        self._checksums = checksums
        self._suffixes = VIDEO_SUFFIXES | suffixes
        self._leaving_out: list[LeavingOut] = []
        self._loose: list[Path] = []
        self._beside: set[Path] = set()

    def lacks(self, folder: str) -> bool:
        """Whether the library has videos in a missing folder; it is away, or was deleted."""
        if not any(is_below(path, folder) for path in (*self._by_path, *self._copies, *self._roots)):
            return False
        above = root_of(folder, self._roots.values())
        if above is None or above.path == folder or self._away(above.path):
            self.plan.offline[folder] = why_away(Path(folder), "", ()) or NOT_THERE
        return True

    def enter(self, folder: Path, exclude: Sequence[str] | None, default_excludes: bool | None) -> bool:
        """Examine every file below a folder, if it is there."""
        path = str(folder)
        above = root_of(path, self._roots.values())
        if reason := self._why_away(path) if above is None else self._away(above.path):
            self.plan.offline[path] = reason
            return False
        before = self._roots.get(path)
        template = before or above or Root(path, "")
        root = Root(
            path,
            volume_of(folder),
            template.patterns if exclude is None else tuple(exclude),
            template.defaults if default_excludes is None else default_excludes,
        )
        if before is not None or above is None or (root.patterns, root.defaults) != (
            above.patterns, above.defaults,
        ):  # fmt: skip
            self._roots[path] = root
            self.plan.roots.append(root)
        self._look_into(folder, root)
        return True

    def _why_away(self, path: str) -> str:
        """Why a folder is away, judged by its own videos, not by those of roots below it."""
        videos, root = self._by_path.values(), self._roots.get(path)
        if root is None:
            return why_away(Path(path), "", [video for video in videos if is_below(video.path, path)])
        return why_away(Path(path), root.volume, held_by(videos, [*self._roots.values()])[path])

    def _look_into(self, folder: Path, root: Root) -> None:

        def note_unreadable(error: OSError) -> None:
            name = printable(error.filename)
            self.plan.refused[name] = f"{name}: {reason('unreadable', why=error.strerror)}; skipped"

        walker = LeavingOut(folder, root.patterns, defaults=root.defaults)
        kinds = self._suffixes | self._suffixes_below(folder)
        device = folder.stat().st_dev
        mounted: dict[int, Path] = {}
        for path in sorted(walker.walk(note_unreadable)):
            suffix = path.suffix.lower()
            if suffix in kinds or (suffix == ".webp" and is_animated(path)):
                own = resolved(path)
                if not (self._links_out or own.is_relative_to(folder)):
                    self._refuse_link(path, folder)
                    continue
                self.look_at(own, path.relative_to(folder), None if self._links_out else folder)
                seen = self._seen.get(str(own))
                if seen is not None and seen.status.st_dev != device and own.is_relative_to(folder):
                    mounted.setdefault(seen.status.st_dev, own)
            else:
                (self._loose if suffix in SUBTITLE_SUFFIXES else self.plan.ignored).append(path)
        videos = [path for path in walker.files if Path(path).suffix.lower() in kinds]
        self.plan.excluded += [*map(printable, (*walker.folders, *videos))]
        self._leaving_out.append(walker)
        for path in mounted.values():
            place = next(above for above in path.parents if above.is_mount())
            if str(place) not in self._roots:
                below = Root(str(place), volume_of(place), root.patterns, root.defaults)
                self._roots[below.path] = below
                self.plan.roots.append(below)

    def _suffixes_below(self, folder: Path) -> set[str]:
        """Suffixes of the videos that the library has of a folder, which may have been given before."""
        below = (video.path for video in self._by_path.values() if video.state != "refused")
        return {Path(path).suffix.lower() for path in below if is_below(path, str(folder))}

    def _refuse_link(self, path: Path, folder: Path) -> None:
        self.plan.refused[printable(path)] = (
            f"{printable(path.name)}: {reason('link out', folder=printable(folder))}; skipped"
        )

    def _subtitles(self, path: Path, within: Path | None) -> tuple[Path, ...]:
        """Subtitle files beside a video, without links; none that a link shows outside of a folder, or that
        is none by its own name.
        """
        names = self._names(path.parent)
        beside = []
        for file in sidecars(path, names) if names.subtitles else ():
            own = resolved(file)
            if within is not None and not own.is_relative_to(within):
                self._refuse_link(file, within)
            elif own.suffix.lower() not in SUBTITLE_SUFFIXES:
                self.plan.refused[printable(file)] = (
                    f"{printable(file.name)}: {reason('link to no subtitles')}; skipped"
                )
            else:
                beside.append(own)
        self._beside.update(beside)
        return tuple(beside)

    def look_at(self, path: Path, name: Path, within: Path | None = None) -> None:
        """Examine one file; ``name`` is its path below the source, and subtitles of it must lie ``within`` a
        folder.
        """
        text = str(path)
        if text in self._seen:
            return
        self._seen[text] = None
        known, copy = self._by_path.get(text), self._copies.get(text)
        try:
            require_unicode(path, name)
            status = regular_file(path)
            files = self._subtitles(path, within)
            beside = self._signed(path, files, known)
            now = (status.st_size, changed_at(status))
            if known and known.state != "refused" and now == (known.size, known.mtime_ns):
                self._seen[text] = Seen(path, name, status, beside, files, known.hash, known, None)
                return
            if copy and now == (copy.size, copy.mtime_ns):
                digest = self._by_row[copy.video].hash
            else:
                copy = None
                if self._settled is not None and not self._settled(path, status):
                    self.plan.waiting.append(path)
                    return
                digest = content_hash(path, status.st_size)
        except (MediaError, OSError) as error:
            self._refuse(path, name, known, error)
            return
        self._seen[text] = Seen(path, name, status, beside, files, digest, known, copy)

    def _beside_elsewhere(self, video: VideoRow) -> tuple[set[Path], bool]:
        """Subtitle files beside the paths of a video that were not examined, and whether all could be
        listed: some may lie in folders that are away.
        """
        paths = [video.path, *self._copies_of.get(video.row, ())]
        found: set[Path] = set()
        all_listed = True
        for path in map(Path, paths):
            if str(path) in self._seen or self._left_out(path):
                continue
            if self._root_away(str(path)):
                all_listed = False
            elif not _has_left(path):
                found.update(self._subtitles(path, None if self._links_out else path.parent))
        return found, all_listed

    def _signed(self, path: Path, files: Iterable[Path], known: VideoRow | None) -> str:
        return self._in_encoding(signature(path, files), known)

    def _in_encoding(self, sidecars: str, known: VideoRow | None) -> str:
        """A signature with the encoding that was given now, else with that from before."""
        before = encoding_of(known.sidecars) if known else None
        return with_encoding(sidecars, {None: before, "auto": None}.get(self._encoding, self._encoding))

    def decide(self) -> None:
        """Sort the files into the plan, once all were examined."""
        seen = [one for one in self._seen.values() if one]
        self.plan.subtitles += join_subtitles(
            seen, self._by_hash, self._seen, self._beside_elsewhere, self._signed
        )
        refused = self.plan.refused.keys()
        self.plan.unmatched += [
            path
            for path in self._loose
            if resolved(path) not in self._beside and printable(path) not in refused
        ]
        at_home = {
            one.known.row: one
            for one in seen
            if one.known and one.known.hash == one.hash and one.known.state != "refused"
        }
        for row, one in at_home.items():
            if one.as_known:
                self.plan.unchanged.append(self._by_row[row])
            else:
                self._plan_known(self._by_row[row], one)
        arrived = [one for one in seen if not one.copy and not (one.known and one.known.row in at_home)]
        moving = self._moving([*arrived, *(one for one in seen if one.copy)], at_home.keys())
        for row, one in moving.items():
            video = self._by_row[row]
            self._plan_known(video, one)
            self._overwrites(one, moving)
            if self._root_away(video.path):
                self.plan.kept_paths.append(Copy(row, video.path, video.size, video.mtime_ns))
        places = {row: one.path for row, one in moving.items()}
        settled = {id(one) for one in moving.values()}
        pending: dict[str, FoundFile] = {}
        for one in arrived:
            if id(one) not in settled:
                self._plan_other(one, moving, places, pending)

    def _moving(self, places: Iterable[Seen], at_home: Container[int]) -> dict[int, Seen]:
        """Files with the content of videos that left their paths, or are excluded there, by row number."""
        moving: dict[int, Seen] = {}
        for one in places:
            video = self._by_hash.get(one.hash)
            if video is None or video.row in at_home or video.row in moving:
                continue
            there = Path(video.path)
            if self._seen.get(video.path) is not None or _has_left(there) or self._left_out(there):
                moving[video.row] = one
        return moving

    def _overwrites(self, one: Seen, moving: Container[int]) -> None:
        """Plan for the video that was at the path of a file with other known content, unless it moved."""
        if one.known is not None and one.known.row not in moving:
            self.plan.overwritten.append(one.known)

    def _plan_known(self, video: VideoRow, one: Seen) -> None:
        """Plan for a file with the content of a known video, at the video's path or at its new one."""
        if encoding_of(one.sidecars) is None:  # it moved, and its encoding comes along
            one.sidecars = self._in_encoding(one.sidecars, video)
        found = one.found(video.video_id)
        written_to = (video.size, video.mtime_ns) != (found.size, found.mtime_ns)
        at_home = video.path == str(one.path)
        # It may be complete now, or have other content between the pieces that are hashed.
        incomplete = video.state == "partial" and read_reason(video.error).code != "waits"
        if written_to and (incomplete or (at_home and self._differs(video))):
            self.plan.changed.append(found)
        elif at_home and video.sidecars != one.sidecars:
            self.plan.subtitles.append((video, found))
        else:
            self.plan.moved.append((video, found))  # or only touched

    def _differs(self, video: VideoRow) -> bool:
        """Whether the file of a video, read to its end, is another one than that which was indexed."""
        known = self._checksums.get(video.row)
        try:
            return known is not None and read_through(video.path).checksum != known
        except (MediaError, OSError):
            return True

    def _plan_other(
        self, one: Seen, moving: Container[int], places: Mapping[int, Path], pending: dict[str, FoundFile]
    ) -> None:
        """Plan for any other content: a copy, a removed video, a changed one, or a new one."""
        own_id = one.known.video_id if one.known is not None and one.known.row not in moving else None
        alike = []
        if origin := self._by_hash.get(one.hash):
            alike.append((origin.video_id, places.get(origin.row, Path(origin.path))))
        if first := pending.get(one.hash):
            alike.append((first.video_id, first.path))
        for video_id, path in alike:
            try:
                same = filecmp.cmp(path, one.path, shallow=False)
            except OSError:  # one cannot be read now; the hashes agree
                same = True
            if same:
                self._overwrites(one, moving)
                self.plan.copies.append((video_id, one.found(own_id or self._new_id(one.path, one.name))))
                return
        if own_id is not None:
            self.plan.changed.append(found := one.found(own_id))
        elif removed := self._removed.pop(one.hash, None):
            wanted = removed.video_id
            video_id = self._new_id(one.path, one.name) if wanted in self._taken else wanted
            self._taken.add(video_id)
            self.plan.restored.append((removed, found := one.found(video_id)))
        else:
            self.plan.new.append(found := one.found(self._new_id(one.path, one.name)))
        pending.setdefault(one.hash, found)

    def find_missing(self, folders: Sequence[Path]) -> None:
        """Plan for the known videos of these folders, and of folders that are away, that were not found."""
        # A video that waits to be encoded again may have moved, too.
        elsewhere = {found.video_id for found in (*self.plan.changed, *(f for _, f in self.plan.moved))}

        def is_inside(path: str) -> bool:
            return any(is_below(path, str(folder)) for folder in folders)

        for path, video in self._by_path.items():
            if path in self._seen or video.video_id in elsewhere:
                continue
            if any(is_below(path, folder) for folder in self.plan.offline):
                self.plan.away.append(video)
            elif not is_inside(path):
                continue
            elif root := self._root_away(path):
                self.plan.away.append(video)
                self.plan.offline.setdefault(root.path, self._away(root.path))
            elif _has_left(Path(path)):
                self._find_copy(video, self.plan.missing)
            elif self._left_out(Path(path)):
                self._find_copy(video, self.plan.left_out)
        for path in self._copies:
            if is_inside(path) and not self._root_away(path):
                seen = self._seen.get(path)
                if _has_left(Path(path)) if seen is None else seen.copy is None:
                    self.plan.lost_copies.append(path)

    def forget_vanished(self) -> None:
        """Plan for roots that are gone and of which every file is elsewhere."""
        gone = [path for path in self._roots if self._away(path) == NOT_THERE]
        forget_vanished(self.plan, gone, [*self._roots.values()], self._by_row, self._copies.values())

    def _root_away(self, path: str) -> Root | None:
        root = root_of(path, self._roots.values())
        return root if root is not None and self._away(root.path) else None

    def _left_out(self, path: Path) -> bool:
        """Whether a file lies in one of the folders, and is excluded there."""
        return any(walker.holds(path) for walker in self._leaving_out)

    def _find_copy(self, video: VideoRow, listed: list[VideoRow]) -> None:
        """Plan for a video whose file is gone or excluded: moved to a further path, else in the list."""
        copies = [copy for copy in self._copies.values() if copy.video == video.row]
        for copy in copies:
            if is_there(copy.path, copy.size) and not self._left_out(Path(copy.path)):
                path = Path(copy.path)
                files: tuple[Path, ...] = ()
                try:
                    files = self._subtitles(path, None if self._links_out else path.parent)
                    beside = self._in_encoding(signature(path, files), video)
                except OSError:  # its folder cannot be listed now
                    beside = video.sidecars
                file = FoundFile(path, video.video_id, copy.size, copy.mtime_ns, video.hash, beside, files)
                self.plan.moved.append((video, file))
                return
        kept = any(self._root_away(copy.path) for copy in copies)
        (self.plan.away if kept else listed).append(video)

    def _refuse(self, path: Path, name: Path, known: VideoRow | None, error: MediaError | OSError) -> None:
        hint = "" if isinstance(error, MediaError) else "; check its permissions and its disk"
        video_id = known.video_id if known else printable(self._new_id(path, name))
        self.plan.refused[video_id] = f"{printable(path.name)}: {why_unreadable(error)}{hint}; skipped"

    def _new_id(self, path: Path, name: Path) -> str:
        """The path below the source, without suffix; a longer form only if that is taken."""
        short, full = name.with_suffix("").as_posix(), name.as_posix()
        numbered = (f"{full}~{number}" for number in count(2))
        candidates = chain((short, full, f"{path.parent.name}/{full}"), numbered)
        video_id = next(candidate for candidate in candidates if candidate not in self._taken)
        self._taken.add(video_id)
        return video_id


def _has_left(path: Path) -> bool:
    """Whether the file of a path is gone; a folder may have taken its name, with the file in it."""
    return is_gone(path) or is_folder(path)
