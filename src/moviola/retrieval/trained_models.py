"""Trained stages 1 and refiners by the architecture of their model: found, opened, run by torch or graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from moviola.errors import DataError, InvalidValue
from moviola.plugins import plugin
from moviola.retrieval.calibration import Calibration
from moviola.retrieval.compiled_models import CompiledRunner, Graphs
from moviola.retrieval.model_parts import ReelParts, RoleParts, Runner, WindowParts
from moviola.retrieval.opening import open_model
from moviola.retrieval.proposals import APART
from moviola.retrieval.refiners.contract import CONTEXT, Refiner
from moviola.retrieval.refiners.trained import ReelRefiner, WindowRefiner
from moviola.retrieval.saved.description import Description, read_description
from moviola.retrieval.stage1 import PooledStage1, TrainedStage1, TrainedVectors

__all__ = [
    "REFINERS", "STAGE1S", "described_options", "is_refiner", "load_compiled_refiner", "load_compiled_stage1",
    "load_refiner", "load_stage1", "other_stage1", "proposal_weight_of", "refiner_of", "stage1_of",
]  # fmt: skip

REFINERS: dict[str, tuple[Callable[..., Refiner], Callable[[Runner], Any]]] = {
    "reel": (ReelRefiner, ReelParts),
    "spr-clip": (WindowRefiner, WindowParts),
    "reloclnet": (WindowRefiner, WindowParts),
}
"""Refiner, and the parts of its model."""


def is_refiner(architecture: str) -> bool:
    """Whether models of an architecture are refiners: moviola's own, or a plug-in's."""
    return architecture in REFINERS or plugin("moviola.refiners", architecture) is not None


def refiner_of(architecture: str, runner: Runner, revision: str, **options: Any) -> Refiner:
    """The refiner of a model.

    Args:
        architecture: a key of :data:`REFINERS`.
        runner: runs the model's parts.
        revision: changes with its weights.
        options: ``context``, ``calibration``, ``suppress_above``, ``proposal_weight``; see
            :class:`moviola.retrieval.refiners.trained.TrainedRefiner`.

    Raises:
        InvalidValue: no refiner has this architecture.
    """
    if architecture not in REFINERS:
        raise InvalidValue(f"architecture {architecture!r} is no refiner; there are {', '.join(REFINERS)}")
    refiner, parts = REFINERS[architecture]
    return refiner(parts(runner), revision, **options)


def load_refiner(folder: Path, revision: str, device: str = "cpu", **options: Any) -> Refiner:
    """The refiner in a model's folder, with the context that it was trained with and its calibration.

    Args:
        folder: of a trained model.
        revision: changes with the model's weights and settings.
        options: see :func:`refiner_of`, instead of what the folder says.

    Raises:
        NotFound, DataError: the folder is not there or damaged, or its calibration malformed.
        InvalidValue: it holds a model that is no refiner.
        MissingDependency: torch, which runs it, is not installed.
        BrokenPlugin: it is a plug-in's, which fails.
    """
    about, said = _described(folder)
    options = {**said, **options}
    if about.architecture not in REFINERS and (added := plugin("moviola.refiners", about.architecture)):
        refiner: Refiner = added.make(Refiner, folder, revision, device, **options)
        return refiner
    opened = open_model(folder, device, purpose=f"{folder} on {device}")
    return refiner_of(about.architecture, opened, revision, **options)


def load_compiled_refiner(folder: Path, revision: str, graphs: Graphs) -> Refiner | None:
    """The same from compiled graphs, made where they are lacking; None where its kind is not compiled."""
    about, said = _described(folder)
    if about.architecture not in REFINERS:
        return None
    return refiner_of(about.architecture, CompiledRunner(folder, revision, graphs), revision, **said)


def _described(folder: Path) -> tuple[Description, dict[str, Any]]:
    """What a refiner's folder says, and the options that follow."""
    about = read_description(folder)
    if not is_refiner(about.architecture):
        raise InvalidValue(
            f"{folder}: architecture {about.architecture!r} is no refiner; give {', '.join(REFINERS)}"
        )
    return about, described_options(about.extra, folder)


