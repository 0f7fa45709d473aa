"""Steps of building a ranked data set, from annotations and a sentence encoder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from moviola.errors import InvalidValue
from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.datasets.building.chat import ChatEndpoint
from moviola.study.datasets.building.imprecise import (
    THRESHOLD,
    Check,
    Outcome,
    by_rules,
    load_name_finder,
    make_imprecise,
    read_review,
    with_captions,
    write_review,
)
from moviola.study.datasets.building.nearest import TextEncoder, embed, nearest, unit_rows
from moviola.study.datasets.building.person_names import learn_names
from moviola.study.datasets.building.phrases import Phrase, chunker_with_spacy
from moviola.study.datasets.building.pseudo import pseudo_training_set
from moviola.study.datasets.building.relevant_pairs import RelevantPairs, mark_of, parts_of, relevant_pairs
from moviola.types import several

__all__ = [
    "Rewritten", "find_candidates", "find_relevant_pairs", "pseudo_pairs", "rewrite_captions",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The result of rewriting: moments with a rewritten caption, and the rewrites by caption.

    ``captions`` and ``reviewed`` count different captions to rewrite, and rewrites by reviewers.
    """

    moments: Annotations
    outcome: Outcome
    captions: int
    reviewed: int

    @property
    def changed(self) -> int:
        """Number of captions whose rewrite differs."""
        return sum(old != new for old, new in self.outcome.done.items())


# The rules need no pause for an endpoint to answer.
_BATCH_BY_RULES = 512


def rewrite_captions(
    found: Annotations,
    encoder: TextEncoder,
    journal: Path,
    review: Path,
    *,
    types: Iterable[str] = (),
    endpoint: ChatEndpoint | None = None,
    names: str = "spacy",
    threshold: float = THRESHOLD,
    batch: int = 20,
) -> Rewritten:
    """Replace names in captions by general nouns (section 3.1); called again, it continues where it was.

    Args:
        found: moments with precise captions; names are learned from all of them.
        encoder: measures whether a rewrite keeps the meaning.
        journal: JSON lines with every rewrite that passed; they are checked again. Those of rules or a model
            are not continued by another; which endpoint serves the model does not matter.
        review: CSV with failures; entries filled in by people count.
        types: only moments of these types; all by default.
        endpoint: the chat model; without one the rules rewrite.
        names: finder of remaining names, see :mod:`moviola.study.datasets.building.imprecise`.
        threshold: minimum similarity of a caption and its rewrite.

    Raises:
        DataError: the journal or the review file is damaged.
        InvalidValue: a file cannot be written, types that no moment has, a threshold that is no similarity,
            ``batch`` < 1, unknown ``names``, or rewrites of another model, or of rules, in the journal.
        MissingDependency: the finder of names is not installed.
    """
    if not -1 <= threshold <= 1:
        raise InvalidValue(f"threshold {threshold}: a similarity lies between -1 and 1")
    lexicon = learn_names(found.captions)
    if wanted := several("types", types):
        found = _of_types(found, wanted)
    decided = read_review(review) if review.exists() else {}
    outcome = make_imprecise(
        found.captions,
        endpoint.rewrite if endpoint else by_rules(lexicon),
        Check(encoder, load_name_finder(names, lexicon), threshold),
        journal,
        reviewed=decided,
        batch=batch if endpoint else _BATCH_BY_RULES,
        by=f"model {endpoint.model}" if endpoint else "rules",
    )
    write_review(outcome.failed, review, decided)
    return Rewritten(with_captions(found, outcome.done), outcome, len(set(found.captions)), len(decided))


def _of_types(found: Annotations, wanted: Sequence[str]) -> Annotations:
    """The moments of some types; :class:`InvalidValue` where there is none."""
    kept = np.isin(found.types, wanted)
    if not kept.any():
        known = sorted({type for type in found.types if type})
        there = f"there are {', '.join(known)}" if known else "the moments have no types; leave it out"
        raise InvalidValue(f"types {', '.join(wanted)}: no moment of {found.name} has one; {there}")
    return found.select(kept)


