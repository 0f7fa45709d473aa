"""Chapters for players in a browser: WebVTT (W3C), for ``<track kind="chapters">``; titles, no notes."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from html import escape
from pathlib import Path

from moviola.export.selection import Selection
from moviola.export.timeline import Timeline
from moviola.files.writing import write_text

__all__ = ["write_film_chapters", "write_video_chapters"]


def write_video_chapters(chosen: Iterable[Selection], out: Path, lead: float = 0.0) -> None:
    """Write the moments of one video as its chapters, in order of time; players count from ``lead`` seconds
    before the first picture.
    """
    ordered = sorted(chosen, key=lambda selection: (selection.moment.start, selection.moment.end))
    late = Fraction(lead)
    _write(((late + Fraction(s.moment.start), late + Fraction(s.moment.end), s) for s in ordered), out)


def write_film_chapters(timeline: Timeline, out: Path) -> None:
    """Write the events as chapters of the film that shows all of them."""
    seconds = timeline.timebase.seconds
    cues = ((seconds(e.record[0]), seconds(e.record[1]), e.selection) for e in timeline.events)
    _write(cues, out)


def _write(cues: Iterable[tuple[Fraction, Fraction, Selection]], out: Path) -> None:
    """Escaped text: pysubs2 leaves ``<`` and ``&`` as they are, which players would read as tags."""
    blocks = ["WEBVTT"]
    for number, (start, end, selection) in enumerate(cues, start=1):
        first = round(start * 1000)
        times = f"{_time(first)} --> {_time(max(first + 1, round(end * 1000)))}"
        blocks.append(f"{number}\n{times}\n{escape(selection.name, quote=False)}")
    write_text(out, "\n\n".join(blocks) + "\n")


def _time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest:03d}"
