"""Reading when, where and with what videos were taken."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from moviola.errors import MediaError
from moviola.library.disk.store import LibraryStore

__all__ = ["note_captures"]

# Files read between two commits.
_AT_ONCE = 200


def note_captures(store: LibraryStore, video_ids: Iterable[str]) -> None:
    """Read capture data from files that lack it; no picture is decoded.

    Files that cannot be read now are tried again the next time.
    """
    from moviola.media import read_capture

    catalogue, wanted = store.catalogue, set(video_ids)
    known = catalogue.captures().keys()
    waiting = [v for v in catalogue.videos() if v.video_id in wanted and v.row not in known]
    waiting = [video for video in waiting if video.state != "refused"]
    for start in range(0, len(waiting), _AT_ONCE):
        captures = {}
        for video in waiting[start : start + _AT_ONCE]:
            try:
                captures[video.row] = read_capture(Path(video.path))
            except (MediaError, OSError):
                continue
        if captures:
            with catalogue.transaction():
                catalogue.put_captures(captures)
