"""Exports of moments: tables, chapters, edit lists, clips, films, contact sheets; players.

Examples:
    >>> from pathlib import Path
    >>> from moviola.export import read_moments, write_moments
    >>> from moviola.types import Moment
    >>> _ = write_moments([Moment("beach", 12.5, 17.0, 0.8, 1)], {"beach": "films/beach.mp4"}, "found.csv")
    >>> (selected,), paths = read_moments("found.csv")
    >>> selected.moment.span, paths
    (Span(start=12.5, end=17.0), {'beach': 'films/beach.mp4'})
"""

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
