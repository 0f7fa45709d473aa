"""Contracts of the readers of text and speech; ``tests/find/encoders/test_readers.py`` checks all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.contract import Named
from moviola.types import Box, Word

__all__ = ["RATE", "UNKNOWN_LANGUAGE", "SpeechReader", "TextLine", "TextReader", "Utterance", "Voiced"]

RATE = 16_000
"""Samples per second of the input of all speech readers."""

UNKNOWN_LANGUAGE = "und"
"""Language (ISO 639-2) of an utterance in one that the reader does not know: its text is a guess."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text in a picture: its words, its box, and the confidence, in [0, 1]."""

    text: str
    box: Box
    confidence: float


class TextReader(Named, Protocol):
    """Finds and reads text in pictures."""

    @property
    def longest_side(self) -> int:
        """Longest side, in pixels, of the pictures that it reads best."""

    def read(self, image: NDArray[np.uint8]) -> Sequence[TextLine]:
        """Lines of text in a picture (height, width, 3) uint8 RGB, from top to bottom; unsure ones are left
        out. Raises InvalidValue: another shape or dtype.
        """


@dataclass(frozen=True, slots=True)
class Voiced:
    """A stretch of speech: its first second, and samples (n,) float32 at RATE."""

    start: float
    samples: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Utterance:
    """A recognised utterance, in seconds of the sound, ``end > start``.

    Attributes:
        words: times of single words; empty if the reader does not know them.
        confidence: of the reader, in [0, 1].
        language: recognised language (ISO 639-1), or UNKNOWN_LANGUAGE.
    """

    start: float
    end: float
    text: str
    words: tuple[Word, ...]
    confidence: float
    language: str


class SpeechReader(Named, Protocol):
    """Recognises speech."""

    def read(self, speech: Iterable[Voiced]) -> Iterator[Utterance]:
        """Utterances of a video, in order of time, of its :func:`moviola.encoders.readers.voiced`
        stretches.
        """
