"""Stage 3 of SPR: proposals become moments with finer times and a better order (paper, section 3.3).

:class:`ShotRefiner` and :class:`CurveRefiner` need no training. Trained refiners are chosen by their model's
architecture in :data:`REFINERS`; torch is imported with the first of them. To add one, write a class that
keeps the contract :class:`Refiner`, and add a line to that table.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from moviola.devices import require_torch
from moviola.errors import InvalidValue
from moviola.models.description import read_description
from moviola.retrieval.calibration import Calibration
from moviola.retrieval.refiners.contract import CONTEXT, SAME_MOMENT, Refined, Refiner
from moviola.retrieval.refiners.curve import CurveRefiner
from moviola.retrieval.refiners.shots import ShotRefiner

if TYPE_CHECKING:
    from moviola.retrieval.compiled_models import Graphs

__all__ = [
    "COMPILED",
    "CONTEXT",
    "REFINERS",
    "SAME_MOMENT",
    "CurveRefiner",
    "Refined",
    "Refiner",
    "ShotRefiner",
    "load_compiled_refiner",
    "load_refiner",
    "refiner_of",
]

REFINERS: dict[str, tuple[str, str]] = {
    "reel": ("moviola.retrieval.refiners.reel_model", "reel_refiner"),
    "spr-clip": ("moviola.retrieval.refiners.windowed", "SprClipRefiner"),
    "reloclnet": ("moviola.retrieval.refiners.windowed", "SprReloRefiner"),
}
"""Module and function that run a trained refiner by torch, by the model's architecture."""


def refiner_of(architecture: str, model: Any, revision: str, **options: Any) -> Refiner:
    """The refiner that runs a model.

    Args:
        architecture: a key of :data:`REFINERS`.
        model: of that architecture, in evaluation mode.
        revision: changes with its weights.
        options: ``context``, ``calibration``, ``suppress_above``; see
            :class:`moviola.retrieval.refiners.trained.TrainedRefiner`.

    Raises:
        InvalidValue: no refiner has this architecture.
    """
    if architecture not in REFINERS:
        raise InvalidValue(f"architecture {architecture!r} is no refiner; there are {', '.join(REFINERS)}")
    module, name = REFINERS[architecture]
    made: Callable[..., Refiner] = getattr(import_module(module), name)
    return made(model, revision, **options)


COMPILED: dict[str, tuple[str, str]] = {
    "reel": ("moviola.retrieval.compiled_models", "compiled_reel"),
    "spr-clip": ("moviola.retrieval.compiled_models", "compiled_windows"),
    "reloclnet": ("moviola.retrieval.compiled_models", "compiled_windows"),
}
"""The same for compiled graphs on the CPU, without torch."""


def load_refiner(folder: Path, revision: str, device: str = "cpu", **options: Any) -> Refiner:
    """The refiner in a model's folder, with its training context and its calibration.

    Args:
        folder: written by :func:`moviola.models.pretrained.save_pretrained`.
        revision: changes with the model's weights and settings.
        device: where to run it.
        options: as in :func:`refiner_of`, replacing those of the folder.

    Raises:
        NotFound, DataError: the folder is missing or damaged, or its calibration malformed.
        InvalidValue: it holds a model that is no refiner.
        MissingDependency: torch, which runs it, is not installed.
    """
    require_torch(f"{folder} on {device}")
    from moviola.models.pretrained import from_pretrained

    architecture, said = _described(folder)
    model = from_pretrained(folder, device)
    return refiner_of(architecture, cast("Any", model), revision, **{**said, **options})


def load_compiled_refiner(folder: Path, revision: str, graphs: Graphs) -> Refiner | None:
    """The refiner from compiled graphs, made if missing; None if its kind is not compiled.

    Args:
        folder, revision: as in :func:`load_refiner`; errors likewise.
        graphs: folders of the graphs.
    """
    architecture, said = _described(folder)
    if architecture not in COMPILED:
        return None
    module, name = COMPILED[architecture]
    made: Callable[..., Refiner] = getattr(import_module(module), name)
    return made(folder, revision, graphs, **said)


def _described(folder: Path) -> tuple[str, dict[str, Any]]:
    """Architecture and options of a refiner's folder."""
    about = read_description(folder)
    if about.architecture not in REFINERS:
        raise InvalidValue(
            f"{folder}: architecture {about.architecture!r} is no refiner; give {', '.join(REFINERS)}"
        )
    sampling = (about.extra.get("settings") or {}).get("sampling") or {}
    calibration = Calibration.of(about.extra, folder)
    return about.architecture, {
        "context": float(sampling.get("context", CONTEXT)), "calibration": calibration,
    }  # fmt: skip
