"""Reel as a refiner: every video is read once, without the query; see :mod:`moviola.models.reel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moviola.features import VideoFeatures
from moviola.models.reel import Reel
from moviola.models.spans import ClipWindows
from moviola.retrieval.refiners.trained import TrainedRefiner

__all__ = ["ReelRefiner"]


@dataclass(frozen=True)
class ReelRefiner(TrainedRefiner[Reel]):
    """What Reel makes of a video is kept in the features' cache, in half precision."""

    @property
    def max_clips(self) -> int:
        """No limit: Reel takes windows of any length."""
        return 1 << 30

    @property
    def labels(self) -> str:
        """The end is the last clip inside the moment."""
        return "spr"

    @property
    def max_tokens(self) -> int:
        """Most tokens of a query that the model reads."""
        return self.model.config.max_tokens

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
        visual = torch.from_numpy(features.read(video))[None].to(self.device)
        subtitles = features.read_subtitles(video) if self.model.config.subtitle_size else None
        given = None if subtitles is None else torch.from_numpy(subtitles)[None].to(self.device)
        with torch.inference_mode():
            mask = torch.ones(visual.shape[:2], device=self.device)
            return self.model.encode_context(visual, mask, given).clips[0].cpu().numpy().astype(np.float16)

    def decode(
        self,
        query: tuple[Tensor, Tensor],
        features: VideoFeatures,
        video: NDArray[np.int64],
        windows: ClipWindows,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits (N,), first and last clip (N,) of the best span of each window."""
        encodings = {place: self._encoding(features, place) for place in np.unique(video).tolist()}
        places = zip(video.tolist(), windows.first.tolist(), windows.stop.tolist(), strict=True)
        parts = [encodings[place][first:stop] for place, first, stop in places]
        # The query's dot products with all clips at once; only these are padded.
        clips = torch.from_numpy(np.concatenate(parts)).to(self.device).float()
        similarity = torch.einsum("rh,nrh->nr", self.model.encode_query(*query)[0], clips)
        lengths = [len(part) for part in parts]
        padded = torch.nn.utils.rnn.pad_sequence(list(torch.split(similarity, lengths)), batch_first=True)
        mask = torch.arange(padded.shape[1]) < torch.tensor(lengths)[:, None]
        return self.model.best_spans(padded.transpose(1, 2), mask.float().to(self.device))
