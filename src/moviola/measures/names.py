"""Measures by name: ``nDCG@20,IoU>=0.5`` parses to a :class:`Measure` and prints as it parses."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from moviola.errors import InvalidValue

__all__ = ["FAMILIES", "Measure"]

FAMILIES: dict[str, bool | None] = {"nDCG": True, "DCG": None, "R": True, "AP": True, "AxIoU": False}
"""Families of measures and whether they need an overlap (``None``: may have one)."""

_NAME = re.compile(
    r"(?P<family>[A-Za-z]+)@(?P<k>[1-9][0-9]{0,8})(?:,IoU(?P<sign>>=|>)(?P<overlap>[0-9]*\.?[0-9]+))?"
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with its depth ``k`` (ranks read, >= 1) and, where the family has one, its overlap threshold.

    ``strict`` says whether the IoU must be above the ``overlap`` (``>``) or may equal it (``>=``).
    """

    family: str
    k: int
    overlap: float | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise InvalidValue(f"measure {self.family!r}: unknown; there are {', '.join(FAMILIES)}")
        if self.k < 1:
            raise InvalidValue(f"measure {self.family}@{self.k}: the depth must be at least 1")
        needs = FAMILIES[self.family]
        if needs is True and self.overlap is None:
            raise InvalidValue(f"measure {self}: give the overlap, for instance {self},IoU>=0.5")
        if needs is False and self.overlap is not None:
            raise InvalidValue(
                f"measure {self}: {self.family} knows no overlap; write {self.family}@{self.k}"
            )
        if self.overlap is not None and not 0 <= self.overlap <= 1:
            raise InvalidValue(f"measure {self}: the overlap must lie between 0 and 1")

    @classmethod
    def parse(cls, text: str) -> Measure:
        """The measure that ``text`` names; spaces do not matter.

        Raises:
            InvalidValue: the text is no measure's name.
        """
        found = _NAME.fullmatch(text.replace(" ", "").replace("≥", ">="))
        if found is None:
            raise InvalidValue(
                f"measure {text!r}: not understood; write for instance nDCG@20,IoU>=0.5, "
                "R@5,IoU>0.7, AxIoU@10, AP@10,IoU>=0.5, DCG@10"
            )
        overlap = found["overlap"]
        return cls(
            found["family"],
            int(found["k"]),
            None if overlap is None else float(overlap),
            found["sign"] == ">",
        )

    def __str__(self) -> str:
        if self.overlap is None:
            return f"{self.family}@{self.k}"
        overlap = np.format_float_positional(self.overlap, trim="0")
        return f"{self.family}@{self.k},IoU{'>' if self.strict else '>='}{overlap}"
