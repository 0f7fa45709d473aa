"""Training of the models that search a whole corpus: XML, ReLoCLNet, CONQUER and PREM.

They are the baselines of TVR-Ranking (appendix C) and PREM. What they learn from differs:

- XML and ReLoCLNet: pairs of a query and a moment (:class:`PairTask`), whose negatives are in the batch;
- CONQUER: a query with the video of its moment and others that a first stage takes for it
  (:class:`CandidateTask`);
- PREM: pairs for its retriever, then candidates, which the trained retriever names, for its localizer.

Where the settings depart from the papers: a moment's end is the last clip that it touches for all of them, so
that one at a video's end can be learned; limits on a moment's length are the papers' in seconds, whatever a
clip's length; and a video with more clips than the model takes is pooled to so many, as the releases do it,
its moments being decoded in the longer clips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn

from moviola.datasets.building.relevant_pairs import RelevantPairs, read_relevant_pairs
from moviola.errors import InvalidValue
from moviola.measures import Measure, Qrels, Run, evaluate
from moviola.models.batches import CandidateBatch, PairBatch, Ranked
from moviola.models.conquer import Conquer
from moviola.models.prem import Prem
from moviola.models.reloclnet import ReLoCLNet
from moviola.models.spans import LABELS, normalise_rows, pool_clips
from moviola.models.xml import XML, with_endpoints
from moviola.training.data import Clips, Pairs, Queries, Rows, batches_by_length, padded, widened
from moviola.training.loop import LoopConfig
from moviola.training.optimizers import OptimizerConfig
from moviola.training.recipes import Phase, Settings, Sizes, Split, judge

__all__ = [
    "CONQUER", "PREM", "RELOCLNET", "XML_RECIPE", "CandidateSampling", "CandidateTask", "ConquerRecipe",
    "ModelClips", "PairSampling", "PairStep", "PairTask", "PremRecipe", "ReLoCLNetRecipe", "XmlRecipe",
    "XmlSampling", "best_moments", "encoded_corpus", "hardest_videos", "judge_videos", "ranked_run",
    "run_videos", "run_within", "tvr_submission", "tvr_truth",
]  # fmt: skip

END_INSIDE = LABELS["spr"]
"""The convention of all labels here: the end is the last clip that the moment touches."""

SHORTEST, LONGEST = 3.0, 22.5
"""Seconds that a moment of XML and ReLoCLNet may have: 2 to 15 clips of 1.5 s."""

LONGEST_CANDIDATE = 36.0
"""Seconds that a moment of CONQUER and PREM may have: up to 24 clips of 1.5 s."""


# ---- videos as a model takes them ------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelClips:
    """Videos for a model that takes ``longest`` clips at most; longer ones are pooled to so many.

    Attributes:
        clips: the videos.
        longest: most clips.
        endpoints: append where each clip starts and ends in its video, as XML wants it.
        fixed: pad every video to ``longest``, whatever else is in its batch: a model for which padding
            matters as in its release gives the release's numbers at that length alone.
    """

    clips: Clips
    longest: int
    endpoints: bool = False
    fixed: bool = False

    @cached_property
    def counts(self) -> Rows:
        """(V,) int64, clips that the model sees of each video."""
        return np.minimum(self.clips.counts, self.longest)

    @cached_property
    def stretch(self) -> NDArray[np.float64]:
        """(V,) how many stored clips long a clip of the model is; 1 where nothing was pooled."""
        return self.clips.counts / self.counts

    def batch(self, rows: Rows) -> tuple[Tensor, Tensor, Tensor | None]:
        """Features, mask and subtitles of some videos."""
        visual, mask = padded([self._fit(self.clips.read(row)) for row in rows.tolist()])
        heard = None
        if self.clips.subtitles is not None:
            said = [array for row in rows.tolist() if (array := self.clips.heard(row)) is not None]
            heard, _ = padded([self._fit(array) for array in said])
        if self.fixed:
            visual, mask, heard = widened(self.longest, visual, mask, heard)
        if self.endpoints:
            visual = with_endpoints(visual, mask)
            heard = None if heard is None else with_endpoints(heard, mask)
        return visual, mask, heard

    def _fit(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        if len(features) <= self.longest:
            return features
        pooled = pool_clips(features, self.longest)
        return normalise_rows(pooled) if self.clips.unit else pooled

    def labels(self, pairs: Pairs, moments: Rows) -> Tensor:
        """(B, 2) int64, first and last clip of some moments."""
        video = pairs.video[moments]
        seconds = self.clips.clip_seconds * self.stretch[video]
        found = END_INSIDE.labels(pairs.start[moments], pairs.end[moments], self.counts[video], seconds)
        found[:, 1] = np.maximum(found[:, 1], found[:, 0])
        return torch.from_numpy(found)


# ---- tasks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairSampling:
    """Negatives of the ranking losses: any of the batch, later the hardest.

    Attributes:
        hard_from: the epoch, counted from 0, from which they are drawn out of the hardest.
        hard_pool: out of how many.
    """

    hard_from: int = 20
    hard_pool: int = 20

    def pool(self, epoch: int) -> int | None:
        """From how many of the hardest to draw in an epoch; None for the whole batch."""
        return self.hard_pool if epoch >= self.hard_from else None


@dataclass(frozen=True)
class PairStep:
    """A batch, and which moments (B,) it is about."""

    pairs: PairBatch
    moments: Rows


PairLoss = Callable[[PairStep, int, torch.Generator], Mapping[str, Tensor]]
"""The weighted terms of a batch in an epoch."""


@dataclass(frozen=True)
class PairTask:
    """Training on pairs of a query and a moment; whatever else is in the batch is their negatives.

    Attributes:
        loss: see :data:`PairLoss`; the batch is on the model's device.
        judge: measures on val of the model as it is.
    """

    model: nn.Module
    videos: ModelClips
    queries: Queries
    pairs: Pairs
    loss: PairLoss
    judge: Callable[[], Mapping[str, float]]
    batch_size: int = 128

    def batches_per_epoch(self) -> int:
        """See :class:`moviola.training.loop.Task`; each pair is learned from once an epoch."""
        return -(-len(self.pairs) // self.batch_size)

    def batches(self, epoch: int, draw: Generator) -> Iterator[PairStep]:
        """See :class:`moviola.training.loop.Task`."""
        lengths = self.videos.counts[self.pairs.video[self.pairs.moment]]
        for rows in batches_by_length(lengths, self.batch_size, draw):
            yield self.batch(rows)

    def batch(self, rows: Rows) -> PairStep:
        """The batch of some pairs."""
        moments = self.pairs.moment[rows]
        videos, place = np.unique(self.pairs.video[moments], return_inverse=True)
        tokens, token_mask = self.queries.tokens(self.pairs.query[rows])
        visual, mask, heard = self.videos.batch(videos)
        batch = PairBatch(
            query=tokens,
            query_mask=token_mask,
            visual=visual,
            mask=mask,
            subtitles=heard,
            video=torch.from_numpy(place),
            labels=self.videos.labels(self.pairs, moments),
            similarity=torch.from_numpy(self.pairs.similarity[rows]),
            positives=self.pairs.positives(rows),
        )
        return PairStep(batch, moments)

    def losses(self, batch: PairStep, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """See :class:`moviola.training.loop.Task`."""
        step = PairStep(batch.pairs.to(_device(self.model)), batch.moments)
        return self.loss(step, epoch, generator)

    def evaluate(self) -> Mapping[str, float]:
        """See :class:`moviola.training.loop.Task`."""
        return self.judge()


@dataclass(frozen=True)
class CandidateSampling:
    """Attributes: ``negatives``: videos without an answer beside each pair's own, drawn from the ``pool``
    that the retriever likes best."""

    negatives: int = 3
    pool: int = 100


@dataclass(frozen=True)
class CandidateTask:
    """Training on pairs, each with some videos that a retriever wrongly takes for an answer.

    Attributes:
        hardest: (Q, K) int64, see :func:`hardest_videos`.
        negatives: so many of them beside each pair's own video.
        loss: weighted terms of a batch on the model's device.
        judge: measures on val of the model as it is.
    """

    model: nn.Module
    videos: ModelClips
    queries: Queries
    pairs: Pairs
    hardest: Rows
    negatives: int
    loss: Callable[[Any], Mapping[str, Tensor]]
    judge: Callable[[], Mapping[str, float]]
    batch_size: int = 16

    def __post_init__(self) -> None:
        there = (self.hardest[self.pairs.query] >= 0).sum(axis=1)
        if there.min() < self.negatives:
            name = self.pairs.query_ids[self.pairs.query[there.argmin()]]
            raise InvalidValue(
                f"query {name!r}: {there.min()} videos without an answer among its candidates, but "
                f"sampling.negatives={self.negatives} are asked for; give more videos or fewer negatives"
            )

    def batches_per_epoch(self) -> int:
        """See :class:`moviola.training.loop.Task`; each pair is learned from once an epoch."""
        return -(-len(self.pairs) // self.batch_size)

    def batches(self, epoch: int, draw: Generator) -> Iterator[CandidateBatch]:
        """See :class:`moviola.training.loop.Task`."""
        lengths = self.videos.counts[self.pairs.video[self.pairs.moment]]
        for rows in batches_by_length(lengths, self.batch_size, draw):
            yield self.batch(rows, draw)

    def batch(self, rows: Rows, draw: Generator) -> CandidateBatch:
        """The batch of some pairs."""
        query, moments = self.pairs.query[rows], self.pairs.moment[rows]
        candidates = np.column_stack([self.pairs.video[moments], self._drawn(query, draw)])
        videos, place = np.unique(candidates, return_inverse=True)
        tokens, token_mask = self.queries.tokens(query)
        visual, mask, heard = self.videos.batch(videos)
        return CandidateBatch(
            query=tokens,
            query_mask=token_mask,
            visual=visual,
            mask=mask,
            subtitles=heard,
            candidates=torch.from_numpy(place.reshape(candidates.shape)),
            labels=self.videos.labels(self.pairs, moments),
            similarity=torch.from_numpy(self.pairs.similarity[rows]),
        )

    def _drawn(self, query: Rows, draw: Generator) -> Rows:
        """(B, negatives) videos, each once a row."""
        hardest = self.hardest[query]
        order = np.where(hardest < 0, 2.0, draw.random(hardest.shape))
        chosen = np.argpartition(order, self.negatives - 1, axis=1)[:, : self.negatives]
        return np.take_along_axis(hardest, chosen, axis=1)

    def losses(self, batch: CandidateBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """See :class:`moviola.training.loop.Task`."""
        return self.loss(batch.to(_device(self.model)))

    def evaluate(self) -> Mapping[str, float]:
        """See :class:`moviola.training.loop.Task`."""
        return self.judge()


def hardest_videos(scores: Callable[[slice], NDArray[np.float32]], pairs: Pairs, count: int) -> Rows:
    """The videos that a retriever likes best for each query though nothing in them answers it.

    Args:
        scores: of the queries of a slice with all V videos: (n, V) float32; -inf for a video to leave out.
        pairs: which moments answer.
        count: K; all V videos where V is less.

    Returns:
        (Q, K) int64 rows of videos, best first, -1 where a query has no more.
    """
    videos = len(pairs.videos)
    keep = min(count, videos)
    found = np.full((len(pairs.query_ids), keep), -1, dtype=np.int64)
    order = np.argsort(pairs.query, kind="stable")
    query, answering = pairs.query[order], pairs.video[pairs.moment[order]]
    for first in range(0, len(found), 256):
        some = slice(first, min(first + 256, len(found)))
        table = np.array(scores(some), dtype=np.float32)
        own = slice(*np.searchsorted(query, [some.start, some.stop]))
        table[query[own] - first, answering[own]] = -np.inf
        best = np.argsort(-table, axis=1, kind="stable")[:, :keep]
        found[some] = np.where(np.isneginf(np.take_along_axis(table, best, axis=1)), -1, best)
    return found


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


# ---- answers ---------------------------------------------------------------------------------------------


class _Encoder(Protocol):
    def encode_context(self, visual: Tensor, mask: Tensor, subtitles: Tensor | None) -> Any: ...


def encoded_corpus(model: nn.Module, videos: ModelClips, *, batch: int = 64) -> Any:
    """All videos as the model's own context; encoded in batches of alike length.

    A context is a dataclass of tensors whose first dimension is videos; clips are the last dimension of its
    ``mask`` and the last but one of all others.
    """
    device, encoder = _device(model), cast("_Encoder", model)
    order = np.argsort(videos.counts, kind="stable")
    parts: list[tuple[Tensor, Any]] = []
    for begin in range(0, len(order), batch):
        rows = order[begin : begin + batch]
        visual, mask, heard = videos.batch(rows)
        context = encoder.encode_context(
            visual.to(device), mask.to(device), None if heard is None else heard.to(device)
        )
        parts.append((torch.from_numpy(rows).to(device), context))
    longest = max(context.mask.shape[-1] for _, context in parts)

    def whole(name: str, values: list[Any]) -> Any:
        if values[0] is None:
            return None
        if isinstance(values[0], tuple):
            return tuple(whole(name, list(column)) for column in zip(*values, strict=True))
        axis = -1 if name == "mask" else -2
        shape = [len(order), *values[0].shape[1:]]
        shape[axis] = longest
        out = values[0].new_zeros(shape)
        for (rows, _), value in zip(parts, values, strict=True):
            out.narrow(axis, 0, value.shape[axis])[rows] = value
        return out

    first = parts[0][1]
    return type(first)(
        **{f.name: whole(f.name, [getattr(context, f.name) for _, context in parts]) for f in fields(first)}
    )


Ranking = Callable[[slice, Tensor, Tensor], Ranked]
"""Ranks some queries of a split: which, their tokens and their mask."""


def ranked_run(
    rank: Ranking, videos: ModelClips, queries: Queries, *, chunk: int = 64, keep: int = 100
) -> Run:
    """Answers to all queries, cut at the videos' durations; at most ``keep`` a query."""
    columns: list[tuple[NDArray[Any], ...]] = []
    for first in range(0, len(queries), chunk):
        some = slice(first, min(first + chunk, len(queries)))
        tokens, mask = queries.tokens(np.arange(some.start, some.stop))
        found = rank(some, tokens, mask)
        video, start, end, score = (
            column[:, :keep].cpu().numpy() for column in (found.video, found.start, found.end, found.score)
        )
        query = np.broadcast_to(np.arange(some.start, some.stop)[:, None], video.shape)
        stretch, durations = videos.stretch[video], videos.clips.durations[video]
        start = start.astype(np.float64) * stretch
        end = np.minimum(end.astype(np.float64) * stretch, durations)
        there = (video >= 0) & (end > start)
        columns.append(tuple(column[there] for column in (query, video, start, end, score)))
    query, video, start, end, score = (np.concatenate(column) for column in zip(*columns, strict=True))
    asked, names = np.array(queries.query_ids, dtype=object), np.array(videos.clips.videos, dtype=object)
    return Run.from_columns(
        asked[query], names[video], start, end, score, queries=queries.query_ids, ranked=True
    )


