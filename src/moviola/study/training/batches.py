"""Rows of different lengths as batches, for models in training and in retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from moviola.features import Integers, QueryFeatures, VideoFeatures
from moviola.retrieval.encoded_windows import padded_rows, read_windows
from moviola.retrieval.saved.clip_windows import ClipWindows

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["cut_batch", "padded", "token_batch", "video_batch", "widened", "window_batch"]


def padded(arrays: Sequence[NDArray[np.float32]], length: int = 0) -> tuple[Tensor, Tensor]:
    """:func:`moviola.retrieval.encoded_windows.padded_rows` as tensors."""
    rows, mask = padded_rows(arrays, length)
    return torch.from_numpy(rows), torch.from_numpy(mask)


def widened(
    length: int, visual: Tensor, mask: Tensor, subtitles: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """A batch (N, L, d) padded with zeros to ``length`` clips; for models to which padding matters."""
    more = (0, length - mask.shape[1])
    wider = None if subtitles is None else F.pad(subtitles, (0, 0, *more))
    return F.pad(visual, (0, 0, *more)), F.pad(mask, more), wider


def token_batch(queries: QueryFeatures, rows: Integers, length: int = 0) -> tuple[Tensor, Tensor]:
    """Tokens (B, Lq, d) float32 of some queries by place, and their mask (B, Lq); Lq is ``length``, or for 0
    that of the longest.
    """
    return padded([queries.tokens(row) for row in rows.tolist()], length)


def video_batch(features: VideoFeatures, rows: Integers) -> tuple[Tensor, Tensor, Tensor | None]:
    """Whole videos by place: visual (B, L, d), mask (B, L) and subtitles (B, L, d), None without them."""
    visual, mask = padded([features.read(row) for row in rows.tolist()])
    said = [array for row in rows.tolist() if (array := features.read_subtitles(row)) is not None]
    return visual, mask, padded(said)[0] if said else None


def cut_batch(features: VideoFeatures, rows: Integers) -> Tensor:
    """Cuts of whole videos by place: (B, L) float32, 1 for a clip that begins at one."""
    offsets, times = features.cuts_of(rows)
    at_cut = (~np.isnan(times)).astype(np.float32)[:, None]
    return padded(np.split(at_cut, offsets[1:-1]))[0][..., 0]


def window_batch(
    features: VideoFeatures, video: Integers, windows: ClipWindows
) -> tuple[Tensor, Tensor, Tensor | None]:
    """:func:`moviola.retrieval.encoded_windows.read_windows` as tensors."""
    visual, mask, subtitles = read_windows(features, video, windows)
    heard = None if subtitles is None else torch.from_numpy(subtitles)
    return torch.from_numpy(visual), torch.from_numpy(mask), heard
