"""Stage 3 of SPR: proposals become moments with finer times and a better order (paper, section 3.3).

:class:`CurveRefiner` needs no training: it reads the curve of query-frame similarities around a proposal.
The trained refiners (:data:`REFINERS`) fill the same contract, :class:`Refiner`, and see frames, subtitles,
tokens and windows exactly as in training. torch is imported with the first of them, not before.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.models.calibration import LEAST, Calibration
from moviola.types import Proposal, Span

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from moviola.models.reel import Reel  # noqa: F401 - named as text below
    from moviola.models.reloclnet import ReLoCLNet
    from moviola.models.spans import ClipWindows
    from moviola.models.spr import SprClip

__all__ = [
    "REFINERS",
    "CurveRefiner",
    "EncodedQuery",
    "Footage",
    "ReLoRefiner",
    "ReelRefiner",
    "Refined",
    "Refiner",
    "SprClipRefiner",
    "TrainedRefiner",
    "Window",
    "load_refiner",
]

CONTEXT = 8.0
"""Seconds on both sides of a proposal that refiners are trained with (tau_C; SPR, section 4.6)."""

TOKENS = 30
"""Tokens of a query that models are trained with; of a longer one the first ones and the last one."""

SAME = 0.5
"""Two moments of one video that overlap more than this (IoU) are one, found twice."""

Rows = NDArray[np.int64]


# ---- what a refiner is given, what it gives --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query as the library's encoder sees it.

    Attributes:
        vector: (d,) float32, L2-normalised.
        tokens: (n, d) float32, a row a token, the last one for the whole text; n is 0 unless the refiner
            ``needs_tokens``.
    """

    vector: NDArray[np.float32]
    tokens: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))


Kept = Callable[[str, Callable[[], NDArray[np.float16]]], NDArray[np.float16]]


@dataclass(frozen=True, slots=True)
class Footage:
    """What a library holds of one video.

    Attributes:
        frames: (n, d) float16 or float32, n >= 1, features as the encoder gave them; row k shows k / rate
            seconds.
        rate: frames a second.
        duration: in seconds; no refined span reaches beyond it.
        heard: gives (n, ds) float32, what is spoken during each frame, zeros where nobody speaks.
        kept: gives what was made of this video before by the model of a revision, else makes it and keeps it
            where it can: (n, ...) float16, a row a frame.
    """

    frames: NDArray[np.floating]
    rate: float
    duration: float
    heard: Callable[[], NDArray[np.float32]] = lambda: np.empty((0, 0), np.float32)
    kept: Kept = lambda _, make: make()

    def span(self, start: float, end: float) -> Span:
        """A span in seconds, cut to the video."""
        start = max(0.0, start)
        return Span(start, max(min(end, self.duration), start + 1e-3))


@dataclass(frozen=True, slots=True)
class Window:
    """A proposal and its video; a refiner takes as much around the proposal as it wants."""

    proposal: Proposal
    footage: Footage


@dataclass(frozen=True, slots=True)
class Refined:
    """The best span of a window and its matching score (phi of the paper), comparable within one query."""

    span: Span
    score: float


class Refiner(Protocol):
    """Proposals to moments."""

    @property
    def needs_tokens(self) -> bool:
        """Whether :meth:`refine` reads the query's tokens."""
        ...

    @property
    def cosines(self) -> bool:
        """Whether scores are cosines in the encoder's space, rather than on a scale of the refiner's own."""
        ...

    @property
    def calibration(self) -> Calibration | None:
        """From its scores to the probability of being right; None where that was not measured."""
        ...

    @property
    def overlap(self) -> float:
        """Of two moments of a video that overlap more than this (IoU) only the better stays; 1 keeps all."""
        ...

    def prepare(self, footage: Footage) -> None:
        """Make and keep what is to be known of a video before any query is."""
        ...

    def refine(self, query: EncodedQuery, windows: Sequence[Window]) -> list[Refined]:
        """One span and score a window, in the order of the windows."""
        ...


