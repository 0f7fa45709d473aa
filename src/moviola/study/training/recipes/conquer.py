"""CONQUER: moments within the best videos of a first stage."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from moviola.retrieval import Moments
from moviola.study.models.batches import Ranked
from moviola.study.models.conquer import Context
from moviola.study.training.corpus import ANSWERS, best_videos
from moviola.study.training.data import Split
from moviola.study.training.loop import LoopConfig
from moviola.study.training.recipe import AnswerSettings
from moviola.study.training.recipes.ranking import FirstStageRecipe, adamw, first_stage_of
from moviola.study.training.settings import TrainingSettings
from moviola.study.training.tasks.candidates import CandidateSampling

__all__ = ["CONQUER"]


class ConquerRecipe(FirstStageRecipe):
    """AdamW, batches of 16, three negatives, stopped after three evaluations without a better value.

    The first stage's scores must not be negative; see :func:`moviola.retrieval.stage1.video_scores`.
    """

    architecture = "conquer"

    # The release's; epochs and the clipping of gradients are ours.
    settings = TrainingSettings(
        loops={"train": LoopConfig(epochs=100, batch_size=16, optimizer=adamw(eps=1e-6), patience=3)},
        sampling=CandidateSampling(),
    )

    def moments(self, model: Any, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 moments of each query in the first stage's best videos."""
        self.require_unscored(how)
        return self.ranked_by(model, split, model.rank)

    def rank_videos(self, model: Any, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 videos of each query.

        Under the general similarity they are in the order of the first stage, which the model does not
        change; else the model re-ranks the candidates, see :meth:`Conquer.video_terms`.
        """
        self.require_unscored(how)
        if not model.similarity.ranks_videos:
            return best_videos(first_stage_of(split), split.features, len(split.queries))

        def rank(query: Tensor, mask: Tensor, context: Context, *, first_stage: Tensor) -> Ranked:
            rows, scores = model.rank_videos(query, mask, context, first_stage=first_stage, keep=ANSWERS)
            return Ranked.whole_videos(rows, scores)

        return self.ranked_by(model, split, rank)


CONQUER = ConquerRecipe()
