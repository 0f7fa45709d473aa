"""ReLoCLNet as a baseline of TVR-Ranking (appendix C)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from torch import nn

from moviola.features import VideoFeatures
from moviola.models.reloclnet import ReLoCLNet
from moviola.retrieval.corpus import PooledVideos
from moviola.training.data import Sizes, Split
from moviola.training.loop import LoopConfig
from moviola.training.recipe import Phase
from moviola.training.recipes.ranking import RankerRecipe, feature_sizes, span_limits, streams
from moviola.training.settings import TrainingSettings
from moviola.training.tasks.pairs import PairSampling, PairTask
from moviola.training.validation import judge

__all__ = ["RELOCLNET"]


class ReLoCLNetRecipe(RankerRecipe):
    """BertAdam, batches of 512; 4000, 200, 100 epochs for 1, 20, 40 moments per query."""

    architecture = "reloclnet"

    @property
    def settings(self) -> TrainingSettings:
        """The settings of TVR-Ranking, appendix C."""
        loop = LoopConfig(epochs=200, batch_size=512)
        return TrainingSettings({"labels": "spr"}, {"train": loop}, PairSampling())

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """The sizes of the features, and what follows from the length of clips and videos."""
        return feature_sizes(sizes) | span_limits(sizes.clip_seconds) | {"max_clips": sizes.longest}

    def phases(
        self, model: nn.Module, train: Split, val: Split, settings: TrainingSettings
    ) -> Iterable[Phase]:
        """One phase, on pairs."""
        network, loop, sampling = cast("ReLoCLNet", model), settings.loops["train"], settings.sampling
        task = PairTask(
            model,
            self.videos(network, train.features),
            self.queries(network, train.queries),
            train.pairs,
            lambda step, epoch, generator: network.loss(
                step.pairs, hard_pool=sampling.pool(epoch), generator=generator
            ),
            lambda: judge(self.run(model, val), val),
            loop.batch_size,
            sampling,
        )
        yield Phase(task, loop)

    def videos(self, model: ReLoCLNet, features: VideoFeatures) -> PooledVideos:
        """Videos in the model's form."""
        config = model.config
        return PooledVideos(streams(model, features), config.max_clips, fixed=config.reference_padding)


RELOCLNET = ReLoCLNetRecipe()
