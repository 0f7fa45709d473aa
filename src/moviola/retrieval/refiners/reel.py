"""Reel as a refiner: every video is encoded once, without the query; see :mod:`moviola.models.reel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures, clips_by_video
from moviola.index.half_rows import widened
from moviola.models.clip_windows import ClipWindows
from moviola.retrieval.model_parts import ReelParts
from moviola.retrieval.refiners.trained import Cuts, Decoded, TrainedRefiner

__all__ = ["ReelRefiner"]


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
        """(n, 3, h), one row per clip."""

        def encoded() -> NDArray[np.float16]:
            subtitles = features.read_subtitles(video) if self.model.settings["subtitle_size"] else None
            return self.model.encode_clips(features.read(video), subtitles).astype(np.float16)

        count = int(features.counts[video])
        return features.cache.get(self.revision, int(features.keys[video]), count, encoded)

    def decode(self, queries: QueryFeatures, query: int, cuts: Cuts, windows: ClipWindows) -> Decoded:
        """Logits (N,), first and last clip (N,) of the best span of each window."""
        longest = int((windows.stop - windows.first).max())
        clip = windows.first[:, None] + np.arange(longest)
        there = clip < windows.stop[:, None]
        # The query's dot products with clips, each computed once for all windows.
        parts, place = clips_by_video(np.broadcast_to(cuts.video[:, None], clip.shape)[there], clip[there])
        encodings = [self._encoding(cuts.features, one)[clips] for one, clips in parts]
        encoded = self.model.encode_query(queries.tokens(query))
        dots = np.einsum("rh,nrh->nr", encoded, widened(np.concatenate(encodings)))
        similarity = np.zeros((*clip.shape, dots.shape[1]), np.float32)
        similarity[there] = dots[place]
        at_cut = None
        if self.model.settings.get("cuts"):
            at_cut = (~np.isnan(cuts.at(clip.T).T) & there).astype(np.float32)
        return self.model.best_spans(
            np.ascontiguousarray(similarity.transpose(0, 2, 1)), there.astype(np.float32), at_cut
        )
