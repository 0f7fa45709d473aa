"""Measures by name: ``nDCG@20,IoU>=0.5`` parses to a :class:`Measure` and prints as it parses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from moviola.errors import InvalidValue
from moviola.types import require_known

__all__ = ["FAMILIES", "Counting", "Family", "Measure"]

Counting = Literal["relevant", "several", "all"]
"""Queries that a family counts: those with a relevant moment, with two or more of them, or all."""


@dataclass(frozen=True, slots=True)
class Family:
    """Parts of a measure's name beside its family, and the queries that it counts.

    Attributes:
        depth: it reads the first k ranks.
        overlap: its name contains an IoU; ``None``: it may.
        level: its name may contain the highest score at which a query is refused.
    """

    depth: bool = True
    overlap: bool | None = False
    level: bool = False
    queries: Counting = "relevant"


FAMILIES: dict[str, Family] = {
    "nDCG": Family(overlap=True),
    "DCG": Family(overlap=None),
    "R": Family(overlap=True),
    "AP": Family(overlap=True),
    "AxIoU": Family(),
    "mR": Family(),
    "mR+": Family(queries="several"),
    "mIoU": Family(),
    "mIoU+": Family(queries="several"),
    "G-mIoU": Family(level=True, queries="all"),
    "AUROC": Family(depth=False, queries="all"),
    "Rej-F1": Family(depth=False, level=True, queries="all"),
    "Rej-Acc": Family(depth=False, level=True, queries="all"),
}
"""Families of measures by name."""

_NUMBER = r"[0-9]*\.?[0-9]+"
_NAME = re.compile(
    r"(?P<family>[A-Za-z](?:-?[A-Za-z0-9])*\+?)(?:@(?P<k>[1-9][0-9]{0,8}))?"
    rf"(?:,IoU(?P<sign>>=|>)(?P<overlap>{_NUMBER}))?(?:,score<=(?P<level>-?{_NUMBER}))?"
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure: its family, with depth, overlap and level where the family has them.

    Attributes:
        family: a key of :data:`FAMILIES`.
        k: ranks read, >= 1; 0 where the family has no depth.
        overlap: threshold on the IoU, in [0, 1].
        strict: the IoU must be above the ``overlap`` (``>``); else it may equal it (``>=``).
        level: a query is refused when no moment scores above it; without, when nothing is answered.

    Raises:
        InvalidValue: an unknown family, a missing part, or a part that the family does not have.
    """

    family: str
    k: int = 0
    overlap: float | None = None
    strict: bool = False
    level: float | None = None

    def __post_init__(self) -> None:
        require_known("measure", self.family, FAMILIES)
        family = FAMILIES[self.family]
        if family.depth and self.k < 1:
            raise InvalidValue(f"measure {self}: the depth must be at least 1, for instance {self.family}@10")
        if not family.depth and self.k:
            raise InvalidValue(f"measure {self}: {self.family} has no depth; write {self.family}")
        if family.overlap is True and self.overlap is None:
            raise InvalidValue(f"measure {self}: give the overlap, for instance {self},IoU>=0.5")
        if family.overlap is False and self.overlap is not None:
            raise InvalidValue(
                f"measure {self}: {self.family} has no overlap; write {Measure(self.family, self.k)}"
            )
        if self.overlap is not None and not 0 <= self.overlap <= 1:
            raise InvalidValue(f"measure {self}: the overlap must be between 0 and 1")
        if self.level is not None and not (family.level and np.isfinite(self.level)):
            raise InvalidValue(
                f"measure {self}: {self.family} has no score level; leave the score out"
                if not family.level
                else f"measure {self}: the score must be a finite number"
            )

    @classmethod
    def parse(cls, text: str) -> Measure:
        """The measure named by ``text``; spaces do not matter. Else :class:`InvalidValue`."""
        match = _NAME.fullmatch(text.replace(" ", "").replace("≥", ">=").replace("≤", "<="))
        if match is None:
            raise InvalidValue(
                f"measure {text!r}: not understood; write for instance nDCG@20,IoU>=0.5, "
                "R@5,IoU>0.7, AxIoU@10, AP@10,IoU>=0.5, DCG@10, AUROC, G-mIoU@5,score<=0.4"
            )
        overlap, level = (
            None if match[name] is None else float(match[name]) for name in ("overlap", "level")
        )
        return cls(match["family"], int(match["k"] or 0), overlap, match["sign"] == ">", level)

    def __str__(self) -> str:
        name = self.family + (f"@{self.k}" if self.k else "")
        if self.overlap is not None:
            name += f",IoU{'>' if self.strict else '>='}{_plain(self.overlap)}"
        return name if self.level is None else f"{name},score<={_plain(self.level)}"


def _plain(value: float) -> str:
    return np.format_float_positional(value, trim="0")
