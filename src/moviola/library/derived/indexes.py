"""The indexes of a library: their vectors, whether they are current, and updating them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.errors import IndexServerError, SegmentIndexError
from moviola.features import Integers
from moviola.index import (
    AUTO,
    Index,
    backend_of,
    backends_of,
    home_of,
    load_index,
    name_of,
    rows_in_file,
    save_index,
    suited,
)
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.store import LibraryStore
from moviola.library.disk.video_table import VideoTable
from moviola.retrieval.segments import pack_ids, unpack_ids
from moviola.retrieval.stage1 import MeanPooling, TrainedVectors, trained_recipe

if TYPE_CHECKING:
    from moviola.index import Trial

__all__ = [
    "INDEXES", "current_index", "index_recipe", "piece_counts", "piece_vectors", "publish_indexes",
    "published_index", "tune_index",
]  # fmt: skip

INDEXES = ("segments", "pictures", "cues")
"""Segments for texts, segments for pictures, and cues by meaning. Rows for pictures hold both features, so
that pictures and words can be summed."""

_PIECES_AT_ONCE = 1 << 13
_CUES = "mean of normalised frames"  # the historical name; nothing is averaged


def index_recipe(store: LibraryStore, name: str) -> str:
    """Recipe of the vectors of an index, compared to see whether a stored one is current."""
    if name == "cues":
        return f"{_CUES}, {store.settings.sentence_revision}"
    # From the settings: models themselves may be missing.
    settings = store.settings
    pooled = name == "pictures" or not settings.stage1
    recipe = MeanPooling().recipe if pooled else trained_recipe(settings.stage1_revision)
    if not store.catalogue.has_former:
        return recipe  # of a library whose encoder was never changed
    return f"{recipe}, {settings.frames_per_segment} of {settings.pictures_key}"


def piece_counts(store: LibraryStore, name: str, videos: VideoTable) -> Integers:
    """(V,) int64, number of vectors of each video in an index."""
    if name == "cues":
        return videos.cues[:, 2]
    there = 0 if name == "pictures" and not store.settings.picture_dim else 1
    counts: Integers = -(-videos.frames[:, 2] // store.settings.frames_per_segment) * there
    return counts


def piece_vectors(store: LibraryStore, name: str, video: VideoRow) -> NDArray[np.float32]:
    """The vectors of a video in an index, (n, d) float32, L2-normalised."""
    if name == "cues":
        return store.cue_vectors(video)
    if video.frames is None:
        return np.empty((0, _dim(store, name)), np.float32)
    clips = store.features_of(VideoTable.of([video]), pictures=name == "pictures").read(0)
    stage1 = MeanPooling() if name == "pictures" else store.models.stage1
    return stage1.segments(clips, store.settings.frames_per_segment)


def _dim(store: LibraryStore, name: str) -> int:
    """Dimension of the vectors of an index; 0 where the library has none of its kind."""
    settings = store.settings
    if name == "cues":
        return settings.sentence_dim
    if name == "pictures":
        return settings.frame_dim if settings.picture_dim else 0
    stage1 = store.models.stage1 if settings.stage1 else None
    return stage1.dim if isinstance(stage1, TrainedVectors) else settings.encoder_dim


def current_index(
    store: LibraryStore,
    name: str,
    videos: VideoTable,
    *,
    index: Index | None = None,
    published: bool = True,
) -> tuple[Index | None, bool]:
    """The index of a name in :data:`INDEXES` of exactly these videos, made of ``index`` or else the published
    one, if that may be, and whether it differs from that; None where the library has no encoder for it.
    """
    dim = _dim(store, name)
    if not dim:
        return None, False
    if index is None and published:
        index = published_index(store, name)
    counts = piece_counts(store, name, videos)
    present = "" if index is None else backend_of(index)
    kind = name_of(store.settings.index)
    if store.settings.index == AUTO:
        kind = suited(int(counts.sum()), present)
    if index is None or present != kind:
        return _built(store, name, videos, backends_of(store.settings.index)[kind](dim)), True
    # With counts, NumPy does not import its masked arrays, a thirtieth of a cold search.
    rows, _ = np.unique(np.concatenate([_videos_of(ids) for ids in index.id_parts()]), return_counts=True)
    gone = rows[~np.isin(rows, videos.rows)]
    if len(gone):
        own = [ids[np.isin(unpack_ids(ids)[0], gone)] for ids in index.id_parts()]
        index.remove(np.concatenate(own))
    lacking = (counts > 0) & ~np.isin(videos.rows, rows)
    pieces = _pieces(store, name, videos, videos.rows[lacking].tolist())
    _extend(index, pieces, int(counts[lacking].sum()))
    return index, len(gone) > 0 or bool(lacking.any())


def _videos_of(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row numbers of the videos of ids, repeated where these are not in order."""
    rows = unpack_ids(ids)[0]
    return rows[np.flatnonzero(np.diff(rows, prepend=-1))]


