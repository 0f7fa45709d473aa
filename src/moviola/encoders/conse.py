"""ConSE: a picture classifier joined to a sentence encoder, for machines that reach no model hub.

Norouzi et al. 2014 (*Zero-shot learning by convex combination of semantic embeddings*): a frame's vector is
the mean of the sentence vectors of the classes, weighted by their probability; a query's is its own sentence
vector. The classes are EfficientNet-Lite's 1,000 of ImageNet, the sentences MiniLM's, both centred by the
mean of all classes, whose vectors ``scripts/make_conse_classes.py`` makes from WordNet
(``conse_classes/README.md``). Pictures are compared with each other by the layer before the classes, which
holds more than their names (`benchmarks/footage/README.md`).

Texts that are not English are read by e5-small, where it is installed, and come into MiniLM's space by a
linear map (:func:`moviola.encoders.e5.open_bridge`), near to where their translations lie. A query is then
drawn to what is known there: .8 times the mean of the nearest 20 of the classes and of texts about
everything, weighted by exp(10 cosine), is added, .3 times in English (`benchmarks/languages/README.md`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.devices import require_torch
from moviola.encoders.checkpoints import CONSE, fingerprint, packaged_revision
from moviola.encoders.contract import Match, check_frames
from moviola.encoders.device_choice import DeviceChoice, OnDevice
from moviola.encoders.e5 import ANCHORS, open_bridge
from moviola.encoders.efficientnet import PIXELS
from moviola.encoders.sentence_models import MINILM, open_sentence_encoder
from moviola.encoders.sentences import SentenceEncoder
from moviola.encoders.texts import check_texts
from moviola.encoders.weights import Weights
from moviola.threads import compute_threads
from moviola.types import FrameSize
from moviola.words.english import is_english

__all__ = ["CLASSES_FOLDER", "FACTS", "NETWORK_FOLDER", "ConseEncoder", "Fact"]

Floats = NDArray[np.float32]

CLASSES_FOLDER = Path(__file__).parent / "conse_classes"

NETWORK_FOLDER = Path(__file__).parent / "conse_network"
"""Weights of EfficientNet-Lite1, made by ``scripts/make_packaged_models.py``."""

TEMPERATURE = 2.0
"""Divides the logits: above 1, the less likely classes gain weight."""

CHANNELS, FOLDED = 1280, 4
"""Channels of the layer before the classes; averaged in groups, 320 numbers find as much as 1,280."""

CURVE: Mapping[str, float] = {"floor": 0.3, "context": 4.0}
"""Tuned on films that ``benchmarks/footage/query_films.py`` cuts with seed 0, measured with seed 1."""

MATCH_SLOPE, MATCH_LINE, MATCH_CERTAINTY = 1.4, 3.6, 3.0
MATCH_NEAREST, MATCH_UNKNOWN = -1.5, -1.6
"""Of a text's standing among the classes, which are pictures of things, of how near the nearest of them is to
it, and of its words that MiniLM knows by parts alone; measured by ``benchmarks/no_match``."""

FOREIGN_SLOPE, FOREIGN_LINE, FOREIGN_CERTAINTY = 1.1, 4.9, 2.4
"""The same of a text that e5 has read; measured by ``benchmarks/languages``."""

DRAWN, DRAWN_ENGLISH, NEAREST, STEEP = 0.8, 0.3, 20, 10.0
"""How much a query that e5 has read, and one in English, is drawn to the nearest of what is known, to how
many, and how steeply their weights fall with the cosine."""

# Digits, punctuation and blanks alone.
_SIGNS = re.compile(r"[\d\s!-/:-@\[-`{-~]*")

PICTURE_MATCH = Match(slope=20.0, line=0.7)
"""Of frames of one of 37 real files 59 % of the pairs lie above the line, of frames of two files 1.1 %. The
slope is chosen, so that .6 and .8 score .12 and .88."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A property of pixels that no class of ImageNet stands for.

    Attributes:
        phrase, weight: words for such a picture, and their weight beside the classes' vector, of length 1.
        holds: pictures (n, h, w, 3) uint8 to (n,) bool.
    """

    phrase: str
    weight: float
    holds: Callable[[NDArray[np.uint8]], NDArray[np.bool_]]


def _contrast(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """(n,) standard deviation of the most varied channel, 0–128; of every fourth pixel both ways."""
    return np.asarray(images[:, ::4, ::4].std((1, 2)).max(1))


def _is_colourless(images: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether nearly all pixels are grey and differ: a road is grey without being an old film."""
    few = images[:, ::4, ::4].astype(np.int16)
    grey = (few.max(-1) - few.min(-1) < 16).mean((1, 2)) > 0.97
    return np.asarray(grey & (_contrast(images) > 26))


