"""Common base of the recipes of models that rank a whole corpus.

They are the baselines of TVR-Ranking (appendix C) and PREM. Where the settings depart from the papers: a
moment's end is the last clip that it touches for all of them, so that one at a video's end can be learned;
limits on a moment's length are the papers' for TVR in seconds, whatever a clip's length; those of other sets
are in :mod:`moviola.training.data_sets`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from torch import nn

from moviola.errors import InvalidValue
from moviola.features import QueryFeatures, VideoFeatures
from moviola.retrieval import Moments
from moviola.retrieval.corpus import PooledVideos, rank_corpus, rank_videos
from moviola.training.data import Sizes, Split
from moviola.training.optimizers import OptimizerConfig
from moviola.training.recipe import AnswerSettings, Recipe

__all__ = ["RankerRecipe", "adamw", "feature_sizes", "longest_candidate", "span_limits", "streams"]

SHORTEST_SECONDS, LONGEST_SECONDS = 3.0, 22.5
"""Length of a moment of XML and ReLoCLNet in TVR: 2 to 15 clips of 1.5 s."""

LONGEST_CANDIDATE_SECONDS = 36.0
"""Maximum length of a moment of CONQUER and PREM in TVR: 24 clips of 1.5 s."""


class RankerRecipe(Recipe):
    """A model that ranks the moments of all videos of a split."""

    @abstractmethod
    def videos(self, model: Any, features: VideoFeatures) -> PooledVideos:
        """Videos in the model's form."""

    def queries(self, model: Any, queries: QueryFeatures) -> QueryFeatures:
        """Queries in the model's form: with as many tokens as it has positions."""
        return queries.cut(model.config.max_tokens)

    def moments(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 moments of each query."""
        self.require_unscored(how)
        return rank_corpus(model, self.videos(model, split.features), self.queries(model, split.queries))

    def rank_videos(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """The best 100 videos of each query, by the model's own score of a video."""
        self.require_unscored(how)
        return rank_videos(model, self.videos(model, split.features), self.queries(model, split.queries))

    def require_unscored(self, how: AnswerSettings) -> None:
        """Raise :class:`InvalidValue` if scores of `moviola search` are requested."""
        if how.scored:
            raise InvalidValue(
                f"{self.architecture}: `moviola search` does not use it, so it shows no scores of it; "
                "ask for the model's own (as_search=False)"
            )


def streams(model: Any, features: VideoFeatures) -> VideoFeatures:
    """The features with the streams that a model takes."""
    return features if model.config.subtitle_size else features.without_subtitles()


def feature_sizes(sizes: Sizes, more: int = 0) -> dict[str, Any]:
    """Settings that are the features' sizes; clips have ``more`` numbers besides."""
    return {
        "visual_size": sizes.visual + more,
        "subtitle_size": sizes.subtitle + more if sizes.subtitle else 0,
        "query_size": sizes.query,
        "clip_seconds": sizes.clip_seconds,
    }


def span_limits(clip_seconds: float) -> dict[str, int]:
    """Smallest distance of a moment's last clip from its first, and the first that is too large."""
    shortest = max(0, round(SHORTEST_SECONDS / clip_seconds) - 1)
    longest = max(shortest + 1, round(LONGEST_SECONDS / clip_seconds))
    return {"shortest_span": shortest, "longest_span": longest}


def longest_candidate(clip_seconds: float) -> int:
    """The first distance of a moment's last clip from its first that is too large."""
    return max(1, round(LONGEST_CANDIDATE_SECONDS / clip_seconds))


def adamw(eps: float) -> OptimizerConfig:
    """AdamW as CONQUER and PREM are trained: a constant rate of 1e-4."""
    return OptimizerConfig(name="adamw", lr=1e-4, weight_decay=0.01, warmup=0.0, schedule="constant", eps=eps)
