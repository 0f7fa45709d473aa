"""Recipes, and training a model by one.

A recipe joins a model of :mod:`moviola.study.models` with its batches (:mod:`moviola.study.training.tasks`)
and its paper's settings, and answers queries with the trained model.
:data:`moviola.study.training.recipes.RECIPES` lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from moviola.errors import InvalidValue
from moviola.retrieval import SEGMENTS, Calibration, Moments
from moviola.retrieval.proposals import APART
from moviola.retrieval.refiners import CONTEXT, SAME_MOMENT
from moviola.study.models.pretrained import build
from moviola.study.training.corpus import whole_videos
from moviola.study.training.data import Sizes, Split
from moviola.study.training.loop import Fitted, Task, fit
from moviola.study.training.settings import TrainingSettings
from moviola.study.training.validation import NAMES, run_of

if TYPE_CHECKING:
    from moviola.study.measures import Run
    from moviola.study.models.spr import SegmentRetriever

__all__ = ["OF_FEATURES", "AnswerSettings", "Recipe", "Trained", "train"]

OF_FEATURES = ("visual_size", "subtitle_size", "query_size", "hidden_size", "clip_seconds")
"""Model settings that equal those of the features where a recipe derives them."""

SEGMENT_CLIPS = 4
"""Default number of clips per segment (T of SPR: 4 s at one clip per second)."""


@dataclass(frozen=True)
class AnswerSettings:
    """Options of answering; a model reads those that concern it.

    Attributes:
        segment_clips: T, clips of a segment.
        segments: number retrieved per query.
        context: seconds on both sides of a proposal that a refiner reads.
        suppress_above: IoU above which the worse of two refined moments of a video is dropped; 1 keeps all,
            as the release of SPR does.
        proposal_weight: of a proposal's own score, >= 0, which is added to that of its refined moment.
        calibration: of a refiner's scores.
        scored: set :attr:`Moments.score`, the scores that `moviola search` shows.
        merge: which hits of a stage 1 merge, a name in :data:`moviola.retrieval.proposals.MERGES`.
    """

    segment_clips: int = SEGMENT_CLIPS
    segments: int = SEGMENTS
    context: float = CONTEXT
    suppress_above: float = SAME_MOMENT
    proposal_weight: float = 0.0
    calibration: Calibration | None = None
    scored: bool = False
    merge: str = APART


class Recipe(ABC):
    """Training and answering of one kind of model.

    Attributes:
        architecture: its name in :data:`moviola.study.models.pretrained.ARCHITECTURES`.
        needs: names of the optional parts of a :class:`Split` that it reads.
        refines: whether it refines proposals, so that its scores can be calibrated.
        merges: whether it answers with hits that are merged to proposals, or refines these.
        optional_streams: sizes of streams that may be set to 0, for a model that works without them.
    """

    architecture: str
    needs: frozenset[str] = frozenset()
    refines: bool = False
    merges: bool = False
    optional_streams: frozenset[str] = frozenset({"subtitle_size"})

    @property
    @abstractmethod
    def settings(self) -> TrainingSettings:
        """The settings of its paper."""

    @abstractmethod
    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """The settings of the model that follow from the features."""

    def start_from(self, model: nn.Module, stage1: SegmentRetriever) -> None:  # noqa: B027 - by default
        """Copy weights of the stage 1 that a new model is built on; most models copy none."""

    @abstractmethod
    def phases(self, model: Any, train: Split, val: Split, settings: TrainingSettings) -> Iterable[Task[Any]]:
        """What each phase of ``settings.loops`` trains on, made when the previous one is done."""

    def measured(self, phase: str) -> tuple[str, ...]:
        """Names of the measures on val that can choose the weights of a phase."""
        return NAMES

    def require_measured(self, settings: TrainingSettings) -> None:
        """Raise :class:`InvalidValue` if a phase is to choose its weights by what is not measured on val."""
        for phase, loop in settings.loops.items():
            if loop.select not in self.measured(phase):
                known = ", ".join(self.measured(phase))
                raise InvalidValue(f"{phase}.select {loop.select!r}: unknown on val; choose {known}")

    @abstractmethod
    def moments(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """The model's answers to the queries of a split; it is in evaluation mode."""

    def proposal_weight(self, model: nn.Module, val: Split, how: AnswerSettings, select: str) -> float:
        """The weight, >= 0, of a proposal's own score in that of its refined moment; by default 0.

        Args:
            model: trained, in evaluation mode.
            val: with the proposals of a stage 1.
            select: the measure that chooses weights, by its name in :mod:`moviola.study.training.validation`.
        """
        return 0.0

    def settle(self, model: nn.Module, val: Split, how: AnswerSettings, select: str) -> Mapping[str, float]:
        """Set what val chooses in the trained model itself; by default nothing.

        Args are those of :meth:`proposal_weight`, ``how`` with the weight of proposals. Returns what was set,
        by name, for the model's facts.
        """
        return {}

    def rank_videos(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """Whole videos, best first (VR); by default in the order of their best moments."""
        return whole_videos(self.moments(model, split, how), split.features.durations)

    def run(self, model: nn.Module, split: Split, how: AnswerSettings | None = None) -> Run:
        """:meth:`moments` with the model's own matching scores, as a run for measures."""
        return run_of(self.moments(model, split, how or AnswerSettings()), split)

    def video_run(self, model: nn.Module, split: Split, how: AnswerSettings | None = None) -> Run:
        """:meth:`rank_videos` as a run for measures."""
        return run_of(self.rank_videos(model, split, how or AnswerSettings()), split)


@dataclass(frozen=True)
class Trained:
    """A trained model, its phases, and its training settings."""

    model: nn.Module
    fitted: tuple[Fitted, ...]
    settings: TrainingSettings


def train(
    recipe: Recipe,
    train_split: Split,
    val_split: Split,
    settings: TrainingSettings | None = None,
    *,
    stage1: SegmentRetriever | None = None,
    folder: Path | None = None,
    resume: bool = False,
    progress: Callable[[int, int, Mapping[str, float]], None] | None = None,
) -> Trained:
    """Build and train a model; the best weights on val are in it.

    Args:
        train_split, val_split: data for training and for choosing the weights.
        settings: by default the recipe's own.
        stage1: the trained stage 1 that the model is built on; see :meth:`Recipe.start_from`.
        folder: folder for logs and states, with one folder per phase.
        resume, progress: see :func:`moviola.study.training.loop.fit`.

    Raises:
        InvalidValue: a split lacks a part that the recipe needs, or a setting is wrong.
    """
    settings = settings or recipe.settings
    for part in sorted(recipe.needs):
        if any(getattr(split, part) is None for split in (train_split, val_split)):
            raise InvalidValue(f"{recipe.architecture}: needs {part} of a trained stage 1; give one")
    torch.manual_seed(next(iter(settings.loops.values())).seed)
    sizes = replace(train_split.sizes, longest=max(train_split.sizes.longest, val_split.sizes.longest))
    model = build(recipe.architecture, _config(recipe, sizes, settings.model))
    if stage1 is not None:
        recipe.start_from(model, stage1)
    places = [folder and (folder / name if len(settings.loops) > 1 else folder) for name in settings.loops]
    if not resume:
        for stale in filter(None, places):
            (stale / "state.pt").unlink(missing_ok=True)
    done: list[Fitted] = []
    tasks = recipe.phases(model, train_split, val_split, settings)
    for task, loop, place in zip(tasks, settings.loops.values(), places, strict=True):
        # A run that was interrupted before its first step, or in one phase, has no state of what follows.
        begun = resume and (place is None or (place / "state.pt").is_file())
        done.append(fit(task, loop, place, resume=begun, progress=progress))
    return Trained(model.eval(), tuple(done), settings)


def _config(recipe: Recipe, sizes: Sizes, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the model; those of the features may not be overridden."""
    sized = recipe.sized(sizes)
    for name in (name for name in OF_FEATURES if name in given and name in sized):
        left_out = name in recipe.optional_streams and given[name] == 0
        if given[name] != sized[name] and not left_out:
            raise InvalidValue(
                f"model.{name}={given[name]}: the features have {sized[name]}; leave the setting out, or "
                "give features that were made so"
            )
    return {**sized, **given}
