"""One film of several moments."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from moviola.errors import InvalidValue
from moviola.export.selection import one_line
from moviola.export.timeline import Timeline
from moviola.media import Card, Piece, join, title_card
from moviola.types import clock

__all__ = ["CARD_SECONDS", "parse_size", "write_film"]

CARD_SECONDS = 2.0
"""Seconds of a title before its moment."""

_LONGEST_SIDE = 3840  # larger sizes are refused for H.264 by browsers and phones
_SIZE = re.compile(r"([0-9]{1,5})[xX]([0-9]{1,5})")


def write_film(
    timeline: Timeline,
    out: Path,
    *,
    size: tuple[int, int] | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Write the events as one MP4, at the timeline's rate, with a chapter each.

    Args:
        timeline: where it has a gap before an event, a card with its title is shown.
        out: the film; it appears complete or not at all.
        size: width and height in pixels, even; None takes those of the largest video.
        progress: called with the share that is written; what it raises ends the writing.

    Raises:
        MediaError: a video cannot be read.
        InvalidValue: an odd size, or a place that cannot be written.
    """
    width, height = size or _within_limits(timeline.frame_size)
    parts: list[Piece | Card] = []
    at = 0
    for event in timeline.events:
        video, moment = event.video, event.selection.moment
        if event.record[0] > at:
            lines = [
                event.selection.name,
                one_line(event.selection.note),
                f"{video.path.name}  {clock(moment.start)}",
            ]
            parts.append(Card(title_card(list(filter(None, lines)), width, height), event.record[0] - at))
        start = video.timebase.seconds(event.source[0])
        parts.append(Piece(video.path, start, event.duration, event.selection.name))
        at = event.record[1]
    sound = any(event.video.info.audio_codec for event in timeline.events)
    rate = timeline.timebase.rate
    seconds = float(sum(part.frames for part in parts) / rate)
    join(
        parts, out, rate=rate, size=(width, height), sound=sound,
        progress=lambda written: progress(written / seconds),
    )  # fmt: skip


def parse_size(text: str) -> tuple[int, int]:
    """Width and height of ``"1280x720"``.

    Raises:
        InvalidValue: another form, odd or too large.
    """
    found = _SIZE.fullmatch(text)
    width, height = (int(side) for side in found.groups()) if found else (0, 0)
    if min(width, height) < 2 or max(width, height) > _LONGEST_SIDE or width % 2 or height % 2:
        raise InvalidValue(
            f"size {text!r}: write WIDTHxHEIGHT, even, at most {_LONGEST_SIDE}, such as 1280x720"
        )
    return width, height


def _within_limits(size: tuple[int, int]) -> tuple[int, int]:
    share = min(1.0, _LONGEST_SIDE / max(size))
    width, height = (max(2, int(side * share) // 2 * 2) for side in size)
    return width, height
