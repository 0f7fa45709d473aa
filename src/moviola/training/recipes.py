"""How each model is trained: what it is made of, what it learns from, how val judges it.

A recipe joins a model of :mod:`moviola.models` with its batches and with its papers' settings, and knows how
the trained model answers queries. :data:`RECIPES` names them all; :func:`train` runs one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from torch import nn

from moviola.errors import InvalidValue
from moviola.measures import Measure, Run, evaluate
from moviola.models.pretrained import build
from moviola.training.data import Clips, FeatureFolder, Pairs, Queries
from moviola.training.loop import Fitted, LoopConfig, Task, fit
from moviola.types import Proposal

__all__ = [
    "MEASURES", "SUM", "Phase", "Recipe", "Settings", "Sizes", "Split", "Trained", "judge", "read_settings",
    "train",
]  # fmt: skip

MEASURES = tuple(
    Measure.parse(f"nDCG@{k},IoU>={overlap}") for overlap in (0.3, 0.5, 0.7) for k in (10, 20, 40)
)
SUM = "sum nDCG,IoU>=0.7"
"""NDCG@10, @20 and @40 at IoU >= 0.7 added up, which SPR selects its refiners by (appendix A)."""


@dataclass(frozen=True)
class Split:
    """Videos, queries about them, and which moments answer these.

    Attributes:
        clips, queries, pairs: see :mod:`moviola.training.data`; ``pairs.videos`` are those of ``clips``.
        proposals: stage 1's coarse proposals of each query, best first; refiners need them.
        first_stage: (Q, V) float32, a retriever's score of each video, above 0; CONQUER needs them.
    """

    clips: Clips
    queries: Queries
    pairs: Pairs
    proposals: Sequence[Sequence[Proposal]] | None = None
    first_stage: NDArray[np.float32] | None = None

    @classmethod
    def read(
        cls,
        features: FeatureFolder,
        path: Path,
        videos: Sequence[str] | None = None,
        *,
        top: int | None = None,
    ) -> Split:
        """A split from its pair file and, by default, all videos of the features."""
        clips = features.clips(videos)
        pairs = Pairs.read(path, clips.videos, top=top)
        return cls(clips, features.encoded(pairs), pairs)

    @cached_property
    def sizes(self) -> Sizes:
        """What a model has to be built for."""
        heard = self.clips.subtitles
        return Sizes(
            visual=self.clips.visual.dim,
            subtitle=heard.dim if heard else 0,
            query=self.queries.features.dim,
            clip_seconds=self.clips.clip_seconds,
            longest=int(self.clips.counts.max()),
        )


@dataclass(frozen=True)
class Sizes:
    """Dimensions of the features, the length of a clip in seconds and the most clips of a video."""

    visual: int
    subtitle: int
    query: int
    clip_seconds: float
    longest: int


@dataclass(frozen=True)
class Phase:
    """One run of the loop: a task, and the part of the model's settings that it is about."""

    task: Task[Any]
    loop: LoopConfig


@dataclass(frozen=True)
class Settings:
    """Everything about a training, in one value that is saved with the model.

    Attributes:
        model: settings of the model by name, besides the sizes that follow from the features.
        loops: how each phase is trained; most models have the one phase "train".
        sampling: what the batches are made like; the recipe's own dataclass.
    """

    model: Mapping[str, Any] = field(default_factory=dict)
    loops: Mapping[str, LoopConfig] = field(default_factory=dict)
    sampling: Any = None

    def described(self) -> dict[str, Any]:
        """As plain values, for a file."""
        return {
            "model": dict(self.model),
            "loops": {name: asdict(loop) for name, loop in self.loops.items()},
            "sampling": None if self.sampling is None else asdict(self.sampling),
        }


class Recipe(Protocol):
    """How one model is trained.

    ``architecture`` is its name in :data:`moviola.models.pretrained.ARCHITECTURES`; ``settings`` are the
    papers'; ``needs`` names the optional parts of a :class:`Split` that it reads.
    """

    @property
    def architecture(self) -> str: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def needs(self) -> frozenset[str]: ...

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """The settings of the model that follow from the features."""

    def phases(self, model: nn.Module, train: Split, val: Split, settings: Settings) -> Iterable[Phase]:
        """What to train one after the other; each is made when the one before is done."""

    def run(self, model: nn.Module, split: Split) -> Run:
        """The trained model's answers to the queries of a split."""


def judge(run: Run, split: Split) -> dict[str, float]:
    """NDCG of a run by name of the measure, with their sum at IoU >= 0.7."""
    found = evaluate(run, split.pairs.qrels, MEASURES).measures
    return found | {SUM: sum(value for name, value in found.items() if name.endswith("0.7"))}


@dataclass(frozen=True)
class Trained:
    """A trained model, its phases, and the settings that it was trained with."""

    model: nn.Module
    fitted: tuple[Fitted, ...]
    settings: Settings


