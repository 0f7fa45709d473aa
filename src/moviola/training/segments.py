"""Stage 1 of SPR: training segment retrieval, and what a trained one finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.measures import Run
from moviola.models.spr import SegmentRetriever
from moviola.propose import propose
from moviola.training.data import Clips, Pairs, Queries, Rows
from moviola.training.loop import LoopConfig
from moviola.training.optimizers import OptimizerConfig
from moviola.training.recipes import Phase, Settings, Sizes, Split
from moviola.types import Hit, Proposal, Segment, Span

__all__ = [
    "SPR_STAGE1",
    "SegmentBatch",
    "SegmentGrid",
    "SegmentTask",
    "Stage1Recipe",
    "candidate_proposals",
    "candidate_scores",
    "coarse_run",
    "embed_segments",
    "mean_pooled",
    "proposals_of",
    "propose_for",
    "recall",
    "video_scores",
]


@dataclass(frozen=True)
class SegmentGrid:
    """The segments of some videos: S rows.

    Attributes:
        clips: the videos.
        length: T, clips a segment; the last one of a video may hold fewer.
        video, position: (S,) int64.
    """

    clips: Clips
    length: int
    video: Rows
    position: Rows

    @classmethod
    def of(cls, clips: Clips, length: int) -> SegmentGrid:
        """All segments of all videos, in order."""
        counts = -(-clips.counts // length)
        video = np.repeat(np.arange(len(counts)), counts)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        return cls(clips, length, video, np.arange(len(video)) - first[video])

    def __len__(self) -> int:
        return len(self.video)

    @property
    def seconds(self) -> float:
        """Length of a segment."""
        return self.length * self.clips.clip_seconds

    @cached_property
    def frames(self) -> Tensor:
        """(S, T, d) float32, all frames; short segments repeat their last frame, as SPR does."""
        rows = []
        for row in range(len(self.clips.videos)):
            array = self.clips.read(row)
            missing = -len(array) % self.length
            rows.append(np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]))
        every = np.concatenate(rows)
        return torch.from_numpy(every.reshape(len(self), self.length, every.shape[1]))

    def shares(self, pairs: Pairs) -> sparse.csr_array:
        """(Q, S) float32: the share of each segment that lies in an answer of each query, where above 0."""
        begin = np.searchsorted(self.video, np.arange(len(self.clips.videos)))
        stop = np.append(begin[1:], len(self))
        video = pairs.video[pairs.moment]
        start, end = pairs.start[pairs.moment], pairs.end[pairs.moment]
        first = begin[video] + np.floor(start / self.seconds).astype(np.int64)
        count = np.minimum(np.ceil(end / self.seconds).astype(np.int64) + begin[video], stop[video]) - first
        count = np.maximum(count, 0)
        pair = np.repeat(np.arange(len(pairs)), count)
        segment = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count) + first[pair]
        left = self.position[segment] * self.seconds
        inside = np.minimum(left + self.seconds, end[pair]) - np.maximum(left, start[pair])
        share = (inside / self.seconds).astype(np.float32)
        keep = share > 0
        # Of moments that overlap, the larger share counts: sort by share, let later ones overwrite.
        order = np.argsort(share[keep], kind="stable")
        rows, columns, values = (x[keep][order] for x in (pairs.query[pair], segment, share))
        size = len(self)
        _, last = np.unique((rows * size + columns)[::-1], return_index=True)
        last = len(rows) - 1 - last
        return sparse.csr_array(
            (values[last], (rows[last], columns[last])), shape=(len(pairs.query_ids), size)
        )


@dataclass(frozen=True)
class SegmentBatch:
    """B pairs of a query (B, d) and a segment (B, T, d); ``relevance`` (B, B) says which go together."""

    queries: Tensor
    frames: Tensor
    relevance: Tensor


@dataclass(frozen=True)
class SegmentTask:
    """Training of a :class:`SegmentRetriever` (SPR, section 3.1.2) on pairs of a query and a segment.

    Every segment of which at least ``least_share`` lies in an answer of the query is one pair; every such
    pair in the batch is a positive.
    """

    model: SegmentRetriever
    grid: SegmentGrid
    queries: Queries
    pairs: Pairs
    val_grid: SegmentGrid
    val_queries: Queries
    val_pairs: Pairs
    batch_size: int = 256
    least_share: float = 0.3

    @cached_property
    def _relevant(self) -> sparse.csr_array:
        shares = self.grid.shares(self.pairs)
        shares.data = np.where(shares.data >= self.least_share, 1, 0).astype(np.float32)
        shares.eliminate_zeros()
        return shares

    @cached_property
    def _examples(self) -> tuple[Rows, Rows]:
        query, segment = self._relevant.nonzero()
        return query.astype(np.int64), segment.astype(np.int64)

    def batches_per_epoch(self) -> int:
        """See :class:`moviola.training.loop.Task`; a last batch that is not full is left out."""
        return max(1, len(self._examples[0]) // self.batch_size)

    def batches(self, epoch: int, draw: Generator) -> Iterator[SegmentBatch]:
        """See :class:`moviola.training.loop.Task`."""
        query, segment = self._examples
        order = draw.permutation(len(query))
        for number in range(self.batches_per_epoch()):
            rows = order[number * self.batch_size : (number + 1) * self.batch_size]
            relevance = self._relevant[query[rows]][:, segment[rows]].toarray()
            yield SegmentBatch(
                self.queries.vectors[query[rows]],
                self.grid.frames[segment[rows]],
                torch.from_numpy(relevance),
            )

    def losses(self, batch: SegmentBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """See :class:`moviola.training.loop.Task`."""
        device = self.model.pt_clip_logit_scale.device
        frames = batch.frames.to(device)
        mask = torch.ones(frames.shape[:2], device=device)
        return self.model.loss(frames, mask, batch.queries.to(device), batch.relevance.to(device))

    def evaluate(self) -> Mapping[str, float]:
        """Recall at 10, 50, 100 and 200 segments on val, weighted by overlap."""
        segments = embed_segments(self.model, self.val_grid)
        queries = F.normalize(self.model.encode_queries(self.val_queries.vectors.to(segments.device)), dim=-1)
        scores = (queries @ segments.T).cpu().numpy()
        shares = self.val_grid.shares(self.val_pairs)
        return {f"recall@{k}": recall(scores, shares, k) for k in (10, 50, 100, 200)}


def embed_segments(model: SegmentRetriever, grid: SegmentGrid, *, batch: int = 1024) -> Tensor:
    """(S, d) float32, embeddings of length 1."""
    device = model.pt_clip_logit_scale.device
    with torch.inference_mode():
        parts = [
            model.encode_segments(frames.to(device), torch.ones(frames.shape[:2], device=device))
            for frames in torch.split(grid.frames, batch)
        ]
    return F.normalize(torch.cat(parts), dim=-1)


def mean_pooled(grid: SegmentGrid) -> Tensor:
    """(S, d) float32 of length 1: the frames' mean, CLIP without training (SPR, appendix B.2)."""
    return F.normalize(grid.frames.mean(dim=1), dim=-1)


