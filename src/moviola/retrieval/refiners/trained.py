"""Trained refiners: proposals as windows of clips, and times from clips.

Reel encodes every video once, without the query; SPR's own refiners encode
every window separately, and compare it with the query (SPR, section 3.3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.features import MAX_TOKENS, Integers, QueryFeatures, VideoFeatures, clips_by_video
from moviola.files.halves import widened
from moviola.retrieval.calibration import Calibration, logarithm
from moviola.retrieval.encoded_windows import EncodedWindows, context_windows
from moviola.retrieval.model_parts import Decoded, ReelParts, WindowParts
from moviola.retrieval.proposals import Proposals
from moviola.retrieval.refiners.contract import CONTEXT, SAME_MOMENT, Refined
from moviola.retrieval.saved.clip_windows import LABELS, ClipWindows

__all__ = ["Cuts", "ReelRefiner", "TrainedRefiner", "WindowRefiner"]

Model = TypeVar("Model")

# Seconds of a span at the edge of its window that may be a part of a moment. Completing longer ones too makes
# two moments that follow each other one: in a single video nDCG@10 falls from .935 to .901.
_PART = 3.0


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
        """Meaning of the model's end clips, a key of :data:`moviola.retrieval.saved.clip_windows.LABELS`."""

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
        score, first, last, answerable = self.decode(queries.cut(self.max_tokens), query, cuts, windows)
        convention = LABELS[self.labels]
        # Where the end is the clip after the moment, a moment in a window of one clip has no such clip.
        last = np.maximum(last, first + (0 if convention.end_inside else 1))
        seconds = windows.seconds(first, last, convention, features.durations[video])
        added = np.float32(self.proposal_weight) * proposals.score if self.proposal_weight else np.float32(0)
        times = cuts.moved(*features.clip_spans(video, *seconds))
        return Refined(*times, score + added, None if answerable is None else float(answerable.max()))


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

    def at(self, clips: Integers, rows: Integers | slice = slice(None)) -> NDArray[np.float64]:
        """(n, M) seconds of the cuts at which clips (n, M) begin; behind the end those of the last clip.

        ``rows`` are the moments (M,) in whose videos they lie; by default all N.
        """
        begin, times = self._known
        return times[begin[rows] + np.minimum(clips, self.features.counts[self.video[rows]] - 1)]

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


