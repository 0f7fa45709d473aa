"""Common bases of the recipes of models that search by stages: those that retrieve segments, and refiners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn

from moviola.retrieval import MeanPooling, Moments, Retrieval, refiner_of, segment_index, stage1_of
from moviola.retrieval.stage1 import EmbeddedSegments
from moviola.study.models.running import TorchRunner
from moviola.study.training.corpus import best_videos
from moviola.study.training.data import Split
from moviola.study.training.recipe import AnswerSettings, Recipe
from moviola.study.training.tasks.segments import NAMES

__all__ = ["RefinerRecipe", "SegmentRecipe"]


class SegmentRecipe(Recipe):
    """A stage 1 answers with its best segments, merged where they touch."""

    merges = True

    def measured(self, phase: str) -> tuple[str, ...]:
        return NAMES

    def moments(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        stage1 = stage1_of(self.architecture, TorchRunner(model), "answering")
        index = segment_index(stage1, split.features, how.segment_clips)
        length = how.segment_clips
        retrieval = Retrieval(split.features, index, stage1, None, length, how.segments, merge=how.merge)
        return retrieval.moments(split.queries, scored=how.scored)

    def rank_videos(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 videos of each query, each by its best segment."""
        stage1 = stage1_of(self.architecture, TorchRunner(model), "answering")
        videos = EmbeddedSegments(stage1, split.features, how.segment_clips)

        def scores(some: slice) -> NDArray[np.float32]:
            return videos.best(split.queries.select(np.arange(some.start, some.stop)))

        return best_videos(scores, split.features, len(split.queries))


class RefinerRecipe(Recipe):
    """A refiner answers with the proposals of its split, refined by :class:`moviola.retrieval.Retrieval`."""

    needs = frozenset({"proposals"})
    refines = True
    merges = True

    def moments(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """Proposals refined, suppressed and re-ranked."""
        refiner = refiner_of(
            self.architecture,
            TorchRunner(model),
            "answering",
            context=how.context,
            calibration=how.calibration,
            suppress_above=how.suppress_above,
            proposal_weight=how.proposal_weight,
        )
        # A model that learns between two evaluations must not reuse its earlier encodings.
        features = split.features.with_fresh_cache()
        retrieval = Retrieval.of_proposals(features, refiner, how.segment_clips)
        if how.scored:
            index = segment_index(MeanPooling(), features, how.segment_clips)
            retrieval = Retrieval(features, index, MeanPooling(), refiner, how.segment_clips)
        return retrieval.moments(split.queries, split.proposals, scored=how.scored)
