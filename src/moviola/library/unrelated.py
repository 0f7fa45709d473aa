"""What searches need to tell that nothing matches; made when a library is written to.

``cache/unrelated.npz`` holds a :class:`moviola.retrieval.Unrelated`. Where it is missing, or was made with
another encoder or stage 1, searches do not tell until the next run of indexing.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures
from moviola.files.writing import atomic_write
from moviola.library.indexes import index_recipe
from moviola.library.store import LibraryStore
from moviola.library.view import Viewer
from moviola.retrieval import NEAREST, Retrieval, Unrelated, unrelated_queries

__all__ = ["publish_unrelated", "read_unrelated"]


def publish_unrelated(store: LibraryStore) -> None:
    """Bring the file up to date; under the library's write lock."""
    view = Viewer(store).view()
    if view.segments is None or not len(view.segments):
        return
    known = _read(store)
    if known is not None and known[1] == view.generation:
        return
    models = store.models
    retrieval = Retrieval(
        view.features, view.segments, models.stage1, None, store.settings.frames_per_segment
    )
    vectors = known[0].vectors if known is not None else _embedded(store, retrieval)
    found = Unrelated.of(retrieval, vectors)
    with atomic_write(_path(store), "wb") as file:
        np.savez(
            file, vectors=found.vectors, leads=found.leads, recipe=_recipe(store), generation=view.generation
        )


def read_unrelated(store: LibraryStore) -> Unrelated | None:
    """What was published; None where it does not fit the encoder and stage 1 of the library."""
    known = _read(store)
    return None if known is None else known[0]


def _embedded(store: LibraryStore, retrieval: Retrieval) -> NDArray[np.float32]:
    encoder = store.encoders.visual
    assert encoder is not None
    texts = unrelated_queries()
    return retrieval.vectors(QueryFeatures.of(texts, texts, list(encoder.encode_text(texts))))


def _read(store: LibraryStore) -> tuple[Unrelated, int] | None:
    """What lies there and the generation that it was made of; None where it is of no use."""
    try:
        with np.load(_path(store)) as file:
            if str(file["recipe"]) != _recipe(store):
                return None
            return Unrelated(file["vectors"], file["leads"]), int(file["generation"])
    except (OSError, ValueError, KeyError, EOFError, zlib.error):
        return None


def _path(store: LibraryStore) -> Path:
    return store.folder / "cache" / "unrelated.npz"


def _recipe(store: LibraryStore) -> str:
    texts = zlib.crc32("\n".join(unrelated_queries()).encode())
    return f"{NEAREST} {store.settings.encoder_revision} {index_recipe(store, 'segments')} {texts}"
