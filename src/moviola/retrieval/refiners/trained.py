"""Common base of trained refiners: proposals as windows of clips, and times from clips."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.features import MAX_TOKENS, Integers, QueryFeatures, VideoFeatures
from moviola.models.clip_windows import LABELS, ClipWindows
from moviola.retrieval.calibration import Calibration
from moviola.retrieval.encoded_windows import context_windows
from moviola.retrieval.proposals import Proposals
from moviola.retrieval.refiners.contract import CONTEXT, SAME_MOMENT, Refined

__all__ = ["Decoded", "TrainedRefiner", "moved_to_cuts"]

Model = TypeVar("Model")

Decoded = tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]
"""Score, clip of start and clip of end, (N,) each, of N windows."""


@dataclass(frozen=True)
class TrainedRefiner(ABC, Generic[Model]):
    """A model that decodes the best span of a window of clips.

    Attributes:
        model: ready to run.
        revision: changes with the model's weights and settings; key of caches.
        context: seconds on both sides of a proposal.
        calibration: see :class:`moviola.retrieval.refiners.contract.Refiner`.
        suppress_above: likewise.
        proposal_weight: of a proposal's own score, a cosine, which is added to its moment's; >= 0. SPR's
            refiners have 0.
    """

    in_encoder_space = False
    """Scores have the model's own scale."""
    longest_shot = None
    """Models were trained on proposals of stage 2."""

    model: Model
    revision: str
    context: float = CONTEXT
    calibration: Calibration | None = None
    suppress_above: float = SAME_MOMENT
    proposal_weight: float = 0.0

    @property
    def needs_tokens(self) -> bool:
        """Whether the model reads the query's tokens: True, except for models of whole sentences."""
        return True

    @property
    @abstractmethod
    def max_clips(self) -> int:
        """Maximum clips of a window; a longer one is pooled."""

    @property
    @abstractmethod
    def labels(self) -> str:
        """Meaning of the model's end clips, a key of :data:`moviola.models.clip_windows.LABELS`."""

    @abstractmethod
    def evidence(self, score: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Evidence of matching scores (n,): linear in the log odds."""

    def prepare(self, features: VideoFeatures, video: int) -> None:
        """Nothing to precompute, unless a model reads videos whole."""

    @abstractmethod
    def decode(
        self,
        queries: QueryFeatures,
        query: int,
        features: VideoFeatures,
        video: NDArray[np.int64],
        windows: ClipWindows,
    ) -> Decoded:
        """The best span of each of N windows for one query.

        Args:
            queries: with the query.
            query: its place among them.
            features: the videos.
            video: (N,) places of videos.
            windows: in these videos.
        """

    def refine(
        self, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The best span of each proposal; see :meth:`moviola.retrieval.refiners.contract.Refiner.refine`."""
        if not len(proposals.video):
            nothing = np.empty(0)
            return Refined(nothing, nothing, nothing)
        windows = context_windows(
            features, proposals.video, proposals.start, proposals.end,
            context=self.context, max_clips=self.max_clips,
        )  # fmt: skip
        score, first, last = self.decode(
            queries.cut(self.max_tokens), query, features, proposals.video, windows
        )
        convention = LABELS[self.labels]
        # Where the end is the clip after the moment, a moment in a window of one clip has no such clip.
        last = np.maximum(last, first + (0 if convention.end_inside else 1))
        seconds = windows.seconds(first, last, convention, features.durations[proposals.video])
        added = np.float32(self.proposal_weight) * proposals.score if self.proposal_weight else np.float32(0)
        spans = features.clip_spans(proposals.video, *seconds)
        return Refined(*moved_to_cuts(features, proposals.video, *spans), score + added)

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of a query that the model reads."""
        return MAX_TOKENS


def moved_to_cuts(
    features: VideoFeatures, video: Integers, start: NDArray[np.float64], end: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Moments that begin and end at cuts where a cut is nearest to the boundary of clips that was found.

    Args:
        features: the videos.
        video: (N,) places of videos.
        start, end: (N,) seconds, boundaries of clips or the end of the video.

    Returns:
        Start and end (N,) float64 seconds; unchanged where shots are unknown.
    """
    if features.shots is None:
        return start, end
    videos, own = np.unique(video, return_inverse=True)
    offsets, times = features.cuts_of(videos)

    def moved(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        clip = np.rint(seconds / features.clip_seconds).astype(np.int64)
        cut = times[offsets[own] + np.minimum(clip, features.counts[video] - 1)]
        return np.where(np.abs(cut - seconds) <= features.clip_seconds / 2, cut, seconds)

    # Within the last clip, which may be a short one, the start alone moves.
    return moved(start), np.where(end < features.durations[video], moved(end), end)
