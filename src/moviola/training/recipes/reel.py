"""Reel, our own refiner; see :mod:`moviola.models.reel`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from torch import nn

from moviola.models.reel import Reel
from moviola.training.data import Sizes, Split
from moviola.training.loop import LoopConfig
from moviola.training.optimizers import OptimizerConfig
from moviola.training.recipe import AnswerSettings, Phase
from moviola.training.recipes.refining import RefinerRecipe
from moviola.training.settings import TrainingSettings
from moviola.training.tasks.answers import AnswerTask
from moviola.training.validation import judge

__all__ = ["REEL"]


class ReelRecipe(RefinerRecipe):
    """Trained on whole videos, it refines proposals."""

    architecture = "reel"

    @property
    def settings(self) -> TrainingSettings:
        """Settings chosen on gridhouse's val."""
        optimizer = OptimizerConfig(
            name="adamw", lr=1e-3, eps=1e-8, weight_decay=1e-2, warmup=0.05, schedule="cosine", clip_norm=1.0
        )
        loop = LoopConfig(
            epochs=30, batch_size=32, optimizer=optimizer, patience=0, select="nDCG@20,IoU>=0.5"
        )
        return TrainingSettings(loops={"train": loop})

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """The sizes of the features, and the length of a clip."""
        return sizes.settings()

    def phases(
        self, model: nn.Module, train: Split, val: Split, settings: TrainingSettings
    ) -> Iterable[Phase]:
        """One phase, on queries with all their answers."""
        loop, reel = settings.loops["train"], cast("Reel", model)
        task = AnswerTask(
            reel,
            train.features,
            train.queries.cut(reel.config.max_tokens),
            train.pairs,
            lambda: judge(self.run(model, val, AnswerSettings()), val),
            loop.batch_size,
        )
        yield Phase(task, loop)


REEL = ReelRecipe()