def _is_blank(images: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether a picture has one colour: its classification is noise, and would match any query."""
    return _contrast(images) < 8


FACTS = (
    Fact("an old black and white film", 0.5, _is_colourless),
    Fact("a blank picture", 2.0, _is_blank),
)
"""Their vectors are stored with those of the classes, in this order."""


class ConseEncoder(OnDevice):
    """A frozen encoder of frames and texts, a :class:`moviola.encoders.contract.PictureEncoder`.

    Attributes:
        frame_size: the whole picture, stretched to a square.
        sentences: the encoder of its texts in English, and of all texts where ``foreign`` is None.
        foreign: that of its other texts, in the same space.
    """

    picture_match = PICTURE_MATCH

    id = CONSE
    frame_size = FrameSize(PIXELS, PIXELS, "stretch")
    curve: Mapping[str, float] = CURVE

    def __init__(self, choice: DeviceChoice) -> None:
        self._choice = choice
        self.sentences = open_sentence_encoder(MINILM, choice)
        self._vectors = Weights.stored(CLASSES_FOLDER / "vectors.safetensors")

    def __repr__(self) -> str:
        return f"ConseEncoder({self.id!r}, revision={self.revision!r}, dim={self.dim})"

    @cached_property
    def revision(self) -> str:
        """16 hex digits that change with the weights of both networks and with the classes' vectors."""
        facts = [(fact.phrase, fact.weight) for fact in FACTS]
        parts = (packaged_revision(NETWORK_FOLDER), fingerprint(CLASSES_FOLDER), self.sentences.revision)
        return hashlib.blake2b(repr((parts, TEMPERATURE, facts)).encode(), digest_size=8).hexdigest()

    @property
    def dim(self) -> int:
        """Length of a feature vector, that of a sentence's."""
        return self.sentences.dim

    @cached_property
    def match(self) -> Match:
        """Calibration of the cosine of a text with a frame, against those with the classes."""
        classes = self._vectors.array("classes")
        return Match(
            MATCH_SLOPE, MATCH_LINE, centred=True, references=_unit(classes), by_phrases=True,
            certainty=MATCH_CERTAINTY, nearest=MATCH_NEAREST, unknown=MATCH_UNKNOWN,
        )  # fmt: skip

    def encode_frames(self, images: NDArray[np.uint8]) -> Floats:
        """Features (n, dim) float32 of frames, each of length 1."""
        return self.encode_pictures(images)[0]

    @property
    def picture_dim(self) -> int:
        """Length of a vector by which pictures are compared with each other."""
        return CHANNELS // FOLDED

    def encode_pictures(self, images: NDArray[np.uint8]) -> tuple[Floats, Floats]:
        """Both features of frames, (n, dim) and (n, picture_dim) float32, each of length 1."""
        check_frames(images, self.frame_size, self.id)
        features = np.empty((len(images), self.dim), dtype=np.float32)
        pictures = np.empty((len(images), self.picture_dim), dtype=np.float32)
        step = self._choice.batch_size
        for start in range(0, len(images), step):
            own, rows = images[start : start + step], slice(start, start + step)
            pooled, probabilities = self._seen(own)
            # Each by itself: the last bits of a product depend on how many are multiplied together.
            seen = _unit(np.matmul(probabilities[:, None], self._vectors.array("classes"))[:, 0])
            for fact, vector in zip(FACTS, self._vectors.array("facts"), strict=True):
                seen += fact.weight * fact.holds(own)[:, None] * vector
            features[rows], pictures[rows] = _unit(seen), _unit(_folded(pooled))
        return features, pictures

    def reader_of(self, text: str) -> ConseReader:
        """The reader of a text, by its language (:class:`~moviola.encoders.contract.Polyglot`)."""
        return self._english if self._reads_as_english(text) else self._other

    def _reads_as_english(self, text: str) -> bool:
        return self.foreign is None or is_english(text)

    # Each is one object, since vectors of texts are kept by reader (:mod:`moviola.encoders.kept_texts`).
    @cached_property
    def _english(self) -> ConseReader:
        return ConseReader(self.sentences, lambda rows: self._drawn(rows, DRAWN_ENGLISH), self.match)

    @cached_property
    def _as_it_is(self) -> ConseReader:
        return ConseReader(self.sentences, self._centred, self.match)

    @cached_property
    def _other(self) -> ConseReader:
        assert self.foreign is not None
        match = replace(
            self.match, slope=FOREIGN_SLOPE, line=FOREIGN_LINE, certainty=FOREIGN_CERTAINTY, by_phrases=False,
            nearest=0.0, unknown=0.0,
        )  # fmt: skip
        return ConseReader(self.foreign, self._drawn, match)

    def encode_text(self, texts: Sequence[str]) -> Floats:
        """Features (n, dim) float32 of texts, each of length 1 and by the reader of its language, in English
        as they are: models have learnt from these.
        """
        texts = check_texts(texts)
        readers = [self._as_it_is if self._reads_as_english(text) else self._other for text in texts]
        known: dict[str, Floats] = {}
        for reader in dict.fromkeys(readers):
            own = [text for text, its in zip(texts, readers, strict=True) if its == reader]
            known |= dict(zip(own, reader.encode_text(own), strict=True))
        return np.array([known[text] for text in texts], np.float32).reshape(-1, self.dim)

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages of the sentence encoder; empty where another one reads the others."""
        return self.sentences.languages if self.foreign is None else ()

    def knows(self, text: str) -> bool:
        """Whether a text means something (:class:`~moviola.encoders.contract.TextJudge`)."""
        return self.reader_of(text).knows(text)

    def has_word(self, word: str, *, english: bool = False) -> bool:
        """Whether a word is one token (:class:`~moviola.encoders.contract.TextJudge`)."""
        if self.sentences.has_word(word):
            return True
        return not english and self.reader_of(word).sentences.has_word(word)

    def encode_tokens(self, texts: Sequence[str]) -> list[Floats]:
        """Features of the tokens of texts, of length 1, each (tokens + 1, dim) float32. A text that is not
        English has one token, itself: tokens of e5 do not lie in this space.
        """
        texts = check_texts(texts)
        rows = dict(zip(texts, self.sentences.encode_tokens(texts), strict=True))
        return [
            self._centred(np.concatenate([_unit(rows[text][:-1]), rows[text][-1:]]))
            if self.reader_of(text).sentences is self.sentences
            else self.encode_text([text, text])
            for text in texts
        ]

    @cached_property
    def foreign(self) -> SentenceEncoder | None:
        return open_bridge(self.sentences, self._choice)

    def _centred(self, sentences: Floats) -> Floats:
        return _unit(sentences - self._vectors.array("mean"))

    def _drawn(self, sentences: Floats, by: float = DRAWN) -> Floats:
        """Sentences (n, d) as pictures are compared with, of length 1."""
        own = self._centred(sentences)
        # Each by itself: the last bits of a product depend on how many are multiplied together.
        cosines = np.matmul(own[:, None], self._known.T)[:, 0]
        least = np.partition(cosines, -NEAREST, axis=1)[:, -NEAREST, None]
        weights = np.where(cosines >= least, np.exp(np.float32(STEEP) * (cosines - 1)), np.float32(0))
        weights /= weights.sum(axis=1, keepdims=True)
        return _unit(own + np.float32(by) * np.matmul(weights[:, None], self._known)[:, 0])

    @cached_property
    def _known(self) -> Floats:
        """Vectors of the classes, and of texts about everything, (k, d)."""
        texts = self._centred(Weights.stored(ANCHORS).array("texts"))
        return np.concatenate([self._vectors.array("classes"), texts])

    @cached_property
    def _seen(self) -> Callable[[NDArray[np.uint8]], tuple[Floats, ...]]:
        """From frames to the layer before the classes (n, 1280), and the classes' probabilities (n, 1000)."""
        if self._choice.is_compiled:
            from moviola.compiled import Compiled, Source, cache_folder
            from moviola.encoders.graphs import classified_frames

            source = Source(
                name=f"{self.id} frames",
                revision=self.revision,
                build=lambda: classified_frames(_network_weights(), TEMPERATURE),
                threads=compute_threads(),
            )
            return Compiled(cache_folder(), source)
        require_torch(f"{self.id} on {self.device} in {self.precision}")
        from moviola.encoders.by_torch.modules import PRECISIONS, ClassifiedFrames, run

        network = ClassifiedFrames(_network_weights(), TEMPERATURE).eval().requires_grad_(False)
        module = network.to(self.device, PRECISIONS[self.precision])
        return lambda images: run(module, self.device, images)


@dataclass(frozen=True, slots=True)
class ConseReader:
    """A :class:`~moviola.encoders.contract.TextReader` by a sentence encoder in MiniLM's space."""

    sentences: SentenceEncoder
    centred: Callable[[Floats], Floats] = field(compare=False)
    match: Match = field(compare=False)

    def encode_text(self, texts: Sequence[str]) -> Floats:
        """Features (n, dim) float32 of texts, each of length 1."""
        return self.centred(self.sentences.encode_text(texts))

    def knows(self, text: str) -> bool:
        """Whether a text means something (:class:`~moviola.encoders.contract.TextJudge`): no class is a
        number.
        """
        return self.sentences.knows(text) and not _SIGNS.fullmatch(text)

    def has_word(self, word: str, *, english: bool = False) -> bool:
        """Whether a word is one token (:class:`~moviola.encoders.contract.TextJudge`)."""
        return not english and self.sentences.has_word(word)


def _network_weights() -> Weights:
    return Weights.stored(NETWORK_FOLDER / "model.safetensors")


def _folded(pooled: Floats) -> Floats:
    """(n, 320) of (n, 1280): square roots, so that no channel outweighs the others, four at a time with
    turning signs: an orthogonal projection, in which what all channels have in common cancels out.
    """
    signs = np.where(np.arange(FOLDED) % 2, -1, 1).astype(np.float32)
    return np.asarray(np.sqrt(pooled).reshape(len(pooled), -1, FOLDED) @ signs)


def _unit(rows: Floats) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-12), dtype=np.float32)
