"""The present state of a library's folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moviola.library.disk.catalogue import Catalogue
from moviola.library.disk.places import held_by, why_away

__all__ = ["RootState", "roots_in"]


@dataclass(frozen=True, slots=True)
class RootState:
    """A root now: its number of videos, without files that were refused, and why it is away, if it is."""

    path: str
    patterns: tuple[str, ...]
    defaults: bool
    videos: int
    away: str


def roots_in(catalogue: Catalogue) -> list[RootState]:
    """The roots of a library with their present state, by path."""
    roots = catalogue.roots()
    held = held_by(catalogue.videos(), roots)
    return [
        RootState(path, root.patterns, root.defaults, videos, why_away(Path(path), root.volume, own))
        for root in roots
        for path, own in [(root.path, held[root.path])]
        for videos in [sum(video.state != "refused" for video in own)]
    ]