# ---- without training ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CurveRefiner:
    """The span that holds most of the similarity above a threshold; no training.

    With s the smoothed similarity of each frame to the query, low its ``floor`` quantile in the window and
    peak its maximum inside the proposal, the threshold is low + ``level`` (peak - low). The span is the run
    of frames with the largest sum of (s - threshold): dips that later frames make up for are bridged.
    ``before`` and ``after`` widen the span by what a moment is known to hold besides its telling frames.
    ``context`` is how many seconds on both sides of a proposal are looked at (tau_C).

    The score is the proposal's own similarity and the span's mean similarity, weighted by ``coarse_share``:
    a whole span that fits says more than one segment that does.
    """

    context: float = CONTEXT
    level: float = 0.5
    floor: float = 0.2
    before: float = 0.0
    after: float = 0.0
    coarse_share: float = 0.5

    @property
    def needs_tokens(self) -> bool:
        """See :class:`Refiner`."""
        return False

    @property
    def cosines(self) -> bool:
        """See :class:`Refiner`."""
        return True

    @property
    def calibration(self) -> None:
        """See :class:`Refiner`."""
        return None

    @property
    def overlap(self) -> float:
        """See :class:`Refiner`."""
        return 1.0

    def prepare(self, footage: Footage) -> None:
        """See :meth:`Refiner.prepare`; there is nothing to know."""

    def refine(self, query: EncodedQuery, windows: Sequence[Window]) -> list[Refined]:
        """See :meth:`Refiner.refine`."""
        return [self._refine(query.vector, window) for window in windows]

    def _refine(self, query: NDArray[np.float32], window: Window) -> Refined:
        footage, span = window.footage, window.proposal.span
        rate = footage.rate
        begin = max(0, math.floor((span.start - self.context) * rate))
        stop = min(len(footage.frames), math.ceil((span.end + self.context) * rate))
        begin = min(begin, stop - 1)
        curve = _smoothed(_cosines(footage.frames[begin:stop], query))
        first, last = self._best_run(curve, _inside(span, begin, rate, len(curve)))
        own = float(curve[first : last + 1].mean())
        return Refined(
            footage.span((begin + first) / rate - self.before, (begin + last + 1) / rate + self.after),
            self.coarse_share * window.proposal.score + (1 - self.coarse_share) * own,
        )

    def _best_run(self, curve: NDArray[np.float32], inside: slice) -> tuple[int, int]:
        """First and last frame, inclusive, of the run with the largest sum above the threshold."""
        low = float(np.quantile(curve, self.floor))
        peak = float(curve[inside].max())
        gains = np.concatenate(([0.0], np.cumsum(curve - (low + self.level * (peak - low)))))
        # The best end for each start: a running maximum from the right.
        best_end = np.maximum.accumulate(gains[::-1])[::-1]
        first = int(np.argmax(best_end[1:] - gains[:-1]))
        last = first + int(np.argmax(gains[first + 1 :]))
        return first, last


def _inside(span: Span, begin: int, rate: float, count: int) -> slice:
    """The frames of a proposal among the ``count`` frames from ``begin``."""
    first = int(np.clip(round(span.start * rate - begin), 0, count - 1))
    last = int(np.clip(np.ceil(span.end * rate - begin), first + 1, count))
    return slice(first, last)


