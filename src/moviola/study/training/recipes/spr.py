"""SPR: its stage 1, segment retrieval (section 3.1), and its refiners SPR_CLIP and SPR_ReLo (section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, cast

from moviola.retrieval import refiner_of
from moviola.study.models.reloclnet import SPR_LARGE, SPR_SMALL, ReLoCLNetConfig
from moviola.study.models.running import TorchRunner
from moviola.study.models.spr import SegmentRetriever
from moviola.study.training.data import Sizes, Split
from moviola.study.training.loop import LoopConfig, Task
from moviola.study.training.optimizers import OptimizerConfig
from moviola.study.training.recipe import AnswerSettings
from moviola.study.training.recipes.stages import RefinerRecipe, SegmentRecipe
from moviola.study.training.settings import TrainingSettings
from moviola.study.training.tasks.segments import SegmentSampling, SegmentTask
from moviola.study.training.tasks.windows import Examples, WindowSampling, WindowTask
from moviola.study.training.validation import SUM, judge

__all__ = ["SPR_CLIP", "SPR_RELO", "SPR_RELO_LARGE", "SPR_STAGE1", "WindowRecipe"]


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
        """The size of the features; errors as in :meth:`Sizes.of_one_space`."""
        return {"hidden_size": sizes.of_one_space(self.architecture)}

    def phases(self, model: Any, train: Split, val: Split, settings: TrainingSettings) -> Iterable[Task[Any]]:
        """One phase, on pairs of a query and a segment."""
        loop = settings.loops["train"]
        yield SegmentTask(model, train, val, settings.sampling, loop.batch_size)


class WindowRecipe(RefinerRecipe):
    """Common base of SPR's two refiners (SPR, section 4.1); what they take over from ReLoCLNet (100 epochs,
    BertAdam) is in the defaults.

    Args:
        strategy: of drawing, the best one of table 5.
        model: settings of the model that are not its architecture's defaults.
    """

    settings = TrainingSettings()

    def __init__(self, strategy: str, model: Mapping[str, Any] | None = None) -> None:
        loop = LoopConfig(epochs=100, batch_size=256, optimizer=OptimizerConfig(), patience=10, select=SUM)
        self.settings = TrainingSettings(model or {}, {"train": loop}, WindowSampling(strategy=strategy))

    def phases(self, model: Any, train: Split, val: Split, settings: TrainingSettings) -> Iterable[Task[Any]]:
        assert train.proposals is not None
        loop, sampling = settings.loops["train"], settings.sampling
        how = AnswerSettings(context=sampling.context)
        yield WindowTask(
            cast(
                "Any", refiner_of(self.architecture, TorchRunner(model), "training", context=sampling.context)
            ),
            Examples(train.features, train.pairs, train.proposals, sampling),
            train.queries,
            lambda: judge(self.run(model, val, how), val),
            loop.batch_size,
        )


class SprClipRecipe(WindowRecipe):
    """Starts from the towers of its stage 1."""

    architecture = "spr-clip"

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """The size of the features (errors as in :meth:`Sizes.of_one_space`), and the length of a clip."""
        return {"hidden_size": sizes.of_one_space(self.architecture), "clip_seconds": sizes.clip_seconds}

    def start_from(self, model: Any, stage1: SegmentRetriever) -> None:
        """Copy the towers (SPR, section 3.3.2)."""
        model.start_from(stage1)


class SprReloRecipe(WindowRecipe):
    """With subtitles where there are any."""

    architecture = "reloclnet"

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        return sizes.settings()


def _changed(preset: ReLoCLNetConfig) -> dict[str, Any]:
    """Differences of a preset from the architecture's defaults."""
    default = asdict(ReLoCLNetConfig())
    return {name: value for name, value in asdict(preset).items() if value != default[name]}


SPR_STAGE1 = SprStage1Recipe()
SPR_CLIP = SprClipRecipe("standard")
SPR_RELO = SprReloRecipe("strong-weak", _changed(SPR_SMALL))
SPR_RELO_LARGE = SprReloRecipe("strong-weak", _changed(SPR_LARGE))
