"""Completions of typed text: videos and tags with a word in their name that begins with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from moviola.files.names import folded
from moviola.library import LibraryStore

__all__ = ["Completions", "complete", "video_names"]


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
