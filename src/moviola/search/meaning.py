"""What the meaning of texts is worth: cosines of sentences as probabilities, where the encoder reads them.

A cosine is compared with those of unrelated texts (:class:`moviola.encoders.UnrelatedCosines`), since
encoders differ in what they give to texts that have nothing to do with each other. Where nobody measured an
encoder, meaning alone never makes a moment more than possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from moviola.library import LibraryStore, unrelated_of
from moviola.retrieval import Calibration
from moviola.types import STRONG
from moviola.words.english import is_english

if TYPE_CHECKING:
    from moviola.encoders import SentenceEncoder, UnrelatedCosines

__all__ = ["EXACT", "Meaning"]

EXACT = 0.75
"""Least score of a line that holds all words of a query; a similar meaning always scores less."""

# Distance between a score and a limit that it does not reach.
_BELOW = 0.01


@dataclass(frozen=True, eq=False)
class Meaning:
    """Calibration of a sentence encoder's cosines, of a query with lines and with names.

    Attributes:
        encoder: the sentence encoder, which has read the lines.
        reader: the encoder that reads the query, in the same space.
        unrelated: cosines that it gives to unrelated texts.
        foreign: the meaning of queries that are not English, where another encoder reads these.
    """

    encoder: SentenceEncoder
    reader: SentenceEncoder
    unrelated: UnrelatedCosines
    foreign: Meaning | None = None

    @classmethod
    def of(cls, store: LibraryStore) -> Meaning | None:
        """Of a library's sentence encoder; None without one."""
        encoder, bridge = store.encoders.sentences, store.encoders.bridge
        if encoder is None:
            return None
        foreign = None
        if bridge is not None:
            assert bridge.unrelated is not None
            foreign = cls(encoder, bridge, bridge.unrelated)
        return cls(encoder, encoder, unrelated_of(store), foreign)

    def of_query(self, text: str) -> Meaning:
        """The meaning of a query, by its language."""
        return self if self.foreign is None or is_english(text) else self.foreign

    @property
    def measured(self) -> bool:
        """Whether the scale was measured for the encoder."""
        return self.reader.match.measured

    def line_scores(self, cosines: NDArray[np.floating]) -> NDArray[np.float64]:
        """Probabilities (n,) float64 that lines say what is asked, of their cosines (n,) with the query."""
        match, chance = self.reader.match, self.unrelated
        slope = match.slope / max(chance.texts - chance.mean, _BELOW)
        scale = Calibration(slope, -slope * chance.mean - match.slope * match.line)
        limit = EXACT if self.measured else STRONG
        return np.minimum(scale.scores(np.asarray(cosines, np.float64)), limit - _BELOW)

    def name_shares(self, cosines: NDArray[np.floating]) -> NDArray[np.float64]:
        """How much of a name matches, (n,) float64, above 0 only beyond the cosine that one in a thousand
        pairs of unrelated words reaches, of cosines (n,) of the words of names with the query.
        """
        return np.asarray(
            (cosines - self.unrelated.words) / max(1 - self.unrelated.words, _BELOW), np.float64
        )

    def reads_query(self, text: str) -> bool:
        """Whether the reader of queries reads one."""
        return _reads(self.reader, text)

    def reads(self, text: str, language: str) -> bool:
        """Whether the encoder reads a line in a language, empty where it is not known, see
        :meth:`moviola.encoders.SentenceEncoder.reads`.
        """
        return _reads(self.encoder, text, language)


# Lines are asked for again and again. An encoder that nobody uses any more goes, with what it has read.
_READ: WeakKeyDictionary[SentenceEncoder, dict[tuple[str, str], bool]] = WeakKeyDictionary()
_MOST_READ = 20_000


def _reads(encoder: SentenceEncoder, text: str, language: str = "") -> bool:
    known, key = _READ.setdefault(encoder, {}), (text, language)
    if (reads := known.get(key)) is None:
        if len(known) >= _MOST_READ:
            known.clear()
        reads = known[key] = encoder.reads(text, language)
    return reads
