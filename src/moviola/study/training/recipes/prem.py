"""PREM (section 4.2): the retriever for 100 epochs, then the localizer for 15."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moviola.features import Integers, QueryFeatures
from moviola.retrieval import Moments
from moviola.study.models.prem import Prem, PremApart
from moviola.study.training.batches import token_batch
from moviola.study.training.corpus import PooledVideos, best_videos, encoded_corpus
from moviola.study.training.data import Pairs, Split
from moviola.study.training.loop import LoopConfig, Task
from moviola.study.training.recipe import AnswerSettings
from moviola.study.training.recipes.ranking import CandidateRecipe, FirstStageRecipe, adamw, first_stage_of
from moviola.study.training.settings import TrainingSettings
from moviola.study.training.tasks.candidates import (
    CandidateSampling,
    CandidateTask,
    hardest_videos,
    require_candidates,
    without_answer,
)
from moviola.study.training.tasks.pairs import PairTask
from moviola.study.training.validation import NAMES, VIDEO_NAMES, judge, judge_videos

__all__ = ["PREM", "PREM_APART", "PREM_GIVEN"]


class PremRecipe(CandidateRecipe):
    """The trained retriever names the negatives of the localizer.

    Attributes:
        apart: whether a batch is of one stream.
    """

    architecture = "prem"
    optional_streams = frozenset({"visual_size", "subtitle_size"})
    apart = False

    # The paper's for TVR; the clipping of gradients is ours.
    settings = TrainingSettings(
        loops={
            "retriever": LoopConfig(
                epochs=100, batch_size=256, optimizer=adamw(eps=1e-8), patience=0, select="video nDCG@10"
            ),
            "localizer": LoopConfig(epochs=15, batch_size=32, optimizer=adamw(eps=1e-8), patience=0),
        },
        sampling=CandidateSampling(negatives=4),
    )

    def phases(self, model: Any, train: Split, val: Split, settings: TrainingSettings) -> Iterable[Task[Any]]:
        """The retriever on pairs, then the localizer on candidates."""
        prem: Prem | PremApart = model
        sampling, pairs = settings.sampling, train.pairs
        # Before the retriever is trained, whose scores decide which candidates there are, but not how many.
        require_candidates(pairs, without_answer(pairs, sampling.pool), sampling.negatives)
        videos, queries = self.inputs(prem, train)

        loop = settings.loops["retriever"]
        prem.to(loop.device)  # val is evaluated with both halves, even while one is trained
        yield PairTask(
            prem.retriever, videos, queries, pairs,
            lambda batch, epoch, generator: prem.retriever_loss(batch),
            lambda: judge_videos(self.video_run(prem, val), val),
            loop.batch_size, sampling.even_types, self.apart,
        )  # fmt: skip

        loop = settings.loops["localizer"]
        prem.to(loop.device)
        yield CandidateTask(
            prem.localizer, videos, queries, pairs,
            lambda batch, epoch, generator: prem.localizer_loss(batch),
            lambda: judge(self.run(prem, val), val), loop.batch_size, sampling.even_types, self.apart,
            hardest=_hardest_of_retriever(prem, videos, queries, pairs, sampling.pool),
            negatives=sampling.negatives,
        )  # fmt: skip

    def measured(self, phase: str) -> tuple[str, ...]:
        """The retriever is measured by videos, the localizer by moments."""
        return VIDEO_NAMES if phase == "retriever" else NAMES


class PremApartRecipe(PremRecipe):
    """PREM for each stream apart; types are drawn evenly, since few queries may be about speech."""

    architecture = "prem-apart"
    optional_streams = frozenset()
    apart = True
    settings = replace(
        PremRecipe.settings,
        model={"shared_encoder": True},
        sampling=CandidateSampling(negatives=4, even_types=True),
    )


class PremGivenRecipe(FirstStageRecipe):
    """PREM† (Table 4): its localizer behind another system's ranking of videos, the paper's HERO.

    The model is PREM's, of which the retriever is not trained; hard negatives and the videos of an answer are
    the first stage's.
    """

    architecture = "prem"
    optional_streams = PremRecipe.optional_streams
    settings = TrainingSettings(
        loops={"train": PremRecipe.settings.loops["localizer"]}, sampling=PremRecipe.settings.sampling
    )

    def trained(self, model: Any) -> tuple[nn.Module, Callable[[Any], Mapping[str, Tensor]]]:
        """The localizer alone."""
        return model.localizer, model.localizer_loss

    def moments(self, model: Any, split: Split, how: AnswerSettings) -> Moments:
        """The best moments of each query in the first stage's best videos."""
        self.require_unscored(how)
        return self.ranked_by(model, split, model.rank_given)

    def rank_videos(self, model: Any, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 videos of each query, in the order of the first stage."""
        self.require_unscored(how)
        return best_videos(first_stage_of(split), split.features, len(split.queries))


PREM = PremRecipe()
PREM_APART = PremApartRecipe()
PREM_GIVEN = PremGivenRecipe()


def _hardest_of_retriever(
    model: Prem | PremApart, videos: PooledVideos, queries: QueryFeatures, pairs: Pairs, count: int
) -> Integers:
    """:func:`hardest_videos` of a trained retriever."""
    device = next(model.parameters()).device
    with torch.inference_mode():
        context = encoded_corpus(model, videos)

        def scores(some: slice) -> NDArray[np.float32]:
            query, mask = token_batch(queries, np.arange(some.start, some.stop))
            scored = model.video_scores(query.to(device), mask.to(device), context).cpu()
            return cast("NDArray[np.float32]", scored.numpy())

        return hardest_videos(scores, pairs, count)
