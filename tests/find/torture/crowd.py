"""*Many at once*: threads search one library, while two processes write to it that refuse each other.

One takes videos out, brings them in again and compacts; the other one takes another video out and brings it
in, keeps and marks, teaches, and verifies. What must hold, whether the library is held open or opened again:

- No search fails. Of the videos that nobody touches it gives the answer of before; of each one that is
  touched that answer, or nothing: never half of it.
- A writer is refused only where the other one is writing, and what ``verify`` says beside it is no alarm.
- In the end all videos are in, the library is sound, answers as before, and has all that was kept.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from moviola.errors import LibraryError, LibraryLocked, NotFound
from moviola.library import compact, verify
from moviola.library.userdata.values import Mark
from moviola.search import Library, Marked, MarkedMoment
from sample import QUERIES, films_in, library_of

__all__ = ["ManyAtOnce"]

_READERS = 3
_TOUCHED = ("ab", "x")
"""By each writer."""
_PAUSE = 0.02
"""Seconds in which a writer lets the other one go first."""
_CYCLES = 2
"""Of each writer, at least: a search beside nobody is no trial."""
_ANEW = 0.1
"""Share of searches that open the library for themselves."""

_Scores = dict[tuple[str, float, float], float]


class ManyAtOnce:
    """A library of five films, of which three come and go.

    Args:
        folder: an empty one to work in.
        seed: of the queries, and of who opens the library again.

    Attributes:
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._films = films_in(folder / "films", "abxyz")
        self._library = library_of(self._films, folder / "library", model=False)
        touched = set("".join(_TOUCHED))
        self._kept = [path.stem for path in self._films.glob("*.mp4") if path.stem not in touched]
        self._seed = seed
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Search side by side until ``goes_on`` says no."""
        with Library(self._library, read_only=True) as library:
            expected = {query: self._answer(library, query) for query in QUERIES}
        context = multiprocessing.get_context("spawn")
        over, failed = context.Event(), context.SimpleQueue()
        tasks = {_come_and_go: context.Value("i", 0), _keep_and_teach: context.Value("i", 0)}
        writers = [
            context.Process(target=_write, args=(steps, self._library, self._films, over, cycles, failed))
            for steps, cycles in tasks.items()
        ]
        for writer in writers:
            writer.start()

        def on() -> bool:
            alive = all(writer.is_alive() for writer in writers)
            return goes_on() or (alive and any(cycles.value < _CYCLES for cycles in tasks.values()))

        threads = [
            threading.Thread(target=self._search, args=(number, expected, on)) for number in range(_READERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        over.set()
        for writer in writers:
            writer.join()
            if writer.exitcode:
                self.failures.append(f"a writer ended with {writer.exitcode}")
        while not failed.empty():
            self.failures.append(f"a writer: {failed.get()}")
        self.counts["cycles of the writers"] = sum(cycles.value for cycles in tasks.values())
        self._at_the_end(expected, tasks[_keep_and_teach].value)

    def _at_the_end(self, expected: dict[str, dict[str, _Scores]], cycles: int) -> None:
        with Library(self._library) as library:
            library.index(self._films, ocr=False)
            self.failures += [f"at the end: {problem.message}" for problem in verify(library.store)]
            for query in QUERIES:
                if self._answer(library, query) != expected[query]:
                    self.failures.append(f"at the end: {query!r}: another answer")
            kept = {entry.name for entry in library.userdata.entries("search")}
            if lost := {f"search {number}" for number in range(cycles)} - kept:
                self.failures.append(f"at the end: {', '.join(sorted(lost))} is not kept")
            if cycles and not (library.userdata.tagged() and library.concepts.all()):
                self.failures.append("at the end: no mark, or no concept")

    def _search(
        self, number: int, expected: dict[str, dict[str, _Scores]], goes_on: Callable[[], bool]
    ) -> None:
        draw = random.Random(self._seed * 100 + number)
        with Library(self._library, read_only=True) as held:
            while True:
                with self._lock:
                    if not goes_on():
                        return
                    self.counts["tried"] += 1
                query, reopened = draw.choice(QUERIES), draw.random() < _ANEW
                try:
                    if reopened:
                        with Library(self._library, read_only=True) as library:
                            found = self._answer(library, query)
                    else:
                        found = self._answer(held, query)
                except Exception as error:  # that none comes is what is tried
                    outcome = f"{type(error).__name__}: {error}"
                else:
                    outcome = self._compared(found, expected[query])
                with self._lock:
                    self.counts[outcome if outcome in ("as before", "with videos away") else "failed"] += 1
                    if outcome not in ("as before", "with videos away"):
                        self.failures.append(
                            f"{query!r}, {'opened again' if reopened else 'held open'}: {outcome}"
                        )

    def _compared(self, found: dict[str, _Scores], expected: dict[str, _Scores]) -> str:
        other = [
            group
            for group, scores in expected.items()
            if found[group] != scores and (found[group] or not group)
        ]
        if other:
            whose = other[0] or "what nobody touches"
            return f"another answer of {whose}: {found[other[0]]}, not {expected[other[0]]}"
        return "as before" if found == expected else "with videos away"

    def _answer(self, library: Library, query: str) -> dict[str, _Scores]:
        """Moments and scores of all videos that nobody touches (by ""), and of each other one by its id."""
        return {
            "": self._scores(library, query, self._kept),
            **{name: self._scores(library, query, [name]) for name in "".join(_TOUCHED)},
        }

    def _scores(self, library: Library, query: str, videos: list[str]) -> _Scores:
        try:
            found = library.search(query, top_k=50, videos=videos)
        except NotFound:
            if videos == self._kept:
                raise
            return {}
        return {(m.video_id, m.start, m.end): m.score for m in found}


def _come_and_go(library: Library, films: Path, number: int) -> Iterator[Callable[[], object]]:
    """Take films out, compact, bring them in again."""
    yield lambda: library.indexer.remove(set(_TOUCHED[0]) & _ids(library))
    yield lambda: compact(library.store)
    yield lambda: library.index(films, ocr=False)


def _keep_and_teach(library: Library, films: Path, number: int) -> Iterator[Callable[[], object]]:
    """Take a film out and bring it in; keep, mark, teach, and verify."""
    yield lambda: library.indexer.remove(set(_TOUCHED[1]) & _ids(library))
    yield lambda: library.userdata.put("search", f"search {number}", {"query": "a red square"})
    yield lambda: library.userdata.mark(Mark(video_id="y", start=1.0, end=2.5), add=["red"])
    yield lambda: library.concepts.teach("walls", Marked(None, (MarkedMoment("y", 0, 3),)))
    yield lambda: _verified(library)
    yield lambda: library.index(films, ocr=False)


def _verified(library: Library) -> None:
    if problems := verify(library.store):
        raise LibraryError(f"verify says: {problems[0].message}")


def _write(
    steps: Callable[[Library, Path, int], Iterator[Callable[[], object]]],
    folder: Path,
    films: Path,
    over: Event,
    cycles: Any,
    failed: SimpleQueue[str],
) -> None:
    """One step after the other, each until nobody else is writing, in cycles until it is over."""
    while True:
        with Library(folder) as library:
            for step in steps(library, films, cycles.value):
                while True:
                    if over.wait(_PAUSE):
                        return
                    try:
                        step()
                    except LibraryLocked:
                        continue
                    except Exception as error:  # that none comes is what is tried
                        failed.put(f"{type(error).__name__}: {error}")
                    break
        cycles.value += 1


def _ids(library: Library) -> set[str]:
    return {video.video_id for video in library.videos()}
