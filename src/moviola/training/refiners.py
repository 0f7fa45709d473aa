"""Training of SPR's refiners: queries with windows of videos that hold an answer (SPR, sections 3.3 and 4.7).

A training window is a coarse proposal of the query that holds the pair's moment, widened like the proposals
that the model will refine. What else a pair is compared with is a strategy, see :data:`STRATEGIES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn

from moviola.errors import InvalidValue
from moviola.measures import Run
from moviola.models.batches import PairBatch
from moviola.models.reloclnet import SPR_LARGE, SPR_SMALL, Context, ReLoCLNet, ReLoCLNetConfig, Windows
from moviola.models.spans import LABELS, ClipWindows, pool_clips
from moviola.models.spr import SprClip, SprClipContext
from moviola.training.data import Clips, Pairs, Queries, Rows, batches_by_length, padded, widened
from moviola.training.loop import LoopConfig
from moviola.training.optimizers import OptimizerConfig
from moviola.training.recipes import SUM, Phase, Settings, Sizes, Split, judge
from moviola.training.windows import context_windows, refined_run
from moviola.types import Proposal

__all__ = [
    "SPR_CLIP",
    "SPR_RELO",
    "SPR_RELO_LARGE",
    "STRATEGIES",
    "Drawn",
    "Examples",
    "RefinerBatch",
    "RefinerRecipe",
    "RefinerSampling",
    "RefinerTask",
]

CONTEXT = 8.0
"""Seconds on both sides of a proposal (tau_C; SPR, section 4.6)."""

STORED = 1 << 27
"""How many float32 of encoded windows a run keeps at most."""


# ---- what there is to draw from --------------------------------------------------------------------------


@dataclass(frozen=True)
class RefinerSampling:
    """What the batches are made like.

    Attributes:
        context: seconds on both sides of a proposal.
        held_by_window: a proposal with its context need hold a moment to be drawn for it, rather than by
            itself, as in the paper. Where proposals are shorter than moments hardly any holds one by itself,
            and a model is trained on longer windows than it refines.
        segment_seconds: length of a segment, for moments that no proposal holds.
        strategy: a name in :data:`STRATEGIES`.
        strong: how many of a query's first moments are strong positives (N_s).
        weak: how many of its last ones, besides the strong ones, are weak positives (N_w).
        hard_pool: how many of a batch's hardest negatives the ranking losses draw from.
        hard_negatives_from_epoch: the first epoch that does so; earlier ones draw from the whole batch.
    """

    context: float = CONTEXT
    held_by_window: bool = False
    segment_seconds: float = 4.0
    strategy: str = "standard"
    strong: int = 10
    weak: int = 20
    hard_pool: int = 20
    hard_negatives_from_epoch: int = 10

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise InvalidValue(f"strategy {self.strategy!r}: unknown; there are {', '.join(STRATEGIES)}")
        if min(self.strong, self.weak, self.hard_pool) < 1:
            raise InvalidValue(
                f"strong={self.strong}, weak={self.weak}, hard_pool={self.hard_pool}: give at least 1"
            )
        if self.context < 0 or self.segment_seconds <= 0:
            raise InvalidValue(
                f"context={self.context}, segment_seconds={self.segment_seconds}: "
                "give seconds, at least 0 of context and above 0 of a segment"
            )


@dataclass(frozen=True)
class Lists:
    """N lists of rows in one array: list i is ``rows[begin[i] : begin[i + 1]]``."""

    begin: Rows
    rows: Rows

    @classmethod
    def of(cls, parts: Sequence[Rows]) -> Lists:
        """From the lists themselves."""
        counts = np.array([len(part) for part in parts], dtype=np.int64)
        rows = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
        return cls(np.concatenate([[0], np.cumsum(counts)]), rows.astype(np.int64))

    @cached_property
    def counts(self) -> Rows:
        """(N,) int64, how long each list is."""
        return np.diff(self.begin)

    def draw(self, lists: Rows, draw: Generator) -> Rows:
        """One row at random out of each of some lists, none of which may be empty."""
        return self.rows[draw.integers(self.begin[lists], self.begin[lists + 1])]


@dataclass(frozen=True)
class Examples:
    """Pairs of a query and a moment with the query's coarse proposals.

    Attributes:
        clips, pairs: see :mod:`moviola.training.data`.
        proposals: of each query.
        sampling: how to draw.
    """

    clips: Clips
    pairs: Pairs
    proposals: Sequence[Sequence[Proposal]]
    sampling: RefinerSampling

    @cached_property
    def _own(self) -> Lists:
        """The proposals of each query, as rows of the next three."""
        counts = np.array([len(own) for own in self.proposals], dtype=np.int64)
        return Lists(np.concatenate([[0], np.cumsum(counts)]), np.arange(counts.sum()))

    @cached_property
    def video(self) -> Rows:
        """(N,) int64, the video of each proposal."""
        return np.array(
            [self.clips.row_of[p.video_id] for own in self.proposals for p in own], dtype=np.int64
        )

    @cached_property
    def start(self) -> NDArray[np.float64]:
        """(N,) seconds, the start of each proposal."""
        return np.array([p.span.start for own in self.proposals for p in own], dtype=np.float64)

    @cached_property
    def end(self) -> NDArray[np.float64]:
        """(N,) seconds, the end of each proposal."""
        return np.array([p.span.end for own in self.proposals for p in own], dtype=np.float64)

    @cached_property
    def of_query(self) -> Lists:
        """The pairs of each query, as in the file: the best first."""
        counts = np.bincount(self.pairs.query, minlength=len(self.pairs.query_ids))
        return Lists(np.concatenate([[0], np.cumsum(counts)]), np.argsort(self.pairs.query, kind="stable"))

    @cached_property
    def _compared(self) -> tuple[Lists, Lists]:
        """See :attr:`holding` and :attr:`free`."""
        holding: list[Rows] = [np.empty(0, dtype=np.int64)] * len(self.pairs)
        free: list[Rows] = []
        context = self.sampling.context
        slack = context if self.sampling.held_by_window else 0.0
        for query in range(len(self.pairs.query_ids)):
            own = np.arange(self._own.begin[query], self._own.begin[query + 1])
            rows = self.of_query.rows[self.of_query.begin[query] : self.of_query.begin[query + 1]]
            video, start, end = (x[:, None] for x in self.moments(rows))
            there = self.video[own] == video
            holds = there & (self.start[own] - slack <= start) & (self.end[own] + slack >= end)
            touches = there & (self.start[own] - context < end) & (self.end[own] + context > start)
            for row, held in zip(rows.tolist(), holds, strict=True):
                holding[row] = own[held]
            free.append(own[~touches.any(axis=0)])
        return Lists.of(holding), Lists.of(free)

    @property
    def holding(self) -> Lists:
        """The proposals of its query that hold each pair's moment whole, see ``held_by_window``."""
        return self._compared[0]

    @property
    def free(self) -> Lists:
        """The proposals of each query whose windows touch none of its answers."""
        return self._compared[1]

    def moments(self, rows: Rows) -> tuple[Rows, NDArray[np.float64], NDArray[np.float64]]:
        """Video, start and end of some pairs' moments, the end cut at the video's."""
        moment = self.pairs.moment[rows]
        video = self.pairs.video[moment]
        return (
            video,
            self.pairs.start[moment],
            np.minimum(self.pairs.end[moment], self.clips.durations[video]),
        )

    def around(self, rows: Rows, draw: Generator, longest: int) -> ClipWindows:
        """A window for each of some pairs, with its moment inside.

        It is a proposal that holds the moment, drawn at random, or, if there is none, the moment widened to
        whole segments and by none or one more on each side; either way with the context.
        """
        video, start, end = self.moments(rows)
        length = self.sampling.segment_seconds
        more = draw.integers(0, 2, size=(2, len(rows)))
        first = (np.floor(start / length) - more[0]) * length
        last = (np.ceil(end / length) + more[1]) * length
        held = self.holding.counts[rows] > 0
        proposal = self.holding.draw(rows[held], draw)
        first[held], last[held] = self.start[proposal], self.end[proposal]
        return self._windows(video, first, last, longest)

    def beside(self, proposals: Rows, longest: int) -> ClipWindows:
        """The windows of some proposals (rows)."""
        return self._windows(self.video[proposals], self.start[proposals], self.end[proposals], longest)

    def _windows(
        self, video: Rows, start: NDArray[np.float64], end: NDArray[np.float64], longest: int
    ) -> ClipWindows:
        return context_windows(video, start, end, self.clips, context=self.sampling.context, longest=longest)


