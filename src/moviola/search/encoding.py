"""Texts of a query as the stages, and the comparison of meanings, read them: all in few batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from moviola.encoders import FrameTextEncoder, check_features
from moviola.encoders.contract import Polyglot, TextJudge, TextReader
from moviola.encoders.kept_texts import KeptTexts
from moviola.features import QueryFeatures
from moviola.library import calibrated
from moviola.retrieval import Background, Calibration, Retrieval
from moviola.retrieval.phrases import known_phrases, named_words
from moviola.retrieval.segments import normalised
from moviola.search.meaning import Meaning
from moviola.search.understanding import says_only_what_not

__all__ = ["NOTHING", "EncodedText", "encoded_texts"]

Floats = NDArray[np.float32]

NOTHING = Calibration(1.0, -50.0)
"""Of a text that says nothing to the encoder, or only what is not wanted."""


@dataclass(frozen=True, slots=True)
class EncodedText:
    """A text, encoded.

    Attributes:
        features: as the stages read it; None: pictures are not searched.
        scale: calibration of its cosines, if it is read by phrases.
        sentence: (d,) float32, its unit vector among sentences; None: not searched by meaning.
        meaning: what cosines with that are worth; None: not searched by meaning.
    """

    features: QueryFeatures | None = None
    scale: Calibration | None = None
    sentence: Floats | None = None
    meaning: Meaning | None = None


def encoded_texts(
    texts: Sequence[str],
    retrieval: Retrieval | None,
    encoder: FrameTextEncoder | None,
    meaning: Meaning | None,
    kept: KeptTexts,
) -> list[EncodedText]:
    """Texts, encoded.

    Args:
        kept: features of texts that were encoded before.
        retrieval, encoder: the stages, and the encoder of pictures; None: pictures are not searched.
        meaning: of the library's sentences; None: meanings are not compared.

    Raises:
        BrokenPlugin: the encoder returned something else than features.
    """
    seen: Iterable[tuple[QueryFeatures | None, Calibration | None]] = [(None, None)] * len(texts)
    if texts and retrieval is not None:
        background = retrieval.background
        assert encoder is not None and background is not None
        by_phrases = background.by_phrases and retrieval.in_encoder_space
        if by_phrases:
            seen = list(_by_phrases(texts, encoder, background, kept))
        else:
            seen = _whole(texts, encoder, retrieval, kept)
    # Behind phrases, which have the texts with them: an encoder of both goes through its weights once.
    meant = {} if meaning is None or not texts else _meanings(texts, meaning, kept)
    return [EncodedText(*own, *meant.get(text, (None, None))) for own, text in zip(seen, texts, strict=True)]


def _whole(
    texts: Sequence[str], encoder: FrameTextEncoder, retrieval: Retrieval, kept: KeptTexts
) -> Iterable[tuple[QueryFeatures, Calibration | None]]:
    refiner = retrieval.refiner
    tokens = retrieval.stage1.needs_tokens or (refiner is not None and refiner.needs_tokens)
    rows = (kept.tokens if tokens else kept.vectors)(encoder, texts)
    for text, row in zip(texts, rows, strict=True):
        check_features(np.atleast_2d(row), (len(row) if tokens else 1, encoder.dim), encoder.id)
        yield QueryFeatures.of([""], [text], [row]), NOTHING if says_only_what_not(text) else None


def _by_phrases(
    texts: Sequence[str], encoder: FrameTextEncoder, background: Background, kept: KeptTexts
) -> Iterable[tuple[QueryFeatures, Calibration]]:
    """Texts by their phrases, each by the reader of its language, which encodes all of them at once."""
    readers: list[TextReader] = [encoder] * len(texts)
    scales = [background] * len(texts)
    if isinstance(encoder, Polyglot):
        readers = [encoder.reader_of(text) for text in texts]
        # The background has the encoder's own calibration.
        scales = [
            background if reader.match is encoder.match else calibrated(background, reader.match)
            for reader in readers
        ]
    weights = [
        known_phrases(text, partial(_knows, reader)) if scale.by_phrases else {text: 1.0}
        for text, reader, scale in zip(texts, readers, scales, strict=True)
    ]
    vectors: dict[TextReader, Mapping[str, Floats]] = {}
    for reader in dict.fromkeys(readers):
        own = (phrases for phrases, its in zip(weights, readers, strict=True) if its == reader)
        wanted = list(dict.fromkeys(phrase for phrases in own for phrase in phrases))
        vectors[reader] = dict(zip(wanted, kept.vectors(reader, wanted), strict=True))
    for text, reader, own_scale, phrases in zip(texts, readers, scales, weights, strict=True):
        rows = np.stack([vectors[reader][phrase] for phrase in phrases])
        check_features(rows, (len(phrases), encoder.dim), encoder.id)
        unknown = _unknown(reader, text) if own_scale.unknown else 0
        vector, scale = own_scale.of_phrases(rows, list(phrases.values()), unknown)
        says = _knows(reader, text) and not says_only_what_not(text)
        features = QueryFeatures.of([""], [text], [vector]).among_segments(vector[None])
        yield features, scale if says else NOTHING


def _meanings(texts: Sequence[str], meaning: Meaning, kept: KeptTexts) -> dict[str, tuple[Floats, Meaning]]:
    """Unit vectors of the texts whose meanings count, and what cosines with each are worth."""
    by_text = {text: meaning.of_query(text) for text in texts if not says_only_what_not(text)}
    meant: dict[str, tuple[Floats, Meaning]] = {}
    for one in dict.fromkeys(by_text.values()):
        own = [text for text, its in by_text.items() if its is one and one.reads_query(text)]
        if own:
            vectors = normalised(np.array(kept.vectors(one.reader, own)))
            meant |= {text: (vector, one) for text, vector in zip(own, vectors, strict=True)}
    return meant


def _unknown(reader: TextReader, text: str) -> int:
    """How many words of a text that name something are not one token of who reads it."""
    if not isinstance(reader, TextJudge):
        return 0
    return sum(not reader.has_word(word.lower()) for word in named_words(text))


def _knows(reader: TextReader, text: str) -> bool:
    """Whether a text says anything to who reads it; most know all letters."""
    return not isinstance(reader, TextJudge) or reader.knows(text)
