"""Exports of moments: tables, chapters, edit lists, clips, films, contact sheets; players."""

from moviola.export.clips import clip_name, export_clip, export_clips
from moviola.export.formats import (
    FORMATS,
    Export,
    ExportOptions,
    MomentFormat,
    Written,
    all_formats,
    format_of,
    named_format,
    write_moments,
)
from moviola.export.players import PLAYERS, folder_command, play, player_command
from moviola.export.selection import Selection
from moviola.export.sheet import KeptStill, export_sheet, moment_cells
from moviola.export.tables import read_moments
from moviola.export.timebase import Timebase
from moviola.export.timeline import Timeline, lay_out, read_sources

__all__ = [
    "FORMATS", "PLAYERS", "Export", "ExportOptions", "KeptStill", "MomentFormat", "Selection", "Timebase",
    "Timeline", "Written", "all_formats", "clip_name", "export_clip", "export_clips", "export_sheet",
    "folder_command", "format_of", "lay_out", "moment_cells", "named_format", "play", "player_command",
    "read_moments", "read_sources", "write_moments",
]  # fmt: skip
