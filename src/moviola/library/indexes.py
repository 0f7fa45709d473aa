"""The indexes of a library: which vectors they hold, whether they are current, and making them so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.features import Integers
from moviola.index import (
    AUTO,
    BACKENDS,
    DEPTH,
    Exact,
    Index,
    Trial,
    backend_of,
    load_index,
    save_index,
    suited,
    tune,
)
from moviola.library.catalogue import VideoRow
from moviola.library.store import LibraryStore
from moviola.library.video_table import VideoTable
from moviola.retrieval.segments import pack_ids, unpack_ids
from moviola.retrieval.stage1 import MeanPooling, trained_recipe

__all__ = [
    "INDEXES", "current_index", "index_recipe", "piece_counts", "piece_vectors", "publish_indexes",
    "tune_index",
]  # fmt: skip

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


def piece_counts(store: LibraryStore, name: str, videos: VideoTable) -> Integers:
    """(V,) int64, how many vectors of each video an index holds."""
    if name == "cues":
        return videos.cues[:, 2]
    there = 0 if name == "pictures" and not store.settings.picture_dim else 1
    counts: Integers = -(-videos.frames[:, 2] // store.settings.frames_per_segment) * there
    return counts


def piece_vectors(store: LibraryStore, name: str, video: VideoRow) -> NDArray[np.float32]:
    """The vectors of a video that an index holds, (n, d) float32, L2-normalised."""
    if name == "cues":
        return store.cue_vectors(video)
    if video.frames is None:
        return np.empty((0, _dim(store, name)), np.float32)
    clips = store.features_of(VideoTable.of([video]), pictures=name == "pictures").read(0)
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


def current_index(store: LibraryStore, name: str, videos: VideoTable) -> tuple[Index | None, bool]:
    """An index of exactly these videos, and whether the one on disk differs from it.

    None where the library has no encoder for it.
    """
    dim = _dim(store, name)
    if not dim:
        return None, False
    index = _published(store, name)
    counts = piece_counts(store, name, videos)
    kind = _kind(store, int(counts.sum()), index)
    if index is None or backend_of(index) != kind:
        return _built(store, name, videos, BACKENDS[kind](dim)), True
    rows = unpack_ids(index.sorted_ids())[0]
    present = rows[np.flatnonzero(np.diff(rows, prepend=-1))]
    gone = np.setdiff1d(present, videos.rows)
    if len(gone):
        index.remove(index.ids()[np.isin(unpack_ids(index.ids())[0], gone)])
    ids, vectors = _pieces(store, name, videos, np.setdiff1d(videos.rows[counts > 0], present).tolist())
    if len(ids):
        index.add(ids, vectors)
    return index, len(gone) + len(ids) > 0


def _kind(store: LibraryStore, count: int, present: Index | None) -> str:
    """The type that an index of so many vectors is to have."""
    if store.settings.index != AUTO:
        return store.settings.index
    return suited(count, backend_of(present) if present is not None else "")


def _built(store: LibraryStore, name: str, videos: Mapping[int, VideoRow], index: Index) -> Index:
    ids, vectors = _pieces(store, name, videos, sorted(videos))
    if len(ids):
        index.build(ids, vectors)
    return index


def _pieces(
    store: LibraryStore, name: str, videos: Mapping[int, VideoRow], rows: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Ids and vectors of what some videos have in an index."""
    own = [(row, piece_vectors(store, name, videos[row])) for row in rows]
    own = [(row, vectors) for row, vectors in own if len(vectors)]
    if not own:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    ids = np.concatenate([pack_ids(row, len(vectors)) for row, vectors in own])
    return ids, np.concatenate([vectors for _, vectors in own])


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
            _save(store, name, index)


def _save(store: LibraryStore, name: str, index: Index) -> None:
    recipe = index_recipe(store, name)
    save_index(index, store.folder / "index", name, backend=backend_of(index), tag=recipe)


def tune_index(store: LibraryStore, texts: NDArray[np.float32]) -> list[Trial]:
    """Measure how far searches for segments must look, and write that down; under the write lock.

    Every vector is made once more, to know the exact answers.

    Args:
        store: a library with a visual encoder.
        texts: (q, d) float32, queries by text among the segments.

    Returns:
        what was tried; nothing where the type of the index has nothing to choose.
    """
    videos = store.searchable()
    index, _ = current_index(store, "segments", videos)
    if index is None or not index.LADDERS or not len(index):
        return []
    chosen = np.random.default_rng(0).permutation(sorted(videos))[: len(texts)]
    queries = {"text": texts, "picture": _middles(store, [videos[int(row)] for row in chosen])}
    exact = {kind: Exact(vectors, min(DEPTH, len(index))) for kind, vectors in queries.items()}
    for row, video in videos.items():
        vectors = piece_vectors(store, "segments", video)
        for answers in exact.values():
            answers.see(pack_ids(row, len(vectors)), vectors)
    trials = tune(index, {kind: (vectors, exact[kind].ids) for kind, vectors in queries.items()})
    _save(store, "segments", index)
    return trials


def _middles(store: LibraryStore, videos: Sequence[VideoRow]) -> NDArray[np.float32]:
    """The segment in the middle of each of some videos, (n, d) float32."""
    own = [piece_vectors(store, "segments", video) for video in videos]
    return np.stack([vectors[len(vectors) // 2] for vectors in own if len(vectors)])