def _cosines(frames: NDArray[np.floating], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) float32 of frames (n, d) with a query (d,) of length 1; 0 for a frame of zeros."""
    rows = np.asarray(frames, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1)
    cosines: NDArray[np.float32] = rows @ query / np.maximum(lengths, np.finfo(np.float32).tiny)
    return cosines


def _smoothed(curve: NDArray[np.float32]) -> NDArray[np.float32]:
    """A binomial filter of width 3; the ends stand for what lies beyond them."""
    padded = np.pad(curve, 1, mode="edge")
    smooth: NDArray[np.float32] = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
    return smooth


# ---- with training ---------------------------------------------------------------------------------------

Model = TypeVar("Model", bound="torch.nn.Module")


@dataclass(frozen=True, slots=True)
class TrainedRefiner(ABC, Generic[Model]):
    """What trained refiners have in common: their windows, and times from clips.

    Attributes:
        model: in evaluation mode.
        revision: changes with the model's weights and settings.
        context: seconds on both sides of a proposal.
        calibration: see :class:`Refiner`; measured on raw scores as :meth:`decode` gives them.
    """

    model: Model
    revision: str
    context: float = CONTEXT
    calibration: Calibration | None = None

    @property
    def needs_tokens(self) -> bool:
        """See :class:`Refiner`."""
        return True

    @property
    def cosines(self) -> bool:
        """See :class:`Refiner`."""
        return False

    @property
    def overlap(self) -> float:
        """See :class:`Refiner`."""
        return SAME

    @property
    @abstractmethod
    def longest(self) -> int:
        """Most clips of a window; a longer one is pooled."""

    @property
    @abstractmethod
    def labels(self) -> str:
        """What the model's end clips mean, a key of :data:`moviola.models.spans.LABELS`."""

    @property
    def max_tokens(self) -> int:
        """Most tokens of a query."""
        return TOKENS

    @abstractmethod
    def decode(
        self, query: EncodedQuery, footage: Sequence[Footage], windows: ClipWindows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Score (N,) float32, clip of start and of end (N,) int64 of N windows, each of its own footage."""

    def prepare(self, footage: Footage) -> None:
        """See :meth:`Refiner.prepare`; nothing by default."""

    def refine(self, query: EncodedQuery, windows: Sequence[Window]) -> list[Refined]:
        """See :meth:`Refiner.refine`; the windows are of one library, with one frame rate."""
        if not windows:
            return []
        import torch

        from moviola.models.spans import LABELS, clip_windows

        footage = [window.footage for window in windows]
        durations = np.array([video.duration for video in footage])
        clips = clip_windows(
            np.maximum([w.proposal.span.start - self.context for w in windows], 0),
            np.minimum([w.proposal.span.end + self.context for w in windows], durations),
            [len(video.frames) for video in footage],
            clip_seconds=1 / footage[0].rate,
            longest=self.longest,
        )
        with torch.inference_mode():
            score, first, last = (part.cpu().numpy() for part in self.decode(query, footage, clips))
        convention = LABELS[self.labels]
        # Where the end is the clip behind the moment, a moment in a window of one clip has no such clip.
        last = np.maximum(last, first + (0 if convention.end_inside else 1))
        starts, ends = clips.seconds(first, last, convention, durations)
        spans = [
            video.span(*edges) for video, *edges in zip(footage, starts.tolist(), ends.tolist(), strict=True)
        ]
        return [Refined(span, value) for span, value in zip(spans, score.tolist(), strict=True)]

    def _tokens(self, query: EncodedQuery) -> tuple[Tensor, Tensor]:
        """Tokens (1, n, d) of length 1 and their mask (1, n), cut as in training."""
        import torch

        from moviola.models.spans import normalise_rows

        tokens, most = normalise_rows(query.tokens), self.max_tokens
        if len(tokens) > most:
            tokens = np.concatenate([tokens[: most - 1], tokens[-1:]])
        given = torch.from_numpy(tokens)[None].to(self._device)
        return given, torch.ones(given.shape[:2], device=self._device)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device


def _padded(arrays: Sequence[NDArray[np.floating]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Arrays (n_i, ...) as one (N, L, ...) float32 with zeros behind, and the mask (N, L)."""
    import torch

    rows = [torch.from_numpy(np.asarray(array, dtype=np.float32)) for array in arrays]
    there = [torch.ones(len(array)) for array in arrays]
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(rows, batch_first=True).to(device), pad(there, batch_first=True).to(device)


@dataclass(frozen=True, slots=True)
class ReelRefiner(TrainedRefiner["Reel"]):
    """Reel: what it makes of a whole video is kept, in half precision whether it was stored or not."""

    @property
    def longest(self) -> int:
        """See :class:`TrainedRefiner`; Reel takes windows of any length."""
        return 1 << 30

    @property
    def labels(self) -> str:
        """See :class:`TrainedRefiner`; the last clip is inside the moment."""
        return "spr"

    @property
    def max_tokens(self) -> int:
        """See :class:`TrainedRefiner`."""
        return min(TOKENS, self.model.config.max_tokens)

    def prepare(self, footage: Footage) -> None:
        """See :meth:`Refiner.prepare`."""
        self._kept(footage)

    def _kept(self, footage: Footage) -> NDArray[np.float16]:
        """(n, 3, h)."""
        return footage.kept(self.revision, lambda: self._encoded(footage))

    def _encoded(self, footage: Footage) -> NDArray[np.float16]:
        import torch

        from moviola.models.spans import normalise_rows

        visual, mask = _padded([normalise_rows(np.asarray(footage.frames, np.float32))], self._device)
        heard = None
        if self.model.config.subtitle_size:
            heard, _ = _padded([normalise_rows(footage.heard())], self._device)
        with torch.inference_mode():
            clips = self.model.encode_context(visual, mask, heard).clips[0]
            return clips.cpu().numpy().astype(np.float16)

    def decode(
        self, query: EncodedQuery, footage: Sequence[Footage], windows: ClipWindows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`TrainedRefiner.decode`; scores are logits."""
        import torch

        places = zip(footage, windows.first.tolist(), windows.stop.tolist(), strict=True)
        parts = [self._kept(video)[first:stop] for video, first, stop in places]
        # One query: its dot products with all clips at once, of which only these are padded.
        clips = torch.from_numpy(np.concatenate(parts)).to(self._device).float()
        asked = self.model.encode_query(*self._tokens(query))[0]
        similarity = torch.einsum("rh,nrh->nr", asked, clips)
        lengths = [len(part) for part in parts]
        padded = torch.nn.utils.rnn.pad_sequence(list(torch.split(similarity, lengths)), batch_first=True)
        mask = torch.arange(padded.shape[1]) < torch.tensor(lengths)[:, None]
        return self.model.best_spans(padded.transpose(1, 2), mask.float().to(self._device))


WindowModel = TypeVar("WindowModel", bound="SprClip | ReLoCLNet")


class _WindowRefiner(TrainedRefiner[WindowModel]):
    """SPR's refiners: every window is encoded for every query, all of a query's in one forward pass."""

    __slots__ = ()

    @property
    def labels(self) -> str:
        """See :class:`TrainedRefiner`."""
        return self.model.config.labels

    @property
    @abstractmethod
    def hears(self) -> bool:
        """Whether the model has a stream of subtitles."""

    @abstractmethod
    def asked(self, query: EncodedQuery) -> tuple[Tensor, Tensor]:
        """What the model reads of the query, (1, n, d), and its mask (1, n)."""

    def decode(
        self, query: EncodedQuery, footage: Sequence[Footage], windows: ClipWindows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`TrainedRefiner.decode`; scores are logarithms of the model's."""
        visual, mask = self._windows([video.frames for video in footage], windows)
        heard = self._windows([video.heard() for video in footage], windows)[0] if self.hears else None
        # The two models have the same methods, but each its own type of context.
        model = cast("Any", self.model)
        score, first, last = model.refine(*self.asked(query), model.encode_context(visual, mask, heard))
        return score.clamp(min=LEAST).log(), first, last

    def _windows(
        self, features: Sequence[NDArray[np.floating]], windows: ClipWindows
    ) -> tuple[Tensor, Tensor]:
        from moviola.models.spans import normalise_rows, pool_clips

        places = zip(features, windows.first.tolist(), windows.stop.tolist(), strict=True)
        rows = [normalise_rows(np.asarray(part[first:stop], np.float32)) for part, first, stop in places]
        return _padded([pool_clips(part, self.longest) for part in rows], self._device)


class SprClipRefiner(_WindowRefiner["SprClip"]):
    """SPR_CLIP: pictures alone, and the query is its vector."""

    __slots__ = ()

    @property
    def needs_tokens(self) -> bool:
        """See :class:`Refiner`."""
        return False

    @property
    def longest(self) -> int:
        """See :class:`TrainedRefiner`."""
        return self.model.config.max_clips

    @property
    def hears(self) -> bool:
        """No."""
        return False

    def asked(self, query: EncodedQuery) -> tuple[Tensor, Tensor]:
        """The query's vector."""
        import torch

        given = torch.from_numpy(query.vector)[None, None].to(self._device)
        return given, torch.ones(1, 1, device=self._device)


class ReLoRefiner(_WindowRefiner["ReLoCLNet"]):
    """SPR_ReLo: ReLoCLNet on windows, with subtitles where it was trained with them."""

    __slots__ = ()

    @property
    def longest(self) -> int:
        """See :class:`TrainedRefiner`."""
        return self.model.config.max_clips

    @property
    def max_tokens(self) -> int:
        """See :class:`TrainedRefiner`."""
        return min(TOKENS, self.model.config.max_tokens)

    @property
    def hears(self) -> bool:
        """Whether the model has a stream of subtitles."""
        return self.model.config.subtitle_size > 0

    def asked(self, query: EncodedQuery) -> tuple[Tensor, Tensor]:
        """The query's tokens."""
        return self._tokens(query)


REFINERS: dict[str, Callable[[Any, str, float, Calibration | None], Refiner]] = {
    "reel": ReelRefiner,
    "spr-clip": SprClipRefiner,
    "reloclnet": ReLoRefiner,
}
"""What runs a trained refiner, by the model's architecture."""


def load_refiner(folder: Path, revision: str, device: str = "cpu") -> Refiner:
    """The refiner in a model's folder.

    Args:
        folder: what :func:`moviola.models.pretrained.save_pretrained` wrote.
        revision: see :class:`TrainedRefiner`.
        device: where to run it.

    Raises:
        NotFound, DataError: the folder is not there or damaged, or its calibration malformed.
        InvalidValue: it holds a model that is no refiner.
    """
    from moviola.models.pretrained import from_pretrained, read_description

    about = read_description(folder)
    if about.architecture not in REFINERS:
        raise InvalidValue(
            f"{folder}: architecture {about.architecture!r} is no refiner; give {', '.join(REFINERS)}"
        )
    settings = about.extra.get("settings") or {}
    context = float((settings.get("sampling") or {}).get("context", CONTEXT))
    calibration = Calibration.of(about.extra, folder)
    return REFINERS[about.architecture](from_pretrained(folder, device), revision, context, calibration)
