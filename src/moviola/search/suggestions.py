"""Suggestions: queries to try, things that the pictures of a library show; and completions of typed text,
videos and tags with a word in their name that begins with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from moviola.files.names import folded
from moviola.library import LibraryStore
from moviola.search.found import SearchResult
from moviola.types import Query

__all__ = ["Completions", "ExampleReader", "complete", "video_names"]


@dataclass(frozen=True, slots=True)
class Completions:
    """Completions of a text, best first.

    Attributes:
        videos: id and length in seconds of each.
        tags: each with the number of searchable videos that bear it, above 0.
    """

    videos: tuple[tuple[str, float], ...]
    tags: tuple[tuple[str, int], ...]


VideoName = tuple[str, str, float]
"""The last part of a video's id, :func:`~moviola.files.names.folded`; its id; its seconds."""


def video_names(store: LibraryStore) -> list[VideoName]:
    """The names of the searchable videos of a library."""
    return [
        (folded(video.video_id.rpartition("/")[2]), video.video_id, video.duration)
        for video in store.videos()
    ]


def complete(
    names: Collection[VideoName], tagged: Mapping[str, Iterable[str]], text: str, most: int
) -> Completions:
    """Videos and tags, at most ``most`` each, in whose name a word begins with a text, best at its start.

    Args:
        names: of the searchable videos.
        tagged: ids of videos by tag, also of removed ones.
        text: what was typed; neither case nor the form of accents counts.
    """
    wanted = folded(text.strip())
    if not wanted:
        return Completions((), ())
    found = sorted(
        (place, len(name), video_id, seconds)
        for name, video_id, seconds in names
        if (place := _begins(name, wanted)) >= 0
    )
    ids = {video_id for _, video_id, _ in names}
    tags = sorted(
        (at, tag, count)
        for tag, videos in tagged.items()
        if (at := _begins(folded(tag), wanted)) >= 0 and (count := sum(one in ids for one in videos))
    )
    return Completions(
        tuple((video_id, seconds) for _, _, video_id, seconds in found[:most]),
        tuple((tag, count) for _, tag, count in tags[:most]),
    )


def _begins(name: str, wanted: str) -> int:
    """Where a word of a name begins with a text; -1 for nowhere."""
    found = re.search(rf"(?<![^\W_]){re.escape(wanted)}", name)
    return found.start() if found else -1


class ExampleReader:
    """Queries that a library answers strongly, found again when it has changed. Safe for threads.

    ``search`` answers many queries by pictures, a moment each.
    """

    def __init__(self, store: LibraryStore, search: Callable[[Sequence[Query]], list[SearchResult]]) -> None:
        self._store, self._search, self._lock = store, search, Lock()
        self._known: tuple[int, tuple[str, ...]] | None = None

    def read(self, most: int) -> tuple[str, ...]:
        """At most ``most`` queries, the surest first, each for another video where there are enough.

        None without a visual encoder. While one thread looks for them, which takes seconds, the others get
        those of the state before, or none: they do not wait.
        """
        generation = self._store.catalogue.generation
        if (self._known is None or self._known[0] != generation) and self._lock.acquire(blocking=False):
            try:
                self._known = generation, self._found()
            finally:
                self._lock.release()
        return self._known[1][:most] if self._known else ()

    def _found(self) -> tuple[str, ...]:
        if not self._store.settings.encoder:
            return ()
        # Things that videos may show, as short queries.
        things = Path(__file__).with_name("things.txt").read_text(encoding="utf-8").splitlines()
        answers = self._search([Query(str(number), thing) for number, thing in enumerate(things)])
        best = [(answer[0], thing) for answer, thing in zip(answers, things, strict=True) if answer]
        strong = sorted((one for one in best if one[0].strong), key=lambda one: -one[0].score)
        first: dict[str, str] = {}
        others = [thing for moment, thing in strong if first.setdefault(moment.video_id, thing) != thing]
        return (*first.values(), *others)