def pseudo_pairs(
    found: Annotations,
    encoder: TextEncoder,
    top: int,
    *,
    queries: Sequence[str] | None = None,
    held_out: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """A pseudo training set (section 3.3): every query with its ``top`` most similar moments.

    Args:
        found: the pool, moments with imprecise captions.
        top: moments per query, N of the paper, >= 1.
        queries: texts; by default the captions of the pool.
        held_out: texts of val and test queries, which are left out.

    Returns:
        entries in TVR-Ranking's pair-file form.
    """
    rows = unit_rows(embed([*found.captions, *several("queries", queries or ())], encoder))
    pool, query_rows = rows[: len(found)], rows[len(found) :]
    given = None if queries is None else (queries, query_rows)
    return pseudo_training_set(found, pool, top, queries=given, held_out=held_out)


def find_candidates(
    queries: Mapping[str, str],
    found: Annotations,
    encoder: TextEncoder,
    top: int,
    *,
    drawn: int = 0,
    seed: int = 0,
) -> list[Pair]:
    """The ``top`` moments most similar to each query (id to text), to be judged (section 3.2).

    Behind them ``drawn`` of the other moments, at random by ``seed``, each at its rank among all: what the
    paper's study of relevance and similarity adds to 60 (appendix B.3). A pair is named ``QUERY:MOMENT``.

    Raises:
        InvalidValue: an unknown duration of a video, an id of two moments, ``top`` or a ``seed`` below its
            least value, or fewer other moments than are to be drawn.
    """
    others = len(found) - top
    if drawn < 0 or seed < 0 or drawn > max(others, 0):
        raise InvalidValue(
            f"drawn={drawn}, seed={seed}: give numbers from 0, and at most the {others} others"
        )
    found.require_durations()
    found.require_different_ids()
    rows = unit_rows(embed([*queries.values(), *found.captions], encoder))
    pairs, draw = [], np.random.default_rng(seed)
    depth = len(found) if drawn else top
    closest = zip(*nearest(rows[: len(queries)], rows[len(queries) :], depth), strict=True)
    for (query_id, query), (places, values) in zip(queries.items(), closest, strict=True):
        ranks = np.arange(min(top, len(places)))
        if drawn:
            ranks = np.append(ranks, np.sort(draw.choice(np.arange(top, depth), drawn, replace=False)))
        for rank, place, value in zip(
            (ranks + 1).tolist(), places[ranks].tolist(), values[ranks].tolist(), strict=True
        ):
            moment = found.pair(place)
            name, (start, end) = f"{query_id}:{moment.pop('pair_id')}", moment.pop("timestamp")
            similarity = round(value, 6)
            pair = Pair(
                name, query_id, query, start=start, end=end, similarity=similarity, rank=rank, **moment
            )
            pairs.append(pair)
    return pairs


def find_relevant_pairs(
    captions: Sequence[str], encoder: TextEncoder, *, phi: str = "np-vp", theta: float = 0.7
) -> RelevantPairs:
    """Potentially relevant pairs of captions for training with +PR or +SL.

    See :mod:`moviola.study.datasets.building.relevant_pairs`.

    Args:
        encoder: returns vectors of length 1.
        phi: compared parts of captions: ``sent``, ``vp`` or ``np-vp``.
        theta: minimum Phi of a pair, in (0, 1].

    Raises:
        InvalidValue: an unknown ``phi``, or ``theta`` outside its range.
        MissingDependency: phrases are needed, and spaCy is not installed.
    """
    phrases: list[list[Phrase]] = [[]] * len(captions)  # of whole sentences none is needed
    texts, offsets = parts_of(captions, phi, phrases if phi == "sent" else chunker_with_spacy()(captions))
    found = relevant_pairs(embed(captions, encoder), embed(texts, encoder), offsets, theta)
    return replace(found, mark=mark_of(captions))
