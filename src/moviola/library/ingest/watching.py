"""Watching folders: new, changed, moved and deleted videos are indexed automatically.

The system reports that something changed (``watchfiles``); all files are then compared with the catalogue,
which costs about a tenth of a millisecond each. So nothing is lost when the system drops events, and a killed
watcher can simply be restarted. Network file systems do not report changes by other machines: these are
polled.

A file counts as complete when its size and modification time are the same twice,
:attr:`WatchOptions.settle` seconds apart. Deleted videos are removed, and can be restored; not those of a
root that is away, and not many at once.
"""

from __future__ import annotations

import os
import re
import time as clock
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from importlib.util import find_spec
from pathlib import Path
from threading import Event

from moviola.errors import (
    InvalidValue,
    LibraryError,
    LibraryLocked,
    MissingDependency,
    NotFound,
    printable,
)
from moviola.files.names import no_such
from moviola.files.presence import is_file, is_folder, is_gone
from moviola.library.disk.places import Places, is_below
from moviola.library.ingest.plan import IngestProgress, IngestReport, Paused

__all__ = ["Hours", "WatchOptions", "Watcher", "is_remote", "require_watchable", "require_watchfiles"]

_MOUNTS = Path("/proc/self/mountinfo")
# Names as there.
_REMOTE = re.compile(r"nfs|cifs|smb|9p$|afs|ceph|glusterfs|davfs|fuse\.(sshfs|rclone|davfs|s3fs|gvfsd)")
_ESCAPED = re.compile(r"\\([0-7]{3})")
# Videos that may be deleted at once, even in a small library.
_FEW = 10
# Milliseconds between checks for the end, and the longest burst of events.
_TICK, _DEBOUNCE = 500, 1600


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours of the day in which to work; past midnight where the first is later than the second."""

    since: time
    until: time

    @classmethod
    def parse(cls, text: str) -> Hours:
        """From a text such as ``22:00-06:00``; :class:`InvalidValue` for another form, or no valid time."""
        try:
            since, until = map(time.fromisoformat, text.strip().split("-"))
        except ValueError as error:
            raise InvalidValue(f"hours {text!r}: write them as 22:00-06:00") from error
        if since.tzinfo or until.tzinfo:
            raise InvalidValue(f"hours {text!r}: they are those of this machine; leave the zones out")
        if since == until:
            raise InvalidValue(f"hours {text!r}: begin and end are the same; leave them out for always")
        return cls(since, until)

    def hold(self, now: time) -> bool:
        if self.since < self.until:
            return self.since <= now < self.until
        return now >= self.since or now < self.until


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of watching; seconds are above 0, else :class:`InvalidValue`.

    Attributes:
        poll: seconds between two checks of folders that report no changes, or of all with ``force_polling``.
        settle: seconds that a file must stay the same.
        rescan: seconds after which everything is compared again in any case.
        hours: in which to work; None: always. A video that was begun is finished.
    """

    poll: float = 10.0
    force_polling: bool = False
    settle: float = 2.0
    rescan: float = 3600.0
    hours: Hours | None = None

    def __post_init__(self) -> None:
        for name in ("poll", "settle", "rescan"):
            if not getattr(self, name) > 0:
                raise InvalidValue(f"{name} {getattr(self, name)}: give seconds above 0")


def require_watchfiles() -> None:
    """Refuse to watch without the package that reports changes. Raises MissingDependency."""
    if find_spec("watchfiles") is None:
        raise MissingDependency("watchfiles is not installed", "watch")


def require_watchable(places: Places, folders: Iterable[Path]) -> None:
    """Refuse what would be waited for in vain; a folder of the library that is not there now is away.

    Raises:
        MissingDependency: there are folders, and ``watchfiles`` is not installed.
        NotFound: a folder does not exist, and the library has nothing of it.
        InvalidValue: it is a file.
    """
    for folder in folders:
        require_watchfiles()
        there = folder.expanduser()
        if is_file(there):
            raise InvalidValue(f"{printable(folder)}: a file; name the folder in which it lies")
        if is_gone(there) and not places.knows(os.path.realpath(there)):
            raise NotFound(no_such(folder, "folder, and none of the library"))


