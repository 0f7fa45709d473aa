"""Exact duplicates among the videos of a library."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from moviola.library.disk.store import LibraryStore

__all__ = ["ExactCopies", "exact_copies"]


@dataclass(frozen=True, slots=True)
class ExactCopies:
    """The same bytes at several paths, as last seen, each of ``size`` bytes. The library has several videos
    of them only if it was built before copies were known.
    """

    video_ids: tuple[str, ...]
    paths: tuple[str, ...]
    size: int

    @property
    def wasted(self) -> int:
        """Bytes that all copies but one take."""
        return self.size * (len(self.paths) - 1)


def exact_copies(store: LibraryStore) -> list[ExactCopies]:
    """All duplicates of a library, largest first; by sizes and hashes at the time of indexing."""
    further = defaultdict(list)
    for copy in store.catalogue.copies():
        further[copy.video].append(copy.path)
    same = defaultdict(list)
    for video in store.catalogue.videos():
        if video.state != "refused":
            same[video.hash].append(video)
    groups = [
        ExactCopies(
            tuple(video.video_id for video in videos),
            tuple(path for video in videos for path in (video.path, *further[video.row])),
            videos[0].size,
        )
        for videos in same.values()
    ]
    several = (copies for copies in groups if len(copies.paths) > 1)
    return sorted(several, key=lambda copies: (-copies.wasted, copies.video_ids))
