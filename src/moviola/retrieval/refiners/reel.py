"""Reel as a refiner: every video is encoded once, without the query; see :mod:`moviola.models.reel`.

It runs a :class:`ReelParts`: the model itself (:mod:`moviola.retrieval.refiners.by_torch`), or its compiled
graphs, which need no torch (:mod:`moviola.retrieval.compiled_models`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures, clips_by_video
from moviola.index.half_rows import widened
from moviola.models.clip_windows import ClipWindows
from moviola.retrieval.refiners.trained import Decoded, TrainedRefiner

__all__ = ["ReelParts", "ReelRefiner"]

Floats = NDArray[np.float32]


class ReelParts(Protocol):
    """The parts of a Reel; h is its hidden size."""

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of a query."""

    @property
    def reads_subtitles(self) -> bool:
        """Whether it has a stream of subtitles."""

    @property
    def reads_cuts(self) -> bool:
        """Whether scores depend on where videos are cut."""

    def encode_clips(self, visual: Floats, subtitles: Floats | None) -> Floats:
        """(L, 3, h) of a video's clips (L, d) and of speech during them (L, d')."""

    def encode_query(self, tokens: Floats) -> Floats:
        """(3, h) of a query's tokens (n, d)."""

    def best_spans(self, similarity: Floats, mask: Floats, cuts: Floats | None) -> Decoded:
        """Logits, first and last clip (N,) of the best span of each window.

        Args:
            similarity: (N, 3, L), dot products of clips with a query.
            mask: (N, L), 1 for a clip.
            cuts: (N, L), 1 for a clip that begins at a cut; None where the model reads none.
        """


@dataclass(frozen=True)
class ReelRefiner(TrainedRefiner[ReelParts]):
    """Refines with Reel; encodings of videos are kept in the features' cache, in half precision."""

    max_clips = 1 << 30
    """No limit: Reel takes windows of any length."""
    labels = "spr"
    """The end is the last clip inside the moment."""

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of a query that the model reads."""
        return self.model.max_tokens

    def evidence(self, score: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The scores (n,) themselves, which are logits."""
        return np.asarray(score, dtype=np.float64)

    def prepare(self, features: VideoFeatures, video: int) -> None:
        """Encode a video whole, unless its encoding is in the cache."""
        self._encoding(features, video)

    def _encoding(self, features: VideoFeatures, video: int) -> NDArray[np.float16]:
        """(n, 3, h), one row per clip."""
        return features.cache.get(
            self.revision,
            int(features.keys[video]),
            int(features.counts[video]),
            lambda: self._encoded(features, video),
        )

    def _encoded(self, features: VideoFeatures, video: int) -> NDArray[np.float16]:
        subtitles = features.read_subtitles(video) if self.model.reads_subtitles else None
        return self.model.encode_clips(features.read(video), subtitles).astype(np.float16)

    def decode(
        self,
        queries: QueryFeatures,
        query: int,
        features: VideoFeatures,
        video: NDArray[np.int64],
        windows: ClipWindows,
    ) -> Decoded:
        """Logits (N,), first and last clip (N,) of the best span of each window."""
        longest = int((windows.stop - windows.first).max())
        clip = windows.first[:, None] + np.arange(longest)
        there = clip < windows.stop[:, None]
        dots, place = self._dots(
            self.model.encode_query(queries.tokens(query)),
            features,
            np.broadcast_to(video[:, None], clip.shape)[there],
            clip[there],
        )
        similarity = np.zeros((*clip.shape, dots.shape[1]), np.float32)
        similarity[there] = dots[place]
        return self.model.best_spans(
            np.ascontiguousarray(similarity.transpose(0, 2, 1)),
            there.astype(np.float32),
            _cuts(features, video, clip, there) if self.model.reads_cuts else None,
        )

    def _dots(
        self, query: Floats, features: VideoFeatures, video: NDArray[np.int64], clip: NDArray[np.int64]
    ) -> tuple[Floats, NDArray[np.int64]]:
        """The query's dot products (m, 3) with clips, each computed once for all windows.

        Also the place (n,) among them of each of n clips ``clip`` of the videos ``video``.
        """
        parts, place = clips_by_video(video, clip)
        encodings = [self._encoding(features, one)[clips] for one, clips in parts]
        return np.einsum("rh,nrh->nr", query, widened(np.concatenate(encodings))), place


def _cuts(
    features: VideoFeatures,
    video: NDArray[np.int64],
    clip: NDArray[np.int64],
    there: NDArray[np.bool_],
) -> Floats:
    """(N, L): 1 for the clips of videos (N,) that begin at a cut, where a clip is ``there``."""
    videos, own = np.unique(video, return_inverse=True)
    offsets, times = features.cuts_of(videos)
    cuts = np.zeros(clip.shape, np.float32)
    cuts[there] = ~np.isnan(times[(offsets[own, None] + clip)[there]])
    return cuts
