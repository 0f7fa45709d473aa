"""Sources of proposals and video scores for refiners and CONQUER: a trained stage 1, or another system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from moviola.errors import EncoderMismatch, InvalidValue
from moviola.features import FeatureSource, Integers, SourceFacts
from moviola.retrieval import SEGMENTS, Proposals, Retrieval, TrainedStage1, load_stage1, segment_index
from moviola.retrieval.proposals import APART, MERGES
from moviola.retrieval.saved.description import read_description, revision_of
from moviola.retrieval.stage1 import TrainedVectors, VideoScores, video_scores
from moviola.study.measures import Run, read_run
from moviola.study.measures.joined import places_of
from moviola.study.models.checks import require_known
from moviola.study.models.running import TorchRunner
from moviola.study.models.spr import SegmentRetriever
from moviola.study.training.compatibility import require_same_encoder, sampling_of
from moviola.study.training.data import Pairs, Split, largest
from moviola.study.training.recipe import Recipe
from moviola.types import require_positive

__all__ = [
    "Candidates", "FirstStage", "TrainedFirstStage", "UnusableCandidates", "open_first_stage",
    "require_one_text", "unusable_candidates",
]  # fmt: skip

_NEEDED = {"proposals": "proposals", "first_stage": "scores of videos"}
"""The parts of :attr:`Recipe.needs` in words."""


class FirstStage(ABC):
    """Adds to a split what a recipe needs besides features and pairs."""

    @property
    @abstractmethod
    def mark(self) -> str:
        """An identifier."""

    @property
    def model(self) -> SegmentRetriever | None:
        """The trained stage 1 from which models may start."""
        return None

    @abstractmethod
    def proposals(self, split: Split) -> Proposals:
        """Coarse proposals of each query of a split."""

    @abstractmethod
    def first_stage(self, split: Split) -> VideoScores:
        """A score above 0 of each video for each query of a split."""

    def complete(self, split: Split, needs: frozenset[str]) -> Split:
        """The split with the parts of :attr:`Recipe.needs`, whose names are those of the methods."""
        found: dict[str, Any] = {part: getattr(self, part)(split) for part in needs}
        return replace(split, **found)


@dataclass(frozen=True)
class TrainedFirstStage(FirstStage):
    """A trained stage 1, which retrieves a number of segments of T clips each per query.

    ``merge`` says which of them merge, a name in :data:`moviola.retrieval.proposals.MERGES`.
    """

    stage1: TrainedVectors
    segment_clips: int
    segments: int = SEGMENTS
    merge: str = APART

    @property
    def mark(self) -> str:
        return self.stage1.revision

    @property
    def model(self) -> SegmentRetriever | None:
        """The model, if it is SPR's."""
        return (
            cast(TorchRunner, self.stage1.model).network if isinstance(self.stage1, TrainedStage1) else None
        )

    def proposals(self, split: Split) -> Proposals:
        """Those of the first two stages (SPR, sections 3.1.3 and 3.2)."""
        index = segment_index(self.stage1, split.features, self.segment_clips)
        retrieval = Retrieval(
            split.features, index, self.stage1, None, self.segment_clips, self.segments, merge=self.merge
        )
        return retrieval.proposals(split.queries)

    def first_stage(self, split: Split) -> VideoScores:
        """The exponential of each video's best cosine."""
        return video_scores(self.stage1, split.features, split.queries, self.segment_clips)


@dataclass(frozen=True)
class Candidates(FirstStage):
    """Another system's run; ``mark`` changes with its file."""

    found: Run
    mark: str = ""

    @classmethod
    def read(cls, path: Path) -> Candidates:
        """From a file of a run; forms and errors as in :func:`moviola.study.measures.read_run`."""
        return cls(read_run(path), sha256(path.read_bytes()).hexdigest()[:16])

    def proposals(self, split: Split) -> Proposals:
        """Another system's moments as proposals of each query of a split, in their order.

        Moments of other videos, and those that start behind the end of theirs, are left out.

        Raises:
            InvalidValue: a query has none.
        """
        run = self.found
        rows, query, video = _rows_of(run, split)
        end = np.minimum(run.end[rows], split.features.durations[video])
        return Proposals.of_columns(
            query, video, run.start[rows], end, run.score[rows], queries=len(split.queries)
        )

    def first_stage(self, split: Split) -> VideoScores:
        """Another system's ranking as a first stage for CONQUER, above 0.

        A video scores as its best moment. As the scales of systems differ, and CONQUER multiplies by these
        scores, a query's are spread over [0, 1] and become exp of that: e for its best video, 1 for the last
        of its candidates. A video that is none has exp(-1), as far below the last one as the best is above
        it.

        Raises:
            InvalidValue: a query has no candidate among the split's videos.
        """
        run = self.found
        rows, query, video = _rows_of(run, split)
        queries, videos = len(split.queries), len(split.features)
        cells, best = largest(query * videos + video, run.score[rows])
        owner = cells // videos
        highest, lowest = np.full(queries, -np.inf), np.full(queries, np.inf)
        np.maximum.at(highest, owner, best)
        np.minimum.at(lowest, owner, best)
        width = (highest - lowest)[owner]
        spread = np.divide(best - lowest[owner], width, out=np.ones_like(best), where=width > 0)

        def scores(some: slice) -> NDArray[np.float32]:
            table = np.full((some.stop - some.start, videos), np.exp(-1), dtype=np.float32)
            own = slice(*np.searchsorted(owner, [some.start, some.stop]))
            table[owner[own] - some.start, cells[own] % videos] = np.exp(spread[own])
            return table

        return scores


