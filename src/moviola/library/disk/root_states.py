"""The present state of a library's folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from moviola.library.disk.catalogue import Catalogue
from moviola.library.disk.places import Root, held_by, why_away

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

    def state_of(root: Root) -> RootState:
        videos = held[root.path]
        searchable = sum(video.state != "refused" for video in videos)
        away = why_away(Path(root.path), root.volume, videos)
        return RootState(root.path, root.patterns, root.defaults, searchable, away)

    return [state_of(root) for root in roots]