def described_options(extra: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Options of :func:`refiner_of` that the description of a refiner's folder gives as ``extra``.

    They are ``context`` in seconds, ``calibration`` (None without) and, where it is above 0,
    ``proposal_weight``.

    Raises:
        DataError: one of them is malformed.
        InvalidValue: it learned from proposals of another kind than those of search.
    """
    if (merge := extra.get("merge", APART)) != APART:
        raise InvalidValue(
            f"{folder}: learned from proposals merged as in the {merge}, and search merges those of small "
            "libraries in another way; for search train one without --merge "
            "(`moviola answer --model` takes this one)"
        )
    context = _described_number(extra, folder, "settings.sampling.context", CONTEXT)
    options = {"context": context, "calibration": Calibration.of(extra, folder)}
    weight = proposal_weight_of(extra, folder)
    return options | ({"proposal_weight": weight} if weight else {})


def other_stage1(extra: Mapping[str, Any], revision: str) -> str:
    """What to say where a model is used on another stage 1 than the one that it was trained on; "" else.

    Args:
        extra: of the description of its folder; folders that earlier versions wrote do not say which it was.
        revision: of the stage 1 in use; "" for none.
    """
    trained = extra.get("stage1_revision", revision)
    if trained == revision:
        return ""
    used = f"revision {revision}" if revision else "none"
    return (
        f"trained on the stage 1 {extra.get('stage1')} (revision {trained}), but the one in use is {used}: "
        "its scores may mislead; use that one, or train a model on this one"
    )


def proposal_weight_of(extra: Mapping[str, Any], folder: Path) -> float:
    """The weight of a proposal's score (``TrainedRefiner.proposal_weight``) that val chose for a model.

    It is 0 without an entry in ``extra`` of the description of its folder.

    Raises:
        DataError: it is malformed.
    """
    return _described_number(extra, folder, "proposal_weight", 0.0)


def _described_number(extra: Mapping[str, Any], folder: Path, path: str, default: float) -> float:
    """A number >= 0 by its path in ``extra``: names with points between; the default where a part lacks."""
    value: Any = extra
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else value
    if value is None:
        return default
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise DataError(
            f"{folder / 'config.json'}: extra.{path} = {value!r:.60} is no number from 0 on; train the model "
            "again, or remove the entry"
        )
    return float(value)


def _pooled(runner: Runner, revision: str) -> PooledStage1:
    return PooledStage1(RoleParts(runner), revision)


STAGE1S: dict[str, Callable[[Runner, str], TrainedVectors]] = {
    "spr-stage1": TrainedStage1,
    "reel-stage1": _pooled,
}
"""The trained stage 1 of a model, by what runs its parts and its revision."""


def stage1_of(architecture: str, runner: Runner, revision: str) -> TrainedVectors:
    """The stage 1 of a model.

    Args:
        architecture: a key of :data:`STAGE1S`.
        runner: runs the model's parts.
        revision: changes with its weights.
    """
    return STAGE1S[architecture](runner, revision)


def load_stage1(folder: Path, revision: str, device: str = "cpu") -> TrainedVectors:
    """The stage 1 in a model's folder.

    Raises:
        InvalidValue: it holds a model of another kind; else those of
            :func:`moviola.retrieval.opening.open_model`.
    """
    architecture = _architecture(folder)
    return stage1_of(architecture, open_model(folder, device, purpose=f"{folder} on {device}"), revision)


def load_compiled_stage1(folder: Path, revision: str, graphs: Graphs) -> TrainedVectors:
    """The same from compiled graphs, made where they are missing, with the same errors."""
    return stage1_of(_architecture(folder), CompiledRunner(folder, revision, graphs), revision)


def _architecture(folder: Path) -> str:
    architecture = read_description(folder).architecture
    if architecture not in STAGE1S:
        raise InvalidValue(
            f"{folder}: architecture {architecture!r} is no stage 1; give {' or '.join(STAGE1S)}"
        )
    return architecture
