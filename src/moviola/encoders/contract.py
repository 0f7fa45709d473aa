"""Contract of the encoders of frames and texts; ``tests/find/encoders/test_contract.py`` checks all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from moviola.errors import BrokenPlugin, InvalidValue
from moviola.types import FrameSize

__all__ = [
    "FrameTextEncoder", "Match", "Named", "PictureEncoder", "Polyglot", "SentenceMatch", "TextJudge",
    "TextReader", "UnrelatedCosines", "WordJudge", "check_features", "check_frames", "picture_dim",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Match:
    """Calibration of an encoder's cosines: whether a query matches a picture, independent of any library.

    The log odds of a match are ``slope * (x - line)``; x is the cosine, or with ``references`` its standard
    deviations above the query's cosines with these.

    Attributes:
        slope: above 0, per unit of x.
        line: value of x at even odds.
        centred: whether the mean vector of texts about everything is subtracted from a query's first, so that
            no picture is close to every text; x is then a product, not a cosine.
        references: (k, d) float32, unit vectors of pictures, or of substitutes; None without.
        by_phrases: whether the log odds are the mean over the text, footage of it, and its pairs of words
            (:mod:`moviola.retrieval.phrases`).
        certainty: log odds per unit by which it is more certain than usual what a picture shows
            (:meth:`moviola.retrieval.Background.certainty_of`); 0 without references.
        nearest: log odds per unit of the cosine of a text, by phrases, with the nearest of the references.
        unknown: log odds of each content word of a text, by phrases, that is not one token.
        measured: whether these numbers were measured for the encoder; else they are a cautious default.
    """

    slope: float
    line: float
    centred: bool = False
    references: NDArray[np.float32] | None = None
    by_phrases: bool = False
    certainty: float = 0.0
    nearest: float = 0.0
    unknown: float = 0.0
    measured: bool = True


@dataclass(frozen=True, slots=True)
class UnrelatedCosines:
    """Cosines of a sentence encoder for texts that have nothing to do with each other.

    Attributes:
        mean: of pairs of texts.
        texts: that one in a thousand pairs of texts reaches, above the mean.
        words: that one in a thousand pairs of single words reaches, below 1.
    """

    mean: float
    texts: float
    words: float


@dataclass(frozen=True, slots=True)
class SentenceMatch:
    """Calibration of the cosine of two texts: whether one says what the other asks for.

    The log odds of a match are ``slope * (x - line)``; x is 0 for the mean cosine of unrelated texts,
    and 1 for one that one in a thousand pairs of them reaches (:class:`UnrelatedCosines`).

    Attributes:
        slope: above 0, per unit of x.
        line: value of x at even odds.
        measured: whether both were measured for the encoder; else they are a cautious default.
    """

    slope: float = 8.0
    line: float = 1.0
    measured: bool = False


class Named(Protocol):
    """What libraries record of an encoder or a reader."""

    @property
    def id(self) -> str:
        """Name that libraries record."""

    @property
    def revision(self) -> str:
        """Changes whenever the weights or settings change."""


class FrameTextEncoder(Named, Protocol):
    """A frozen encoder of frames and texts into one space, where the cosine says how well they match."""

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    @property
    def frame_size(self) -> FrameSize:
        """Size of its input frames, for ``moviola.media``."""

    @property
    def curve(self) -> Mapping[str, float]:
        """Options of ``moviola.retrieval.CurveRefiner`` for its similarity curves, where not the defaults."""

    @property
    def match(self) -> Match:
        """Calibration of the cosine of a text with a frame."""

    @property
    def picture_match(self) -> Match:
        """Calibration of the cosine of two pictures, in the space in which pictures are compared."""

    @property
    def device(self) -> str:
        """Device of frames and of many texts: ``"cpu"``, ``"cuda"``, ``"mps"``."""

    @property
    def precision(self) -> str:
        """Precision: ``"fp32"``, ``"fp16"``, ``"bf16"``; features are always float32."""

    def encode_frames(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features (n, dim) float32 of frames, of any length.

        Args:
            images: (n, height, width, 3) uint8 RGB of this encoder's ``frame_size``, 0–255.

        Raises:
            InvalidValue: another shape or dtype.
        """

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Features (n, dim) float32 of n texts, of any length; too long texts are cut.

        The features of a text are the same alone and among others, to the bit.

        Raises:
            InvalidValue: not a list of strings.
        """

    def encode_tokens(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Features (tokens, dim) float32 of every token of each text, special ones too, the text's last.

        Texts and errors are those of :meth:`encode_text`.
        """