def best_moments(pairs: Pairs) -> Rows:
    """(Q,) int64, row of the pair with the highest relevance of each query, the first of equals; or -1."""
    order = np.lexsort((np.arange(len(pairs)), -pairs.relevance, pairs.query))
    asked, first = np.unique(pairs.query[order], return_index=True)
    best = np.full(len(pairs.query_ids), -1, dtype=np.int64)
    best[asked] = order[first]
    return best


# ---- recipes ---------------------------------------------------------------------------------------------


def _feature_sizes(sizes: Sizes, more: int = 0) -> dict[str, Any]:
    return {
        "visual_size": sizes.visual + more,
        "subtitle_size": sizes.subtitle + more if sizes.subtitle else 0,
        "query_size": sizes.query,
        "clip_seconds": sizes.clip_seconds,
    }


def _span_limits(clip_seconds: float) -> tuple[int, int]:
    """Smallest distance of a moment's last clip from its first, and the first that is too large."""
    shortest = max(0, round(SHORTEST / clip_seconds) - 1)
    return shortest, max(shortest + 1, round(LONGEST / clip_seconds))


def _corpus_run(model: nn.Module, videos: ModelClips, split: Split) -> Run:
    """Answers of a model that ranks all videos itself."""
    device, ranker = _device(model), cast("XML | ReLoCLNet | Prem", model)
    with torch.inference_mode():
        context = encoded_corpus(model, videos)
        return ranked_run(
            lambda some, query, mask: ranker.rank(query.to(device), mask.to(device), context),
            videos,
            split.queries,
        )


