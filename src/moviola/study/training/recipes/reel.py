"""Reel, our own refiner, and its stage 1; see :mod:`moviola.study.models.reel`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from moviola.errors import InvalidValue
from moviola.retrieval import stage1_of
from moviola.retrieval.proposals import ByQuery
from moviola.study.models.reel import Reel
from moviola.study.models.running import TorchRunner
from moviola.study.training.data import Sizes, Split
from moviola.study.training.loop import LoopConfig, Task
from moviola.study.training.optimizers import OptimizerConfig
from moviola.study.training.recipe import AnswerSettings
from moviola.study.training.recipes.stages import RefinerRecipe, SegmentRecipe
from moviola.study.training.settings import TrainingSettings
from moviola.study.training.tasks.answers import AnswerTask
from moviola.study.training.tasks.segments import SegmentSampling, segment_recall
from moviola.study.training.validation import judge

__all__ = ["CROSSINGS", "PROPOSAL_SHARES", "REEL", "REEL_STAGE1"]

PROPOSAL_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Weights of a proposal's score that are tried on val: within a query, the deviation of weighted scores in
deviations of Reel's."""

CROSSINGS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""What a span loses by each cut that it crosses, as tried on val."""


def _loop_by(select: str, average: float = 0.0) -> LoopConfig:
    """The loop of Reel and of its stage 1, chosen on gridhouse's val; ``select`` is a measure on val."""
    optimizer = OptimizerConfig(
        name="adamw", lr=1e-3, eps=1e-8, weight_decay=1e-2, warmup=0.05, schedule="cosine"
    )
    return LoopConfig(
        epochs=30, batch_size=32, patience=0, select=select, average=average, optimizer=optimizer
    )


class ReelRecipe(RefinerRecipe):
    """Trained on whole videos, it refines proposals."""

    architecture = "reel"

    settings = TrainingSettings({"cuts": True}, {"train": _loop_by("nDCG@20,IoU>=0.5", average=0.99)})

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        return sizes.settings()

    def proposal_weight(self, model: nn.Module, val: Split, how: AnswerSettings, select: str) -> float:
        """The best on val of :data:`PROPOSAL_SHARES`; the smallest of equal ones."""
        assert val.proposals is not None
        moments = self.moments(model, val, replace(how, suppress_above=1.0))
        own, proposed = _spread(moments, moments.match), _spread(val.proposals, val.proposals.score)
        if not own or not proposed:
            return 0.0
        weights = [share * own / proposed for share in PROPOSAL_SHARES]
        runs = (self.run(model, val, replace(how, proposal_weight=weight)) for weight in weights)
        values = [judge(run, val)[select] for run in runs]
        return weights[values.index(max(values))]

    def settle(self, model: Any, val: Split, how: AnswerSettings, select: str) -> Mapping[str, float]:
        """``crossing``: the best on val of :data:`CROSSINGS`, the first of equal ones.

        Nothing where no video of val is cut, or the model does not read cuts.
        """
        reel: Reel = model
        offsets, _ = val.features.shot_edges_of(np.arange(len(val.features)))
        if not (reel.config.cuts and (np.diff(offsets) > 2).any()):
            return {}
        values = []
        for crossing in CROSSINGS:
            reel.crossing.fill_(crossing)
            values.append(judge(self.run(model, val, how), val)[select])
        best = CROSSINGS[values.index(max(values))]
        reel.crossing.fill_(best)
        return {"crossing": best}

    def phases(self, model: Any, train: Split, val: Split, settings: TrainingSettings) -> Iterable[Task[Any]]:
        loop, says = settings.loops["train"], bool(model.config.answerable)
        if says:
            _require_unanswered(train, val)
        yield AnswerTask(
            model,
            model.loss,
            train.features,
            train.queries.cut(model.config.max_tokens),
            train.pairs,
            lambda: judge(self.run(model, val, AnswerSettings()), val),
            loop.batch_size,
            unanswered=says,
        )


class ReelStage1Recipe(SegmentRecipe):
    """Trained on whole videos, chosen by recall@100 on val."""

    architecture = "reel-stage1"
    optional_streams = frozenset()

    settings = TrainingSettings({}, {"train": _loop_by("recall@100")}, SegmentSampling())

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
            lambda: segment_recall(
                stage1_of(self.architecture, TorchRunner(model), "val"), val, sampling.segment_clips
            ),
            settings.loops["train"].batch_size,
        )


def _require_unanswered(train: Split, val: Split) -> None:
    """Raise :class:`InvalidValue` unless both splits have queries that nothing answers."""
    for name, split in (("train", train), ("val", val)):
        if not len(split.pairs.unanswered):
            raise InvalidValue(
                f"model.answerable: every query of {name} has an answer, so there is nothing to learn from; "
                "give a pair file with queries whose relevant_moment is empty, or leave it out"
            )


def _spread(rows: ByQuery, values: NDArray[np.floating[Any]]) -> float:
    """The mean deviation of values within a query; 0 where no query has two."""
    each = [values[rows.rows(query)] for query in range(len(rows))]
    return float(np.mean([own.std() for own in each if len(own) > 1] or [0.0]))


REEL = ReelRecipe()
REEL_STAGE1 = ReelStage1Recipe()
