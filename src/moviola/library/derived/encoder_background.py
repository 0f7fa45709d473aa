"""Background texts of a library's encoder: texts about everything, encoded once.

``cache/background.npz`` holds their vectors. Where it is missing, damaged, or of another encoder, it is made
again when needed, and kept where the library may be written to.
"""

from __future__ import annotations

import zlib
from contextlib import suppress

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
    """(m, d) float32, unit vectors of :func:`moviola.retrieval.unrelated_queries`; :class:`BrokenPlugin` for
    an encoder that returns something else.
    """
    from moviola.encoders import check_features

    path, texts = store.folder / "cache" / "background.npz", unrelated_queries()
    digest = zlib.crc32("\n".join(texts).encode())
    recipe = f"{store.settings.encoder_revision} {digest}"
    vectors: Floats
    with suppress(DataError), opened_sealed(path) as stored, np.load(stored) as arrays:
        if str(arrays["recipe"]) == recipe:
            vectors = arrays["vectors"]
            return vectors
    encoder = store.encoders.visual_of_all
    assert encoder is not None
    rows = encoder.encode_text(texts)
    check_features(rows, (len(texts), encoder.dim), encoder.id)
    vectors = normalised(rows)
    if not store.read_only:
        # Where it cannot be written, the next search makes it again.
        with suppress(InvalidValue), sealed_draft_of(path) as draft, draft.open("wb") as file:
            np.savez(file, vectors=vectors, recipe=recipe)
    return vectors


def texts_among_segments(store: LibraryStore) -> Floats:
    """(m, d') float32, the same texts encoded as queries to the index of segments; :class:`LibraryError` for
    a library that is empty, or without a visual encoder.
    """
    encoder, stage1, texts = store.encoders.visual, store.models.stage1, unrelated_queries()
    if encoder is None or not len(store.searchable()):
        raise LibraryError(f"{store.folder}: no segments to measure; index videos first")
    if not stage1.trained:
        return background_of(store).centred(text_vectors(store))
    rows = encoder.encode_tokens(texts) if stage1.needs_tokens else list(text_vectors(store))
    return stage1.queries(QueryFeatures.of(texts, texts, rows))