def _extend(
    index: Index, pieces: Iterable[tuple[NDArray[np.int64], NDArray[np.float32]]], count: int
) -> None:
    """Add ``count`` vectors, which come in parts; by way of a file if they are many."""
    if count <= _PIECES_AT_ONCE:
        for ids, vectors in pieces:
            index.add(ids, vectors)
        return
    with rows_in_file(pieces, index.dim, np.float32) as (ids, rows):
        index.extend(ids, rows)


def _built(store: LibraryStore, name: str, videos: Mapping[int, VideoRow], index: Index) -> Index:
    with rows_in_file(_pieces(store, name, videos, sorted(videos)), index.dim, np.float32) as (ids, vectors):
        if len(ids):
            index.build(ids, vectors)
    return index


def _pieces(
    store: LibraryStore, name: str, videos: Mapping[int, VideoRow], rows: Sequence[int]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Ids and vectors of some videos in an index, some thousand at a time."""
    ids: list[NDArray[np.int64]] = []
    pieces: list[NDArray[np.float32]] = []
    for row in rows:
        vectors = piece_vectors(store, name, videos[row])
        if len(vectors):
            ids.append(pack_ids(row, len(vectors)))
            pieces.append(vectors)
        if pieces and (row == rows[-1] or sum(map(len, pieces)) >= _PIECES_AT_ONCE):
            yield np.concatenate(ids), np.concatenate(pieces)
            ids, pieces = [], []
            store.frame_features.give_back()
            store.cue_features.give_back()


def published_index(store: LibraryStore, name: str, *, thorough: bool = False) -> Index | None:
    """The published index; None where it is missing, damaged or made by another recipe. ``thorough`` compares
    all that is stored, and raises :class:`IndexServerError` where the server does not answer.
    """
    try:
        backends = backends_of(store.settings.index)
        loaded = load_index(store.folder / "index", name, backends, thorough=thorough)
    except IndexServerError:
        raise
    except SegmentIndexError:
        return None
    return loaded[0] if loaded and loaded[1] == index_recipe(store, name) else None


def publish_indexes(store: LibraryStore, *, thorough: bool = False) -> None:
    """Update the indexes that lag behind the catalogue; under the library's write lock. ``thorough`` compares
    all that is stored, and rebuilds what is damaged.

    Raises:
        IndexServerError: an index is on a server that does not answer.
    """
    videos = store.searchable()
    for name in INDEXES:
        stored = published_index(store, name, thorough=thorough)
        wanted = name_of(store.settings.index)
        kind = backends_of(store.settings.index).get(wanted)
        other = stored is None or backend_of(stored) != wanted
        if kind is not None and kind.ON_SERVER and other and (dim := _dim(store, name)):
            # Empty, to be filled part by part.
            stored = kind(dim)
            stored.home = home_of(store.folder / "index", name)
        if stored is None and thorough:
            # A mapped file with a flipped byte opens all the same, and would be extended.
            (store.folder / "index" / f"{name}.json").unlink(missing_ok=True)
        moved = stored is not None and (stored.take_over() or thorough)
        if stored is not None and moved:
            _leave_out_parts(store, name, videos, stored)
        index, differs = current_index(store, name, videos, index=stored)
        if index is not None and (differs or moved):
            _save(store, name, index)


def _leave_out_parts(store: LibraryStore, name: str, videos: VideoTable, index: Index) -> None:
    """Remove videos of which an index has only some vectors; they are added again as a whole."""
    ids = index.ids()
    rows, held = np.unique(unpack_ids(ids)[0], return_counts=True)
    _, ours, theirs = np.intersect1d(videos.rows, rows, assume_unique=True, return_indices=True)
    parts = rows[theirs[held[theirs] != piece_counts(store, name, videos)[ours]]]
    index.remove(ids[np.isin(unpack_ids(ids)[0], parts)])


def _save(store: LibraryStore, name: str, index: Index) -> None:
    recipe = index_recipe(store, name)
    save_index(index, store.folder / "index", name, backend=backend_of(index), tag=recipe)


def tune_index(store: LibraryStore, texts: NDArray[np.float32]) -> list[Trial]:
    """Measure how far searches for segments must look for text queries (q, d) float32 in their space and for
    segments themselves, and store it; under the write lock. All vectors are computed once more for the exact
    answers. Returns the settings that were tried; none where the type of the index has none.
    """
    from moviola.index import DEPTH, Exact, tune

    videos = store.searchable()
    index, _ = current_index(store, "segments", videos)
    if index is None or not index.LADDERS or not len(index):
        return []
    chosen = np.random.default_rng(0).permutation(sorted(videos))[: len(texts)].tolist()
    pieces = (piece_vectors(store, "segments", videos[row]) for row in chosen)
    middles = np.stack([vectors[len(vectors) // 2] for vectors in pieces if len(vectors)])
    queries = {"text": texts, "picture": middles}
    exact = {kind: Exact(vectors, min(DEPTH, len(index))) for kind, vectors in queries.items()}
    for row, video in videos.items():
        vectors = piece_vectors(store, "segments", video)
        for answers in exact.values():
            answers.see(pack_ids(row, len(vectors)), vectors)
    trials = tune(index, {kind: (vectors, exact[kind].ids) for kind, vectors in queries.items()})
    _save(store, "segments", index)
    return trials
