"""SPR's own refiners: every window is encoded separately, and compared with the query (SPR, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures
from moviola.models.clip_windows import ClipWindows
from moviola.retrieval.calibration import logarithm
from moviola.retrieval.encoded_windows import EncodedWindows
from moviola.retrieval.model_parts import WindowParts
from moviola.retrieval.refiners.trained import Cuts, Decoded, TrainedRefiner

__all__ = ["WindowRefiner"]

Floats = NDArray[np.float32]


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

    def query_rows(self, queries: QueryFeatures, query: int) -> Floats:
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