def recall(scores: NDArray[np.float32], shares: sparse.csr_array, k: int) -> float:
    """Of what the answers cover, weighted by share, how much is among the k best segments; mean over queries.

    Args:
        scores: (Q, S).
        shares: (Q, S), see :meth:`SegmentGrid.shares`; queries without an answer do not count.
    """
    k = min(k, scores.shape[1])
    best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    found = np.array([shares[[q]][:, row].sum() for q, row in enumerate(best)])
    whole = shares.sum(axis=1)
    return float((found[whole > 0] / whole[whole > 0]).mean())


def proposals_of(
    queries: Tensor, segments: Tensor, grid: SegmentGrid, *, count: int = 200, gap: int = 0
) -> list[list[Proposal]]:
    """Coarse proposals of each query (SPR, sections 3.1.3 and 3.2).

    Args:
        queries: (Q, d) float32, of length 1.
        segments: (S, d) float32, of length 1.
        grid: the segments.
        count: k, segments retrieved a query.
        gap: see :func:`moviola.propose.propose`.
    """
    found: list[list[Proposal]] = []
    for chunk in torch.split(queries, 256):
        scores, places = (chunk @ segments.T).topk(min(count, len(grid)), dim=1)
        for row_scores, row_places in zip(scores.tolist(), places.tolist(), strict=True):
            hits = [
                Hit(_segment(grid, place), score) for score, place in zip(row_scores, row_places, strict=True)
            ]
            found.append(propose(hits, gap=gap))
    return found