@dataclass(frozen=True)
class XmlSampling(PairSampling):
    """How XML's batches are made.

    Attributes:
        relevant_pairs: file that `moviola dataset relevant-pairs` wrote of the captions of the training
            pairs, in the order of :attr:`moviola.training.data.Pairs.captions`; needed where the model's
            ``relevant_pairs`` uses them.
    """

    relevant_pairs: str | None = None


@dataclass(frozen=True)
class XmlRecipe:
    """XML (spec: BertAdam, batches of 128; 4000, 200, 100 epochs for 1, 20, 40 moments a query).

    Attributes:
        relevant: potentially relevant pairs of the training moments (rows: ``Pairs.captions``), instead of
            the file that the settings name. The model uses them if its setting ``relevant_pairs`` says so.
    """

    architecture: str = "xml"
    needs: frozenset[str] = frozenset()
    relevant: RelevantPairs | None = field(default=None, compare=False)

    @property
    def settings(self) -> Settings:
        """Those of TVR-Ranking, appendix C."""
        return Settings(
            model={"labels": "spr"},
            loops={"train": LoopConfig(epochs=200, batch_size=128)},
            sampling=XmlSampling(),
        )

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """See :class:`moviola.training.recipes.Recipe`."""
        shortest, longest = _span_limits(sizes.clip_seconds)
        limits = {"max_clips": sizes.longest, "shortest_span": shortest, "longest_span": longest}
        return _feature_sizes(sizes, more=2) | limits

    def phases(self, model: nn.Module, train: Split, val: Split, settings: Settings) -> Iterable[Phase]:
        """See :class:`moviola.training.recipes.Recipe`.

        Raises:
            InvalidValue: the model learns from potentially relevant pairs and there are none, or they are of
                other captions.
        """
        xml, loop, sampling = cast("XML", model), settings.loops["train"], settings.sampling
        relevant = self._relevant(xml, train.pairs, sampling)

        def loss(step: PairStep, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
            relevance = confidence = None
            if relevant is not None:
                device = step.pairs.query.device
                moments, place = np.unique(step.moments, return_inverse=True)
                relevance, confidence = (
                    torch.from_numpy(table[np.ix_(place, place)]).to(device)
                    for table in relevant.among(moments)
                )
            return xml.loss(
                step.pairs,
                hard_pool=sampling.pool(epoch),
                generator=generator,
                relevance=relevance,
                confidence=confidence,
            )

        yield Phase(
            PairTask(
                model,
                self.videos(xml, train.clips),
                train.queries,
                train.pairs,
                loss,
                lambda: judge(self.run(model, val), val),
                loop.batch_size,
            ),
            loop,
        )

    def _relevant(self, model: XML, pairs: Pairs, sampling: XmlSampling) -> RelevantPairs | None:
        wanted = model.config.relevant_pairs
        if wanted is None or not wanted.pairs:
            return None
        found = self.relevant
        if found is None and sampling.relevant_pairs is not None:
            found = read_relevant_pairs(Path(sampling.relevant_pairs))
        if found is None:
            raise InvalidValue(
                "xml: its relevant_pairs are on, but there are none; set sampling.relevant_pairs to the file "
                "that `moviola dataset relevant-pairs` wrote"
            )
        if found.count != len(pairs.captions):
            raise InvalidValue(
                f"relevant pairs of {found.count} captions, but the training pairs have "
                f"{len(pairs.captions)} moments; make them of this training file"
            )
        return found

    def videos(self, model: XML, clips: Clips) -> ModelClips:
        """Videos as the model takes them."""
        config = model.config
        return ModelClips(clips, config.max_clips, endpoints=True, fixed=config.reference_padding)

    def run(self, model: nn.Module, split: Split) -> Run:
        """See :class:`moviola.training.recipes.Recipe`."""
        return _corpus_run(model, self.videos(cast("XML", model), split.clips), split)

    def best_videos(self, model: XML, query: Tensor, mask: Tensor, context: Any) -> tuple[Tensor, Tensor]:
        """The best videos of some queries, and their scores."""
        return model.rank_videos(query, mask, context)


XML_RECIPE = XmlRecipe()


@dataclass(frozen=True)
class ReLoCLNetRecipe:
    """ReLoCLNet (spec: BertAdam, batches of 512; 4000, 200, 100 epochs for 1, 20, 40 moments a query)."""

    architecture: str = "reloclnet"
    needs: frozenset[str] = frozenset()

    @property
    def settings(self) -> Settings:
        """Those of TVR-Ranking, appendix C."""
        return Settings(
            model={"labels": "spr"},
            loops={"train": LoopConfig(epochs=200, batch_size=512)},
            sampling=PairSampling(),
        )

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """See :class:`moviola.training.recipes.Recipe`."""
        shortest, longest = _span_limits(sizes.clip_seconds)
        limits = {"max_clips": sizes.longest, "shortest_span": shortest, "longest_span": longest}
        return _feature_sizes(sizes) | limits

    def phases(self, model: nn.Module, train: Split, val: Split, settings: Settings) -> Iterable[Phase]:
        """See :class:`moviola.training.recipes.Recipe`."""
        network, loop, sampling = cast("ReLoCLNet", model), settings.loops["train"], settings.sampling
        yield Phase(
            PairTask(
                model,
                self.videos(network, train.clips),
                train.queries,
                train.pairs,
                lambda step, epoch, generator: network.loss(
                    step.pairs, hard_pool=sampling.pool(epoch), generator=generator
                ),
                lambda: judge(self.run(model, val), val),
                loop.batch_size,
            ),
            loop,
        )

    def videos(self, model: ReLoCLNet, clips: Clips) -> ModelClips:
        """Videos as the model takes them."""
        config = model.config
        return ModelClips(clips, config.max_clips, fixed=config.reference_padding)

    def run(self, model: nn.Module, split: Split) -> Run:
        """See :class:`moviola.training.recipes.Recipe`."""
        return _corpus_run(model, self.videos(cast("ReLoCLNet", model), split.clips), split)


RELOCLNET = ReLoCLNetRecipe()


def _adamw(**changes: Any) -> OptimizerConfig:
    return OptimizerConfig(
        name="adamw", lr=1e-4, weight_decay=0.01, warmup=0.0, schedule="constant", **changes
    )


@dataclass(frozen=True)
class ConquerRecipe:
    """CONQUER (spec: AdamW, batches of 16, three negatives, at rest after three evaluations).

    The first stage's scores must not be negative; see :func:`moviola.training.segments.video_scores`.
    """

    architecture: str = "conquer"
    needs: frozenset[str] = frozenset({"first_stage"})

    @property
    def settings(self) -> Settings:
        """The release's; epochs and the clipping of gradients are ours."""
        loop = LoopConfig(epochs=100, batch_size=16, optimizer=_adamw(eps=1e-6), patience=3)
        return Settings(loops={"train": loop}, sampling=CandidateSampling())

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """See :class:`moviola.training.recipes.Recipe`."""
        longest = max(1, round(LONGEST_CANDIDATE / sizes.clip_seconds))
        return _feature_sizes(sizes) | {"max_clips": sizes.longest, "longest_span": longest}

    def phases(self, model: nn.Module, train: Split, val: Split, settings: Settings) -> Iterable[Phase]:
        """See :class:`moviola.training.recipes.Recipe`."""
        network, loop, sampling = cast("Conquer", model), settings.loops["train"], settings.sampling
        first_stage = _first_stage(train)
        yield Phase(
            CandidateTask(
                model,
                self.videos(network, train.clips),
                train.queries,
                train.pairs,
                hardest_videos(lambda some: first_stage[some], train.pairs, sampling.pool),
                sampling.negatives,
                network.loss,
                lambda: judge(self.run(model, val), val),
                loop.batch_size,
            ),
            loop,
        )

    def videos(self, model: Conquer, clips: Clips) -> ModelClips:
        """Videos as the model takes them."""
        return ModelClips(clips, model.config.max_clips)

    def run(self, model: nn.Module, split: Split) -> Run:
        """See :class:`moviola.training.recipes.Recipe`."""
        network, device, scores = cast("Conquer", model), _device(model), _first_stage(split)
        videos = self.videos(network, split.clips)
        with torch.inference_mode():
            context = encoded_corpus(model, videos)

            def rank(some: slice, query: Tensor, mask: Tensor) -> Ranked:
                first_stage = torch.from_numpy(scores[some]).to(device)
                return network.rank(query.to(device), mask.to(device), context, first_stage=first_stage)

            return ranked_run(rank, videos, split.queries)


def _first_stage(split: Split) -> NDArray[np.float32]:
    if split.first_stage is None:
        raise InvalidValue(
            "conquer: the split has no first_stage; give the scores of a retriever, for instance "
            "moviola.training.segments.video_scores"
        )
    return split.first_stage


CONQUER = ConquerRecipe()


@dataclass(frozen=True)
class PremRecipe:
    """PREM (section 4.2): the retriever for 100 epochs, then the localizer for 15."""

    architecture: str = "prem"
    needs: frozenset[str] = frozenset()

    @property
    def settings(self) -> Settings:
        """The paper's for TVR; the clipping of gradients is ours."""
        retriever = LoopConfig(
            epochs=100, batch_size=256, optimizer=_adamw(eps=1e-8), patience=0, select="video nDCG@10"
        )
        localizer = LoopConfig(epochs=15, batch_size=32, optimizer=_adamw(eps=1e-8), patience=0)
        return Settings(
            loops={"retriever": retriever, "localizer": localizer}, sampling=CandidateSampling(negatives=4)
        )

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """See :class:`moviola.training.recipes.Recipe`."""
        longest = max(1, round(LONGEST_CANDIDATE / sizes.clip_seconds))
        return _feature_sizes(sizes) | {"max_clips": sizes.longest, "longest_span": longest}

    def phases(self, model: nn.Module, train: Split, val: Split, settings: Settings) -> Iterable[Phase]:
        """See :class:`moviola.training.recipes.Recipe`; the trained retriever names the negatives."""
        prem, sampling = cast("Prem", model), settings.sampling
        videos = self.videos(prem, train.clips)

        loop = settings.loops["retriever"]
        prem.to(loop.device)  # val is asked of both halves, whichever is trained
        yield Phase(
            PairTask(
                prem.retriever,
                videos,
                train.queries,
                train.pairs,
                lambda step, epoch, generator: prem.retriever.loss(step.pairs),
                lambda: judge_videos(run_videos(self, prem, val), val),
                loop.batch_size,
            ),
            loop,
        )

        loop = settings.loops["localizer"]
        prem.to(loop.device)
        yield Phase(
            CandidateTask(
                prem.localizer,
                videos,
                train.queries,
                train.pairs,
                _hardest_of_retriever(prem, videos, train, sampling.pool),
                sampling.negatives,
                prem.localizer.loss,
                lambda: judge(self.run(prem, val), val),
                loop.batch_size,
            ),
            loop,
        )

    def videos(self, model: Prem, clips: Clips) -> ModelClips:
        """Videos as the model takes them."""
        return ModelClips(clips, model.config.max_clips)

    def run(self, model: nn.Module, split: Split) -> Run:
        """See :class:`moviola.training.recipes.Recipe`."""
        return _corpus_run(model, self.videos(cast("Prem", model), split.clips), split)

    def best_videos(self, model: Prem, query: Tensor, mask: Tensor, context: Any) -> tuple[Tensor, Tensor]:
        """The 100 best videos of some queries, and their scores."""
        return model.rank_videos(query, mask, context, keep=100)


PREM = PremRecipe()


def _hardest_of_retriever(model: Prem, videos: ModelClips, split: Split, count: int) -> Rows:
    """:func:`hardest_videos` of a trained retriever."""
    device = _device(model)
    with torch.inference_mode():
        context = encoded_corpus(model, videos)

        def scores(some: slice) -> NDArray[np.float32]:
            query, mask = split.queries.tokens(np.arange(some.start, some.stop))
            units = model.retriever.encode_query(query.to(device), mask.to(device))
            found: NDArray[np.float32] = (
                model.retriever.score(units, context.units, context.mask).cpu().numpy()
            )
            return found

        return hardest_videos(scores, split.pairs, count)


# ---- studies of recall: in one video, and of videos ------------------------------------------------------


def run_within(recipe: XmlRecipe | PremRecipe, model: XML | Prem, split: Split) -> Run:
    """SVMR: the best moments of each query in the video of its :func:`best_moments`; none without one."""
    best = best_moments(split.pairs)
    own = np.where(best < 0, -1, split.pairs.video[split.pairs.moment[best]])
    videos, device = recipe.videos(cast("Any", model), split.clips), _device(model)
    with torch.inference_mode():
        context = encoded_corpus(model, videos)

        def rank(some: slice, query: Tensor, mask: Tensor) -> Ranked:
            video = torch.from_numpy(own[some]).to(device)
            found = model.rank_within(query.to(device), mask.to(device), context, video.clamp(min=0))
            return replace(found, video=torch.where(video[:, None] < 0, -1, found.video))

        return ranked_run(rank, videos, split.queries)


def run_videos(recipe: XmlRecipe | PremRecipe, model: XML | Prem, split: Split) -> Run:
    """VR: the best 100 videos of each query, each from its start to its end."""
    videos, device = recipe.videos(cast("Any", model), split.clips), _device(model)
    with torch.inference_mode():
        context = encoded_corpus(model, videos)

        def rank(some: slice, query: Tensor, mask: Tensor) -> Ranked:
            found = recipe.best_videos(cast("Any", model), query.to(device), mask.to(device), context)
            rows, scores = found
            return Ranked(rows, torch.zeros_like(scores), torch.full_like(scores, torch.inf), scores)

        return ranked_run(rank, videos, split.queries)


def judge_videos(run: Run, split: Split) -> dict[str, float]:
    """NDCG of whole videos; a video is as relevant as its most relevant moment."""
    pairs = split.pairs
    keys, place = np.unique(pairs.query * len(pairs.videos) + pairs.video[pairs.moment], return_inverse=True)
    relevance = np.zeros(len(keys))
    np.maximum.at(relevance, place, pairs.relevance)
    query, video = keys // len(pairs.videos), keys % len(pairs.videos)
    qrels = Qrels.from_columns(
        np.array(pairs.query_ids, dtype=object)[query],
        np.array(pairs.videos, dtype=object)[video],
        np.zeros(len(keys)),
        split.clips.durations[video],
        relevance,
        queries=pairs.query_ids,
    )
    depths = (5, 10, 20, 40)
    measures = [Measure.parse(f"nDCG@{k},IoU>=0.5") for k in depths]
    found = evaluate(run, qrels, measures).measures
    return {f"video nDCG@{k}": found[str(measure)] for k, measure in zip(depths, measures, strict=True)}


def tvr_submission(runs: Mapping[str, Run], videos: Sequence[str]) -> dict[str, Any]:
    """Runs by task (VCMR, SVMR, VR) as :func:`moviola.measures.tvr_recall` takes them.

    Args:
        runs: by task.
        videos: all ids of the corpus.
    """
    number = {name: place for place, name in enumerate(videos)}

    def entry(query: str, moments: list[dict[str, Any]]) -> dict[str, Any]:
        rows = [[number[m["video_id"]], m["start"], m["end"], m["score"]] for m in moments]
        return {"desc_id": query, "predictions": rows}

    answers = {task: [entry(*row) for row in run.rows().items()] for task, run in runs.items()}
    return {"video2idx": number, **answers}


def tvr_truth(pairs: Pairs) -> list[dict[str, Any]]:
    """The best judged moment of each query that has one, as :func:`moviola.measures.tvr_recall` takes it."""
    best = best_moments(pairs)
    return [
        {
            "desc_id": pairs.query_ids[query],
            "vid_name": pairs.videos[pairs.video[moment]],
            "ts": [float(pairs.start[moment]), float(pairs.end[moment])],
        }
        for query, moment in ((q, pairs.moment[best[q]]) for q in np.flatnonzero(best >= 0))
    ]
