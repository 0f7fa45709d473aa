"""Moments out of the library: clips, contact sheets, a player."""

from __future__ import annotations

from moviola.export.clips import clip_name, export_clip, export_clips
from moviola.export.players import PLAYERS, play, player_command
from moviola.export.sheet import export_sheet
from moviola.export.times import clock

__all__ = [
    "PLAYERS", "clip_name", "clock", "export_clip", "export_clips", "export_sheet", "play", "player_command",
]  # fmt: skip