# ---- strategies ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """An epoch of E examples.

    Attributes:
        pairs: (E,) int64, rows.
        weak: (E,) int64, rows of pairs of the same queries that answer less well; None without.
        free: (E,) int64, rows of proposals that do not answer; None without.
    """

    pairs: Rows
    weak: Rows | None = None
    free: Rows | None = None


def standard(examples: Examples, draw: Generator) -> Drawn:
    """Every pair once."""
    return Drawn(np.arange(len(examples.pairs)))


def hard_negative(examples: Examples, draw: Generator) -> Drawn:
    """Every pair once, against a proposal of its query without any answer (HN).

    Queries whose proposals all have one are left out.
    """
    query = examples.pairs.query
    rows = np.flatnonzero(examples.free.counts[query])
    return Drawn(rows, free=examples.free.draw(query[rows], draw))


def strong_weak(examples: Examples, draw: Generator) -> Drawn:
    """Every query once, a strong positive against a weak one and against a proposal without any answer.

    Strong are its first moments, weak the last of the others (HN w. N_s++, N_w+ in table 5). Queries without
    a weak one, or whose proposals all have an answer, are left out.
    """
    counts, sampling = examples.of_query.counts, examples.sampling
    query = np.flatnonzero((counts > sampling.strong) & (examples.free.counts > 0))
    begin, stop = examples.of_query.begin[query], examples.of_query.begin[query + 1]
    strong = draw.integers(begin, begin + sampling.strong)
    weak = draw.integers(np.maximum(begin + sampling.strong, stop - sampling.weak), stop)
    rows = examples.of_query.rows
    return Drawn(rows[strong], weak=rows[weak], free=examples.free.draw(query, draw))


STRATEGIES: dict[str, Callable[[Examples, Generator], Drawn]] = {
    "standard": standard,
    "hard-negative": hard_negative,
    "strong-weak": strong_weak,
}
"""What an epoch has, by name (SPR, section 4.7)."""


# ---- the task --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RefinerBatch:
    """A batch of pairs over windows, with what else each pair is compared with."""

    pairs: PairBatch
    free: Windows | None
    weak: Windows | None


@dataclass(frozen=True)
class RefinerTask:
    """Training of a refiner.

    Attributes:
        recipe: how the model is fed.
        model: a model of the recipe.
        examples, queries: what to learn from.
        judge: measures on val of the model as it is.
    """

    recipe: RefinerRecipe
    model: nn.Module
    examples: Examples
    queries: Queries
    judge: Callable[[], Mapping[str, float]]
    batch_size: int = 256

    def _drawn(self, draw: Generator) -> Drawn:
        return STRATEGIES[self.examples.sampling.strategy](self.examples, draw)

    @cached_property
    def _epoch(self) -> int:
        size = len(self._drawn(np.random.default_rng(0)).pairs)
        if not size:
            raise InvalidValue(
                f"strategy {self.examples.sampling.strategy!r}: no query has what it draws; give more "
                "moments or proposals a query, fewer strong ones, or take the strategy 'standard'"
            )
        return size

    def batches_per_epoch(self) -> int:
        """See :class:`moviola.training.loop.Task`."""
        return -(-self._epoch // self.batch_size)

    def batches(self, epoch: int, draw: Generator) -> Iterator[RefinerBatch]:
        """See :class:`moviola.training.loop.Task`; windows are drawn anew in each epoch."""
        examples, longest = self.examples, self.recipe.longest(self.model)
        drawn = self._drawn(draw)
        video = examples.moments(drawn.pairs)[0]
        windows = examples.around(drawn.pairs, draw, longest)
        weak = None if drawn.weak is None else examples.around(drawn.weak, draw, longest)
        free = None if drawn.free is None else examples.beside(drawn.free, longest)
        for places in batches_by_length(windows.clips, self.batch_size, draw):
            yield RefinerBatch(
                self._pairs(drawn.pairs[places], video[places], _taken(windows, places)),
                None
                if drawn.free is None or free is None
                else self._beside(examples.video[drawn.free[places]], _taken(free, places)),
                None
                if drawn.weak is None or weak is None
                else self._beside(examples.moments(drawn.weak[places])[0], _taken(weak, places)),
            )

    def _pairs(self, rows: Rows, video: Rows, windows: ClipWindows) -> PairBatch:
        pairs = self.examples.pairs
        _, start, end = self.examples.moments(rows)
        place = np.stack([video, windows.first, windows.stop])
        _, first, which = np.unique(place, axis=1, return_index=True, return_inverse=True)
        visual, mask, heard = read_windows(self.examples.clips, video[first], _taken(windows, first))
        query, query_mask = self.recipe.asked(self.queries, pairs.query[rows])
        labels = windows.labels(start, end, LABELS[self.recipe.labels(self.model)])
        return PairBatch(
            query=query,
            query_mask=query_mask,
            visual=visual,
            mask=mask,
            subtitles=heard,
            video=torch.from_numpy(which.reshape(-1)),
            labels=torch.from_numpy(labels),
            similarity=torch.from_numpy(pairs.similarity[rows]),
            positives=pairs.positives(rows),
        )

    def _beside(self, video: Rows, windows: ClipWindows) -> Windows:
        return Windows(*read_windows(self.examples.clips, video, windows))

    def losses(self, batch: RefinerBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """See :class:`moviola.training.loop.Task`."""
        device, sampling = next(self.model.parameters()).device, self.examples.sampling
        model = cast("SprClip | ReLoCLNet", self.model)
        return model.loss(
            batch.pairs.to(device),
            hard_pool=sampling.hard_pool if epoch >= sampling.hard_negatives_from_epoch else None,
            generator=generator,
            hard_negatives=_moved(batch.free, device),
            weak_positives=_moved(batch.weak, device),
        )

    def evaluate(self) -> Mapping[str, float]:
        """See :class:`moviola.training.loop.Task`."""
        return self.judge()


def read_windows(clips: Clips, video: Rows, windows: ClipWindows) -> tuple[Tensor, Tensor, Tensor | None]:
    """Features of N windows as a model sees them: visual (N, L, d), mask (N, L) and subtitles (N, L, d)."""
    places = list(zip(video.tolist(), windows.first.tolist(), windows.stop.tolist(), strict=True))
    seen = windows.clips.tolist()
    visual, mask = padded([pool_clips(clips.read(*place), n) for place, n in zip(places, seen, strict=True)])
    if clips.subtitles is None:
        return visual, mask, None
    heard = [clips.heard(*place) for place in places]
    return (
        visual,
        mask,
        padded([pool_clips(array, n) for array, n in zip(heard, seen, strict=True) if array is not None])[0],
    )


def _taken(windows: ClipWindows, rows: Rows) -> ClipWindows:
    return ClipWindows(
        windows.first[rows],
        windows.stop[rows],
        windows.clips[rows],
        windows.clip_seconds[rows],
        windows.start[rows],
    )


def _moved(windows: Windows | None, device: torch.device) -> Windows | None:
    if windows is None:
        return None
    heard = windows.subtitles
    return Windows(
        windows.visual.to(device), windows.mask.to(device), None if heard is None else heard.to(device)
    )


# ---- answers ---------------------------------------------------------------------------------------------


@dataclass
class EncodedWindows:
    """Windows encoded once, however many queries propose them; the encoders see no query.

    Attributes:
        encode: visual, mask and subtitles of N windows to what is stored of them, (N, L, ...).
        clips: whose windows.
        most: forget everything before more floats than this are stored.
        batch: windows encoded together; they are alike in length.
        fixed: pad each window to so many clips and keep the padding, as a model with reference padding has
            to see it; 0: no more than its batch asks for.
    """

    encode: Callable[[Tensor, Tensor, Tensor | None], Tensor]
    clips: Clips
    most: int = STORED
    batch: int = 64
    fixed: int = 0
    _stored: dict[tuple[int, int, int], Tensor] = field(default_factory=dict)
    _floats: int = 0

    def __call__(self, video: Rows, windows: ClipWindows) -> tuple[Tensor, Tensor]:
        """What is stored of N windows (N, L, ...), and the mask (N, L) float32."""
        keys = list(zip(video.tolist(), windows.first.tolist(), windows.stop.tolist(), strict=True))
        if self._floats > self.most:
            self._stored.clear()
            self._floats = 0
        missing = {key: place for place, key in enumerate(keys) if key not in self._stored}
        places = np.array(list(missing.values()), dtype=np.int64)
        places = places[np.argsort(windows.clips[places], kind="stable")]
        for begin in range(0, len(places), self.batch):
            chunk = places[begin : begin + self.batch]
            shown = read_windows(self.clips, video[chunk], _taken(windows, chunk))
            parts = self.encode(*(widened(self.fixed, *shown) if self.fixed else shown))
            self._floats += parts.numel()
            for place, part in zip(chunk.tolist(), parts, strict=True):
                self._stored[keys[place]] = part[: self.fixed or windows.clips[place]]
        stored = nn.utils.rnn.pad_sequence([self._stored[key] for key in keys], batch_first=True)
        there = torch.arange(stored.shape[1]) < torch.from_numpy(windows.clips)[:, None]
        return stored, there.float().to(stored.device)


# ---- recipes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RefinerRecipe(ABC):
    """What SPR's two refiners have in common (SPR, section 4.1).

    Attributes:
        architecture: see :class:`moviola.training.recipes.Recipe`.
        strategy: the one that was best in table 5.
        needs: see :class:`moviola.training.recipes.Recipe`.
    """

    architecture: str
    strategy: str
    needs: frozenset[str] = frozenset({"proposals"})

    @property
    def settings(self) -> Settings:
        """The paper's; what it takes over from ReLoCLNet (100 epochs, BertAdam) is in the defaults."""
        loop = LoopConfig(
            epochs=100, batch_size=256, optimizer=OptimizerConfig(lr=1e-4), patience=10, select=SUM
        )
        return Settings(self.config, {"train": loop}, RefinerSampling(strategy=self.strategy))

    @property
    @abstractmethod
    def config(self) -> Mapping[str, Any]:
        """Settings of the model that are not its architecture's defaults."""

    @abstractmethod
    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """See :class:`moviola.training.recipes.Recipe`."""

    @abstractmethod
    def longest(self, model: nn.Module) -> int:
        """Most clips of a window."""

    def fixed(self, model: nn.Module) -> int:
        """To how many clips every window is padded, see :class:`EncodedWindows`."""
        return 0

    @abstractmethod
    def labels(self, model: nn.Module) -> str:
        """Key of :data:`moviola.models.spans.LABELS`."""

    @abstractmethod
    def heard(self, clips: Clips) -> Clips:
        """The clips with the streams that the model takes."""

    @abstractmethod
    def asked(self, queries: Queries, rows: Rows) -> tuple[Tensor, Tensor]:
        """Tokens (B, Lq, d) of some queries and their mask (B, Lq)."""

    @abstractmethod
    def encode(self, model: nn.Module, visual: Tensor, mask: Tensor, heard: Tensor | None) -> Tensor:
        """What to store of N windows, (N, L, ...)."""

    @abstractmethod
    def context(self, stored: Tensor, mask: Tensor) -> Any:
        """Stored windows as the model's context."""

    def phases(self, model: nn.Module, train: Split, val: Split, settings: Settings) -> Iterable[Phase]:
        """See :class:`moviola.training.recipes.Recipe`."""
        assert train.proposals is not None
        loop, sampling = settings.loops["train"], settings.sampling
        yield Phase(
            RefinerTask(
                self,
                model,
                Examples(self.heard(train.clips), train.pairs, train.proposals, sampling),
                train.queries,
                lambda: judge(self.run(model, val, context=sampling.context), val),
                loop.batch_size,
            ),
            loop,
        )

    def run(self, model: nn.Module, split: Split, *, context: float = CONTEXT) -> Run:
        """Proposals refined and re-ranked; see :func:`moviola.training.windows.refined_run`."""
        assert split.proposals is not None
        device = next(model.parameters()).device
        clips = self.heard(split.clips)

        def encode(visual: Tensor, mask: Tensor, heard: Tensor | None) -> Tensor:
            moved = None if heard is None else heard.to(device)
            return self.encode(model, visual.to(device), mask.to(device), moved)

        encoded = EncodedWindows(encode, clips, fixed=self.fixed(model))
        refiner = cast("Any", model)

        def refine(row: int, video: Rows, windows: ClipWindows) -> tuple[Tensor, Tensor, Tensor]:
            query, query_mask = self.asked(split.queries, np.array([row]))
            found = refiner.refine(
                query.to(device), query_mask.to(device), self.context(*encoded(video, windows))
            )
            return cast("tuple[Tensor, Tensor, Tensor]", found)

        with torch.inference_mode():
            return refined_run(
                refine,
                split.proposals,
                clips,
                split.queries,
                context=context,
                longest=self.longest(model),
            )


