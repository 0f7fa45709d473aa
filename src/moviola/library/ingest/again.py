"""Videos that are in the library, encoded or read again."""

from __future__ import annotations

from collections.abc import Iterable

from moviola.library.derived.video_names import publish_names
from moviola.library.disk.store import LibraryStore
from moviola.types import several

__all__ = ["process_again"]


def process_again(store: LibraryStore, video_ids: Iterable[str], *, pictures: bool = True) -> list[str]:
    """Have videos processed again when their files are indexed the next time; all or none.

    They can be searched as they are until then, and keep their ids.

    Args:
        store: the library.
        video_ids: of the videos.
        pictures: encode their pictures, and read everything; False: read subtitles and text in pictures.

    Raises:
        NotFound: an id is unknown.
        InvalidValue: the library was opened read-only.
        LibraryLocked: another process is writing.
    """
    with store.writing():
        videos = [
            store.catalogue.video(video_id) for video_id in dict.fromkeys(several("video_ids", video_ids))
        ]
        with store.catalogue.transaction():
            for video in videos:
                (store.catalogue.encode_again if pictures else store.catalogue.read_again)(video.row)
        publish_names(store, encode=False)
    return [video.video_id for video in videos]
