"""A row of the catalogue's videos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moviola.features import Extent

__all__ = ["VideoRow"]

State = Literal["ready", "partial", "refused"]


@dataclass(frozen=True, slots=True)
class VideoRow:
    """A video of a library; ``row`` is 0 before it is stored."""

    row: int
    video_id: str
    path: str
    size: int
    mtime_ns: int
    hash: str
    sidecars: str
    state: State
    error: str = ""
    duration: float = 0.0
    width: int = 0
    height: int = 0
    codec: str = ""
    frames: Extent | None = None
    cues: Extent | None = None
