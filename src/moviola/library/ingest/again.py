"""Videos that are in the library, encoded or read again."""

from __future__ import annotations

from collections.abc import Iterable

from moviola.library.derived.video_names import publish_names
from moviola.library.disk.store import LibraryStore

__all__ = ["process_again"]


def process_again(store: LibraryStore, video_ids: Iterable[str], *, pictures: bool = True) -> list[str]:
    """Have videos processed again when their files are indexed the next time; all or none.

    They can be searched as they are until then, and keep their ids. Without ``pictures`` only subtitles and
    text in pictures are read. Errors as of :meth:`moviola.library.Indexer.remove`.
    """
    with store.writing():
        videos = store.catalogue.listed(video_ids)
        again = store.catalogue.encode_again if pictures else store.catalogue.read_again
        with store.catalogue.transaction():
            for video in videos:
                again(video.row)
        publish_names(store, encode=False)
    return [video.video_id for video in videos]
