"""Common base of trained refiners: proposals as windows of clips, and times from clips."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.features import MAX_TOKENS, Integers, QueryFeatures, VideoFeatures
from moviola.models.clip_windows import LABELS, ClipWindows
from moviola.retrieval.calibration import Calibration
from moviola.retrieval.encoded_windows import context_windows
from moviola.retrieval.proposals import Proposals
from moviola.retrieval.refiners.contract import CONTEXT, SAME_MOMENT, Refined

__all__ = ["Cuts", "Decoded", "TrainedRefiner"]

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
        calibration, suppress_above: see :class:`moviola.retrieval.Refiner`.
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
        """Whether the model reads the query's tokens, not one vector."""
        return True

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of a query that the model reads."""
        return MAX_TOKENS

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
    def decode(self, queries: QueryFeatures, query: int, cuts: Cuts, windows: ClipWindows) -> Decoded:
        """The best span of each of N windows for one query by its place.

        ``cuts`` names the videos that the N windows are of, and has their cuts for a model that reads them.
        """

    def refine(
        self, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The best span of each proposal; see :meth:`moviola.retrieval.Refiner.refine`."""
        video = proposals.video
        if not len(video):
            return Refined(proposals.start, proposals.end, proposals.score)
        windows = context_windows(
            features, video, proposals.start, proposals.end, context=self.context, max_clips=self.max_clips
        )
        cuts = Cuts(features, video)
        score, first, last = self.decode(queries.cut(self.max_tokens), query, cuts, windows)
        convention = LABELS[self.labels]
        # Where the end is the clip after the moment, a moment in a window of one clip has no such clip.
        last = np.maximum(last, first + (0 if convention.end_inside else 1))
        seconds = windows.seconds(first, last, convention, features.durations[video])
        added = np.float32(self.proposal_weight) * proposals.score if self.proposal_weight else np.float32(0)
        return Refined(*cuts.moved(*features.clip_spans(video, *seconds)), score + added)


@dataclass(frozen=True)
class Cuts:
    """Cuts in the videos of N moments, looked up once, when first needed.

    Attributes:
        video: (N,) int64, places of the videos.
    """

    features: VideoFeatures
    video: Integers

    @cached_property
    def _known(self) -> tuple[Integers, NDArray[np.float64]]:
        """Where the clips of each moment's video begin (N,), and the times of cuts by clip."""
        videos, own = np.unique(self.video, return_inverse=True)
        offsets, times = self.features.cuts_of(videos)
        return offsets[own], times

    def at(self, clips: Integers) -> NDArray[np.float64]:
        """(n, N) seconds of the cuts at which clips (n, N) begin; behind the end as of the last clip."""
        begin, times = self._known
        return times[begin + np.minimum(clips, self.features.counts[self.video] - 1)]

    def moved(
        self, start: NDArray[np.float64], end: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Start and end (N,) in seconds, boundaries of clips, each moved to the cut that is nearest to it.

        Within the last clip, which may be a short one, the start alone moves.
        """
        if self.features.shots is None:
            return start, end
        seconds, long = np.stack([start, end]), self.features.clip_seconds
        cut = self.at(np.rint(seconds / long).astype(np.int64))
        start, moved = np.where(np.abs(cut - seconds) <= long / 2, cut, seconds)
        return start, np.where(end < self.features.durations[self.video], moved, end)
