"""*Time*: one process searches for long, while videos come and go and the clock is set back and forward.

A cycle takes a video out and brings it in, twice: by hand, and by deleting and writing its file in a folder
that is watched all the time. Then the library is compacted, and the clock is set to another year, back or
forward, and so are the times of change of the films. What must hold:

- Every search gives the answer of the beginning, of the videos that nobody touches.
- In the second half of all cycles memory, open handles, files and bytes of the library are what they were in
  the first, but for what a small part of the work would leave if each left a little. (SQLite's journals do
  not count: they grow to four megabytes, and begin again.)
- No clock loses anything: all videos are there after each cycle, and the library is sound.
"""

from __future__ import annotations

import gc
import os
import random
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from moviola.library import IngestReport, compact, verify
from moviola.library.ingest.watching import Watcher, WatchOptions
from moviola.search import Library
from sample import QUERIES, films_in, library_of

__all__ = ["Ages"]

_CYCLES = 6
"""At least: halves are compared."""
_SEARCHES = 60
"""Of a cycle."""
_FOR_EVER = 300
"""Seconds after which a watcher that reports nothing is given up."""
_YEARS = 12 * 365 * 86400.0
_MORE = {"bytes of memory": 48 << 20, "handles": 5, "files": 3, "bytes of files": 64 << 10}
"""What the second half may have more than the first."""


class Ages:
    """A library of films of which one is taken out and brought in by hand, and one by a watcher.

    Args:
        folder: an empty one to work in.
        seed: of the queries and the clock.

    Attributes:
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._draw = random.Random(seed)
        self._films, self._watched = films_in(folder / "films"), films_in(folder / "watched", "w")
        self._library = library_of(self._films, folder / "library", model=False)
        self._film = self._watched / "w.mp4"
        self._reports: list[IngestReport] = []
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Cycles until ``goes_on`` says no after one."""
        seen: list[tuple[int, ...]] = []
        with Library(self._library) as library, self._watching(library):
            self._wait(lambda: "w" in _ids(library))
            with Library(self._library, read_only=True) as held:
                expected = {query: self._scores(held, query) for query in QUERIES}
                while len(seen) < _CYCLES or goes_on():
                    self._cycle(library, len(seen))
                    self._search(held, expected)
                    seen.append(self._taken())
            self.failures += [f"at the end: {problem.message}" for problem in verify(library.store)]
        self.counts["cycles"] = len(seen)
        self._is_flat(seen)

    def _cycle(self, library: Library, number: int) -> None:
        library.indexer.remove({"b"})
        library.index(self._films, ocr=False)
        content = self._film.read_bytes()
        self._film.unlink()
        self._wait(lambda: "w" not in _ids(library))
        with self._clock(self._draw.uniform(-_YEARS, _YEARS)):
            self._film.write_bytes(content)
            self._wait(lambda: "w" in _ids(library))
            library.index(self._films, ocr=False)
        compact(library.store)
        if (held := _ids(library)) != {"a", "b", "c", "w"}:
            self.failures.append(f"cycle {number}: only {', '.join(sorted(held))} are left")

    @contextmanager
    def _clock(self, seconds: float) -> Iterator[None]:
        """Another time of the process, and of the files."""
        now = time.time
        then = now() + seconds
        for path in self._films.iterdir():
            os.utime(path, (then, then))
        with mock.patch("time.time", lambda: now() + seconds):
            yield
        self.counts["clocks set"] += 1

    def _search(self, held: Library, expected: dict[str, object]) -> None:
        for _ in range(_SEARCHES):
            query = self._draw.choice(QUERIES)
            self.counts["tried"] += 1
            try:
                found = self._scores(held, query)
            except Exception as error:  # that none comes is what is tried
                self.failures.append(f"{query!r}: {type(error).__name__}: {error}")
                continue
            if found != expected[query]:
                self.failures.append(f"{query!r}: another answer: {found}")
            else:
                self.counts["as before"] += 1

    def _scores(self, library: Library, query: str) -> object:
        return [
            (m.video_id, round(m.start, 3), round(m.end, 3), round(m.score, 4))
            for m in library.search(query, top_k=50, videos=["a", "c"])
        ]

    @contextmanager
    def _watching(self, library: Library) -> Iterator[None]:
        options = WatchOptions(settle=0.2, poll=0.5)
        watcher = Watcher(library.index, library.folder, [self._watched], options, self._reports.append)
        thread = threading.Thread(target=watcher.run)
        thread.start()
        try:
            yield
        finally:
            watcher.stop.set()
            thread.join()

    def _wait(self, true: Callable[[], bool]) -> None:
        """Until a report of the watcher has made something true."""
        end = time.monotonic() + _FOR_EVER
        while not (self._reports and true()):
            if time.monotonic() > end:
                raise AssertionError("the watcher does not report what has changed")
            time.sleep(0.05)
        self._reports.clear()

    def _taken(self) -> tuple[int, ...]:
        """What there is of all that :data:`_MORE` names."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        handles = len(list(Path("/proc/self/fd").iterdir()))
        files = [path for path in self._library.rglob("*") if path.is_file()]
        sizes = sum(path.stat().st_size for path in files if not path.name.endswith("-wal"))
        return pages * resource.getpagesize(), handles, len(files), sizes

    def _is_flat(self, seen: list[tuple[int, ...]]) -> None:
        half = len(seen) // 2
        for (name, more), values in zip(_MORE.items(), zip(*seen, strict=True), strict=True):
            self.counts[f"{name}, first half"] = max(values[:half])
            self.counts[f"{name}, second half"] = max(values[half:])
            if max(values[half:]) > max(values[:half]) + more:
                self.failures.append(f"{name} grow: {', '.join(map(str, values))}")


def _ids(library: Library) -> set[str]:
    return {video.video_id for video in library.videos()}
