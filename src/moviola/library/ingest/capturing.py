"""Reading when, where and with what videos were taken."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from moviola.errors import MediaError
from moviola.library.disk.store import LibraryStore

__all__ = ["note_captures"]

# Files that are read before what they say is committed.
_AT_ONCE = 200


def note_captures(store: LibraryStore, video_ids: Iterable[str]) -> None:
    """Read what the files of some videos say of their making, where that was not done; no picture is decoded.

    What cannot be read now is tried again the next time.
    """
    from moviola.media import read_capture

    catalogue, wanted = store.catalogue, set(video_ids)
    known = catalogue.captures().keys()
    waiting = [v for v in catalogue.videos() if v.video_id in wanted and v.row not in known]
    waiting = [video for video in waiting if video.state != "refused"]
    for start in range(0, len(waiting), _AT_ONCE):
        found = {}
        for video in waiting[start : start + _AT_ONCE]:
            try:
                found[video.row] = read_capture(Path(video.path))
            except (MediaError, OSError):
                continue
        if found:
            with catalogue.transaction():
                catalogue.put_captures(found)
