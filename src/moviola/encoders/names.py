"""Names of tensors: what the towers ask for, and where each format keeps it.

:mod:`moviola.encoders.towers` and :mod:`moviola.encoders.pictures` ask by transformers' names of a CLIP, a
SigLIP and a BERT. Another format has tables from these to its own: templates, in which ``{n}`` is a layer's
number and ``{kind}`` is ``weight`` or ``bias``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["AS_ASKED", "Names", "Part", "filters", "flat", "piece", "rows", "turned"]

Form = Callable[[NDArray[Any]], NDArray[Any]]


def rows(raw: NDArray[Any]) -> NDArray[Any]:
    """(1, n, d) as (n, d)."""
    return raw.reshape(-1, raw.shape[-1])


def flat(raw: NDArray[Any]) -> NDArray[Any]:
    """(1, 1, d) as (d,)."""
    return raw.reshape(-1)


def turned(raw: NDArray[Any]) -> NDArray[Any]:
    """A matrix (in, out), which rows are multiplied by, as that of a linear layer, (out, in)."""
    return raw.T


def filters(raw: NDArray[Any]) -> NDArray[Any]:
    """A matrix (d, p * p * 3) over the pixels of a patch, row by row, as filters (d, 3, p, p)."""
    side = math.isqrt(raw.shape[1] // 3)
    return raw.reshape(len(raw), side, side, 3).transpose(0, 3, 1, 2)


def piece(number: int, count: int) -> Form:
    """One of several layers whose outputs are stored one behind the other."""
    return lambda raw: np.split(raw, count)[number]


class Part(NamedTuple):
    """Where a tensor lies: a name, and what makes it of the tensor of that name, without a copy."""

    name: str
    form: Form = lambda raw: raw


@dataclass(frozen=True)
class Names:
    """A format's names.

    Attributes:
        parts: by templates; a name that fits none is the format's own.
        beginnings: what stands for the beginning of other names.
    """

    parts: Mapping[str, Part] = field(default_factory=dict)
    beginnings: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> Part:
        """Where a tensor lies, by the name that callers have for it."""
        number = re.search(r"\.(\d+)\.", name)
        layer = name if number is None else name.replace(number[0], ".{n}.", 1)
        place, _, kind = layer.rpartition(".")
        for template in (name, layer, f"{place}.{{kind}}"):
            if (part := self.parts.get(template)) is not None:
                return Part(part.name.format(n=number[1] if number else "", kind=kind), part.form)
        for old, new in self.beginnings.items():
            if name.startswith(old):
                return Part(new + name.removeprefix(old))
        return Part(name)


AS_ASKED = Names()
"""Those of transformers."""
