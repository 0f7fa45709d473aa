"""A torch module that runs compiled: made and checked once, kept on disk, opened without torch."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, cast

import numpy as np

from moviola.compiled.runtime import (
    Array,
    Graph,
    Precision,
    convert,
    open_graph,
    runtime_and_cpu,
    save_graph,
)
from moviola.errors import InvalidValue
from moviola.files.toml import write_toml
from moviola.files.writing import draft_folder_of

if TYPE_CHECKING:
    from torch import nn

__all__ = ["LEAST_COSINE", "Compiled", "Source", "cache_folder"]

log = logging.getLogger("moviola.compiled")

LEAST_COSINE: dict[Precision, float] = {"int8": 0.999, "fp32": 0.999999}
"""Between what the graph and what torch give for the rows of the first call; a graph below it is refused."""

_REFUSED = "refused.toml"

_LAYOUT = 2
"""Goes up when graphs are made otherwise than before."""


@dataclass(frozen=True)
class Source:
    """What a graph is made from.

    Attributes:
        name: of the model and the part of it that is computed, for messages and for people who look into the
            folder: ``"demo pictures"``.
        revision: changes whenever the module would give other numbers.
        build: the module, in inference mode on the CPU in fp32; called only when there is no graph yet, or
            when the graph was refused. It takes one tensor per input and gives a tensor or a tuple of them.
        examples: one array per input to trace the module with, of any values that it accepts. No side of a
            free axis should have length 1.
        shapes: of the inputs; None: an axis of any length.
        precision: of the linear layers; see :data:`moviola.compiled.runtime.Precision`.
        threads: that compute.
    """

    name: str
    revision: str
    build: Callable[[], nn.Module]
    examples: Sequence[Array]
    shapes: Sequence[tuple[int | None, ...]]
    threads: int
    precision: Precision = "fp32"


class Compiled:
    """A :class:`Source` that is called with NumPy arrays. Safe for threads.

    The first call opens the graph in ``folder``. If there is none, torch is imported, the graph is made and
    compared with torch on what this call was given, row by row (along the last axis). A graph that is as near
    as :data:`LEAST_COSINE` asks is kept; another is refused: that is logged once, recorded in the folder, and
    torch computes in fp32 from then on.

    Args:
        folder: where graphs are kept, each in a folder of its own under ``name``; made when it is missing. It
            may be deleted at any time.
        source: what to run.

    Attributes:
        source: as given.
    """

    def __init__(self, folder: Path, source: Source) -> None:
        self._folder, self.source = folder, source
        self._lock = RLock()
        self._run: Callable[[Sequence[Array]], tuple[Array, ...]] | None = None

    @property
    def path(self) -> Path:
        """Folder of this graph: other weights, another runtime, CPU or shape, another folder."""
        source = self.source
        facts = (_LAYOUT, source.revision, source.precision, tuple(source.shapes), runtime_and_cpu())
        name = "".join(sign if sign.isalnum() else "-" for sign in source.name.rsplit("/", 1)[-1])
        return self._folder / f"{name}-{hashlib.blake2b(repr(facts).encode(), digest_size=8).hexdigest()}"

    @property
    def ready(self) -> bool:
        """Whether a call computes without torch: the graph is on disk, and was not refused."""
        return self.path.is_dir() and not self._refused

    def __call__(self, *inputs: Array) -> tuple[Array, ...]:
        """The outputs of the module.

        Args:
            inputs: arrays of the types and shapes of the source.

        Returns:
            One array per output, also where the module gives a single tensor.

        Raises:
            DataError: the file of the graph is damaged.
            Whatever ``build`` raises.
        """
        with self._lock:
            if self._run is None:
                if not self.path.is_dir():
                    return self._make(inputs)
                self._run = _by_torch(self.source.build()) if self._refused else self._opened()
        return self._run(inputs)

    @property
    def _refused(self) -> bool:
        return (self.path / _REFUSED).is_file()

    def _opened(self) -> Graph:
        return open_graph(self.path, self.source.precision, self.source.threads)

    def _make(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Make the graph, check it on the first inputs, keep it or refuse it; the outputs for these.

        What is checked is read from the file, so that the first process computes what all others do.
        """
        source = self.source
        module = source.build()
        by_torch = _by_torch(module)
        wanted = by_torch(inputs)
        model = convert(module, source.examples, source.shapes, source.precision)
        try:
            with draft_folder_of(self.path) as draft:
                save_graph(model, draft, source.precision, source.threads)
                graph = open_graph(draft, source.precision, source.threads)
                cosine = least_cosine(graph(inputs), wanted)
                accepted = cosine >= LEAST_COSINE[source.precision]
                if not accepted:
                    write_toml(draft / _REFUSED, {"cosine": cosine})
        except InvalidValue as error:
            log.warning("%s: its compiled graph cannot be kept, so torch computes it; %s", source.name, error)
            self._run = by_torch
            return wanted
        if not accepted:
            log.warning(
                "%s: compiled for this CPU, its results have a cosine of %.6f with those of torch, below %s; "
                "torch computes it",
                source.name, cosine, LEAST_COSINE[source.precision],
            )  # fmt: skip
            self._run = by_torch
            return wanted
        self._run = graph
        return graph(inputs)


def _by_torch(module: nn.Module) -> Callable[[Sequence[Array]], tuple[Array, ...]]:
    """What a graph would compute, by the module itself."""
    import torch

    def run(inputs: Sequence[Array]) -> tuple[Array, ...]:
        with torch.inference_mode():
            given = module(*(torch.from_numpy(np.ascontiguousarray(array)) for array in inputs))
        outputs = given if isinstance(given, tuple) else (given,)
        return tuple(cast("Array", output.numpy()) for output in outputs)

    return run


def least_cosine(found: Sequence[Array], wanted: Sequence[Array]) -> float:
    """The least cosine between two rows of any output; -1 where shapes differ or something is no number.

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
    """Where graphs of models are kept that belong to no library: ``MOVIOLA_COMPILED`` or the user's cache."""
    if named := os.environ.get("MOVIOLA_COMPILED"):
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("moviola") / "compiled"
