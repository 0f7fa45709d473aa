"""Work that runs ahead in a thread of its own: decoding, while the one before is encoded or read."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from queue import Empty, Full, Queue
from typing import TypeVar

__all__ = ["ahead"]

Step = TypeVar("Step")

# Steps that may wait: enough to keep who takes them busy, a few MB of pictures.
_AHEAD = 4


def ahead(steps: Iterator[Step]) -> Generator[Step, None, None]:
    """Run an iterator in a thread, a few steps ahead; closing this generator ends the thread."""
    queue: Queue[Step | BaseException | None] = Queue(_AHEAD)
    stop = threading.Event()

    def put(item: Step | BaseException | None) -> None:
        while not stop.is_set():
            try:
                queue.put(item, timeout=0.1)
                return
            except Full:
                continue

    def work() -> None:
        try:
            for step in steps:
                put(step)
                if stop.is_set():
                    return
            put(None)
        except BaseException as error:  # handed to the reader, who raises it
            put(error)

    thread = threading.Thread(target=work, name="decode-ahead", daemon=True)
    thread.start()
    try:
        while (item := queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        while thread.is_alive():
            try:
                queue.get_nowait()
            except Empty:
                thread.join(timeout=0.05)
