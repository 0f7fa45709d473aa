"""Similarity of a query to every caption of a world, for pseudo training sets.

Two ways. :class:`WordSimilarity` compares the slots behind the texts, in plain words: it follows the rule
of relevance closely, which is kinder than real data. :class:`SentenceSimilarity` compares the texts
themselves by a sentence encoder, as TVR-Ranking (section 3.3) and SPR do with SimCSE.
``benchmarks/pseudo_similarity.py`` measures what differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from moviola.datasets.building.nearest import TextEncoder, unit_rows

__all__ = ["SentenceSimilarity", "WordSimilarity"]


class WordSimilarity:
    """Cosine of tf-idf vectors of words and word pairs between a text and n captions.

    Synonyms in the captions are replaced by one word.
    """

    def __init__(self, captions: Sequence[str]) -> None:
        words = [_words(text) for text in captions]
        holding = Counter(word for text in words for word in set(text))
        self._place = {word: n for n, word in enumerate(sorted(holding))}
        counts = np.array([holding[word] for word in self._place], dtype=np.float64)
        self._rarity = np.log((1 + len(captions)) / (1 + counts)) + 1
        self._captions = np.stack([self._vector(text) for text in words]) if words else np.zeros((0, 0))

    def _vector(self, words: Iterable[str]) -> NDArray[np.float64]:
        vector = np.zeros(len(self._place))
        for word in words:
            if word in self._place:
                vector[self._place[word]] += self._rarity[self._place[word]]
        return vector / max(float(np.linalg.norm(vector)), 1e-12)

    def to(self, text: str) -> NDArray[np.float64]:
        """Similarity of a text to every caption, (n,) in [0, 1]."""
        similarities: NDArray[np.float64] = self._captions @ self._vector(_words(text))
        return similarities


def _words(text: str) -> list[str]:
    """Words and pairs of neighbours: only the pairs hold which thing has which colour."""
    words = text.lower().replace(".", "").split()
    return [*words, *map(" ".join, pairwise(words))]


class SentenceSimilarity:
    """Cosine of sentence embeddings between a text and n captions; one below 0 counts as 0."""

    def __init__(self, captions: Sequence[str], encoder: TextEncoder) -> None:
        # Equal captions are compared once: a product rounds the same row differently by where it stands.
        row_of = {text: row for row, text in enumerate(dict.fromkeys(captions))}
        self._row = np.array([row_of[text] for text in captions], dtype=np.int64)
        self._captions = unit_rows(encoder.encode_text(list(row_of))).astype(np.float64)
        self._encoder = encoder

    def to(self, text: str) -> NDArray[np.float64]:
        """Similarity of a text to every caption, (n,) in [0, 1] but for rounding."""
        (vector,) = unit_rows(self._encoder.encode_text([text])).astype(np.float64)
        similarities: NDArray[np.float64] = np.maximum(self._captions @ vector, 0.0)
        return similarities[self._row]
