"""Reel's stage 1; see :mod:`moviola.models.reel_stage1`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from moviola.retrieval import stage1_of
from moviola.training.data import Sizes, Split
from moviola.training.loop import Task
from moviola.training.recipes.reel import loop_by
from moviola.training.recipes.segment_retrieval import SegmentRecipe
from moviola.training.settings import TrainingSettings
from moviola.training.tasks.answers import AnswerTask
from moviola.training.tasks.segments import SegmentSampling, segment_recall

__all__ = ["REEL_STAGE1"]


class ReelStage1Recipe(SegmentRecipe):
    """Trained on whole videos, chosen by recall@100 on val."""

    architecture = "reel-stage1"
    optional_streams = frozenset()

    settings = TrainingSettings({}, {"train": loop_by("recall@100")}, SegmentSampling())

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """The sizes of the features; subtitles are not read."""
        return {"visual_size": sizes.visual, "query_size": sizes.query}

    def phases(self, model: Any, train: Split, val: Split, settings: TrainingSettings) -> Iterable[Task[Any]]:
        sampling = settings.sampling
        yield AnswerTask(
            model,
            partial(model.loss, segment_clips=sampling.segment_clips, least_share=sampling.least_share),
            train.features,
            train.queries.cut(model.config.max_tokens),
            train.pairs,
            lambda: segment_recall(stage1_of(self.architecture, model, "val"), val, sampling.segment_clips),
            settings.loops["train"].batch_size,
        )


REEL_STAGE1 = ReelStage1Recipe()
