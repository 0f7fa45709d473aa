"""Background threads that decode ahead while earlier work is encoded or read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, starmap
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

__all__ = ["Branch", "ahead", "side_by_side"]

Step = TypeVar("Step")

# Steps buffered per thread: enough to keep the consumer busy, a few MB of pictures.
_AHEAD = 4


def ahead(steps: Iterator[Step]) -> Generator[Step, None, None]:
    """Run an iterator in a thread, a few steps ahead; closing this generator ends the thread."""
    with closing(side_by_side([steps], threads=1)) as taken:
        for _, step in taken:
            if step is not None:
                yield step


@dataclass(frozen=True, slots=True)
class Branch(Generic[Step]):
    """A step that is not handed on: part of the same piece of work that another thread may do meanwhile."""

    steps: Iterator[Step]


def side_by_side(
    works: Iterable[Iterator[Step | Branch[Step]]], threads: int
) -> Generator[tuple[int, Step | None], None, None]:
    """Run pieces of work in one or more threads, a few steps ahead; closing this generator ends the threads.

    Steps come as they are made: the consumer never waits for one piece of work while another has steps. Works
    are taken one by one, in the thread that iterates; at most twice as many as threads are begun before the
    oldest of them is done, so that a consumer that needs them in order holds few of them back. What one
    raises is raised here.

    Yields:
        The number of a piece, from 0, and one of its steps, those of one iterator in order; None as the step
        when all of a piece is done, its branches too.
    """
    remaining = enumerate(works)
    crew = _Crew[Step](threads)
    oldest, parts = 0, Counter[int]()  # running iterators of each piece that has begun
    try:
        begun = sum(starmap(crew.begin, islice(remaining, 2 * threads)))
        while oldest < begun:
            number, step = crew.next_step()
            if not isinstance(step, _Change):
                yield number, step
                continue
            parts[number] += step.parts
            if not parts[number]:
                yield number, None
            while parts.get(oldest) == 0:
                oldest += 1
                begun += sum(starmap(crew.begin, islice(remaining, 1)))
    finally:
        crew.close()


@dataclass(frozen=True, slots=True)
class _Change:
    """Change in the number of running iterators of a piece of work."""

    parts: int


class _Crew(Generic[Step]):
    """Threads that run numbered iterators."""

    # Simple queues are whole at any point: a bounded ``Queue`` is made of Python locks, and Ctrl-C at the
    # wrong moment leaves one of them locked for ever.

    def __init__(self, threads: int) -> None:
        self._pieces: SimpleQueue[tuple[int, Iterator[Step | Branch[Step]]] | None] = SimpleQueue()
        self._ready: SimpleQueue[tuple[int, Step | _Change | BaseException]] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        self._closed = False
        for _ in range(_AHEAD * threads):
            self._room.put(None)
        self._threads = [Thread(target=self._work, name="decode-ahead", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def begin(self, number: int, steps: Iterator[Step | Branch[Step]]) -> int:
        """Queue one more iterator of a piece of work; returns 1."""
        self._ready.put((number, _Change(1)))
        self._pieces.put((number, steps))
        return 1

    def next_step(self) -> tuple[int, Step | _Change]:
        """The next step that is ready; raises what a piece raised."""
        number, step = self._ready.get()
        if isinstance(step, BaseException):
            raise step
        if not isinstance(step, _Change):
            self._room.put(None)
        return number, step

    def close(self) -> None:
        """End all threads, each after its current step."""
        self._closed = True
        for _ in self._threads:
            self._room.put(None)
            self._pieces.put(None)
        for thread in self._threads:
            thread.join()

    def _is_open(self) -> bool:
        return not self._closed

    def _work(self) -> None:
        while (piece := self._pieces.get()) is not None and self._is_open():
            number, steps = piece
            try:
                for step in steps:
                    if isinstance(step, Branch):
                        self.begin(number, step.steps)
                        continue
                    self._room.get()
                    if not self._is_open():
                        return
                    self._ready.put((number, step))
                self._ready.put((number, _Change(-1)))
            except BaseException as error:  # handed to the consumer, which raises it
                self._ready.put((number, error))
