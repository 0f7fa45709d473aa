"""One library, many threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from moviola.search import Library
from moviola.types import Moment

TEXTS = [
    f"{thing} in the {place}" for thing in ("umbrella", "keeper") for place in ("harbour", "winter")
] * 16


def test_eight_threads_find_what_one_finds(library: Library) -> None:
    with Library(library.folder, read_only=True) as serial:
        expected = [serial.search(text, top_k=20) for text in TEXTS]
    together = threading.Barrier(8)

    with Library(library.folder, read_only=True) as fresh, ThreadPoolExecutor(8) as threads:

        def search(text: str) -> list[Moment]:
            if not together.broken:
                together.wait(timeout=60)
            return fresh.search(text, top_k=20)

        first = list(threads.map(search, TEXTS[:8]))
        together.abort()
        rest = list(threads.map(search, TEXTS[8:]))
    assert first + rest == expected


def test_eight_threads_hold_a_snapshot_at_the_same_time(library: Library) -> None:
    together = threading.Barrier(8)

    def look(_: int) -> tuple[int, list[str]]:
        with library.catalogue.snapshot():
            together.wait(timeout=60)  # all have begun, none has ended
            seen = library.catalogue.generation, [v.video_id for v in library.catalogue.videos()]
            together.wait(timeout=60)
        return seen

    with ThreadPoolExecutor(8) as threads:
        (state,) = {(number, *ids) for number, ids in threads.map(look, range(8))}
    assert state[1:] == ("a", "b", "d", "deep/c")


def test_threads_read_while_one_writes(library: Library, opened: Callable[..., Library]) -> None:
    """Each thread sees one whole state: never a video without its cues, never half of a removal."""
    states = ({"a", "b", "d", "deep/c"}, {"b", "deep/c"})
    begun = threading.Event()

    def read() -> list[set[str]]:
        seen = []
        for _ in range(200):
            seen.append({video.video_id for video in library.videos()})
            begun.set()
        return seen

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read) for _ in range(4)]
        begun.wait(timeout=60)
        library.indexer.remove(["a", "d"])
        assert all(seen in states for reader in readers for seen in reader.result())
    assert len(library) == 2


def test_a_thread_that_ends_leaves_no_connection(library: Library) -> None:
    library.search("a red square")  # what is opened once
    open_before = len(library.catalogue._open)
    for _ in range(3):
        thread = threading.Thread(target=library.videos)
        thread.start()
        thread.join()
    assert len(library.catalogue._open) == open_before