def _segment(grid: SegmentGrid, place: int) -> Segment:
    video, position = int(grid.video[place]), int(grid.position[place])
    start = position * grid.seconds
    end = max(min(start + grid.seconds, float(grid.clips.durations[video])), start + 1e-3)
    return Segment(grid.clips.videos[video], position, Span(start, end))


def coarse_run(proposals: Sequence[Sequence[Proposal]], query_ids: Sequence[str], *, keep: int = 100) -> Run:
    """Coarse proposals as an answer, in order of rank."""
    rows = [(name, p) for name, own in zip(query_ids, proposals, strict=True) for p in own[:keep]]
    return Run.from_columns(
        [name for name, _ in rows],
        [p.video_id for _, p in rows],
        [p.span.start for _, p in rows],
        [p.span.end for _, p in rows],
        [p.score for _, p in rows],
        queries=query_ids,
        ranked=True,
    )


@dataclass(frozen=True)
class SegmentSampling:
    """How segments are cut and chosen.

    Attributes:
        segment_clips: T, clips a segment.
        least_share: a segment answers a query if at least this share of it lies in an answer (SPR, section
            3.1.2 and Table 7).
    """

    segment_clips: int = 4
    least_share: float = 0.3


@dataclass(frozen=True)
class Stage1Recipe:
    """SPR's stage 1 (section 3.1.2; spec: AdamW, cosine with warm-up, chosen by recall@100 on val)."""

    architecture: str = "spr-stage1"
    needs: frozenset[str] = frozenset()

    @property
    def settings(self) -> Settings:
        """The paper's."""
        optimizer = OptimizerConfig(
            name="adamw",
            lr=5e-4,
            betas=(0.9, 0.99),
            eps=1e-8,
            weight_decay=1e-3,
            warmup=0.05,
            schedule="cosine",
            clip_norm=5.0,
            slow={"pt_clip_logit_scale": 0.01},
        )
        loop = LoopConfig(epochs=30, batch_size=256, optimizer=optimizer, patience=0, select="recall@100")
        return Settings(loops={"train": loop}, sampling=SegmentSampling())

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """See :class:`moviola.training.recipes.Recipe`."""
        if sizes.query != sizes.visual:
            raise InvalidValue(
                f"{self.architecture}: clips have {sizes.visual} features and queries {sizes.query}; give "
                "both of one image-text encoder"
            )
        return {"hidden_size": sizes.visual}

    def phases(self, model: nn.Module, train: Split, val: Split, settings: Settings) -> Iterable[Phase]:
        """See :class:`moviola.training.recipes.Recipe`."""
        loop, length = settings.loops["train"], settings.sampling.segment_clips
        yield Phase(
            SegmentTask(
                cast("SegmentRetriever", model),
                SegmentGrid.of(train.clips, length),
                train.queries,
                train.pairs,
                SegmentGrid.of(val.clips, length),
                val.queries,
                val.pairs,
                loop.batch_size,
                settings.sampling.least_share,
            ),
            loop,
        )

    def run(
        self, model: nn.Module, split: Split, *, segment_clips: int = SegmentSampling.segment_clips
    ) -> Run:
        """Coarse proposals."""
        proposals = propose_for(cast("SegmentRetriever", model), split, segment_clips=segment_clips)
        return coarse_run(proposals, split.queries.query_ids)


SPR_STAGE1 = Stage1Recipe()


def propose_for(
    model: SegmentRetriever, split: Split, *, segment_clips: int = 4, count: int = 200, gap: int = 0
) -> list[list[Proposal]]:
    """A trained stage 1's proposals for all queries of a split; see :func:`proposals_of`."""
    grid = SegmentGrid.of(split.clips, segment_clips)
    device = model.pt_clip_logit_scale.device
    with torch.inference_mode():
        queries = F.normalize(model.encode_queries(split.queries.vectors.to(device)), dim=-1)
        return proposals_of(queries, embed_segments(model, grid), grid, count=count, gap=gap)


