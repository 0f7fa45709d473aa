"""Assignment of batches to raters, and outcomes; without a file, so that it can be tested by brute force.

A rater holds a batch while judging it; moments that two raters hold or have judged are not given to a third
as long as the two may agree (:mod:`moviola.study.datasets.building.consensus`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from moviola.study.datasets.building.candidate_pairs import Pair, next_pairs
from moviola.study.datasets.building.consensus import Rating, agree, consensus

__all__ = ["Answer", "Outcome", "Standing", "due_pairs", "hidden_order", "missing", "next_batch", "outcome"]

Standing = Literal["open", "agreed", "discarded", "set aside"]
"""State of a moment: more ratings needed; agreed; four raters disagree; too many raters skipped it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One rater's answer on one pair: a level, or None if it was skipped."""

    pair_id: str
    rater: str
    level: int | None


@dataclass(frozen=True)
class Outcome:
    """The outcome: agreed levels and the state of each pair by its id, and all ratings in their order."""

    agreed: Mapping[str, int]
    standing: Mapping[str, Standing]
    ratings: Sequence[Rating]


def missing(levels: Sequence[int], raters: int) -> int:
    """Number of ratings that a moment still needs; ``raters`` is 2, or 4 from the beginning, or 1 alone.

    >>> missing([], 2), missing([3], 2), missing([3, 4], 2), missing([1, 4], 2), missing([1, 4, 2, 2], 2)
    (2, 1, 0, 2, 0)
    """
    if raters == 1 or len(levels) < raters:
        return raters - len(levels)
    return 0 if len(levels) == 2 and agree(levels) is not None else 4 - len(levels)


def outcome(pairs: Iterable[Pair], answers: Iterable[Answer], raters: int) -> Outcome:
    """Outcome by the rule of :func:`~moviola.study.datasets.building.consensus.consensus`, for complete
    moments.

    With one rater per moment, a single rating counts. A moment skipped by as many raters as should judge it
    is set aside, so that it keeps no batch open.
    """
    given = list(answers)
    levels, passed = _by_pair(given)
    ratings = [Rating(one.pair_id, one.rater, one.level) for one in given if one.level is not None]
    complete = {pair for pair, known in levels.items() if not missing(known, raters)}
    if raters == 1:
        agreed = {pair: levels[pair][0] for pair in complete}
    else:
        agreed = consensus(rating for rating in ratings if rating.pair_id in complete).agreed

    def standing(pair: str) -> Standing:
        if pair in complete:
            return "agreed" if pair in agreed else "discarded"
        return "set aside" if passed[pair] >= raters else "open"

    return Outcome(agreed, {pair.pair_id: standing(pair.pair_id) for pair in pairs}, ratings)


def _by_pair(answers: Iterable[Answer]) -> tuple[dict[str, list[int]], Counter[str]]:
    """By pair id: its levels in the order of the answers, and the number of raters who skipped it."""
    levels: dict[str, list[int]] = defaultdict(list)
    for answer in answers:
        if answer.level is not None:
            levels[answer.pair_id].append(answer.level)
    return levels, Counter(answer.pair_id for answer in answers if answer.level is None)


def due_pairs(pairs: Iterable[Pair], found: Outcome, *, last: int, threshold: float) -> list[Pair]:
    """First batches, and second ones of queries whose first one is complete and ends with relevant moments.

    ``last`` and ``threshold`` as in
    :func:`~moviola.study.datasets.building.candidate_pairs.needs_second_batch`.
    """
    pairs = list(pairs)
    first = [pair for pair in pairs if pair.batch == 1]
    unfinished = {pair.query_id for pair in first if found.standing[pair.pair_id] == "open"}
    finished = (pair for pair in pairs if pair.query_id not in unfinished)
    return first + next_pairs(finished, found.agreed, last=last, threshold=threshold)


def hidden_order(seed: int, *names: str) -> bytes:
    """A sort key that reveals neither rank nor system; the same for the same seed and names."""
    return sha256("\0".join((str(seed), *names)).encode("utf-8", "surrogatepass")).digest()


def next_batch(
    due: Iterable[Pair],
    answers: Iterable[Answer],
    held: Mapping[str, Collection[str]],
    rater: str,
    *,
    raters: int,
    seed: int,
) -> list[Pair]:
    """The pairs of the next batch of a rater, of those ``due`` now; empty if nothing is left.

    A batch has one query. The fullest come first, so that disputed moments wait until there are some; of
    these the ones already begun, so that agreement is reached early; else the seed decides the order.
    ``held`` are, by pair id, other raters who hold it and have not answered.
    """
    given = list(answers)
    levels, passed = _by_pair(given)
    mine = {answer.pair_id for answer in given if answer.rater == rater}
    begun: set[tuple[str, int]] = set()
    batches: dict[tuple[str, int], list[Pair]] = defaultdict(list)
    for pair in due:
        name, key = pair.pair_id, (pair.query_id, pair.batch)
        if levels[name] or held.get(name):
            begun.add(key)
        free = missing(levels[name], raters) - len(held.get(name, ()))
        if name not in mine and free > 0 and passed[name] < raters:
            batches[key].append(pair)
    if not batches:
        return []
    best = min(
        batches, key=lambda key: (-len(batches[key]), key not in begun, hidden_order(seed, *map(str, key)))
    )
    return sorted(batches[best], key=lambda pair: hidden_order(seed, rater, pair.pair_id))
