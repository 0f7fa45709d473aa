"""Names of videos and tags that go on as typed text begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moviola.library import LibraryStore
from moviola.search.per_generation import PerGeneration

__all__ = ["Completions", "NameReader"]

_BEFORE_WORD = re.compile(r"[\W_]")


@dataclass(frozen=True, slots=True)
class Completions:
    """Names that go on as a text begins.

    Attributes:
        videos: id and seconds of videos, best first.
        tags: with the number of videos that bear them.
    """

    videos: tuple[tuple[str, float], ...]
    tags: tuple[tuple[str, int], ...]


class NameReader:
    """The names of a library's videos, read again when it has changed. Safe for threads.

    Args:
        store: the library.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._names = PerGeneration(store, self._read)

    def complete(self, text: str, tagged: Mapping[str, Iterable[str]], most: int) -> Completions:
        """Videos and tags in whose name a word begins with a text, those first that begin with it.

        Args:
            text: what was typed; case does not count.
            tagged: ids of videos by tag.
            most: number of videos, and of tags.
        """
        wanted = text.strip().casefold()
        if not wanted:
            return Completions((), ())
        found = sorted(
            (place, len(name), video_id, seconds)
            for name, video_id, seconds in self._names.get()
            if (place := _begins(name, wanted)) >= 0
        )
        tags = sorted((at, tag) for tag in tagged if (at := _begins(tag.casefold(), wanted)) >= 0)
        return Completions(
            tuple((video_id, seconds) for _, _, video_id, seconds in found[:most]),
            tuple((tag, len(list(tagged[tag]))) for _, tag in tags[:most]),
        )

    def _read(self) -> list[tuple[str, str, float]]:
        """Last part of the id in lower case, id, and seconds of each searchable video."""
        return [
            (video.video_id.rpartition("/")[2].casefold(), video.video_id, video.duration)
            for video in self._store.videos()
        ]


def _begins(name: str, wanted: str) -> int:
    """Where a word of a name begins with a text; -1 for nowhere."""
    place = name.find(wanted)
    while place > 0 and not _BEFORE_WORD.match(name[place - 1]):
        place = name.find(wanted, place + 1)
    return place
