"""Background texts of a library's encoder: texts about everything, encoded once.

``cache/background.npz`` holds their vectors. Where it is missing, damaged, or of another encoder, it is made
again when needed, and kept where the library may be written to.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue, LibraryError
from moviola.features import QueryFeatures
from moviola.files.sealed import opened_sealed, sealed_draft_of
from moviola.library.disk.store import LibraryStore
from moviola.retrieval import Background, unrelated_queries
from moviola.retrieval.segments import normalised

__all__ = ["background_of", "text_vectors", "texts_among_segments"]

Floats = NDArray[np.float32]


def background_of(store: LibraryStore) -> Background:
    """The background texts of a library that has a visual encoder."""
    encoder = store.encoders.visual
    assert encoder is not None
    match = encoder.match
    nothing = np.zeros(encoder.dim, np.float32)
    centre = text_vectors(store).mean(axis=0) if match.centred else nothing
    return Background(centre, match.slope, match.line, match.references, match.by_phrases)


def text_vectors(store: LibraryStore) -> Floats:
    """(m, d) float32, unit vectors of :func:`moviola.retrieval.unrelated_queries`."""
    known = _read(store)
    if known is not None:
        return known
    encoder = store.encoders.visual
    assert encoder is not None
    vectors = normalised(encoder.encode_text(unrelated_queries()))
    if not store.read_only:
        # Where it cannot be written, the next search makes it again.
        with suppress(InvalidValue), sealed_draft_of(_path(store)) as draft, draft.open("wb") as file:
            np.savez(file, vectors=vectors, recipe=_recipe(store))
    return vectors


def _read(store: LibraryStore) -> Floats | None:
    """The stored vectors; None where they are missing or unusable."""
    try:
        with opened_sealed(_path(store)) as file, np.load(file) as stored:
            vectors: Floats = stored["vectors"]
            return vectors if str(stored["recipe"]) == _recipe(store) else None
    except DataError:
        return None


def _path(store: LibraryStore) -> Path:
    return store.folder / "cache" / "background.npz"


def _recipe(store: LibraryStore) -> str:
    texts = zlib.crc32("\n".join(unrelated_queries()).encode())
    return f"{store.settings.encoder_revision} {texts}"


def texts_among_segments(store: LibraryStore) -> Floats:
    """(m, d') float32, the same texts encoded as queries to the index of segments.

    Raises:
        LibraryError: the library has no visual encoder, or is empty.
    """
    if store.encoders.visual is None or not len(store.searchable()):
        raise LibraryError(f"{store.folder}: no segments to measure; index videos first")
    stage1, texts, vectors = store.models.stage1, unrelated_queries(), text_vectors(store)
    if not stage1.trained:
        return background_of(store).centred(vectors)
    return stage1.queries(QueryFeatures.of(texts, texts, list(vectors)))
