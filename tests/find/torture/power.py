"""*Power*: the current fails at any call of an operation; of what was not synced anything may be missing.

While an operation runs, each call that changes a file is recorded with the folder as it is then, with what
each file held when it was last synced, and with the names that each folder had then. Of such a moment the
disk may show, after the power has failed:

- of a file that has changed since it was synced, what it held then, what it holds now, or a part of what was
  written since;
- of a folder that has changed since it was synced, for each name what stood there then or what stands there
  now, in any mixture: later renames without earlier ones. A file that was synced has the name under which it
  was made, as on ext4, XFS and Btrfs.

- of a database what it held at the last commit that has returned with a sync, or at one after that. What
  happens inside of a commit is left to SQLite; that each is synced is required.

What must hold is what :mod:`disturbed` says, once the library is repaired: a file of the cache that an
upgrade has deleted may be back. After the last call everything must be as after the operation. What programs
of others write is not recorded, so alerts are left out.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from disturbed import Disturbed
from operations import OPERATIONS
from writes import DISTURBER

__all__ = ["PowerLoss"]

_DRAWS = 4
"""Mixtures of each moment."""

Names = dict[str, int]
"""Numbers of files and folders by name."""


@dataclass
class _Moment:
    """The state in memory and on the disk, before one call.

    Attributes:
        root: number of the folder.
        folders, files: names in each folder and content of each file now, by number.
        synced_folders, synced_files: the same at the time when they were synced.
        databases: what those in each folder may hold, by name, by number of the folder.
    """

    root: int
    folders: dict[int, Names] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    synced_folders: dict[int, Names] = field(default_factory=dict)
    synced_files: dict[int, bytes] = field(default_factory=dict)
    databases: dict[int, dict[str, list[bytes]]] = field(default_factory=dict)

    def write(self, folder: Path, draw: random.Random) -> dict[int, int]:
        """Write what the disk may show to an empty place. Returns the present numbers of files by those that
        they had, and would have after a power failure.
        """
        numbers: dict[int, int] = {}
        self._write(self.root, folder, draw, numbers)
        return numbers

    def _write(self, number: int, place: Path, draw: random.Random, numbers: dict[int, int]) -> None:
        place.mkdir()
        now, then = self.folders.get(number), self.synced_folders.get(number, {})
        for name in sorted({*(now or {}), *then}):
            there = draw.choice((then, then if now is None else now)).get(name)
            if there in self.folders or there in self.synced_folders:
                self._write(there, place / name, draw, numbers)
            elif there is not None:
                (place / name).write_bytes(self._content(there, draw))
                numbers[there] = (place / name).stat().st_ino
        for name, contents in self.databases.get(number, {}).items():
            (place / name).write_bytes(draw.choice(contents))

    def _content(self, number: int, draw: random.Random) -> bytes:
        then = self.synced_files.get(number, b"")
        now = self.files.get(number, then)
        if now == then:
            return now
        # What was synced, and was not written over, is there.
        pairs = enumerate(zip(then, now, strict=False))
        same = next((place for place, (old, new) in pairs if old != new), min(len(then), len(now)))
        return draw.choice((then, now, now[: draw.randint(same, len(now))]))


class _Recorder:
    """Takes down the moments of an operation on a folder, in which everything is synced."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.moments: list[_Moment] = []
        self.problems: list[str] = []
        self._unsynced: dict[int, list[bytes]] = {}  # what databases held before commits that are not synced
        start = self._now()
        self._synced_folders, self._synced_files = start.folders, start.files

    def before_call(self) -> None:
        """One more moment."""
        now = self._now()
        # A number that is free again will be another file's.
        self._synced_files = {
            number: content
            for number, content in self._synced_files.items()
            if number in now.files or self._is_named(number)
        }
        now.synced_files = dict(self._synced_files)
        now.synced_folders = {number: dict(names) for number, names in self._synced_folders.items()}
        self.moments.append(now)

    def synced(self, handle: int) -> None:
        """A file or folder was synced."""
        number = os.fstat(handle).st_ino
        now = self._now()
        if number in now.folders:
            self._synced_folders[number] = now.folders[number]
        elif number in now.files:
            self._synced_files[number] = now.files[number]
            self._name(number, now)

    def committed(self, database: Path, durable: bool) -> None:
        """A database has committed."""
        number = database.stat().st_ino
        if durable:
            self._unsynced.pop(number, None)
        else:
            self.problems.append(f"{database.name}: a commit is not synced")
            before = self.moments[-1].databases.get(database.parent.stat().st_ino, {}).get(database.name, [])
            self._unsynced[number] = before

    def _name(self, number: int, now: _Moment) -> None:
        """A new file that is synced has its name, and so have the new folders around it."""
        for folder, names in now.folders.items():
            for name, inside in names.items():
                known = self._synced_folders.setdefault(folder, {})
                if inside == number and name not in known:
                    known[name] = number
                    self._name(folder, now)

    def _is_named(self, number: int) -> bool:
        return any(number in names.values() for names in self._synced_folders.values())

    def _now(self) -> _Moment:
        moment = _Moment(self._folder.stat().st_ino)
        for place, folders, names in os.walk(self._folder):
            at = Path(place)
            kept = [name for name in names if ".sqlite" not in name and not name.startswith(".lock")]
            number, inside = at.stat().st_ino, {name: (at / name).stat().st_ino for name in (*folders, *kept)}
            moment.folders[number] = inside
            moment.files |= {inside[name]: (at / name).read_bytes() for name in kept}
            for name in names:
                if name.endswith(".sqlite") and (at / name).stat().st_size:
                    with closing(sqlite3.connect(at / name)) as database:
                        content = database.serialize()
                    unsynced = self._unsynced.get((at / name).stat().st_ino, [])
                    moment.databases.setdefault(number, {})[name] = [*unsynced, content]
        return moment


class PowerLoss(Disturbed[int, int]):
    """Each moment by the number of the call after it, and the number of a mixture of what is on the disk."""

    def __init__(self, folder: Path, seed: int, names: Iterable[str] = OPERATIONS) -> None:
        super().__init__(folder, seed)
        self._moments: dict[str, list[_Moment]] = {}
        for name in names:
            if OPERATIONS[name].tries:
                continue
            folder = self.fresh(name)
            recorder = _Recorder(folder)
            with DISTURBER.watching(folder, recorder):
                self.operate(name)
            recorder.before_call()
            self.failures += [f"{name}: {problem}" for problem in dict.fromkeys(recorder.problems)]
            self._moments[name] = recorder.moments

    def points(self) -> list[tuple[str, int, int]]:
        """Every moment of every operation, in each mixture."""
        return [
            (name, number, mixture)
            for name, moments in self._moments.items()
            for number in range(1, len(moments) + 1)
            for mixture in range(_DRAWS)
        ]

    def last(self, name: str) -> int:
        """Number of the moment after the last call of an operation."""
        return len(self._moments[name])

    def disturb(self, name: str, number: int, mixture: int) -> Iterator[str]:
        """Let the power fail before a call; gives what must not happen."""
        shutil.rmtree(self.fresh(name))
        draw = random.Random(f"{self.seed} {name} {number} {mixture}")
        numbers = self._moments[name][number - 1].write(self.folder, draw)
        for state in (self.library / "cache" / "uploads").glob("*.json"):
            known = json.loads(state.read_text())
            state.write_text(json.dumps({**known, "number": numbers.get(known["number"], 0)}))
        outcome = yield from self.usable(name, done=number == self.last(name))
        self.counts[outcome] += 1
        yield from self.done_again(name, repaired=True)
