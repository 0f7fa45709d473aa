"""The graphs in a model's folder: its parts, each converted for itself, for machines without torch.

They lie in ``graphs/REVISION``, named by the weights and settings that they were made from, so that those of
other weights are never taken for them, and with their digests, ``SHA256SUMS``, by which damage is found.
:func:`moviola.models.pretrained.save_pretrained` writes them.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moviola.compiled import convert, read_portable, save_portable
from moviola.errors import DataError
from moviola.files.writing import draft_folder_of
from moviola.models.description import revision_of

if TYPE_CHECKING:
    from torch import nn

    from moviola.models.parts import Part

__all__ = ["GRAPHS", "convert_part", "has_graphs", "read_graph", "require_intact_graphs", "write_graphs"]

GRAPHS = "graphs"
"""Folder of the graphs in a model's folder."""

_SUMS = "SHA256SUMS"

# Of free axes, in the arrays that parts are traced with; no side of a free axis should have length 1.
_SOME = 3


def has_graphs(folder: Path) -> bool:
    """Whether a model's folder has the graphs of its weights."""
    return _place(folder).is_dir()


def read_graph(folder: Path, name: str) -> Any:
    """The graph of a part (:func:`moviola.models.parts.parts_of`) from the folder of a model that has it.

    Raises:
        NotFound, DataError: a file is missing or damaged.
    """
    require_intact_graphs(folder)
    return read_portable(_place(folder) / f"{name}.xml")


def require_intact_graphs(folder: Path) -> None:
    """Compare the graphs of a model's folder with their digests; those of earlier versions have none.

    Raises:
        NotFound: a file of the model is missing.
        DataError: a graph is missing or damaged, or its digests are.
    """
    sums = _place(folder) / _SUMS
    if not sums.is_file():
        return
    try:
        rows = [line.split("  ", 1) for line in sums.read_text(encoding="ascii").splitlines()]
        damaged = [name for digest, name in rows if digest != _digest(sums.with_name(name))]
    except (OSError, ValueError) as error:
        raise DataError(f"{sums}: cannot be compared ({error}); get the folder of the model again") from error
    if damaged or not rows:
        name = damaged[0] if damaged else _SUMS
        raise DataError(f"{sums.with_name(name)}: damaged; get the folder of the model again")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def convert_part(model: nn.Module, name: str) -> Any:
    """The graph of a part of a model in evaluation mode on the CPU."""
    from moviola.models.parts import parts_of

    return _converted(parts_of(model)[name])


def write_graphs(model: nn.Module, folder: Path) -> None:
    """Write the graphs of a model's parts beside its weights, in place of those of other weights.

    The model is in evaluation mode on the CPU, with the weights in the folder. Of models that are not run in
    parts nothing is written.
    """
    from moviola.models.parts import parts_of

    place = _place(folder)
    for other in (folder / GRAPHS).glob("*"):
        if other != place and other.is_dir():  # a file manager may have left a file of its own
            shutil.rmtree(other)
    parts = parts_of(model)
    if parts and not place.is_dir():
        with draft_folder_of(place) as draft:
            for name, part in parts.items():
                save_portable(_converted(part), draft / f"{name}.xml")
            lines = [f"{_digest(path)}  {path.name}\n" for path in sorted(draft.iterdir())]
            (draft / _SUMS).write_text("".join(lines), encoding="ascii")


def _place(folder: Path) -> Path:
    return folder / GRAPHS / revision_of(folder)


def _converted(part: Part) -> Any:
    return convert(part.module, _examples(part.shapes), part.shapes)


def _examples(shapes: Sequence[tuple[int | None, ...]]) -> list[Any]:
    """Arrays of such shapes; those of two axes are masks, or vectors for which ones do as well."""
    draw = np.random.default_rng(0)
    sides = [[_SOME if side is None else side for side in own] for own in shapes]
    return [np.ones(own, np.float32) if len(own) == 2 else draw.random(own, np.float32) for own in sides]
