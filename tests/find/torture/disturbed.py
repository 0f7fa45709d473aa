"""What must hold of an operation that is disturbed, whatever disturbs it.

A reader then finds, of everything that a library is, each thing as it was before or as it is after, and
nothing gone from both: the same operation again succeeds, and leaves what an undisturbed one does.
"""

from __future__ import annotations

import random
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Generic, TypeVarTuple

from moviola.errors import MoviolaError
from moviola.library import repair
from moviola.library.disk.upgrade import backup_folder
from moviola.search import Library
from moviola.study.judging import JudgingTask
from operations import CHANGES, FOUND, OPERATIONS, TASK, stored_library, todays_library
from seen import Parts, Seen, dumped, seen

__all__ = ["Disturbed"]

_Where = TypeVarTuple("_Where")
_ABSENT = object()
_ALL = OPERATIONS | CHANGES


class Disturbed(ABC, Generic[*_Where]):
    """A library, and all points at which an operation is disturbed.

    Args:
        folder: an empty one to work in.
        seed: of the order of the points, and of what is drawn.

    Attributes:
        films: what ``index`` finds; one film is new.
        folder: holds what is disturbed: the library, and what is written beside it.
        library: its place.
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.films, self.folder = folder / "films", folder / "work"
        self.library = self.folder / "library"
        self._originals = folder / "originals"
        self._originals.mkdir(parents=True)
        todays_library(self.films, self._originals / "0")
        shutil.copytree(self.films, folder / "elsewhere")
        self._undisturbed = cache(self._seen_undisturbed)

    @abstractmethod
    def points(self) -> Sequence[tuple[str, *_Where]]:
        """All points: an operation, and where in it what happens."""

    @abstractmethod
    def disturb(self, name: str, *where: *_Where) -> Iterator[str]:
        """Disturb an operation at one point; gives what must not happen."""

    def run(self, goes_on: Callable[[], bool], share: tuple[int, int] = (0, 1)) -> None:
        """Disturb at one point after the other until all are done, or ``goes_on`` says no.

        Args:
            share: number of a part of the points, and the number of parts.
        """
        part, parts = share
        points = list(self.points()[part::parts])
        random.Random(self.seed).shuffle(points)
        self.counts["points"] = len(points)
        for name, *where in points:
            if not goes_on():
                return
            self.counts["tried"] += 1
            self._undisturbed(name)  # seen before others are disturbed
            try:
                problems = list(self.disturb(name, *where))
            except Exception as error:  # that none comes is what is tried
                problems = [f"{type(error).__name__}: {error}"]
            at = ", ".join(map(str, (name, *where)))
            self.failures += [f"{at}: {problem}" for problem in problems]

    def fresh(self, name: str) -> Path:
        """Make again what an operation finds before it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._original(_ALL[name].stored), self.library)
        self.with_films()
        _ALL[name].prepare(self.folder)
        return self.folder

    def with_films(self) -> None:
        """Those that an operation finds before it."""
        shutil.rmtree(self.films)
        shutil.copytree(self.films.with_name("elsewhere"), self.films)

    def _original(self, number: int) -> Path:
        folder = self._originals / str(number)
        return folder if folder.is_dir() else stored_library(number, folder)

    def operate(self, name: str) -> None:
        """Do it to what is there."""
        _ALL[name].run(self.library, self.films)

    def _seen_undisturbed(self, name: str) -> tuple[Seen | None, Seen]:
        """What there is before and after an operation that nothing disturbs; None: a library that refuses to
        open.
        """
        self.fresh(name)
        try:
            before = self._seen()
        except MoviolaError:
            before = None
        self.operate(name)
        return before, self._seen()

    def _seen(self) -> Seen:
        return seen(self.library, _beside(self.library))

    def usable(self, name: str, *, done: bool = False) -> Generator[str, None, str]:
        """A reader now finds what was there before or what is there after, and videos that are whole.

        Args:
            name: of the operation.
            done: whether it said that it was done.

        Gives what must not happen; returns which of both is there.
        """
        (before, after), tries = self._undisturbed(name), _ALL[name].tries
        done = done and not tries
        try:
            now = self._seen()
        except MoviolaError:
            if before is None and not done:
                return "as before"
            raise
        expected = [one for one in (None if done else before, after) if one is not None]
        known = [message for one in expected for message in one.damages]
        if new := [message for message in now.damages if message not in known]:
            yield f"damaged: {new[0]}"
        if now.answers not in [one.answers for one in expected]:
            yield "other answers than " + ("those that were wanted" if done else "before or after")
        for kind in now.parts:
            if not (tries and kind == "alerts"):  # noted in steps
                yield from _compared(kind, now.parts[kind], [one.parts[kind] for one in expected])
        yield from _compared("beside", now.beside, [one.beside for one in expected])
        if before is not None and (lost := (before.known & after.known) - now.known):
            yield f"lost: {', '.join(sorted(lost))}, neither in nor among the removed"
        if number := _ALL[name].stored:
            yield from self._has_a_way_back(number)
        return "as after" if (now.parts, now.beside) == (after.parts, after.beside) else "as before"

    def _has_a_way_back(self, number: int) -> Iterator[str]:
        """Where the number has changed, the earlier settings and catalogue are kept."""
        was, backup = self._original(number), backup_folder(self.library, number)
        if (self.library / "moviola.toml").read_bytes() == (was / "moviola.toml").read_bytes():
            return
        if not (backup / "catalogue.sqlite").is_file():
            yield "upgraded, and there is no way back"
        elif (backup / "moviola.toml").read_bytes() != (was / "moviola.toml").read_bytes():
            yield "upgraded, and the way back has other settings"
        elif dumped(backup / "catalogue.sqlite") != dumped(was / "catalogue.sqlite"):
            yield "upgraded, and the way back has another catalogue"

    def done_again(self, name: str, *, repaired: bool = False) -> Iterator[str]:
        """The operation succeeds now, and leaves what an undisturbed one does; gives what must not happen.

        Args:
            name: of the operation.
            repaired: whether to repair the library too: what was deleted from its cache may be back.
        """
        _, after = self._undisturbed(name)
        self.operate(name)
        if repaired:
            with Library(self.library) as library:
                repair(library.store)
        now = self._seen()
        if worse := [problem for problem in now.problems if problem not in after.problems]:
            yield f"not sound after it was done again: {worse[0]}"
        if now.answers != after.answers:
            yield "other answers than an undisturbed library's"
        for kind in now.parts:
            yield from _compared(f"done again, {kind}", now.parts[kind], [after.parts[kind]])
        yield from _compared("done again, beside", now.beside, [after.beside])
        drafts = [path for path in self.library.rglob("*.tmp") if path.parent.name != "uploads"]
        if drafts:  # those of uploads are swept when they have expired
            yield f"drafts are left: {', '.join(sorted(path.name for path in drafts))}"


def _compared(kind: str, now: Parts, expected: Sequence[Parts]) -> Iterator[str]:
    """Entries that are in none of the expected states, by their key."""
    for key in {key: True for parts in (now, *expected) for key in parts}:
        known = [parts.get(key, _ABSENT) for parts in expected]
        if (found := now.get(key, _ABSENT)) not in known:
            what = "is gone" if found is _ABSENT else "is another one"
            yield f"{kind}: {key} {what}"


def _beside(library: Path) -> Parts:
    found: Parts = {}
    for path in library.parent.rglob("*"):
        # A hidden draft of a killed process is nobody's; SQLite's journals belong to their database.
        hidden = path.name.startswith(".") or path.name.endswith(("-wal", "-shm"))
        if path.is_file() and not hidden and not path.is_relative_to(library):
            found[path.relative_to(library.parent).as_posix()] = _content(path)
    return found


def _content(path: Path) -> object:
    """Of a judging task, what was answered; of what alerts have reported, each finding once."""
    if path.name == FOUND:
        return set(filter(None, path.read_text().splitlines()))
    if path.name != TASK:
        return path.read_bytes()
    with closing(JudgingTask(path)) as task:
        return task.pairs, [(answer.rater, answer.pair_id, answer.level) for answer in task.answers()]
