"""Cutting a moment out of a video."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from moviola.types import Span

__all__ = ["cut"]


def cut(path: Path, span: Span, out: Path, *, mode: Literal["copy", "encode"]) -> None:
    raise NotImplementedError
