"""Graphs of a model's parts, converted from torch and kept in its folder for machines without it.

:func:`moviola.study.models.pretrained.save_pretrained` writes them; :mod:`moviola.retrieval.saved.graphs`
says where they lie, and reads them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moviola.compiled import convert, save_portable
from moviola.files.writing import draft_folder_of
from moviola.retrieval.saved.graphs import GRAPHS, SUMS, digest_of, place_of
from moviola.study.models.parts import parts_of

if TYPE_CHECKING:
    from torch import nn

    from moviola.study.models.parts import Part

__all__ = ["convert_part", "write_graphs"]

# Of free axes, in the arrays that parts are traced with; no side of a free axis should have length 1.
_SOME = 3


def convert_part(model: nn.Module, name: str) -> Any:
    """The graph of a part of a model in evaluation mode on the CPU."""
    return _converted(parts_of(model)[name])


def write_graphs(model: nn.Module, folder: Path) -> None:
    """Write the graphs of a model's parts beside its weights, in place of those of other weights.

    The model is in evaluation mode on the CPU, with the weights in the folder. Of models that are not run in
    parts nothing is written.
    """
    place = place_of(folder)
    for other in (folder / GRAPHS).glob("*"):
        if other != place and other.is_dir():  # a file manager may have left a file of its own
            shutil.rmtree(other)
    parts = parts_of(model)
    if parts and not place.is_dir():
        with draft_folder_of(place) as draft:
            for name, part in parts.items():
                save_portable(_converted(part), draft / f"{name}.xml")
            lines = [f"{digest_of(path)}  {path.name}\n" for path in sorted(draft.iterdir())]
            (draft / SUMS).write_text("".join(lines), encoding="ascii")


def _converted(part: Part) -> Any:
    return convert(part.module, _examples(part.shapes), part.shapes)


def _examples(shapes: Sequence[tuple[int | None, ...]]) -> list[Any]:
    """Arrays of such shapes; those of two axes are masks, or vectors for which ones do as well."""
    draw = np.random.default_rng(0)
    sides = [[_SOME if side is None else side for side in own] for own in shapes]
    return [np.ones(own, np.float32) if len(own) == 2 else draw.random(own, np.float32) for own in sides]
