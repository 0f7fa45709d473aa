"""Common base of the recipes of stages 1: answering with coarse proposals, measured by recall."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn

from moviola.retrieval import Moments, Retrieval, segment_index, stage1_of
from moviola.retrieval.corpus import best_videos
from moviola.retrieval.stage1 import EmbeddedSegments
from moviola.training.data import Split
from moviola.training.recipe import AnswerSettings, Recipe
from moviola.training.tasks.segments import NAMES

__all__ = ["SegmentRecipe"]


class SegmentRecipe(Recipe):
    """A stage 1 answers with its best segments, merged where they touch."""

    def measured(self, phase: str) -> tuple[str, ...]:
        return NAMES

    def moments(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        stage1 = stage1_of(self.architecture, model, "answering")
        index = segment_index(stage1, split.features, how.segment_clips)
        retrieval = Retrieval(split.features, index, stage1, None, how.segment_clips, how.segments)
        return retrieval.moments(split.queries, scored=how.scored)

    def rank_videos(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 videos of each query, each by its best segment."""
        stage1 = stage1_of(self.architecture, model, "answering")
        videos = EmbeddedSegments(stage1, split.features, how.segment_clips)

        def scores(some: slice) -> NDArray[np.float32]:
            return videos.best(split.queries.select(np.arange(some.start, some.stop)))

        return best_videos(scores, split.features, len(split.queries))