@dataclass
class Watcher:
    """Keeps a library in step with some folders, until it is stopped.

    Attributes:
        index: :meth:`moviola.library.Indexer.index`.
        library: its folder; changes in it are ignored.
        folders: to watch; one that is away is checked every :attr:`WatchOptions.poll` seconds. See
            :func:`require_watchable`.
        reported: called with the report of each run that changed something.
        warned: called with each temporary obstacle.
        stop: ends :meth:`run` when set; the video at work is finished.
    """

    index: Callable[..., IngestReport]
    library: Path
    folders: Sequence[Path]
    options: WatchOptions = field(default_factory=WatchOptions)
    reported: Callable[[IngestReport], None] = lambda _: None
    warned: Callable[[str], None] = lambda _: None
    stop: Event = field(default_factory=Event)
    _sizes: dict[Path, tuple[tuple[int, int], float]] = field(default_factory=dict, init=False)
    _waiting: set[Path] = field(default_factory=set, init=False)
    _warned: str = field(default="", init=False)
    _paused: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.folders = [folder.expanduser().absolute() for folder in self.folders]
        self._own = os.path.realpath(self.library)

    def run(self) -> None:
        """Index everything, then every change, until :attr:`stop` is set. A library that another process is
        writing to is waited for; other errors of :attr:`index` are raised.
        """
        while not self.stop.is_set():
            again = 0.0  # earlier changes are looked for at once
            for happened in self._happenings():
                if self.stop.is_set():
                    return
                if happened or clock.monotonic() >= again:
                    before = self._there()
                    again = self._look()
                    if self._there() != before:
                        break

    def _there(self) -> list[Path]:
        return [folder for folder in self.folders if is_folder(folder)]

    def _happenings(self) -> Iterator[bool]:
        """Yield whether something changed, about twice a second; end when a folder comes or goes."""
        there = self._there()
        if not there:
            while not self.stop.wait(_TICK / 1000):
                yield False
                if self._there():
                    return
            return
        polls = self.options.force_polling or any(is_remote(folder) for folder in there)
        for polling in (True,) if polls else (False, True):
            try:
                yield from self._heard(there, polling=polling)
                return
            except OSError as error:
                if self._there() != there:  # a drive was unplugged just now
                    return
                if polling:
                    raise
                # Usually more folders than the system can watch.
                self._warn(f"{error}; polling every {self.options.poll:g} s instead")

    def _heard(self, folders: Sequence[Path], *, polling: bool) -> Iterator[bool]:
        from watchfiles import watch

        for changes in watch(
            *folders, watch_filter=self._concerns, debounce=_DEBOUNCE, step=100, stop_event=self.stop,
            rust_timeout=_TICK, yield_on_timeout=True, raise_interrupt=True, force_polling=polling,
            poll_delay_ms=round(1000 * self.options.poll), ignore_permission_denied=True,
        ):  # fmt: skip
            yield bool(changes)
            if self._there() != folders:
                return

    def _concerns(self, _: object, path: str) -> bool:
        # Paths are reported as the folders were named, or without links, as the system likes.
        return not is_below(os.path.realpath(path), self._own)

    def _look(self) -> float:
        """Index the folders if it is time; returns the time of the next run without a change."""
        now = clock.monotonic()
        soon = now + self.options.poll
        if not self._may_work():
            return soon
        self._paused = False
        try:
            report = self._indexed(prune=False)
            waiting = bool(report.waiting)
            if (report.missing or report.left_out) and not waiting and not self._paused:
                report = self._indexed(prune=True)
        except (LibraryError, NotFound) as error:
            # If not, a drive was unplugged, perhaps the library's own.
            if not isinstance(error, LibraryLocked) and self._there() == list(self.folders):
                raise
            self._warn(str(error))
            return soon
        away = "; ".join(f"{path} is away: {reason}" for path, reason in report.offline.items())
        self._warn(away or report.not_pruned)
        if waiting:
            return now + self.options.settle
        return soon if away or self._paused else now + self.options.rescan

    def _indexed(self, *, prune: bool) -> IngestReport:
        there = self._there()
        if not there:
            return IngestReport(offline={str(folder): "it is not there" for folder in self.folders})
        self._waiting.clear()
        report = self.index(
            *there, prune=prune, settled=self._settled, progress=self._on_progress,
            confirm=lambda videos, total: len(videos) <= max(_FEW, total / 10),  # many need consent
        )  # fmt: skip
        # Those of files that came and went would be kept for ever.
        self._sizes = {path: known for path, known in self._sizes.items() if path in self._waiting}
        for folder in self.folders:
            if folder not in there:
                report.offline.setdefault(str(folder), "it is not there")
        if any((
            report.added, report.updated, report.moved, report.removed, report.restored, report.copies,
            report.refused, *report.read.values(),
        )):  # fmt: skip
            self.reported(report)
        return report

    def _may_work(self) -> bool:
        return self.options.hours is None or self.options.hours.hold(datetime.now().time())

    def _on_progress(self, progress: IngestProgress) -> None:
        """Stop between two videos where the working hours are over or the watcher is to end; finished ones
        are in.
        """
        if progress.seconds == 0 and progress.done and (self.stop.is_set() or not self._may_work()):
            self._paused = True
            raise Paused

    def _settled(self, path: Path, status: os.stat_result) -> bool:
        """Whether a file has stayed the same long enough."""
        self._waiting.add(path)
        now, state = clock.monotonic(), (status.st_size, status.st_mtime_ns)
        known = self._sizes.get(path)
        if known is None or known[0] != state:
            self._sizes[path] = state, now
            return False
        if now - known[1] < self.options.settle:
            return False
        del self._sizes[path]
        return True

    def _warn(self, message: str) -> None:
        if message and message != self._warned:
            self.warned(message)
        self._warned = message


def is_remote(folder: Path) -> bool:
    """Whether a folder is on a network file system; False where the system does not say."""
    try:
        lines = os.fsdecode(_MOUNTS.read_bytes()).splitlines()
        path = os.path.realpath(folder)
    except OSError:
        return False
    kind, longest = "", -1
    for line in lines:
        before, _, after = line.partition(" - ")
        place = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), before.split(" ")[4])
        if (path == place or path.startswith(place.rstrip("/") + "/")) and len(place) > longest:
            kind, longest = after.split(" ")[0], len(place)
    return bool(_REMOTE.match(kind))
