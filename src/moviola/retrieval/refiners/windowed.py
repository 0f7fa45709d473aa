"""SPR's own refiners: every window is encoded separately, and compared with the query (SPR, section 3.3)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moviola.features import Integers, QueryFeatures, VideoFeatures
from moviola.models.clip_windows import ClipWindows
from moviola.models.reloclnet import Context, ReLoCLNet
from moviola.models.spr import SprClip, SprClipContext
from moviola.retrieval.batches import token_batch
from moviola.retrieval.calibration import logarithm
from moviola.retrieval.encoded_windows import EncodedWindows
from moviola.retrieval.refiners.trained import Decoded, TrainedRefiner

__all__ = ["SprClipRefiner", "SprReloRefiner", "WindowRefiner"]

Floats = NDArray[np.float32]
Model = TypeVar("Model", bound=torch.nn.Module)


@dataclass(frozen=True)
class WindowRefiner(TrainedRefiner[Model]):
    """A refiner whose windows are encoded once for all queries."""

    @property
    def labels(self) -> str:
        """Meaning of the model's end clips."""
        return cast("str", self._config.labels)

    @property
    def max_clips(self) -> int:
        """Maximum clips of a window; a longer one is pooled."""
        return cast("int", self._config.max_clips)

    @property
    def _config(self) -> Any:
        return self.model.config

    def evidence(self, score: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The logarithms of scores (n,), which are products of probabilities and an exponential."""
        return logarithm(score)

    def streams(self, features: VideoFeatures) -> VideoFeatures:
        """The features with the model's streams."""
        return features

    @abstractmethod
    def encode(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        """Encodings of N windows, (N, L, ...)."""

    @abstractmethod
    def context_of(self, kept: Tensor, mask: Tensor) -> Any:
        """Encoded windows as the model's context."""

    @property
    def fixed(self) -> int:
        """Number of clips to which every window is padded, see
        :class:`moviola.retrieval.encoded_windows.EncodedWindows`.
        """
        return 0

    @cached_property
    def _windows(self) -> EncodedWindows:
        def encode(visual: Floats, mask: Floats, subtitles: Floats | None) -> Floats:
            given = [None if each is None else self._tensor(each) for each in (visual, mask, subtitles)]
            return cast("Floats", self.encode(*cast("Any", given)).cpu().numpy())

        return EncodedWindows(encode, fixed=self.fixed)

    def query_batch(self, queries: QueryFeatures, rows: Integers) -> tuple[Tensor, Tensor]:
        """Model input of B queries by place: (B, n, d) float32, and its mask (B, n)."""
        tokens, mask = token_batch(queries.cut(self.max_tokens), rows)
        return tokens.to(self.device), mask.to(self.device)

    def _tensor(self, array: Floats) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return next(self.model.parameters()).device

    def decode(
        self,
        queries: QueryFeatures,
        query: int,
        features: VideoFeatures,
        video: NDArray[np.int64],
        windows: ClipWindows,
    ) -> Decoded:
        """Scores (N,) above 0, clip of start and of end (N,) of the best span of each window."""
        with torch.inference_mode():
            batch = self.query_batch(queries, np.array([query]))
            kept, mask = self._windows(self.streams(features), video, windows)
            context = self.context_of(self._tensor(kept), self._tensor(mask))
            refined = cast("Any", self.model).refine(*batch, context)
            return cast("Decoded", tuple(part.cpu().numpy() for part in refined))


@dataclass(frozen=True)
class SprClipRefiner(WindowRefiner[SprClip]):
    """SPR_CLIP: pictures alone, and a query is its one vector."""

    @property
    def needs_tokens(self) -> bool:
        """False: the query's vector is enough."""
        return False

    def streams(self, features: VideoFeatures) -> VideoFeatures:
        """Pictures alone."""
        return features.without_subtitles()

    def encode(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        """Frames of N windows in the model's space, (N, L, d)."""
        return self.model.encode_context(visual, mask).frames

    def context_of(self, kept: Tensor, mask: Tensor) -> SprClipContext:
        """Encoded windows as the model's context."""
        return SprClipContext(kept, mask)

    def query_batch(self, queries: QueryFeatures, rows: Integers) -> tuple[Tensor, Tensor]:
        """The vectors of B queries (B, 1, d), and their mask (B, 1)."""
        vectors = torch.from_numpy(queries.vectors[rows])[:, None].to(self.device)
        return vectors, torch.ones(len(rows), 1, device=self.device)


@dataclass(frozen=True)
class SprReloRefiner(WindowRefiner[ReLoCLNet]):
    """SPR_ReLo: ReLoCLNet on windows, with subtitles where it was trained with them."""

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of a query that the model reads."""
        return self.model.config.max_tokens

    @property
    def fixed(self) -> int:
        """The model's length if padding counts as in its release, else 0."""
        return self.model.config.max_clips if self.model.config.reference_padding else 0

    def streams(self, features: VideoFeatures) -> VideoFeatures:
        """Pictures, and subtitles where the model has a stream of them."""
        return features if self.model.config.subtitle_size else features.without_subtitles()

    def encode(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Tensor:
        """Both streams of N windows, (N, L, streams, h)."""
        return torch.stack(self.model.encode_context(visual, mask, subtitles).clips, dim=2)

    def context_of(self, kept: Tensor, mask: Tensor) -> Context:
        """Encoded windows as the model's context."""
        return Context(mask, tuple(kept.unbind(2)))
