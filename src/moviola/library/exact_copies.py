"""Exact duplicates among the videos of a library."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from moviola.library.disk.store import LibraryStore

__all__ = ["ExactCopies", "exact_copies"]


@dataclass(frozen=True, slots=True)
class ExactCopies:
    """The same bytes at several paths.

    Attributes:
        video_ids: of these videos in the library; several only in libraries that were built before copies
            were known.
        paths: of the files, as last seen.
        size: of each file in bytes.
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
    return sorted(
        (copies for copies in groups if len(copies.paths) > 1),
        key=lambda copies: (-copies.wasted, copies.video_ids),
    )
