"""BM25 of cues by counts of several catalogues, as SQLite's full-text index computes it by its own.

How much a word weighs depends on how many cues there are, how long they are, and how many hold it. Catalogues
that are searched as one exchange these counts first, then each scores its cues by the sum of all.

Robertson and Zaragoza 2009, *The Probabilistic Relevance Framework: BM25 and Beyond*, with k1 = 1.2 and
b = .75; https://www.sqlite.org/fts5.html#the_bm25_function says what SQLite counts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["OF_LETTER", "OF_TERM", "WordCounts", "bounds", "totals_of"]

_K1, _B = 1.2, 0.75
# Of a word that half of the cues hold.
_LEAST_WEIGHT = 1e-6
# What SQLite's tokenizer ``ascii`` takes as one token.
_TOKEN = r"[0-9A-Za-z\u0080-\U0010ffff]+"
# A pair of letters says more than a letter.
OF_TERM, OF_LETTER = 1.0, 0.2
"""What a term counts among a cue's terms, and among its letters."""


@dataclass(frozen=True, slots=True)
class WordCounts:
    """What BM25 counts over all cues of one catalogue, or of several.

    Attributes:
        cues: number of cues.
        tokens: number of terms and letters that they hold together.
        holding: number of cues that hold each phrase of a query, in its order.
    """

    cues: int
    tokens: int
    holding: tuple[int, ...]

    def __add__(self, other: WordCounts) -> WordCounts:
        holding = tuple(own + its for own, its in zip(self.holding, other.holding, strict=True))
        return WordCounts(self.cues + other.cues, self.tokens + other.tokens, holding)

    @property
    def weights(self) -> list[float]:
        """Of each phrase, > 0."""
        known = (math.log((self.cues - own + 0.5) / (own + 0.5)) for own in self.holding)
        return [weight if weight > 0 else _LEAST_WEIGHT for weight in known]

    @property
    def average(self) -> float:
        """Tokens of a cue."""
        return self.tokens / self.cues if self.cues else 0.0

    def scorer(self, wanted: Sequence[tuple[str, bool]]) -> Callable[[str, str], float]:
        """Gives BM25 of a cue by its terms and its letters, > 0 if it holds any phrase.

        ``wanted`` are the phrases of the query in their order, each a token, and whether it counts among
        letters alone.
        """
        phrases = [(weight, *phrase) for weight, phrase in zip(self.weights, wanted, strict=True)]
        average = self.average

        def score(terms: str, letters: str) -> float:
            own, its = (Counter(re.findall(_TOKEN, text)) for text in (terms, letters))
            long = _K1 * (1 - _B + _B * float(own.total() + its.total()) / average)
            total = 0.0
            for weight, token, of_letters in phrases:
                # One after the other, as SQLite adds them.
                often = 0.0
                for _ in range(0 if of_letters else own[token]):
                    often += OF_TERM
                for _ in range(its[token]):
                    often += OF_LETTER
                total += weight * ((often * (_K1 + 1.0)) / (often + long))
            return total

        return score


def bounds(own: WordCounts, among: WordCounts) -> tuple[float, float]:
    """The least and the largest factor between scores of one's own cues by all counts, and by one's own."""
    pairs = zip(own.weights, among.weights, own.holding, strict=True)
    heavier = [all_weight / weight for weight, all_weight, holding in pairs if holding]
    longer = among.average / own.average if own.average else 1.0
    return min(heavier, default=1.0) * min(longer, 1.0), max(heavier, default=1.0) * max(longer, 1.0)


def totals_of(record: bytes) -> tuple[int, int]:
    """Numbers of rows and of tokens of a full-text index of SQLite, from its record of averages: the number
    of rows, and of the tokens of each column, of 7 bits a byte.
    """
    numbers, value = [], 0
    for byte in record:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return (numbers[0], sum(numbers[1:])) if numbers else (0, 0)
