"""What readers of text and of speech offer; ``tests/encoders/test_readers.py`` holds all of them to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.types import Box, Word

__all__ = ["RATE", "SpeechReader", "TextLine", "TextReader", "Utterance", "Voiced"]

RATE = 16_000
"""Samples a second that every speech reader hears."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text in a picture: what it says, where it stands, and how sure that is, in [0, 1]."""

    text: str
    box: Box
    confidence: float


class TextReader(Protocol):
    """Finds and reads text in pictures."""

    @property
    def id(self) -> str:
        """The name under which a library records the reader."""

    @property
    def revision(self) -> str:
        """Changes whenever the weights or settings change."""

    @property
    def longest_side(self) -> int:
        """Pixels of the longer side of the pictures that it reads best."""

    def read(self, image: NDArray[np.uint8]) -> Sequence[TextLine]:
        """Lines of text in a picture, from top to bottom; those that it is not sure of are left out.

        Args:
            image: (height, width, 3) uint8 RGB.

        Raises:
            InvalidValue: another shape or dtype.
        """


@dataclass(frozen=True, slots=True)
class Voiced:
    """A stretch of sound in which somebody speaks: its first second, and samples (n,) float32 at RATE."""

    start: float
    samples: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something that was said.

    Attributes:
        start, end: seconds, of the same time line as the sound, ``end > start``.
        text: the words.
        words: when each of them is said; empty where the reader does not know.
        confidence: how sure the reader is, in [0, 1].
        language: the language it heard, as ISO 639-1 has it.
    """

    start: float
    end: float
    text: str
    words: tuple[Word, ...]
    confidence: float
    language: str


class SpeechReader(Protocol):
    """Writes down what is said."""

    @property
    def id(self) -> str:
        """The name under which a library records the reader."""

    @property
    def revision(self) -> str:
        """Changes whenever the weights or settings change."""

    def read(self, speech: Iterable[Voiced]) -> Iterator[Utterance]:
        """What is said in one video, in order of time.

        Args:
            speech: stretches in which somebody speaks, see :func:`moviola.encoders.readers.voiced`.
        """