def _rows_of(run: Run, split: Split) -> tuple[Integers, Integers, Integers]:
    """Rows of a run that are about a split: (n,) each, with the split's places of their query and video."""
    features, queries = split.features, split.queries.query_ids
    query = places_of(run.query_ids, queries)[run.query]
    video = places_of(run.video_ids, features.video_ids)[run.video]
    there = (query >= 0) & (video >= 0) & (run.start < features.durations[video])
    count = np.bincount(query[there], minlength=len(queries))
    if not count.all():
        first = queries[int(count.argmin())]
        raise InvalidValue(
            f"candidates: none for {int((count == 0).sum()):,} of {len(queries):,} queries among the "
            f"{len(features):,} videos, the first is query {first!r}; give a run that answers each"
        )
    rows = np.flatnonzero(there)
    return rows, query[rows], video[rows]


@dataclass(frozen=True)
class UnusableCandidates:
    """Moments of another system's run that no query can be answered with.

    Attributes:
        videos: ids of videos without features, sorted.
        past_end: number of moments that start at or past the end of their video.
    """

    videos: tuple[str, ...] = ()
    past_end: int = 0


def unusable_candidates(sources: Iterable[FirstStage | None], source: FeatureSource) -> UnusableCandidates:
    """What other systems' runs have besides moments of videos with features; nothing without a run."""
    runs = {own.mark: own.found for own in sources if isinstance(own, Candidates)}
    if not runs:
        return UnusableCandidates()
    features, unknown, past_end = source.videos(), set[str](), 0
    for run in runs.values():
        video = places_of(run.video_ids, features.video_ids)
        unknown.update(np.array(run.video_ids, dtype=object)[video < 0].tolist())
        place = video[run.video]
        past_end += int((run.start >= features.durations[place])[place >= 0].sum())
    return UnusableCandidates(tuple(sorted(unknown)), past_end)


def require_one_text(train: Pairs, val: Pairs, candidates: Path) -> None:
    """Raise :class:`InvalidValue` if an id is of different queries in two splits that one run answers."""
    texts = dict(zip(train.query_ids, train.texts, strict=True))
    for query_id, query in zip(val.query_ids, val.texts, strict=True):
        if texts.get(query_id, query) != query:
            raise InvalidValue(
                f"{candidates}: query {query_id!r} is {texts[query_id]!r} in train, but {query!r} in val; "
                "one run cannot answer both; give val's queries other ids, or --candidates again with a run "
                "of their own"
            )


def open_first_stage(
    name: str,
    recipe: Recipe,
    facts: SourceFacts,
    *,
    stage1: Path | None = None,
    candidates: Path | None = None,
    segments: int = SEGMENTS,
    merge: str = APART,
    device: str = "cpu",
) -> FirstStage | None:
    """The source that a recipe needs, if any: a trained stage 1, or another system's run.

    Args:
        name, recipe: the recipe and its name.
        facts: properties of its features.
        stage1: folder of a trained stage 1, which retrieves ``segments`` per query on ``device``.
        candidates: file of a run.
        merge: which of these segments merge, a name in :data:`moviola.retrieval.proposals.MERGES`.

    Raises:
        InvalidValue: both are given, or none though one is needed, or one though none is; ``segments`` is
            below 1; ``merge`` is unknown, or says something of a model that merges nothing.
        EncoderMismatch: the stage 1 was trained on other features.
    """
    require_positive(segments=segments)
    require_known("merge", merge, MERGES)
    if merge != APART and not recipe.merges:
        raise InvalidValue(f"{name}: searches whole videos and merges no segments; leave --merge out")
    if merge != APART and candidates is not None:
        raise InvalidValue(f"{candidates}: its moments are not merged; leave --merge out, or give --stage1")
    given = (stage1 is not None) + (candidates is not None)
    if given and not recipe.needs:
        raise InvalidValue(
            f"{name}: searches the videos itself; leave {'--stage1' if stage1 else '--candidates'} out"
        )
    if given > 1:
        raise InvalidValue(f"{name}: needs one of both; give --stage1 or --candidates, not both")
    if recipe.needs and not given:
        needed = " and ".join(_NEEDED[part] for part in sorted(recipe.needs))
        raise InvalidValue(
            f"{name}: needs the {needed} of a stage 1; train reel-stage1 or spr-stage1 and give its "
            "folder as --stage1, or a run of another system as --candidates"
        )
    if candidates is not None:
        return Candidates.read(candidates)
    return None if stage1 is None else replace(_open_stage1(stage1, facts, segments, device), merge=merge)


def _open_stage1(folder: Path, facts: SourceFacts, segments: int, device: str) -> TrainedFirstStage:
    about = read_description(folder)
    model = load_stage1(folder, revision_of(folder), device)
    require_same_encoder(folder, about, facts)
    common = about.config["hidden_size"]
    for what, name, dim in (
        ("clips", "visual_size", facts.visual_dim),
        ("queries", "query_size", facts.query_dim),
    ):
        size = about.config.get(name, common)
        if size != dim:
            raise EncoderMismatch(
                f"{folder}: a stage 1 for features of {size} numbers, but these {what} have {dim}; train one "
                "on these features, or give a run of another system as --candidates"
            )
    return TrainedFirstStage(model, int(sampling_of(about, facts)["segment_clips"]), segments)