def train(
    recipe: Recipe,
    train_split: Split,
    val_split: Split,
    settings: Settings | None = None,
    *,
    folder: Path | None = None,
    start: Callable[[nn.Module], None] | None = None,
    resume: bool = False,
    tensorboard: bool = False,
    progress: Callable[[int, int, Mapping[str, float]], None] | None = None,
) -> Trained:
    """Build and train a model; the best weights on val are in it.

    Args:
        recipe: one of :data:`RECIPES`.
        train_split, val_split: what to learn from and what to choose by.
        settings: by default the recipe's own.
        folder: where logs and states go, in one folder a phase.
        start: called with the new model before it learns, for weights to start from.
        resume, tensorboard, progress: see :func:`moviola.training.loop.fit`.

    Raises:
        InvalidValue: a split lacks what the recipe needs, or a setting is wrong.
    """
    settings = settings or recipe.settings
    for part in sorted(recipe.needs):
        if any(getattr(split, part) is None for split in (train_split, val_split)):
            raise InvalidValue(f"{recipe.architecture}: needs {part} of a trained stage 1; give one")
    torch.manual_seed(next(iter(settings.loops.values())).seed)
    sizes = replace(train_split.sizes, longest=max(train_split.sizes.longest, val_split.sizes.longest))
    model = build(recipe.architecture, {**recipe.sized(sizes), **settings.model})
    if start:
        start(model)
    done: list[Fitted] = []
    names = list(settings.loops)
    places = [folder and (folder / name if len(names) > 1 else folder) for name in names]
    if not resume:
        for stale in filter(None, places):
            (stale / "state.pt").unlink(missing_ok=True)
    for phase, where in zip(recipe.phases(model, train_split, val_split, settings), places, strict=True):
        # A run that was interrupted in one phase has no state of the next ones.
        begun = resume and (not done or (where is not None and (where / "state.pt").is_file()))
        done.append(
            fit(phase.task, phase.loop, where, resume=begun, tensorboard=tensorboard, progress=progress)
        )
    return Trained(model.eval(), tuple(done), settings)


# ---- settings from files and the command line --------------------------------------------------------------


def read_settings(
    recipe: Recipe, values: Mapping[str, Any] | None = None, overrides: Sequence[str] = ()
) -> Settings:
    """The recipe's settings with those of a file and of the command line over them.

    Args:
        recipe: whose settings.
        values: from a file: tables ``model``, ``sampling``, ``loop`` (for every phase), or a phase's name.
        overrides: ``"loop.steps=100"``, ``"model.hidden_size=128"``: a table, a name, and a value.

    Raises:
        InvalidValue: no such table or name, or a value that it cannot have.
    """
    given: dict[str, dict[str, Any]] = {name: dict(table) for name, table in (values or {}).items()}
    for override in overrides:
        name, found, value = override.partition("=")
        table, dot, key = name.strip().partition(".")
        if not (found and dot and key):
            raise InvalidValue(f"{override!r}: write TABLE.NAME=VALUE, for instance loop.steps=100")
        _put(given.setdefault(table, {}), key.split("."), value.strip())
    settings = recipe.settings
    known = {"model", "loop", *settings.loops, *(["sampling"] if settings.sampling is not None else [])}
    for table in given:
        if table not in known:
            raise InvalidValue(f"settings {table!r}: unknown; there are {', '.join(sorted(known))}")
    loops = {
        name: _filled(_filled(loop, given.get("loop", {}), "loop"), given.get(name, {}), name)
        for name, loop in settings.loops.items()
    }
    model = {**settings.model, **{name: _value(value) for name, value in given.get("model", {}).items()}}
    sampling = settings.sampling
    if sampling is not None:
        sampling = _filled(sampling, given.get("sampling", {}), "sampling")
    return Settings(model, loops, sampling)


def _put(table: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        table = table.setdefault(name, {})
    table[path[-1]] = value


def _value(text: Any) -> Any:
    """A value from the command line: as TOML has it, else as text."""
    import tomllib

    if not isinstance(text, str):
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _filled(value: Any, changes: Mapping[str, Any], where: str) -> Any:
    """A dataclass with some fields changed and every type checked."""
    names = {f.name for f in fields(value)}
    for name in changes:
        if name not in names:
            raise InvalidValue(f"{where}.{name}: unknown; there are {', '.join(sorted(names))}")
    mixed = {f.name: getattr(value, f.name) for f in fields(value)}
    for name, change in changes.items():
        nested = mixed[name]
        mixed[name] = _filled(nested, change, f"{where}.{name}") if is_dataclass(nested) else _value(change)
    try:
        return TypeAdapter(type(value)).validate_python(mixed)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidValue(f"{where}.{name}: {first['msg']} (got {first['input']!r})") from error
