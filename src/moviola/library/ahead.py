"""Work that runs ahead in a thread of its own: decoding, while the one before is encoded or read."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from typing import TypeVar

__all__ = ["ahead"]

Step = TypeVar("Step")

# Steps that may wait: enough to keep who takes them busy, a few MB of pictures.
_AHEAD = 4


def ahead(steps: Iterator[Step]) -> Generator[Step, None, None]:
    """Run an iterator in a thread, a few steps ahead; closing this generator ends the thread.

    Two simple queues, which are whole at any point: a bounded ``Queue`` is made of Python locks, and Ctrl-C
    at the wrong moment leaves one of them locked for ever.
    """
    ready: SimpleQueue[Step | BaseException | None] = SimpleQueue()
    room: SimpleQueue[None] = SimpleQueue()
    closed = False

    def work() -> None:
        try:
            for step in steps:
                room.get()
                if closed:
                    return
                ready.put(step)
            ready.put(None)
        except BaseException as error:  # handed to the reader, who raises it
            ready.put(error)

    for _ in range(_AHEAD):
        room.put(None)
    thread = threading.Thread(target=work, name="decode-ahead", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            room.put(None)
            yield item
    finally:
        closed = True
        room.put(None)
        thread.join()
