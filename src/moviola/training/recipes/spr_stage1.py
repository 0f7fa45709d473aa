"""SPR's stage 1, segment retrieval (section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.retrieval import Moments, Retrieval, TrainedStage1, segment_index
from moviola.retrieval.corpus import best_videos
from moviola.retrieval.stage1 import EmbeddedSegments
from moviola.training.data import Sizes, Split
from moviola.training.loop import LoopConfig, Task
from moviola.training.optimizers import OptimizerConfig
from moviola.training.recipe import AnswerSettings, Recipe
from moviola.training.settings import TrainingSettings
from moviola.training.tasks.segments import NAMES, SegmentSampling, SegmentTask

__all__ = ["SPR_STAGE1"]


class Stage1Recipe(Recipe):
    """Training as in section 3.1.2: AdamW, cosine with warm-up, chosen by recall@100 on val."""

    architecture = "spr-stage1"

    settings = TrainingSettings(
        loops={"train": LoopConfig(
            epochs=30, batch_size=256, patience=0, select="recall@100",
            optimizer=OptimizerConfig(
                name="adamw", lr=5e-4, betas=(0.9, 0.99), eps=1e-8, weight_decay=1e-3, warmup=0.05,
                schedule="cosine", clip_norm=5.0, slow={"pt_clip_logit_scale": 0.01},
            ),
        )},
        sampling=SegmentSampling(),
    )  # fmt: skip

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """The size of the features; errors as of :meth:`Sizes.of_one_space`."""
        return {"hidden_size": sizes.of_one_space(self.architecture)}

    def phases(self, model: Any, train: Split, val: Split, settings: TrainingSettings) -> Iterable[Task[Any]]:
        """One phase, on pairs of a query and a segment."""
        loop = settings.loops["train"]
        yield SegmentTask(model, train, val, settings.sampling, loop.batch_size)

    def measured(self, phase: str) -> tuple[str, ...]:
        """Recall of segments."""
        return NAMES

    def moments(self, model: Any, split: Split, how: AnswerSettings) -> Moments:
        """Coarse proposals."""
        stage1 = TrainedStage1(model, "answering")
        index = segment_index(stage1, split.features, how.segment_clips)
        retrieval = Retrieval(split.features, index, stage1, None, how.segment_clips, how.segments)
        return retrieval.moments(split.queries, scored=how.scored)

    def rank_videos(self, model: Any, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 videos of each query, each by its best segment."""
        stage1 = TrainedStage1(model, "answering")
        videos = EmbeddedSegments(stage1, split.features, how.segment_clips)

        def scores(some: slice) -> NDArray[np.float32]:
            return videos.best(split.queries.select(np.arange(some.start, some.stop)))

        return best_videos(scores, split.features, len(split.queries))


SPR_STAGE1 = Stage1Recipe()
