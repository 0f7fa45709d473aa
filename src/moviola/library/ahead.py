"""Work that runs ahead in threads of its own: decoding, while what came before is encoded or read."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from queue import SimpleQueue
from typing import Generic, TypeVar

__all__ = ["ahead", "side_by_side"]

Step = TypeVar("Step")

# Steps that may wait for each thread: enough to keep who takes them busy, a few MB of pictures.
_AHEAD = 4


def ahead(steps: Iterator[Step]) -> Generator[Step, None, None]:
    """Run an iterator in a thread, a few steps ahead; closing this generator ends the thread."""
    with closing(side_by_side([steps], threads=1)) as taken:
        for _, step in taken:
            yield step


def side_by_side(works: Iterable[Iterator[Step]], threads: int) -> Generator[tuple[int, Step], None, None]:
    """Run iterators in threads, several at once, a few steps ahead; closing this generator ends the threads.

    Steps come as they are made: whoever takes them never waits for one piece of work while another has steps.
    At most twice as many pieces as threads are begun before the oldest of them is done, so that no more have
    to be held back by someone who needs them in order.

    Args:
        works: pieces of work; taken one by one, in the thread that iterates.
        threads: that run them, at least 1.

    Yields:
        The number of a piece, from 0, and one of its steps; those of one piece in order.

    Raises:
        Whatever a piece of work raises.
    """
    remaining = enumerate(works)
    crew = _Crew[Step](threads)
    oldest, ended = 0, set[int]()
    try:
        begun = sum(crew.begin(next(remaining, None)) for _ in range(2 * threads))
        while oldest < begun:
            number, step = crew.next_step()
            if not isinstance(step, _End):
                yield number, step
                continue
            ended.add(number)
            while oldest in ended:
                ended.remove(oldest)
                oldest += 1
                begun += crew.begin(next(remaining, None))
    finally:
        crew.close()


class _End:
    """Stands behind the last step of a piece of work."""


class _Crew(Generic[Step]):
    """Threads that run numbered iterators.

    They talk through simple queues, which are whole at any point: a bounded ``Queue`` is made of Python
    locks, and Ctrl-C at the wrong moment leaves one of them locked for ever.
    """

    def __init__(self, threads: int) -> None:
        self._pieces: SimpleQueue[tuple[int, Iterator[Step]] | None] = SimpleQueue()
        self._ready: SimpleQueue[tuple[int, Step | _End | BaseException]] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        self._closed = False
        for _ in range(_AHEAD * threads):
            self._room.put(None)
        self._threads = [
            threading.Thread(target=self._work, name="decode-ahead", daemon=True) for _ in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def begin(self, piece: tuple[int, Iterator[Step]] | None) -> bool:
        """Let a thread run a piece when it can; None ends a thread, and gives False."""
        self._pieces.put(piece)
        return piece is not None

    def next_step(self) -> tuple[int, Step | _End]:
        """What is ready next; raises what a piece raised."""
        number, step = self._ready.get()
        if isinstance(step, BaseException):
            raise step
        if not isinstance(step, _End):
            self._room.put(None)
        return number, step

    def close(self) -> None:
        """End all threads, each after the step that it is at."""
        self._closed = True
        for _ in self._threads:
            self._room.put(None)
            self._pieces.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (piece := self._pieces.get()) is not None:
            number, steps = piece
            try:
                for step in steps:
                    self._room.get()
                    if self._closed:
                        return
                    self._ready.put((number, step))
                self._ready.put((number, _End()))
            except BaseException as error:  # handed to the reader, who raises it
                self._ready.put((number, error))
