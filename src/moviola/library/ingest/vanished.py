"""Folders that were moved: their former paths are no copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from moviola.files.presence import is_file
from moviola.library.disk.places import Copy, Root, root_of
from moviola.library.disk.schema import VideoRow
from moviola.library.ingest.plan import Plan

__all__ = ["forget_vanished"]


def forget_vanished(
    plan: Plan,
    gone: Sequence[str],
    roots: Sequence[Root],
    videos: Mapping[int, VideoRow],
    copies: Collection[Copy],
) -> None:
    """Plan for roots that are gone and of which every file is elsewhere now.

    Args:
        gone: paths of roots that are not there.
        videos: of the library, by row number.
        copies: further paths of theirs.
    """
    places = {video.row: str(found.path) for video, found in plan.moved}

    def is_in(path: str, folder: str) -> bool:
        root = root_of(path, roots)
        return root is not None and root.path == folder

    for folder in gone:
        further = [copy for copy in copies if is_in(copy.path, folder)]
        held = {row for row, video in videos.items() if is_in(video.path, folder)}
        now = [places.get(row, videos[row].path) for row in held | {copy.video for copy in further}]
        if now and not any(is_in(place, folder) or not is_file(place) for place in now):
            plan.forgotten.append(folder)
            plan.offline.pop(folder, None)
            plan.lost_copies += [copy.path for copy in further]
            plan.kept_paths[:] = [copy for copy in plan.kept_paths if not is_in(copy.path, folder)]
