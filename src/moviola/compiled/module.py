"""A graph planned once for this CPU, kept on disk, and run from there."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import RLock
from typing import Any

import numpy as np

from moviola.compiled.runtime import (
    Array,
    Graph,
    Precision,
    is_whole,
    open_graph,
    quantise_weights,
    runtime_and_cpu,
    save_graph,
)
from moviola.errors import DataError, InvalidValue
from moviola.files.caches import user_cache
from moviola.files.toml import write_toml
from moviola.files.writing import draft_folder_of

__all__ = ["LEAST_COSINE", "Compiled", "Source", "cache_folder"]

log = logging.getLogger("moviola.compiled")

LEAST_COSINE = 0.999
"""Minimum cosine between 8-bit and 32-bit results of the first call; below it, 32 bits are used."""

_REFUSED = "refused.toml"

_LAYOUT = 4
"""Raised when graphs are made in another way."""


@dataclass(frozen=True)
class Source:
    """Description of a graph to plan.

    Attributes:
        name: of the model and its part, for messages and for people who look into the folder:
            ``"demo pictures"``.
        revision: changes whenever the graph would give other results.
        build: the graph, in 32 bits; called only when no plan is on disk.
        threads: number of computing threads.
        precision: of the linear layers; see :data:`moviola.compiled.runtime.Precision`.
    """

    name: str
    revision: str
    build: Callable[[], Any]
    threads: int
    precision: Precision = "fp32"


class Compiled:
    """A :class:`Source` that is called with NumPy arrays. Safe for threads.

    The first call opens the plan in ``folder``, or makes it. An 8-bit plan is compared with a 32-bit one on
    the inputs of that call: below :data:`LEAST_COSINE`, the 32-bit plan is kept in its place, which is logged
    once.

    Args:
        folder: of plans, each in a folder of its own under ``name``; made when missing, and may be deleted at
            any time. If it cannot be written, every process plans again, which is logged.
    """

    def __init__(self, folder: Path, source: Source) -> None:
        self._folder, self.source = folder, source
        self._lock = RLock()
        self._run: Graph | None = None

    @property
    def path(self) -> Path:
        """Folder of this plan; it depends on the weights, the runtime, the CPU and the precision."""
        source = self.source
        facts = (_LAYOUT, source.name, source.revision, source.precision, runtime_and_cpu())
        name = "".join(sign if sign.isalnum() else "-" for sign in source.name.rsplit("/", 1)[-1])
        return self._folder / f"{name}-{hashlib.blake2b(repr(facts).encode(), digest_size=8).hexdigest()}"

    @property
    def kept(self) -> bool:
        """Whether the folder holds a complete plan."""
        return self.path.is_dir() and is_whole(self.path)

    @property
    def ready(self) -> bool:
        """Whether the folder holds a plan, which is not compared with its digest."""
        return self.path.is_dir()

    def __call__(self, *inputs: Array) -> tuple[Array, ...]:
        """The outputs of the graph, for arrays of the types and shapes of its parameters.

        Raises:
            DataError: the file of the plan is damaged.
            Any error of ``build``.
        """
        with self._lock:
            if self._run is None:
                self._run = self._kept() or self._made(inputs)
        return self._run(inputs)

    def _opened(self, folder: Path) -> Graph:
        precision = "fp32" if (folder / _REFUSED).is_file() else self.source.precision
        return open_graph(folder, precision, self.source.threads)

    def _kept(self) -> Graph | None:
        """The plan in the folder; None where there is none, or a damaged one, which is deleted."""
        if not self.ready:
            return None
        try:
            return self._opened(self.path)
        except DataError as error:
            log.warning("%s; it is made again", error)
            shutil.rmtree(self.path, ignore_errors=True)
            return None

    def _made(self, inputs: Sequence[Array]) -> Graph:
        """Make the plan and open it from the file, so that the first process computes like all others."""
        try:
            with draft_folder_of(self.path) as draft:
                self._make(draft, inputs)
            return self._opened(self.path)
        except (InvalidValue, OSError) as error:  # the latter where the disk is full
            log.warning("%s: its compiled graph cannot be kept; %s", self.source.name, error)
        folder = Path(mkdtemp(prefix="moviola-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._make(folder, inputs)
        return self._opened(folder)

    def _make(self, folder: Path, inputs: Sequence[Array]) -> None:
        """Write the plan into an existing folder."""
        source = self.source
        graph = source.build()
        if source.precision == "fp32":
            save_graph(graph, folder, "fp32", source.threads)
            return
        with TemporaryDirectory(prefix="moviola-", ignore_cleanup_errors=True) as beside:
            save_graph(graph, Path(beside), "fp32", source.threads)
            wanted = open_graph(Path(beside), "fp32", source.threads)(inputs)
            quantise_weights(graph)
            save_graph(graph, folder, source.precision, source.threads)
            cosine = least_cosine(open_graph(folder, source.precision, source.threads)(inputs), wanted)
            if cosine >= LEAST_COSINE:
                return
            shutil.copytree(beside, folder, dirs_exist_ok=True)
        write_toml(folder / _REFUSED, {"cosine": cosine})
        log.warning(
            "%s: its 8-bit results have a cosine of %.6f with the 32-bit ones, below %s; 32 bits are used",
            source.name, cosine, LEAST_COSINE,
        )  # fmt: skip


def least_cosine(found: Sequence[Array], wanted: Sequence[Array]) -> float:
    """The lowest cosine between two rows of any output; -1 where shapes differ or a value is no number.

    Rows lie along the last axis; where that has length 1, the whole output is a row. Two rows of zeros
    are alike.
    """
    least = 1.0
    for ours, theirs in zip(found, wanted, strict=True):
        if ours.shape != theirs.shape:
            return -1.0
        width = theirs.shape[-1] if theirs.ndim and theirs.shape[-1] > 1 else max(theirs.size, 1)
        rows, others = (part.astype(np.float64).reshape(-1, width) for part in (ours, theirs))
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(others, axis=1)
        alike = ~rows.any(axis=1) & ~others.any(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = np.where(alike, 1.0, np.einsum("nd,nd->n", rows, others) / lengths)
        least = min(least, float(np.nan_to_num(cosines, nan=-1.0).min(initial=1.0)))
    return least


def cache_folder() -> Path:
    """Folder of graphs that belong to no library: ``MOVIOLA_COMPILED``, or the user's cache."""
    if named := os.environ.get("MOVIOLA_COMPILED"):
        return Path(named)
    return user_cache() / "compiled"
