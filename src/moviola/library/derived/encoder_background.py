"""Background texts of a library's encoders: texts about everything, encoded once.

``cache/background.npz`` holds their vectors by the visual encoder, ``cache/unrelated.npz`` what cosines the
sentence encoder gives them with each other, unless its checkpoint states that. Where a file is missing,
damaged, or of another encoder, it is made again when needed, and kept where the library may be written to.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import astuple, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from Stemmer import Stemmer

from moviola.errors import DataError, InvalidValue, LibraryError
from moviola.features import QueryFeatures
from moviola.files.sealed import opened_sealed, sealed_draft_of
from moviola.library.disk.encoders_in_use import LibraryEncoders
from moviola.library.disk.store import LibraryStore
from moviola.retrieval import Background, unrelated_queries
from moviola.retrieval.phrases import FUNCTION_WORDS
from moviola.retrieval.segments import normalised

if TYPE_CHECKING:
    from moviola.encoders import Match, UnrelatedCosines

__all__ = [
    "background_of",
    "calibrated",
    "kept",
    "text_vectors",
    "texts_among_segments",
    "unrelated_cosines",
    "unrelated_of",
]

Floats = NDArray[np.float32]

_ONE_IN_1000 = 0.999


def background_of(store: LibraryStore, encoders: LibraryEncoders | None = None) -> Background:
    """The background texts of a library that has a visual encoder, by its encoders or those that it had."""
    encoders = encoders or store.encoders
    encoder = encoders.visual
    assert encoder is not None
    match = encoder.match
    nothing = np.zeros(encoder.dim, np.float32)
    centre = text_vectors(store, encoders).mean(axis=0) if match.centred else nothing
    return calibrated(Background(centre, match.slope, match.line, match.references), match)


def calibrated(background: Background, match: Match) -> Background:
    """The same background with another calibration of its encoder."""
    return replace(
        background, slope=match.slope, line=match.line, by_phrases=match.by_phrases,
        certainty=match.certainty, nearest=match.nearest, unknown=match.unknown,
    )  # fmt: skip


def text_vectors(store: LibraryStore, encoders: LibraryEncoders | None = None) -> Floats:
    """(m, d) float32, unit vectors of :func:`moviola.retrieval.unrelated_queries`; :class:`BrokenPlugin` for
    an encoder that returns something else.
    """
    from moviola.encoders import check_features

    texts, encoders = unrelated_queries(), encoders or store.encoders

    def encoded() -> Floats:
        encoder = encoders.visual_of_all
        assert encoder is not None
        rows = encoder.encode_text(texts)
        check_features(rows, (len(texts), encoder.dim), encoder.id)
        return normalised(rows)

    revision = encoders.settings.encoder_revision
    # While a change of encoder is under way both are asked for.
    file = "background.npz" if revision == store.settings.encoder_revision else "background-next.npz"
    return np.asarray(kept(store, file, "vectors", revision, encoded))


def kept(
    store: LibraryStore, file: str, name: str, revision: str, make: Callable[[], NDArray[Any]]
) -> NDArray[Any]:
    """An array in a file of the cache, made again where that is not of this encoder and these texts."""
    path = store.folder / "cache" / file
    recipe = f"{revision} {zlib.crc32(chr(10).join(unrelated_queries()).encode())}"
    with suppress(DataError), opened_sealed(path) as stored, np.load(stored) as arrays:
        if str(arrays["recipe"]) == recipe:
            return np.asarray(arrays[name])
    made = make()
    if not store.read_only:
        # Where it cannot be written, the next search makes it again.
        with suppress(InvalidValue), sealed_draft_of(path) as draft, draft.open("wb") as opened:
            np.savez(opened, allow_pickle=False, recipe=np.array(recipe), **{name: made})
    return made


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


def unrelated_of(store: LibraryStore) -> UnrelatedCosines:
    """What cosines the sentence encoder of a library, which has one, gives to unrelated texts."""
    from moviola.encoders import UnrelatedCosines

    encoder = store.encoders.sentences_of_all
    assert encoder is not None
    if encoder.unrelated is not None:
        return encoder.unrelated
    measure = partial(unrelated_cosines, encoder.encode_text)
    revision = store.settings.sentence_revision
    cosines = kept(store, "unrelated.npz", "cosines", revision, lambda: np.array(astuple(measure())))
    return UnrelatedCosines(*cosines.tolist())


def unrelated_cosines(encode: Callable[[Sequence[str]], Floats]) -> UnrelatedCosines:
    """What cosines a sentence encoder gives to texts, and to words, that have nothing to do with each other.

    Args:
        encode: n texts to (n, d) float32.
    """
    from moviola.encoders import UnrelatedCosines

    def cosines(texts: Sequence[str]) -> Floats:
        vectors = normalised(encode(texts))
        return np.asarray((vectors @ vectors.T)[np.triu_indices(len(vectors), 1)])

    texts, words = cosines(unrelated_queries()), cosines(_unrelated_words())
    return UnrelatedCosines(
        float(texts.mean()), float(np.quantile(texts, _ONE_IN_1000)), float(np.quantile(words, _ONE_IN_1000))
    )


def _unrelated_words() -> list[str]:
    """Words of the background texts that name something, one of each stem."""
    stem = Stemmer("english").stemWord
    words = (word for text in unrelated_queries() for word in re.findall(r"[a-z]{2,}", text.lower()))
    return sorted({stem(word): word for word in words if word not in FUNCTION_WORDS}.values())
