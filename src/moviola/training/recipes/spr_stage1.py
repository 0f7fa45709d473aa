"""SPR's stage 1, segment retrieval (section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moviola.training.data import Sizes, Split
from moviola.training.loop import LoopConfig, Task
from moviola.training.optimizers import OptimizerConfig
from moviola.training.recipes.segment_retrieval import SegmentRecipe
from moviola.training.settings import TrainingSettings
from moviola.training.tasks.segments import SegmentSampling, SegmentTask

__all__ = ["SPR_STAGE1"]


class SprStage1Recipe(SegmentRecipe):
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


SPR_STAGE1 = SprStage1Recipe()
