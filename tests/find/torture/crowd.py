"""*Many at once*: threads search one library, while a process takes videos out, brings them in and compacts.

What must hold of each search: no error, and of the videos that nobody touches the answer of before, whether
the library is held open or opened anew.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from moviola.search import Library
from sample import QUERIES, films_in, library_of

__all__ = ["ManyAtOnce"]

_READERS = 3
_TOUCHED = "abc"
_CYCLES = 2
"""Of the writer, at least: a search beside nobody is no trial."""
_ANEW = 0.1
"""Share of searches that open the library for themselves."""

_Scores = dict[tuple[str, float, float], float]


class ManyAtOnce:
    """A library of six films, of which three come and go.

    Args:
        folder: an empty one to work in.
        seed: of the queries, and of who opens the library anew.

    Attributes:
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._films = films_in(folder / "films", "abcxyz")
        self._library = library_of(self._films, folder / "library", model=False)
        self._kept = [path.stem for path in self._films.glob("*.mp4") if path.stem not in _TOUCHED]
        self._seed = seed
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Search side by side until ``goes_on`` says no."""
        with Library(self._library, read_only=True) as library:
            expected = {query: self._scores(library, query) for query in QUERIES}
        context = multiprocessing.get_context("spawn")
        over, cycles = context.Event(), context.Value("i", 0)
        writer = context.Process(target=_come_and_go, args=(self._library, self._films, over, cycles))
        writer.start()

        def on() -> bool:
            return goes_on() or (writer.is_alive() and cycles.value < _CYCLES)

        threads = [
            threading.Thread(target=self._search, args=(number, expected, on)) for number in range(_READERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        over.set()
        writer.join()
        self.counts["cycles of the writer"] = cycles.value
        if writer.exitcode:
            self.failures.append(f"the writer ended with {writer.exitcode}")
        with Library(self._library, read_only=True) as library:
            self.failures += [f"at the end: {problem.message}" for problem in library.verify()]

    def _search(self, number: int, expected: dict[str, _Scores], goes_on: Callable[[], bool]) -> None:
        draw = random.Random(self._seed * 100 + number)
        with Library(self._library, read_only=True) as held:
            while True:
                with self._lock:
                    if not goes_on():
                        return
                    self.counts["tried"] += 1
                query, anew = draw.choice(QUERIES), draw.random() < _ANEW
                try:
                    if anew:
                        with Library(self._library, read_only=True) as library:
                            found = self._scores(library, query)
                    else:
                        found = self._scores(held, query)
                except Exception as error:  # that none comes is what is tried
                    outcome = f"{type(error).__name__}: {error}"
                else:
                    outcome = "as before" if found == expected[query] else f"another answer: {found}"
                with self._lock:
                    known = outcome == "as before"
                    self.counts["as before" if known else "failed"] += 1
                    if not known:
                        self.failures.append(
                            f"{query!r}, {'opened anew' if anew else 'held open'}: {outcome}"
                        )

    def _scores(self, library: Library, query: str) -> _Scores:
        return {
            (m.video_id, round(m.start, 3), round(m.end, 3)): round(m.score, 4)
            for m in library.search(query, top_k=50, videos=self._kept)
        }


def _come_and_go(folder: Path, films: Path, over: Event, cycles: Any) -> None:
    """Take films out, compact, bring them in again, until it is over."""
    while not over.is_set():
        with Library(folder) as library:
            library.remove(set(_TOUCHED))
            library.compact()
            library.index(films, ocr=False)
        cycles.value += 1