def video_scores(model: SegmentRetriever, split: Split, *, segment_clips: int = 4) -> NDArray[np.float32]:
    """(Q, V) float32 above 0: exp of each video's best cosine, a first stage for CONQUER."""
    grid = SegmentGrid.of(split.clips, segment_clips)
    device = model.pt_clip_logit_scale.device
    with torch.inference_mode():
        queries = F.normalize(model.encode_queries(split.queries.vectors.to(device)), dim=-1)
        scores = (queries @ embed_segments(model, grid).T).cpu().numpy()
    begin = np.searchsorted(grid.video, np.arange(len(split.clips.videos)))
    best: NDArray[np.float32] = np.exp(np.maximum.reduceat(scores, begin, axis=1))
    return best


# ---- what another system found, in the place of a stage 1 ------------------------------------------------


def candidate_proposals(run: Run, split: Split) -> list[list[Proposal]]:
    """Another system's moments as proposals of each query of a split, in their order.

    Moments of other videos, and those that start behind the end of theirs, are left out.

    Raises:
        InvalidValue: a query has none.
    """
    rows, query, video = _candidates(run, split)
    found: list[list[Proposal]] = [[] for _ in split.queries.query_ids]
    for row, q, v in zip(rows.tolist(), query.tolist(), video.tolist(), strict=True):
        span = Span(float(run.start[row]), min(float(run.end[row]), float(split.clips.durations[v])))
        found[q].append(Proposal(split.clips.videos[v], span, float(run.score[row]), len(found[q]) + 1))
    return found


def candidate_scores(run: Run, split: Split) -> NDArray[np.float32]:
    """(Q, V) float32 above 0, another system's ranking as a first stage for CONQUER.

    A video scores as its best moment. As the scales of systems differ, and CONQUER multiplies by these
    scores, a query's are spread over [0, 1] and become exp of that: e for its best video, 1 for the last of
    its candidates. A video that is none has exp(-1), as far below the last one as the best is above it.

    Raises:
        InvalidValue: a query has no candidate among the split's videos.
    """
    rows, query, video = _candidates(run, split)
    queries, videos = len(split.queries), len(split.clips.videos)
    cells, place = np.unique(query * videos + video, return_inverse=True)
    best, owner = np.full(len(cells), -np.inf), cells // videos
    np.maximum.at(best, place, run.score[rows])
    highest, lowest = np.full(queries, -np.inf), np.full(queries, np.inf)
    np.maximum.at(highest, owner, best)
    np.minimum.at(lowest, owner, best)
    width = (highest - lowest)[owner]
    spread = np.divide(best - lowest[owner], width, out=np.ones_like(best), where=width > 0)
    scores = np.full((queries, videos), np.exp(-1), dtype=np.float32)
    scores.reshape(-1)[cells] = np.exp(spread)
    return scores


def _candidates(run: Run, split: Split) -> tuple[Rows, Rows, Rows]:
    """Rows of a run that are about a split: (n,) each, with the split's rows of their query and video."""
    clips, asked = split.clips, {name: row for row, name in enumerate(split.queries.query_ids)}
    query = np.array([asked.get(name, -1) for name in run.query_ids], dtype=np.int64)[run.query]
    video = np.array([clips.row_of.get(name, -1) for name in run.video_ids], dtype=np.int64)[run.video]
    there = (query >= 0) & (video >= 0) & (run.start < clips.durations[video])
    count = np.bincount(query[there], minlength=len(asked))
    if not count.all():
        first = split.queries.query_ids[int(count.argmin())]
        raise InvalidValue(
            f"candidates: none for {int((count == 0).sum()):,} of {len(asked):,} queries among the "
            f"{len(clips.videos):,} videos, the first is query {first!r}; give a run that answers each"
        )
    rows = np.flatnonzero(there)
    return rows, query[rows], video[rows]
