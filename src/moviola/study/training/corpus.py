"""Models that rank the moments of a whole corpus: every video encoded once, all queries ranked.

XML, ReLoCLNet, CONQUER and PREM. A video with more clips than the model's maximum is pooled, as in the
releases; its moments are decoded in the longer clips and returned in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moviola.features import Integers, QueryFeatures, VideoFeatures, normalise_rows
from moviola.retrieval.pipeline import Moments
from moviola.retrieval.proposals import offsets_of
from moviola.retrieval.saved.clip_windows import LABELS, pool_clips
from moviola.retrieval.stage1 import VideoScores, score_blocks
from moviola.study.models.batches import Ranked
from moviola.study.models.xml import with_endpoints
from moviola.study.training.batches import padded, token_batch, widened

__all__ = [
    "PooledVideos", "Ranking", "best_videos", "encoded_corpus", "rank_corpus", "rank_videos",
    "whole_videos",
]  # fmt: skip

END_INSIDE = LABELS["spr"]
"""The convention of all labels here: the end is the last clip that the moment touches."""

ANSWERS = 100
"""Maximum moments, or videos, per query."""

# Queries at a time.
_CHUNK = 16


@dataclass(frozen=True)
class PooledVideos:
    """Videos for a model with at most ``max_clips`` clips; longer ones are pooled.

    Attributes:
        endpoints: append the start and end of each clip in its video, as XML wants it.
        fixed: pad every video to ``max_clips``: a model for which padding matters as in its release gives the
            release's numbers at that length alone.
    """

    features: VideoFeatures
    max_clips: int
    endpoints: bool = False
    fixed: bool = False

    @cached_property
    def counts(self) -> Integers:
        """(V,) int64, clips of each video as the model sees it."""
        return np.minimum(self.features.counts, self.max_clips)

    @cached_property
    def stretch(self) -> NDArray[np.float64]:
        """(V,) number of stored clips per clip of the model; 1 without pooling."""
        return np.asarray(self.features.counts / self.counts, np.float64)

    def batch(self, rows: Integers) -> tuple[Tensor, Tensor, Tensor | None]:
        """Some videos by place: visual (B, L, d), mask (B, L) and subtitles (B, L, d), None without them."""
        visual, mask = padded([self._fit(self.features.read(row)) for row in rows.tolist()])
        said = (self.features.read_subtitles(row) for row in rows.tolist())
        heard = [self._fit(array) for array in said if array is not None]
        subtitles = padded(heard)[0] if heard else None
        if self.fixed:
            visual, mask, subtitles = widened(self.max_clips, visual, mask, subtitles)
        if self.endpoints:
            visual = with_endpoints(visual, mask)
            subtitles = None if subtitles is None else with_endpoints(subtitles, mask)
        return visual, mask, subtitles

    def _fit(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        if len(features) <= self.max_clips:
            return features
        pooled = pool_clips(features, self.max_clips)
        return normalise_rows(pooled) if self.features.unit else pooled

    def labels(self, video: Integers, start: NDArray[np.float64], end: NDArray[np.float64]) -> Integers:
        """(B, 2) int64, first and last clip of moments in seconds (B,) of videos by place (B,)."""
        seconds = self.features.clip_seconds * self.stretch[video]
        return END_INSIDE.labels(start, end, self.counts[video], seconds)


def encoded_corpus(model: nn.Module, videos: PooledVideos, *, batch: int = 64) -> Any:
    """All videos as the model's own context; encoded in batches of alike length.

    A context is a dataclass of tensors whose first dimension is videos; clips are the last dimension of its
    ``mask`` and the last but one of all others.
    """
    device, encoder = next(model.parameters()).device, cast("Any", model)
    order = np.argsort(videos.counts, kind="stable")
    parts: list[tuple[Tensor, Any]] = []
    for begin in range(0, len(order), batch):
        rows = order[begin : begin + batch]
        visual, mask, subtitles = videos.batch(rows)
        moved = None if subtitles is None else subtitles.to(device)
        context = encoder.encode_context(visual.to(device), mask.to(device), moved)
        parts.append((torch.from_numpy(rows).to(device), context))
    names = [field.name for field in fields(parts[0][1])]
    columns = ([(rows, getattr(context, name)) for rows, context in parts] for name in names)
    return type(parts[0][1])(**{name: _joined(name, own) for name, own in zip(names, columns, strict=True)})


def _joined(name: str, parts: list[tuple[Tensor, Any]]) -> Any:
    """One field of a context from its parts, each with the places of its videos; padded to the longest."""
    first = parts[0][1]
    if first is None:
        return None
    if isinstance(first, tuple):
        streams = ([(rows, value[place]) for rows, value in parts] for place in range(len(first)))
        return tuple(_joined(name, stream) for stream in streams)
    axis = -1 if name == "mask" else -2
    shape = [sum(len(rows) for rows, _ in parts), *first.shape[1:]]
    shape[axis] = max(value.shape[axis] for _, value in parts)
    out = first.new_zeros(shape)
    for rows, value in parts:
        out.narrow(axis, 0, value.shape[axis])[rows] = value
    return out


Ranking = Callable[[Integers, Tensor, Tensor, Any], Ranked]
"""Ranks some queries in a corpus: their places (B,), rising, tokens (B, Lq, d), mask (B, Lq), and the model's
context.
"""


def rank_corpus(
    model: nn.Module,
    videos: PooledVideos,
    queries: QueryFeatures,
    rank: Ranking | None = None,
) -> Moments:
    """Answers of a model in evaluation mode, at most :data:`ANSWERS` per query, cut at the videos' durations.

    The last bits of a product depend on its shape. So that they do not depend on the other queries, the model
    is given batches of one shape: each query is padded to the maximum number of tokens, and the last query
    fills up its batch.

    Args:
        videos, queries: in its form.
        rank: by default the model's own ``rank``; scores are given as it has them.
    """
    device = next(model.parameters()).device
    columns: list[tuple[NDArray[Any], ...]] = []
    with torch.inference_mode():
        context = encoded_corpus(model, videos)
        for first in range(0, len(queries), _CHUNK):
            own = np.arange(first, min(first + _CHUNK, len(queries)))
            places = np.pad(own, (0, _CHUNK - len(own)), mode="edge")
            tokens, mask = token_batch(queries, places, queries.max_tokens)
            given = tokens.to(device), mask.to(device), context
            ranked = rank(places, *given) if rank else cast("Any", model).rank(*given)
            found = (ranked.video, ranked.start, ranked.end, ranked.score)
            video, start, end, score = (column[: len(own), :ANSWERS].cpu().numpy() for column in found)
            query = np.broadcast_to(own[:, None], video.shape)
            stretch, durations = videos.stretch[video], videos.features.durations[video]
            start = start.astype(np.float64) * stretch
            end = np.minimum(end.astype(np.float64) * stretch, durations)
            there = (video >= 0) & (end > start)
            columns.append(tuple(column[there] for column in (query, video, start, end, score)))
    query, video, start, end, score = (np.concatenate(column) for column in zip(*columns, strict=True))
    match = score.astype(np.float64)
    return Moments(offsets_of(query, len(queries)), video, start, end, match, match)


def rank_videos(model: nn.Module, videos: PooledVideos, queries: QueryFeatures) -> Moments:
    """The best :data:`ANSWERS` whole videos of each query (VR), as a model ranks them."""

    def rank(places: Integers, query: Tensor, mask: Tensor, context: Any) -> Ranked:
        rows, scores = cast("Any", model).rank_videos(query, mask, context, keep=ANSWERS)
        return Ranked.whole_videos(rows, scores)

    return rank_corpus(model, videos, queries, rank)


def best_videos(
    scores: VideoScores, features: VideoFeatures, queries: int, *, keep: int = ANSWERS
) -> Moments:
    """The best videos, at most ``keep``, of each of ``queries`` queries, whole, by a score of each."""
    best: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for _, table in score_blocks(scores, queries, len(features)):
        order = np.argsort(-table, axis=1, kind="stable")[:, :keep]
        best.append((order, np.take_along_axis(table, order, axis=1).astype(np.float64)))
    video, match = (np.concatenate(column).ravel() for column in zip(*best, strict=True))
    offsets = np.arange(queries + 1) * min(keep, len(features))
    return Moments(offsets, video, np.zeros(len(video)), features.durations[video], match, match)


def whole_videos(moments: Moments, durations: NDArray[np.float64]) -> Moments:
    """Whole videos in place of moments, each once per query, in the order of its best moment."""
    query = moments.query
    rows = np.sort(np.unique(query * len(durations) + moments.video, return_index=True)[1])
    offsets, video = offsets_of(query[rows], len(moments)), moments.video[rows]
    return Moments(
        offsets, video, np.zeros(len(rows)), durations[video], moments.match[rows], moments.score[rows]
    )
