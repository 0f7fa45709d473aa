"""Candidate moments from evidence: a composed query is a fold of small functions over its parts' evidence.

- A *sequence* is a chain of one moment per step, in order, in one video. Each step is searched for
  everywhere, and again in the videos of the other steps' candidates. A step follows another if neither
  reaches over the middle of the other and the pause is at most the gap. A chain is as strong as its weakest
  step: its score is the lowest of theirs, and of equal chains the one with the larger sum of matching scores
  comes first.
- An *exclusion* divides the odds of a moment, p / (1 - p), by exp(z - m) where z > m: z is the best
  similarity of the moment's segments to it, in standard deviations above chance, and m the median of that
  over all candidates, at least 0 and at most 1, since a query's subject often goes with what is excluded.
  Speech that matches it with score q multiplies the odds by (1 - q)^2, and so does the name of a video that
  is known by its name alone. An exclusion never raises a score.
  `benchmarks/README.md` has answers with and without it.
- *Marks* change the log odds of the query's moments, and of moments similar to right marks, see
  :mod:`moviola.retrieval.feedback`; without a query they are the query. `benchmarks/marks/README.md` has
  figures. With an exclusion, moments are marked first. A right mark on a sequence says that each of its steps
  is right where the mark has it; a wrong one, that no sequence should look like it as a whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from moviola.retrieval import SEGMENTS, Marks, Retrieval
from moviola.search.evidence import EvidenceGatherer, Rows
from moviola.search.found import Candidate
from moviola.search.fusion import columns_of, fused, with_odds_times
from moviola.search.name_evidence import share_of, with_names
from moviola.search.queries import Marked, MarkedMoment, Plain, SearchQuery, Simple, Steps, Without, parts_of
from moviola.temporal import suppress
from moviola.timing import stage
from moviola.types import Reason, Span

__all__ = ["candidates", "chains"]

# Overlap (IoU) above which two chains of moments in one video are one.
_SAME_CHAIN = 0.5


def candidates(
    gatherer: EvidenceGatherer,
    query: SearchQuery,
    rows: Rows,
    segments: int = SEGMENTS,
    *,
    videos: bool = True,
) -> list[Candidate]:
    """Candidate moments for a query, in no order, of ``segments`` segments for each part; with ``videos`` the
    videos that are named so, too.

    The gatherer is prepared with the query (:meth:`moviola.search.evidence.EvidenceGatherer.prepare`).
    """
    if isinstance(query, Without):
        wanted = candidates(gatherer, query.query, rows, segments, videos=videos)
        return _without(gatherer, query, wanted)
    if isinstance(query, Steps):
        return _steps(gatherer, query, rows, segments)
    if isinstance(query, Marked):
        return _marked(gatherer, query, rows, segments)
    assert isinstance(query, Plain)
    seen, said = gatherer.seen(query, rows, segments), gatherer.there(gatherer.said(query, rows))
    shares = gatherer.shares(query, rows)
    with stage("fusion"):
        found = gatherer.there(fused(seen, said))
        moments = with_names(found, shares)
    return moments + gatherer.named(query, shares, found) if videos else moments


def _steps(gatherer: EvidenceGatherer, query: Steps, rows: Rows, segments: int) -> list[Candidate]:
    """Chains of a sequence.

    A step is searched for everywhere, and once more where other steps were found and it was not: in a large
    library two things that happen one after the other are rarely both among the nearest segments. Its
    exclusions come last, since they compare all its candidates.
    """
    wanted = [step.query if isinstance(step, Without) else step for step in query.steps]
    gatherer.search([thing for step in wanted for thing in parts_of(step)], rows, segments)
    # A video as a whole is no step: nothing follows it.
    candidates_of = [candidates(gatherer, step, rows, segments, videos=False) for step in wanted]
    reached = [frozenset(one.row for one in found) for found in candidates_of]
    for place, step in enumerate(wanted):
        others = frozenset().union(*reached[:place], *reached[place + 1 :]) - reached[place]
        if others:
            candidates_of[place] += candidates(gatherer, step, others, segments, videos=False)
    lowered = [
        _without(gatherer, step, found) if isinstance(step, Without) else found
        for step, found in zip(query.steps, candidates_of, strict=True)
    ]
    return chains(lowered, query.gaps)


def chains(steps: Sequence[Sequence[Candidate]], gaps: Sequence[float]) -> list[Candidate]:
    """The best chain for each candidate of the last step; of chains that overlap much the best.

    ``gaps`` are, for each step but the first, most seconds from the end of the one before to its start.
    """
    chained = [replace(first, steps=(first,)) for first in steps[0]]
    for gap, later in zip(gaps, steps[1:], strict=True):
        by_row: dict[int, list[Candidate]] = defaultdict(list)
        for chain in chained:
            by_row[chain.row].append(chain)
        longer = (_best_chain(by_row[one.row], one, gap) for one in later)
        chained = [chain for chain in longer if chain is not None]
    ordered = sorted(chained, key=lambda chain: (-chain.score, -chain.match))
    start, end, order, rows = columns_of(ordered)
    return [ordered[place] for place in suppress(start, end, order, _SAME_CHAIN, video=rows).tolist()]


def _best_chain(chains: Iterable[Candidate], later: Candidate, gap: float) -> Candidate | None:
    """A step after the best chain that it can follow; None if after none. Of equal chains the one with the
    larger sum of matching scores is better, then the one that begins first.
    """
    fitting = [chain for chain in chains if _follows(chain.steps[-1].span, later.span, gap)]
    if not fitting:
        return None
    best = max(fitting, key=lambda chain: (chain.score, chain.match, -chain.span.start))
    kinds = {one.snippet_kind for one in (best, later) if one.snippet}
    return Candidate(
        best.row,
        Span(best.span.start, max(best.span.end, later.span.end)),
        min(best.score, later.score),
        best.source if best.source == later.source else "both",
        " … ".join(filter(None, (best.snippet, later.snippet))),
        best.match + later.match,
        (*best.steps, later),
        kinds.pop() if len(kinds) == 1 else "",
        why=min(later, best, key=lambda one: one.score).why,  # of the weakest step
    )


def _follows(earlier: Span, later: Span, gap: float) -> bool:
    """Whether one moment comes after another, with a pause of at most ``gap`` seconds."""
    apart = earlier.end <= (later.start + later.end) / 2 and (earlier.start + earlier.end) / 2 <= later.start
    return apart and later.start - earlier.end <= gap


# -- marks ---------------------------------------------------------------------------------------------------


def _marked(gatherer: EvidenceGatherer, query: Marked, rows: Rows, segments: int) -> list[Candidate]:
    if isinstance(query.query, Steps):
        return _marked_steps(gatherer, query, query.query, rows, segments)
    marks = gatherer.marks(query)
    moments = [] if query.query is None else candidates(gatherer, query.query, rows, segments)
    if isinstance(query.query, Simple | None):
        alike = [*gatherer.alike(marks, rows, segments), *_right(gatherer, query, rows)]
        if query.query is not None:
            # Moments similar to right marks have the scores of the query's text before marks change them.
            (thing,) = parts_of(query.query)
            scores = gatherer.text_scores(thing, alike).tolist()
            alike = [
                replace(one, score=score, why=(Reason("seen", score),))
                for one, score in zip(alike, scores, strict=True)
            ]
        moments += alike
    with stage("calibration"):
        return _rescored(gatherer, marks, moments, has_text=query.query is not None)


def _marked_steps(
    gatherer: EvidenceGatherer, query: Marked, steps: Steps, rows: Rows, segments: int
) -> list[Candidate]:
    """Chains of a sequence whose right marks are marks on each of its steps."""
    videos = gatherer.store.catalogue.videos_named({one.video_id for one in query.right})
    right: list[list[MarkedMoment]] = [[] for _ in steps.steps]
    for one in query.right:
        video = videos.get(one.video_id)
        if video is None or one.start >= video.duration:
            gatherer.marks(query)  # raises what is wrong with it
            continue
        span = Span(one.start, min(one.end, video.duration))
        inside = [
            chain
            for chain in _steps(gatherer, steps, frozenset({video.row}), segments)
            if chain.span.intersection(span) > 0
        ]
        best = max(inside, key=lambda chain: (chain.span.iou(span), chain.score), default=None)
        for own, step in zip(right, best.steps if best else (), strict=False):
            own.append(MarkedMoment(one.video_id, step.span.start, step.span.end))
    marked = [_with_right(step, tuple(own)) for step, own in zip(steps.steps, right, strict=True)]
    found = _steps(gatherer, replace(steps, steps=tuple(marked)), rows, segments)
    if not (query.wrong or query.concept):
        return found
    others = gatherer.marks(replace(query, right=()))
    with stage("calibration"):
        return _rescored(gatherer, others, found, has_text=True)


def _with_right(step: Simple | Without, right: tuple[MarkedMoment, ...]) -> Simple | Without:
    """A step with right marks, which come before its exclusions."""
    if not right:
        return step
    if isinstance(step, Without):
        assert isinstance(step.query, Simple)
        return Without(Marked(step.query, right), step.excluded)
    return Marked(step, right)


def _right(gatherer: EvidenceGatherer, query: Marked, rows: Rows) -> list[Candidate]:
    """The moments marked right, and all of the concept, within the filter; their scores are set later.

    What shows several things is marked by their mean, which may be nearer to other moments of its video.
    """
    store, view, marked = gatherer.store, gatherer.view, list(query.right)
    if query.concept:
        from moviola.library.united_store import concept_in

        taught = concept_in(store, view.settings, query.concept)
        marked += map(MarkedMoment.parse, taught.moments)
    videos = store.catalogue.videos_named({one.video_id for one in marked})
    return gatherer.there(
        Candidate(video.row, Span(one.start, min(one.end, video.duration)), 0.0, "visual")
        for one in marked
        if (video := videos.get(one.video_id))
        and one.start < video.duration
        and view.features.place_of(video.row) is not None
        and (rows is None or video.row in rows)
    )


def _rescored(
    gatherer: EvidenceGatherer, marks: Marks, found: Sequence[Candidate], *, has_text: bool
) -> list[Candidate]:
    """Moments rescored by marks; those without frames stay as they are."""
    vectors, shown = gatherer.likeness(found)
    before = np.array([found[place].score for place in shown.tolist()])
    own = marks.scores(vectors)
    scores = marks.scores(vectors, before) if has_text else own
    rescored = list(found)
    for place, score, alike in zip(shown.tolist(), scores.tolist(), own.tolist(), strict=True):
        why = (*(found[place].why if has_text else ()), Reason("like", alike))
        rescored[place] = replace(found[place], score=score, why=why)
    return rescored


# -- exclusions --------------------------------------------------------------------------------------------


def _without(gatherer: EvidenceGatherer, query: Without, found: list[Candidate]) -> list[Candidate]:
    """Candidates with scores lowered by all exclusions of a query."""
    return reduce(partial(_discounted, gatherer), query.excluded, found) if found else []


def _discounted(gatherer: EvidenceGatherer, found: Sequence[Candidate], excluded: Simple) -> list[Candidate]:
    """Candidates with scores lowered by an exclusion."""
    if isinstance(excluded, Marked):
        return _without_marked(gatherer, found, excluded)
    factors = np.ones(len(found))
    if (retrieval := gatherer.stages(excluded)) is not None and len(retrieval.index):
        factors = _seen_factors(gatherer, retrieval, excluded, found)
    rows = frozenset(one.row for one in found)
    said, shares = gatherer.said(excluded, rows), gatherer.shares(excluded, rows)
    for place, one in enumerate(found):
        heard = (s.score for s in said if s.row == one.row and s.span.intersection(one.span) > 0)
        factors[place] *= (1 - max(heard, default=0.0)) ** 2
        if one.source == "named":
            factors[place] *= (1 - share_of(shares.get(one.row, ()))) ** 2
    return [with_odds_times(one, float(factor)) for one, factor in zip(found, factors, strict=True)]


def _without_marked(
    gatherer: EvidenceGatherer, found: Sequence[Candidate], excluded: Marked
) -> list[Candidate]:
    """The same for an excluded concept: a match of score q multiplies the odds by (1 - q)^2."""
    marks, lowered = gatherer.marks(excluded), list(found)
    vectors, shown = gatherer.likeness(found)
    scores = None
    if excluded.query is not None:
        (thing,) = parts_of(excluded.query)
        scores = gatherer.text_scores(thing, [found[place] for place in shown.tolist()])
    for place, score in zip(shown.tolist(), marks.scores(vectors, scores).tolist(), strict=True):
        lowered[place] = with_odds_times(found[place], (1 - score) ** 2)
    return lowered


def _seen_factors(
    gatherer: EvidenceGatherer, retrieval: Retrieval, excluded: Simple, found: Sequence[Candidate]
) -> NDArray[np.float64]:
    keys = gatherer.view.features.keys
    rows = np.array([one.row for one in found])
    places = np.minimum(np.searchsorted(keys, rows), len(keys) - 1)
    shown = np.flatnonzero(keys[places] == rows)  # a video may have subtitles alone
    spans = np.array([(found[place].span.start, found[place].span.end) for place in shown.tolist()])
    start, end = spans.reshape(-1, 2).T
    vector = retrieval.vectors(gatherer.features(excluded))[0]
    factors = np.ones(len(found))
    if len(shown):
        standing = retrieval.cosines.standing(vector, places[shown], start, end)
        usual = np.clip(np.median(standing), 0, 1)
        factors[shown] = np.exp(-np.maximum(standing - usual, 0))
    return factors
