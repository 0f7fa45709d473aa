"""What writes: the operations that are disturbed, each on a small library, and what they may leave.

A folder holds the library, and beside it what operations write elsewhere: exports, a judging task.
"""

from __future__ import annotations

import random
import re
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVarTuple

from flips import flip_bit
from moviola.encoders import load_encoder
from moviola.errors import InvalidValue
from moviola.export import FORMATS, write_moments
from moviola.library.disk.upgrade import backup_folder
from moviola.search import Library, Marked, MarkedMoment
from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.judging import JudgingTask, TaskSettings, make_task
from moviola.types import Moment, Query
from sample import STORED, Answers, answers, films_in, library_of

__all__ = ["OPERATIONS", "Disturbed", "Operation"]

_MOMENTS = (Moment("a", 1.0, 3.0, 0.9, 1), Moment("a", 4.0, 5.5, 0.8, 2))
_TASK = "task.sqlite"
_OLD = STORED / "70b3478" / "library"
"""A library of the first format."""


@cache
def _old_settings() -> bytes:
    """Those of the old library, as if today's encoder had made it: its answers are compared with its own."""
    today = f'encoder_revision = "{load_encoder("demo").revision}"'
    return re.sub(r'encoder_revision = "\w+"', today, (_OLD / "moviola.toml").read_text()).encode()


@dataclass(frozen=True)
class Operation:
    """Something that writes, and may be done again.

    Attributes:
        run: called with the library, and the folder of the films.
        prepare: what happens before it to the folder that holds the library.
        comes, goes: videos that are new afterwards, and gone.
        library: the library that it is done to; None: one of today's.
    """

    run: Callable[[Library, Path], object]
    prepare: Callable[[Path], object] = lambda _: None
    comes: frozenset[str] = frozenset()
    goes: frozenset[str] = frozenset()
    library: Path | None = None


def _remove(library: Library, video_id: str) -> None:
    library.remove({video_id} & set(_ids(library)))