@dataclass(frozen=True)
class ReelRefiner(TrainedRefiner[ReelParts]):
    """Refines with Reel; encodings of videos are kept in the features' cache, in half precision."""

    max_clips = 1 << 30
    """No limit: Reel takes windows of any length."""
    labels = "spr"
    """The end is the last clip inside the moment."""

    @property
    def max_tokens(self) -> int:
        return int(self.model.settings["max_tokens"])

    def evidence(self, score: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The scores (n,) themselves, which are logits."""
        return np.asarray(score, dtype=np.float64)

    def prepare(self, features: VideoFeatures, video: int) -> None:
        """Encode a video whole, unless its encoding is in the cache."""
        self._encoding(features, video)

    def _encoding(self, features: VideoFeatures, video: int) -> NDArray[np.float16]:
        """(n, R, h), one row per clip."""

        def encoded() -> NDArray[np.float16]:
            subtitles = features.read_subtitles(video) if self.model.settings["subtitle_size"] else None
            return self.model.encode_clips(features.read(video), subtitles).astype(np.float16)

        count = int(features.counts[video])
        return features.cache.get(self.revision, int(features.keys[video]), count, encoded)

    def decode(self, queries: QueryFeatures, query: int, cuts: Cuts, windows: ClipWindows) -> Decoded:
        """Logits (N,), first and last clip (N,) of the best span of each window, and the log odds that it
        holds an answer where the model gives them.

        A short span at an edge of its window may be a part of a moment: it is decoded once more, with what
        lies behind that edge, and replaced by the best span there if that contains it. Its clips, counted
        from the window's first, may then lie outside of the window.
        """
        encoded = self.model.encode_query(queries.tokens(query))
        begin, stop, counts = windows.first, windows.stop, cuts.features.counts[cuts.video]
        found = self.best_spans(encoded, cuts, np.arange(len(begin)), begin, stop)
        score, first, last, _ = found
        longest = int(self.model.settings["longest_span"])
        short = (last - first + 1) * windows.clip_seconds <= _PART
        before = np.where(short & (first == 0), np.minimum(begin, longest), 0)
        after = np.where(short & (begin + last == stop - 1), np.minimum(counts - stop, longest), 0)
        rows = np.flatnonzero(before + after)
        if not len(rows):
            return found
        before = before[rows]
        wider = self.best_spans(encoded, cuts, rows, begin[rows] - before, (stop + after)[rows])
        start, end = wider.first - before, wider.last - before
        same = (start <= first[rows]) & (end >= last[rows])
        whole = rows[same]
        score[whole], first[whole], last[whole] = wider.score[same], start[same], end[same]
        return found

    def best_spans(
        self, encoded: NDArray[np.float32], cuts: Cuts, rows: Integers, begin: Integers, stop: Integers
    ) -> Decoded:
        """Logits, first and last clip, from ``begin``, of the best span of some windows (n,).

        Args:
            encoded: (R, h), of a query.
            cuts, rows: in which videos the windows lie: those of these moments (n,).
            begin, stop: (n,), their first clips, and one past the last.
        """
        clip = begin[:, None] + np.arange(int((stop - begin).max()))
        there = clip < stop[:, None]
        # The query's dot products with clips, each computed once for all windows.
        video = np.broadcast_to(cuts.video[rows, None], clip.shape)
        parts, place = clips_by_video(video[there], clip[there])
        encodings = [self._encoding(cuts.features, one)[clips] for one, clips in parts]
        dots = np.einsum("rh,nrh->nr", encoded, widened(np.concatenate(encodings)))
        similarity = np.zeros((*clip.shape, dots.shape[1]), np.float32)
        similarity[there] = dots[place]
        at_cut = None
        if self.model.settings.get("cuts"):
            at_cut = (~np.isnan(cuts.at(clip.T, rows).T) & there).astype(np.float32)
        return self.model.best_spans(
            np.ascontiguousarray(similarity.transpose(0, 2, 1)), there.astype(np.float32), at_cut
        )


@dataclass(frozen=True)
class WindowRefiner(TrainedRefiner[WindowParts]):
    """SPR_CLIP (pictures alone, and a query is its one vector) or SPR_ReLo; windows are encoded once."""

    @property
    def needs_tokens(self) -> bool:
        return "query_size" in self.model.settings

    @property
    def max_tokens(self) -> int:
        return int(self.model.settings.get("max_tokens", super().max_tokens))

    @property
    def labels(self) -> str:
        """Meaning of the model's end clips."""
        return str(self.model.settings["labels"])

    @property
    def max_clips(self) -> int:
        return int(self.model.settings["max_clips"])

    def evidence(self, score: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The logarithms of scores (n,), which are products of probabilities and an exponential."""
        return logarithm(score)

    def streams(self, features: VideoFeatures) -> VideoFeatures:
        """Pictures, and subtitles where the model has a stream of them."""
        return features if self.model.settings.get("subtitle_size") else features.without_subtitles()

    def query_rows(self, queries: QueryFeatures, query: int) -> NDArray[np.float32]:
        """(n, d), what the model reads of a query by place: its tokens, or its one vector."""
        if self.needs_tokens:
            return queries.cut(self.max_tokens).tokens(query)
        return queries.vectors[query : query + 1]

    @cached_property
    def _encoded(self) -> EncodedWindows:
        leaks = self.model.settings.get("reference_padding")
        return EncodedWindows(self.model.encode, fixed=self.max_clips if leaks else 0)

    def decode(self, queries: QueryFeatures, query: int, cuts: Cuts, windows: ClipWindows) -> Decoded:
        """Scores (N,) above 0, first and last clip (N,) of the best span of each window."""
        kept, mask = self._encoded(self.streams(cuts.features), cuts.video, windows)
        return self.model.best_spans(self.query_rows(queries, query), kept, mask)
