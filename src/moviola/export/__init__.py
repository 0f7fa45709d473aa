"""Moments out of the library: clips and contact sheets."""

from __future__ import annotations

from moviola.export.clips import export_clips
from moviola.export.sheet import export_sheet
from moviola.export.times import clock

__all__ = ["clock", "export_clips", "export_sheet"]
