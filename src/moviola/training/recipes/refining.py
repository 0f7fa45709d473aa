"""Common base of the recipes of refiners: answering, and SPR's windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from torch import nn

from moviola.retrieval import MeanPooling, Moments, Retrieval, refiner_of, segment_index
from moviola.training.data import Split
from moviola.training.loop import LoopConfig, Task
from moviola.training.optimizers import OptimizerConfig
from moviola.training.recipe import AnswerSettings, Recipe
from moviola.training.settings import TrainingSettings
from moviola.training.tasks.windows import Examples, WindowSampling, WindowTask
from moviola.training.validation import SUM, judge

__all__ = ["RefinerRecipe", "WindowRecipe"]


class RefinerRecipe(Recipe):
    """A refiner answers with the proposals of its split, refined by :class:`moviola.retrieval.Retrieval`."""

    needs = frozenset({"proposals"})
    refines = True

    def moments(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """Proposals refined, suppressed and re-ranked."""
        refiner = refiner_of(
            self.architecture,
            model,
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
            cast("Any", refiner_of(self.architecture, model, "training", context=sampling.context)),
            Examples(train.features, train.pairs, train.proposals, sampling),
            train.queries,
            lambda: judge(self.run(model, val, how), val),
            loop.batch_size,
        )