@runtime_checkable
class PictureEncoder(FrameTextEncoder, Protocol):
    """An encoder that compares pictures with each other in a space of its own, where texts have no place;
    others compare them by the features that are compared with texts.
    """

    @property
    def picture_dim(self) -> int:
        """Length of a vector in that space."""

    def encode_pictures(self, images: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Both features of frames: (n, dim) float32 as from :meth:`FrameTextEncoder.encode_frames`, which has
        the same argument and errors, and (n, picture_dim) float32, each of length 1.
        """


@runtime_checkable
class WordJudge(Protocol):
    """An encoder that can say which words its vocabulary has."""

    def has_word(self, word: str, *, english: bool = False) -> bool:
        """Whether a word is one token of the vocabulary, and not a chain of pieces like a misspelt one; with
        ``english`` of that by which English is read, where other languages have another.
        """


@runtime_checkable
class TextJudge(WordJudge, Protocol):
    """An encoder to which some texts mean nothing: those without a token of its vocabulary.

    Punctuation alone means nothing either.
    """

    def knows(self, text: str) -> bool:
        """Whether a text has a token of the vocabulary, not of punctuation alone. Texts without any token all
        have the same vector.
        """


class TextReader(Protocol):
    """How texts of some languages are read into an encoder's space of frames and texts."""

    @property
    def match(self) -> Match:
        """Calibration of the cosine of such a text with a frame."""

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Features (n, dim) float32 of texts, as from :meth:`FrameTextEncoder.encode_text`."""


@runtime_checkable
class Polyglot(FrameTextEncoder, Protocol):
    """An encoder that reads texts in more than one way, by their language."""

    def reader_of(self, text: str) -> TextReader:
        """The way in which a text is read, and its words with it."""


@runtime_checkable
class KnowsLanguages(Protocol):
    """An encoder that states which languages it was trained on."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of ISO 639, or tags of BCP 47; empty where that is not known."""


def picture_dim(encoder: FrameTextEncoder) -> int:
    """Length of an encoder's vectors for comparing pictures with each other; 0 where it has none."""
    return encoder.picture_dim if isinstance(encoder, PictureEncoder) else 0


def check_frames(images: Any, size: FrameSize, encoder: str) -> None:
    """Refuse arrays that are no frames of a size. Raises InvalidValue, with what ``encoder`` takes."""
    is_array = isinstance(images, np.ndarray)
    coloured = is_array and images.dtype == np.uint8 and images.ndim == 4 and images.shape[3] == 3
    if not (coloured and size.takes(*images.shape[1:3])):
        given = f"{images.dtype} {images.shape}" if is_array else type(images).__name__
        sides = f"(n, {size.height}, {size.width}, 3)"
        if size.fit == "patches":
            sides = f"(n, {size.height} * r, {size.width} * c, 3), r * c from 1 to {size.most_patches}"
        raise InvalidValue(
            f"frames: {given}; {encoder} takes uint8 {sides}, as moviola.media makes them for its frame_size"
        )


def check_features(features: Any, shape: tuple[int, int], encoder: str) -> None:
    """Refuse what an encoder returned. Raises BrokenPlugin unless it is finite float32 of that shape."""
    is_array = isinstance(features, np.ndarray)
    if not (is_array and features.dtype == np.float32 and features.shape == shape):
        given = f"{features.dtype} {features.shape}" if is_array else type(features).__name__
        raise BrokenPlugin(
            f"encoder {encoder!r}: returned {given} where float32 {shape} is due; update the package that it "
            "comes from"
        )
    if not np.isfinite(features).all():
        raise BrokenPlugin(
            f"encoder {encoder!r}: returned features that are infinite or NaN; update the package "
            "that it comes from, or choose another precision"
        )
