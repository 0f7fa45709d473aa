"""The indexes of a library: which vectors they hold, whether they are current, and making them so."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.index import BACKENDS, Index, load_index, save_index
from moviola.library.catalogue import VideoRow
from moviola.library.store import LibraryStore
from moviola.retrieval.segments import pack_ids, unpack_ids
from moviola.retrieval.stage1 import MeanPooling, trained_recipe

__all__ = ["INDEXES", "current_index", "index_recipe", "piece_count", "piece_vectors", "publish_indexes"]

INDEXES = ("segments", "pictures", "cues")
"""What a library indexes: segments as texts are compared with them, segments as pictures are, and cues by
their meaning. Those for pictures have both features in one row, so that pictures and words can be summed.
"""

_CUES = "mean of normalised frames"  # so called in libraries from the beginning, though nothing is averaged


def index_recipe(store: LibraryStore, name: str) -> str:
    """How the vectors of an index are made; one that is current says the same."""
    if name == "cues":
        return _CUES
    if name == "pictures":
        return MeanPooling().recipe
    # Said without loading the model, which may be missing.
    settings = store.settings
    return trained_recipe(settings.stage1_revision) if settings.stage1 else MeanPooling().recipe


def piece_count(store: LibraryStore, name: str, video: VideoRow) -> int:
    """How many vectors of a video an index holds."""
    if name == "pictures" and not store.settings.picture_dim:
        return 0
    if name in ("segments", "pictures"):
        return -(-video.frames.count // store.settings.frames_per_segment) if video.frames else 0
    return video.cues.count if video.cues else 0


def piece_vectors(store: LibraryStore, name: str, video: VideoRow) -> NDArray[np.float32]:
    """The vectors of a video that an index holds, (n, d) float32, L2-normalised."""
    if name == "cues":
        return store.cue_vectors(video)
    if video.frames is None:
        return np.empty((0, _dim(store, name)), np.float32)
    clips = store.features_of([video], pictures=name == "pictures").read(0)
    stage1 = MeanPooling() if name == "pictures" else store.models.stage1
    return stage1.segments(clips, store.settings.frames_per_segment)


def _dim(store: LibraryStore, name: str) -> int:
    """Numbers in a vector of an index; 0 where the library has none of its kind."""
    settings = store.settings
    if name == "cues":
        return settings.sentence_dim
    if name == "pictures":
        return settings.frame_dim if settings.picture_dim else 0
    return settings.encoder_dim


def current_index(
    store: LibraryStore, name: str, videos: Mapping[int, VideoRow]
) -> tuple[Index | None, bool]:
    """An index of exactly these videos (by row number), and whether the one on disk differs from it.

    None where the library has no encoder for it.
    """
    dim = _dim(store, name)
    if not dim:
        return None, False
    loaded = _published(store, name)
    index, stale = loaded or BACKENDS[store.settings.index](dim), loaded is None
    rows = unpack_ids(index.ids())[0]
    present = set(np.unique(rows).tolist())
    gone = present - videos.keys()
    if gone:
        index.remove(index.ids()[np.isin(rows, list(gone))])
    fresh = [(row, piece_vectors(store, name, videos[row])) for row in sorted(videos.keys() - present)]
    fresh = [(row, vectors) for row, vectors in fresh if len(vectors)]
    if fresh:
        ids = np.concatenate([pack_ids(row, len(vectors)) for row, vectors in fresh])
        index.add(ids, np.concatenate([vectors for _, vectors in fresh]))
    return index, stale or bool(gone or fresh)


def _published(store: LibraryStore, name: str) -> Index | None:
    """The published index; one that is missing, damaged or made by another recipe is built anew."""
    try:
        loaded = load_index(store.folder / "index", name, BACKENDS)
    except SegmentIndexError:
        return None
    return loaded[0] if loaded and loaded[1] == index_recipe(store, name) else None


def publish_indexes(store: LibraryStore) -> None:
    """Write the indexes that lag behind the catalogue; under the library's write lock."""
    videos = store.searchable()
    for name in INDEXES:
        index, differs = current_index(store, name, videos)
        if index is not None and differs:
            recipe = index_recipe(store, name)
            save_index(index, store.folder / "index", name, backend=store.settings.index, tag=recipe)