@dataclass(frozen=True)
class ClipRefiner(RefinerRecipe):
    """SPR_CLIP: pictures alone, and a query is one sentence vector."""

    @property
    def config(self) -> Mapping[str, Any]:
        """See :class:`RefinerRecipe`."""
        return {}

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """See :class:`moviola.training.recipes.Recipe`."""
        if sizes.query != sizes.visual:
            raise InvalidValue(
                f"{self.architecture}: frames have {sizes.visual} features and queries {sizes.query}; give "
                "both of one CLIP"
            )
        return {"hidden_size": sizes.visual, "clip_seconds": sizes.clip_seconds}

    def longest(self, model: nn.Module) -> int:
        """See :class:`RefinerRecipe`."""
        return cast("SprClip", model).config.max_clips

    def labels(self, model: nn.Module) -> str:
        """See :class:`RefinerRecipe`."""
        return cast("SprClip", model).config.labels

    def heard(self, clips: Clips) -> Clips:
        """See :class:`RefinerRecipe`."""
        return replace(clips, subtitles=None)

    def asked(self, queries: Queries, rows: Rows) -> tuple[Tensor, Tensor]:
        """See :class:`RefinerRecipe`."""
        return queries.vectors[rows][:, None], torch.ones(len(rows), 1)

    def encode(self, model: nn.Module, visual: Tensor, mask: Tensor, heard: Tensor | None) -> Tensor:
        """See :class:`RefinerRecipe`."""
        return cast("SprClip", model).encode_context(visual, mask).frames

    def context(self, stored: Tensor, mask: Tensor) -> SprClipContext:
        """See :class:`RefinerRecipe`."""
        return SprClipContext(stored, mask)


