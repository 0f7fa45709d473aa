"""Cues beside the film that they belong to: inside it, and no more than can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import ceil

from moviola.media.subtitles.values import Notes, Notice
from moviola.types import Cue, clock

__all__ = ["MOST_LETTERS", "seconds_of_timecode", "within_film"]

MOST_A_SECOND = 10
"""Cues that begin in one second of a film, at most: more are joined. Speech shown word by word has five."""

MOST_LETTERS = 10_000
"""Letters of a cue for each second that it is shown, at most; people read 25."""


def within_film(
    cues: Sequence[Cue], duration: float, *, begins_at: float | None = None
) -> tuple[list[Cue], tuple[Notice, ...]]:
    """Cues inside a film of ``duration`` seconds, in order of time, the last ones cut at its end.

    Cues of broadcasting count from the programme's timecode: where all of them are after the end, and
    ``begins_at``, the film's first timecode in seconds, brings the first of them inside, they are moved by
    it. Cues after the end are left out. More than :data:`MOST_A_SECOND` of a track that begin in the same
    second are joined with their neighbours, and of texts beyond :data:`MOST_LETTERS` the rest is left out.
    """
    notes = Notes()
    cues = sorted(cues, key=lambda cue: (cue.start, cue.end))
    if begins_at and cues and duration <= cues[0].start and 0 <= cues[0].start - begins_at < duration:
        cues = [replace(cue, start=cue.start - begins_at, end=cue.end - begins_at) for cue in cues]
        notes.add("shifted", clock(begins_at), len(cues))
    inside = []
    for cue in cues:
        if cue.start < duration:
            inside.append(cue if cue.end <= duration else replace(cue, end=duration))
        else:
            notes.add("past the end", f"{clock(cue.start)} {cue.text[:100]}")
    found: list[Cue] = []
    inside.sort(key=_second_of_track)
    for _, together in groupby(inside, _second_of_track):
        found += _readable(list(together), notes)
    return sorted(found, key=lambda cue: (cue.start, cue.end)), notes.notices()


def _second_of_track(cue: Cue) -> tuple[int, str, str]:
    return int(cue.start), cue.language, cue.form


def _readable(second: Sequence[Cue], notes: Notes) -> Iterator[Cue]:
    """Cues that begin in the same second, as many and as long as they may be."""
    size = -(-len(second) // MOST_A_SECOND)
    if size > 1:
        notes.add("crowded", second[0].text, len(second))
    for start in range(0, len(second), size):
        group = second[start : start + size]
        end = max(cue.end for cue in group)
        room = MOST_LETTERS * ceil(end - group[0].start)
        if size == 1 and len(group[0].text) <= room:
            yield group[0]
            continue
        texts = []
        for text in dict.fromkeys(cue.text for cue in group):
            if len(text) > room:
                notes.add("unreadable", text)
            if room > 0:
                texts.append(text[:room])
            room -= len(text) + 1
        yield replace(group[0], end=end, text="\n".join(texts), words=())


def seconds_of_timecode(timecode: str | None, rate: float | None) -> float | None:
    """Seconds of a timecode ``hh:mm:ss:ff`` at a rate of pictures a second; None without one."""
    if timecode is None:
        return None
    hours, minutes, seconds, pictures = map(int, re.split("[:;]", timecode))
    return hours * 3600 + minutes * 60 + seconds + (pictures / rate if rate else 0.0)
