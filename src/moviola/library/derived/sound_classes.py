"""Sentence vectors of classes of sounds, encoded once: ``cache/sounds.npz``.

What people say of a sound is often not the name of its class: "a person talking" is near to no "Speech". So a
class is known by each part of its name, and by the phrases of our own in ``sound_phrases.txt``, too.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.library.derived.encoder_background import kept
from moviola.library.disk.store import LibraryStore
from moviola.retrieval.segments import normalised

__all__ = ["SoundClasses", "sound_classes"]

_PHRASES = Path(__file__).with_name("sound_phrases.txt")


@dataclass(frozen=True, slots=True)
class SoundClasses:
    """Classes of sounds, and what they are called.

    Attributes:
        names: of the classes, (n,).
        vectors: unit vectors (n, d) float32 of "the sound of NAME", centred.
        mean: (1, d), which was taken off.
        phrases: unit vectors (m, d) float32 of other words for classes, centred in the same way.
        meant: their classes, (m,).
    """

    names: list[str]
    vectors: NDArray[np.float32]
    mean: NDArray[np.float32]
    phrases: NDArray[np.float32]
    meant: NDArray[np.int64]

    def alike(self, text: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosines (n,) of the classes with a text, by its vector (1, d): each by the nearest of its names."""
        wanted = normalised(text - self.mean)[0]
        cosines = np.asarray(self.vectors @ wanted, np.float32)
        np.maximum.at(cosines, self.meant, self.phrases @ wanted)
        return cosines


def sound_classes(store: LibraryStore) -> SoundClasses:
    """The classes of the sounds that a library has, by its sentence encoder."""
    catalogue, encoder = store.catalogue, store.encoders.sentences_of_all
    assert encoder is not None
    revision = catalogue.sound_revision()
    names = catalogue.sound_classes()[revision]
    phrases, meant = _phrases_of(names)
    texts = [*(f"the sound of {name.lower()}" for name in names), *phrases]

    def encoded() -> NDArray[np.float32]:
        return normalised(encoder.encode_text(texts))

    recipe = f"{store.settings.sentence_revision} {revision} {zlib.crc32(chr(10).join(texts).encode())}"
    vectors = np.asarray(kept(store, "sounds.npz", "vectors", recipe, encoded), np.float32)
    mean = vectors[: len(names)].mean(axis=0, keepdims=True)
    vectors = normalised(vectors - mean)
    return SoundClasses(names, vectors[: len(names)], mean, vectors[len(names) :], meant)


def _phrases_of(names: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Further words for the classes, (m,), and the classes that they mean."""
    lines = (line.split(": ") for line in _PHRASES.read_text(encoding="utf-8").splitlines())
    said = {name: phrases.split("; ") for name, phrases in lines}
    by_class = [
        [f"the sound of {part}" for part in name.lower().split(", ") if "," in name] + said.get(name, [])
        for name in names
    ]
    counts = [len(phrases) for phrases in by_class]
    return [phrase for phrases in by_class for phrase in phrases], np.repeat(np.arange(len(names)), counts)
