"""Common base of the recipes of models that rank a whole corpus.

They are the baselines of TVR-Ranking (appendix C) and PREM. Where the settings depart from the papers: a
moment's end is the last clip that it touches for all of them, so that one at a video's end can be learned;
limits on a moment's length are the papers' for TVR in seconds, whatever a clip's length; those of other sets
are in :mod:`moviola.study.training.data_sets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.features import Integers, QueryFeatures, VideoFeatures
from moviola.retrieval import Moments
from moviola.retrieval.stage1 import VideoScores
from moviola.study.models.batches import Ranked
from moviola.study.training.corpus import PooledVideos, rank_corpus, rank_videos
from moviola.study.training.data import Sizes, Split
from moviola.study.training.data_sets import clips_of_moments
from moviola.study.training.loop import Task
from moviola.study.training.optimizers import OptimizerConfig
from moviola.study.training.recipe import AnswerSettings, Recipe
from moviola.study.training.settings import TrainingSettings
from moviola.study.training.tasks.candidates import CandidateTask, hardest_videos
from moviola.study.training.tasks.pairs import PairLoss, PairSampling, PairTask
from moviola.study.training.validation import judge

__all__ = ["CandidateRecipe", "FirstStageRecipe", "PairRecipe", "RankerRecipe", "adamw", "first_stage_of"]

MOMENT_SECONDS = 3.0, 22.5
"""Shortest and longest moment of XML and ReLoCLNet in TVR: 2 to 15 clips of 1.5 s."""

LONGEST_CANDIDATE_SECONDS = 36.0
"""Longest moment of CONQUER and PREM in TVR: 24 clips of 1.5 s."""


class RankerRecipe(Recipe):
    """A model that ranks the moments of all videos of a split."""

    def videos(self, model: Any, features: VideoFeatures) -> PooledVideos:
        """Videos in the model's form."""
        own = features if model.config.subtitle_size else features.without_subtitles()
        return PooledVideos(own, model.config.max_clips)

    def queries(self, model: Any, queries: QueryFeatures) -> QueryFeatures:
        """Queries in the model's form: with as many tokens as it has positions."""
        return queries.cut(model.config.max_tokens)

    def inputs(self, model: Any, split: Split) -> tuple[PooledVideos, QueryFeatures]:
        """Videos and queries of a split in the model's form."""
        return self.videos(model, split.features), self.queries(model, split.queries)

    def moments(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 moments of each query."""
        self.require_unscored(how)
        return rank_corpus(model, *self.inputs(model, split))

    def rank_videos(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 videos of each query, by the model's own score of a video."""
        self.require_unscored(how)
        return rank_videos(model, *self.inputs(model, split))

    def require_unscored(self, how: AnswerSettings) -> None:
        """Raise :class:`InvalidValue` if scores of `moviola search` are requested."""
        if how.scored:
            raise InvalidValue(
                f"{self.architecture}: `moviola search` does not use it, so it shows no scores of it; "
                "ask for the model's own (as_search=False)"
            )


class PairRecipe(RankerRecipe):
    """XML and ReLoCLNet, which learn from pairs of a query and a moment.

    Attributes:
        endpoints: whether two numbers are appended to a clip's features, its start and its end in the video.
    """

    endpoints: bool = False

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        limits = clips_of_moments(*MOMENT_SECONDS, sizes.clip_seconds)
        return sizes.settings(more=2 * self.endpoints) | limits | {"max_clips": sizes.longest}

    def loss(self, model: Any, train: Split, sampling: PairSampling) -> PairLoss:
        """The weighted terms of a batch."""
        return lambda batch, epoch, generator: model.loss(
            batch, hard_pool=sampling.pool(epoch), generator=generator
        )

    def phases(self, model: Any, train: Split, val: Split, settings: TrainingSettings) -> Iterable[Task[Any]]:
        loop, sampling = settings.loops["train"], settings.sampling
        yield PairTask(
            model, *self.inputs(model, train), train.pairs, self.loss(model, train, sampling),
            lambda: judge(self.run(model, val), val), loop.batch_size, sampling.even_types, model.apart,
        )  # fmt: skip

    def videos(self, model: Any, features: VideoFeatures) -> PooledVideos:
        """The same with endpoints, and with the padding of a release where the model has it."""
        fixed = model.config.reference_padding
        return replace(super().videos(model, features), endpoints=self.endpoints, fixed=fixed)


class CandidateRecipe(RankerRecipe):
    """CONQUER and PREM, which look into the best videos of a first stage."""

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        longest = clips_of_moments(0.0, LONGEST_CANDIDATE_SECONDS, sizes.clip_seconds)["longest_span"]
        return sizes.settings() | {"max_clips": sizes.longest, "longest_span": longest}


class FirstStageRecipe(CandidateRecipe):
    """Of these, those whose first stage is another system's: CONQUER, and PREM's localizer alone."""

    needs = frozenset({"first_stage"})

    def trained(self, model: Any) -> tuple[nn.Module, Callable[[Any], Mapping[str, Tensor]]]:
        """The part of a model that is trained, and its loss of a batch."""
        return model, model.loss

    def phases(self, model: Any, train: Split, val: Split, settings: TrainingSettings) -> Iterable[Task[Any]]:
        """One phase, on pairs with videos that the first stage takes for answers."""
        loop, sampling = settings.loops["train"], settings.sampling
        part, loss = self.trained(model.to(loop.device))
        yield CandidateTask(
            part, *self.inputs(model, train), train.pairs, lambda batch, epoch, generator: loss(batch),
            lambda: judge(self.run(model, val), val), loop.batch_size, sampling.even_types,
            hardest=hardest_videos(first_stage_of(train), train.pairs, sampling.pool),
            negatives=sampling.negatives,
        )  # fmt: skip

    def ranked_by(self, model: Any, split: Split, rank: Callable[..., Ranked]) -> Moments:
        """``rank`` for some queries at a time, in all videos with their first-stage scores."""
        scores = first_stage_of(split)

        def ranked(places: Integers, query: Tensor, mask: Tensor, context: Any) -> Ranked:
            first, last = int(places[0]), int(places[-1])
            table = scores(slice(first, last + 1))[places - first]
            first_stage = torch.from_numpy(table).to(query.device)
            return rank(query, mask, context, first_stage=first_stage)

        return rank_corpus(model, *self.inputs(model, split), ranked)


def first_stage_of(split: Split) -> VideoScores:
    """The scores of a split's first stage; raises :class:`InvalidValue` without any."""
    if split.first_stage is None:
        raise InvalidValue(
            "the split has no first_stage; give the scores of a retriever, for instance "
            "moviola.retrieval.stage1.video_scores"
        )
    return split.first_stage


def adamw(eps: float) -> OptimizerConfig:
    """AdamW as CONQUER and PREM are trained: a constant rate of 1e-4."""
    return OptimizerConfig(name="adamw", lr=1e-4, weight_decay=0.01, warmup=0.0, schedule="constant", eps=eps)
