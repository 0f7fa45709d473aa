"""The trained models that a library searches with; most have none, and import nothing of them."""

from __future__ import annotations

import shlex
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from moviola.errors import LibraryError
from moviola.library.disk.encoders_in_use import LibraryEncoders
from moviola.library.disk.settings import Settings
from moviola.retrieval import CurveRefiner, MeanPooling, Refiner, ShotRefiner, Stage1, TrainedStage1

if TYPE_CHECKING:
    from moviola.retrieval.compiled_models import Graphs

__all__ = ["ROLE_NAMES", "ModelsInUse", "require_intact"]

ROLE_NAMES = ("stage1", "refiner")
"""Roles of models, as the settings name them."""


def require_intact(library: Path, role: str, settings: Settings) -> Path:
    """The folder of the model in use; :class:`LibraryError` where it is missing, or not what ``moviola.toml``
    names.
    """
    from moviola.retrieval.saved.description import revision_of

    folder = library / "models" / role / str(getattr(settings, role))
    wanted = getattr(settings, f"{role}_revision")
    place = shlex.quote(str(library))
    remedy = (
        "open the library again if another process has just changed its models, else "
        f"`moviola library use --library {place} --{role} FOLDER` puts one in use (or none)"
    )
    if not all((folder / name).is_file() for name in ("config.json", "model.safetensors")):
        raise LibraryError(f"{folder}: the model in use is missing; {remedy}")
    revision = revision_of(folder)
    if revision != wanted:
        raise LibraryError(
            f"{folder}: the model in use has revision {wanted}, but this is {revision}; {remedy}"
        )
    return folder


class ModelsInUse:
    """The trained models that a library searches with, loaded when first needed. Safe for threads.

    Without a visual encoder no model is in use. Read-only, it makes graphs that are lacking in the user's
    cache, not in the library's.
    """

    def __init__(
        self, library: Path, settings: Settings, encoders: LibraryEncoders, *, read_only: bool
    ) -> None:
        self._library, self.settings, self._encoders = library, settings, encoders
        self._read_only = read_only
        self._lock = RLock()
        self._stage1: Stage1 | None = None
        self._refiner: Refiner | None = None

    @property
    def stage1(self) -> Stage1:
        """The trained stage 1 in use, else the mean of the clips; errors as in :func:`require_intact`."""
        with self._lock:
            if self._stage1 is None:
                self._stage1 = self._load_stage1()
            return self._stage1

    @property
    def refiner(self) -> Refiner:
        """The trained refiner in use, else the one without training; errors as in :func:`require_intact`."""
        with self._lock:
            if self._refiner is None:
                self._refiner = self._load_refiner()
            return self._refiner

    @property
    def untrained_refiner(self) -> Refiner:
        """The refiner without training, tuned to the encoder where it says how."""
        encoder = self._encoders.visual
        return ShotRefiner(CurveRefiner(**encoder.curve) if encoder else CurveRefiner())

    @cached_property
    def _graphs(self) -> Graphs:
        from moviola.compiled import cache_folder
        from moviola.retrieval.compiled_models import Graphs

        return Graphs(self._library / "cache" / "compiled", cache_folder() if self._read_only else None)

    def _load_stage1(self) -> Stage1:
        encoder = self._encoders.visual
        if encoder is None or not self.settings.stage1:
            return MeanPooling()
        from moviola.retrieval.trained_models import load_compiled_stage1, load_stage1

        folder = require_intact(self._library, "stage1", self.settings)
        revision = self.settings.stage1_revision
        if self._compiles:
            return load_compiled_stage1(folder, revision, self._graphs)
        return load_stage1(folder, revision, encoder.device)

    def _load_refiner(self) -> Refiner:
        encoder = self._encoders.visual
        if encoder is None or not self.settings.refiner:
            return self.untrained_refiner
        from moviola.retrieval.trained_models import load_compiled_refiner, load_refiner

        folder = require_intact(self._library, "refiner", self.settings)
        revision = self.settings.refiner_revision
        compiled = load_compiled_refiner(folder, revision, self._graphs) if self._compiles else None
        return compiled or load_refiner(folder, revision, encoder.device)

    @property
    def _compiles(self) -> bool:
        """Whether to run what can be compiled so: on the CPU, where no other device was named."""
        # These nets are small, and to look for a GPU means to import torch.
        return self._encoders.device in ("auto", "cpu")

    def make_graphs(self) -> None:
        """Make the graphs of the models in use, so that no search needs torch; delete others."""
        from moviola.retrieval.model_parts import RoleParts, WindowParts

        self._graphs.keep_only({self.settings.stage1_revision, self.settings.refiner_revision})
        for model in (self.stage1, *(getattr(each, "model", None) for each in (self.stage1, self.refiner))):
            if isinstance(model, TrainedStage1 | RoleParts | WindowParts) and self._compiles:
                model.make()