@dataclass(frozen=True)
class ReloRefiner(RefinerRecipe):
    """SPR_ReLo: ReLoCLNet on windows, with subtitles where there are any."""

    preset: ReLoCLNetConfig = SPR_SMALL

    @property
    def config(self) -> Mapping[str, Any]:
        """See :class:`RefinerRecipe`."""
        default = asdict(ReLoCLNetConfig())
        return {name: value for name, value in asdict(self.preset).items() if value != default[name]}

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """See :class:`moviola.training.recipes.Recipe`."""
        return {
            "visual_size": sizes.visual,
            "subtitle_size": sizes.subtitle,
            "query_size": sizes.query,
            "clip_seconds": sizes.clip_seconds,
        }

    def longest(self, model: nn.Module) -> int:
        """See :class:`RefinerRecipe`."""
        return cast("ReLoCLNet", model).config.max_clips

    def fixed(self, model: nn.Module) -> int:
        """See :class:`RefinerRecipe`."""
        config = cast("ReLoCLNet", model).config
        return config.max_clips if config.reference_padding else 0

    def labels(self, model: nn.Module) -> str:
        """See :class:`RefinerRecipe`."""
        return cast("ReLoCLNet", model).config.labels

    def heard(self, clips: Clips) -> Clips:
        """See :class:`RefinerRecipe`."""
        return clips

    def asked(self, queries: Queries, rows: Rows) -> tuple[Tensor, Tensor]:
        """See :class:`RefinerRecipe`."""
        return queries.tokens(rows)

    def encode(self, model: nn.Module, visual: Tensor, mask: Tensor, heard: Tensor | None) -> Tensor:
        """See :class:`RefinerRecipe`."""
        return torch.stack(cast("ReLoCLNet", model).encode_context(visual, mask, heard).clips, dim=2)

    def context(self, stored: Tensor, mask: Tensor) -> Context:
        """See :class:`RefinerRecipe`."""
        return Context(mask, tuple(stored.unbind(2)))


SPR_CLIP = ClipRefiner("spr-clip", strategy="standard")
SPR_RELO = ReloRefiner("reloclnet", strategy="strong-weak")
SPR_RELO_LARGE = ReloRefiner("reloclnet", strategy="strong-weak", preset=SPR_LARGE)
