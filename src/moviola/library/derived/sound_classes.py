"""Sentence vectors of classes of sounds, encoded once: ``cache/sounds.npz``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moviola.library.derived.encoder_background import kept
from moviola.library.disk.store import LibraryStore
from moviola.retrieval.segments import normalised

__all__ = ["sound_vectors"]


def sound_vectors(store: LibraryStore) -> tuple[list[str], NDArray[np.float32], NDArray[np.float32]]:
    """Names (n,) of the classes of the sounds that a library has, their unit vectors (n, d) float32 by its
    sentence encoder, centred, and the mean (1, d) that was taken off.
    """
    catalogue, encoder = store.catalogue, store.encoders.sentences_of_all
    assert encoder is not None
    revision = catalogue.sound_revision()
    names = catalogue.sound_classes()[revision]

    def encoded() -> NDArray[np.float32]:
        return normalised(encoder.encode_text([f"the sound of {name.lower()}" for name in names]))

    recipe = f"{store.settings.sentence_revision} {revision}"
    vectors = np.asarray(kept(store, "sounds.npz", "vectors", recipe, encoded), np.float32)
    mean = vectors.mean(axis=0, keepdims=True)
    return names, normalised(vectors - mean), mean