def _damage(folder: Path) -> None:
    """Damage what can be made again."""
    library = folder / "library"
    for path in (*library.glob("index/segments*"), library / "cache" / "videos.table"):
        flip_bit(path, path.stat().st_size // 2)


def _export(name: str) -> Operation:
    format = FORMATS[name]
    out = f"moments{format.suffix}"

    def run(library: Library, films: Path) -> None:
        written = write_moments(
            _MOMENTS, {"a": films / "a.mp4"}, library.folder.parent / out, name, kept=library.kept_still
        )
        if written.refused:  # one clip that cannot be cut does not stop the others
            raise InvalidValue("; ".join(written.refused.values()))

    def earlier(folder: Path) -> None:
        (folder / out).write_text("an earlier export")

    return Operation(run, earlier if format.kind == "file" else lambda _: None)


def _new_task(library: Library, _: Path) -> None:
    if not (path := library.folder.parent / _TASK).exists():
        make_task(path, library, [Query("1", "a red square")])


def _judged_once(folder: Path) -> None:
    """A task of which one of two moments has been judged by somebody."""
    pairs = [Pair(f"1:{n}", "1", "walls?", "a", n, n + 1.0, 6.0, "", 1 / n, n) for n in (1, 2)]
    with closing(JudgingTask.create(folder / _TASK, pairs, TaskSettings(raters=1))) as task:
        task.sign_in("Anna")
        task.answer("Anna", "1:1", 4)


def _judge(library: Library, _: Path) -> None:
    with closing(JudgingTask(library.folder.parent / _TASK)) as task:
        rater = task.sign_in("Bo")
        task.next_batch(rater)
        task.answer(rater, "1:2", 3)


OPERATIONS: dict[str, Operation] = {
    "index": Operation(lambda library, films: library.index(films, ocr=False), comes=frozenset("c")),
    "remove": Operation(lambda library, _: _remove(library, "b"), goes=frozenset("b")),
    "use": Operation(lambda library, _: library.use(refiner="demo")),
    "compact": Operation(lambda library, _: library.compact()),
    "repair": Operation(lambda library, _: library.repair(), _damage),
    "teach": Operation(lambda library, _: library.teach("walls", Marked(None, (MarkedMoment("a", 0, 3),)))),
    "keep": Operation(lambda library, _: library.kept.put("search", "walls", {"query": "a red square"})),
    "judge new": Operation(_new_task),
    "judge": Operation(_judge, _judged_once),
    "upgrade": Operation(
        lambda library, _: _remove(library, "market"), goes=frozenset({"market"}), library=_OLD
    ),
    **{f"export {name}": _export(name) for name in FORMATS},
}


_Where = TypeVarTuple("_Where")


class Disturbed(ABC, Generic[*_Where]):
    """A library, and all points at which an operation is disturbed, in an order of the seed's.

    Args:
        folder: an empty one to work in.
        seed: of the order.

    Attributes:
        films: what ``index`` finds; one film is new, another has changed.
        folder: holds what is disturbed: the library, and what is written beside it.
        library: its place.
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.films, self.folder = films_in(folder / "films", "ab"), folder / "work"
        self.library = self.folder / "library"
        self._today = library_of(self.films, folder / "today", model=False)
        films_in(self.films, "bc")
        (self.films / "b.srt").unlink()
        self._undisturbed = cache(self._seen_undisturbed)

    @abstractmethod
    def points(self) -> Sequence[tuple[str, *_Where]]:
        """All points: an operation, and where in it what happens."""

    @abstractmethod
    def disturb(self, name: str, *where: *_Where) -> Iterator[str]:
        """Disturb an operation at one point; gives what must not happen."""

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Disturb at one point after the other until all are done, or ``goes_on`` says no."""
        points = list(self.points())
        random.Random(self.seed).shuffle(points)
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
        """What an operation finds before it, made anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(OPERATIONS[name].library or self._today, self.library)
        if OPERATIONS[name].library:
            (self.library / "moviola.toml").write_bytes(_old_settings())
        OPERATIONS[name].prepare(self.folder)
        return self.folder

    def operate(self, name: str) -> None:
        """Do it to what is there."""
        with Library(self.library) as library:
            OPERATIONS[name].run(library, self.films)

    def _seen_undisturbed(self, name: str) -> tuple[Seen, Seen]:
        """What there is before and after an operation that nothing disturbs."""
        self.fresh(name)
        before = self._seen()
        self.operate(name)
        return before, self._seen()

    def _seen(self) -> Seen:
        with Library(self.library, read_only=True) as reader:
            held, problems = frozenset(_ids(reader)), [problem.message for problem in reader.verify()]
        return Seen(held, answers(self.library), problems, _beside(self.library))

    def usable(self, name: str, *, done: bool = False) -> Generator[str, None, str]:
        """Whoever looks now finds what was there before or what is there after, and videos that are whole.

        Args:
            name: of the operation.
            done: whether it said that it was done.

        Gives what must not happen; returns which of both is there.
        """
        before, after = self._undisturbed(name)
        with Library(self.library, read_only=True) as reader:
            held = set(_ids(reader))
            lost = [problem for problem in reader.verify() if problem.video_id or not problem.repairable]
        if new := [problem for problem in lost if problem.message not in before.problems + after.problems]:
            yield f"damaged: {new[0].video_id} {new[0].message}"
        if not before.held & after.held <= held <= before.held | after.held:
            yield f"lost: only {', '.join(sorted(held))} are left"
        now, beside = answers(self.library), _beside(self.library)
        if now not in (before.answers, after.answers):
            yield "neither the answers of before nor of after"
        for file in before.beside.keys() | after.beside.keys() | beside.keys():
            found, was, becomes = (where.get(file) for where in (beside, before.beside, after.beside))
            if found != becomes and (done or found != was):
                yield f"{file}: {'not what was wanted' if done else 'neither as before nor as after'}"
        if OPERATIONS[name].library:
            yield from self._has_a_way_back()
        return "as before" if (now, beside) == (before.answers, before.beside) else "as after"

    def _has_a_way_back(self) -> Iterator[str]:
        """Where the number has changed, the earlier settings and catalogue are kept."""
        backup, settings = backup_folder(self.library, 1), "moviola.toml"
        was = _old_settings()
        kept = (backup / "catalogue.sqlite").is_file() and (backup / settings).read_bytes() == was
        if not kept and (self.library / settings).read_bytes() != was:
            yield "upgraded, and there is no way back"

    def done_again(self, name: str, *, repair: bool = False) -> Iterator[str]:
        """The operation succeeds now, and leaves what an undisturbed one does; gives what must not happen.

        Args:
            name: of the operation.
            repair: whether to repair the library too: what was deleted from its cache may be back.
        """
        _, after = self._undisturbed(name)
        self.operate(name)
        if repair:
            with Library(self.library) as library:
                library.repair()
        now = self._seen()
        if worse := [problem for problem in now.problems if problem not in after.problems]:
            yield f"not sound after it was done again: {worse[0]}"
        if now.answers != after.answers or now.held != after.held:
            yield "other answers than an undisturbed library's"
        if now.beside != after.beside:
            yield "another export or task than an undisturbed one"
        if drafts := sorted(path.name for path in self.library.rglob("*.tmp")):
            yield f"drafts are left: {', '.join(drafts)}"


@dataclass(frozen=True)
class Seen:
    """What somebody sees who opens a library.

    Attributes:
        held: ids of the videos.
        answers: to all queries.
        problems: what ``verify`` says.
        beside: content of each file beside the library; of a judging task, what was answered.
    """

    held: frozenset[str]
    answers: Answers
    problems: list[str]
    beside: dict[str, object]


def _beside(library: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in library.parent.rglob("*"):
        # A hidden draft of a killed process is nobody's; SQLite's journals belong to their database.
        hidden = path.name.startswith(".") or path.name.endswith(("-wal", "-shm"))
        if path.is_file() and not hidden and not path.is_relative_to(library):
            found[path.relative_to(library.parent).as_posix()] = _content(path)
    return found


def _content(path: Path) -> object:
    if path.name != _TASK:
        return path.read_bytes()
    with closing(JudgingTask(path)) as task:
        return task.pairs, [(answer.rater, answer.pair_id, answer.level) for answer in task.answers()]


def _ids(library: Library) -> list[str]:
    return [video.video_id for video in library.videos()]
