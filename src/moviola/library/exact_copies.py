"""Which videos of a library are there more than once."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from moviola.library.disk.store import LibraryStore

__all__ = ["ExactCopies", "exact_copies"]


@dataclass(frozen=True, slots=True)
class ExactCopies:
    """The same bytes at several paths.

    Attributes:
        video_ids: of the videos that they are in the library: one, or several where it was built before
            copies were known.
        paths: where they lie, or lay.
        size: of each file in bytes.
    """

    video_ids: tuple[str, ...]
    paths: tuple[str, ...]
    size: int

    @property
    def wasted(self) -> int:
        """Bytes that all but one of them take."""
        return self.size * (len(self.paths) - 1)


def exact_copies(store: LibraryStore) -> list[ExactCopies]:
    """All of a library, those first that take most room; by sizes and hashes as they were when indexed."""
    further = defaultdict(list)
    for copy in store.catalogue.copies():
        further[copy.video].append(copy.path)
    same = defaultdict(list)
    for video in store.catalogue.videos():
        if video.state != "refused":
            same[video.hash].append(video)
    found = [
        ExactCopies(
            tuple(video.video_id for video in videos),
            tuple(path for video in videos for path in (video.path, *further[video.row])),
            videos[0].size,
        )
        for videos in same.values()
    ]
    return sorted(
        (copies for copies in found if len(copies.paths) > 1),
        key=lambda copies: (-copies.wasted, copies.video_ids),
    )
