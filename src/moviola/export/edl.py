"""Edit decision lists: CMX 3600 cuts, and the markers that DaVinci Resolve reads.

Written here, since the adapter of OpenTimelineIO uses drop-frame at every 29.97, writes no ``FCM``, and
begins all records at zero. A reel name has at most 8 characters and no blank; the file's name is in
``* FROM CLIP NAME:``. The list has one rate: times of a video of another rate are those of its timecode,
with the frames converted to the rate of the list, to the nearest.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path

from moviola.errors import InvalidValue
from moviola.export.selection import one_line
from moviola.export.timeline import Event, SourceVideo, Timeline
from moviola.files.writing import write_text

__all__ = ["reel_names", "write_cuts", "write_markers"]

_REEL = 8
# Besides titles and markers, lines may have this length; programs cut longer ones, or fail.
_LINE = 120
_MOST_EVENTS = 999
# What an event takes of its source, by its channels of sound; further ones have no name on this line.
_CHANNELS = ("V", "B", "AA/V")


def write_cuts(timeline: Timeline, out: Path) -> None:
    """Write the events as cuts of picture and sound.

    Raises:
        InvalidValue: more than 999 events.
    """
    reels = reel_names(event.video for event in timeline.events)
    lines = _head(timeline)
    for event in timeline.events:
        channels = _CHANNELS[min(2, sum(track.channels for track in event.video.info.sound_tracks))]
        source = source_timecodes(event, timeline)
        record = [timeline.timebase.timecode(frame) for frame in _record_frames(event, timeline)]
        lines += [
            f"{event.number:03d}  {reels[event.video.video_id]:<{_REEL}} {channels:<5} C        "
            f"{' '.join((*source, *record))}",
            f"* FROM CLIP NAME:  {_text(event.video.path.name)}",
            f"* LOC: {record[0]} GREEN   {_text(event.selection.name)}",
        ]
        if note := _text(event.selection.note):
            lines.append(f"* COMMENT: {note}")
    write_text(out, "\n".join(lines) + "\n")


def write_markers(timeline: Timeline, out: Path, *, of_video: bool = False) -> None:
    """Write a marker for each event, with its title, its note and its length.

    In Resolve: a timeline's menu, Timelines, Import, Timeline Markers from EDL. ``of_video``: markers at the
    times in their video, not at those of the events.

    Raises:
        InvalidValue: more than 999 events.
    """
    lines = _head(timeline)
    for event in timeline.events:
        at, end = _source_frames(event, timeline) if of_video else _record_frames(event, timeline)
        spot = f"{timeline.timebase.timecode(at)} {timeline.timebase.timecode(at + 1)}"
        note = _text(event.selection.note, "/")
        lines += [
            f"{event.number:03d}  001      V     C        {spot} {spot}  ",
            f"{note} |C:ResolveColorGreen |M:{_text(event.selection.name, '/')} |D:{end - at}",
            "",
        ]
    write_text(out, "\n".join(lines) + "\n")


def reel_names(videos: Iterable[SourceVideo]) -> dict[str, str]:
    """A reel name for each video by id: letters and digits of its file's name, without accents, no two
    alike.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for video in videos:
        if video.video_id not in names:
            letters = unicodedata.normalize("NFKD", video.path.stem).upper()
            plain = re.sub(r"[^A-Z0-9]", "", letters)[:_REEL] or "REEL"
            numbered = (f"{plain[: _REEL - len(number)]}{number}" for number in map(str, count(2)))
            name = next(name for name in chain([plain], numbered) if name not in taken)
            names[video.video_id] = name
            taken.add(name)
    return names


def source_timecodes(event: Event, timeline: Timeline) -> tuple[str, str]:
    """Start and end of an event in its video, counted in the video's way where it has the timeline's rate."""
    video = event.video
    # Without a start timecode it has no counting of its own.
    own = video.info.start_timecode is not None and video.timebase.rate == timeline.timebase.rate
    timebase = video.timebase if own else timeline.timebase
    first, end = _source_frames(event, timeline)
    return timebase.timecode(first), timebase.timecode(end)


def _source_frames(event: Event, timeline: Timeline) -> tuple[int, int]:
    """Frame numbers by source timecode, at the rate of the timeline; as many as in its record."""
    video, to = event.video, timeline.timebase
    if video.timebase.rate == to.rate:
        first = video.first_frame + event.source[0]
    else:
        started = to.nearest_label(video.timebase.timecode(video.first_frame), video.timebase.base)
        first = started + round(video.timebase.seconds(event.source[0]) * to.rate)
    return first, first + event.duration


def _record_frames(event: Event, timeline: Timeline) -> tuple[int, int]:
    return timeline.first_frame + event.record[0], timeline.first_frame + event.record[1]


def _head(timeline: Timeline) -> list[str]:
    if len(timeline.events) > _MOST_EVENTS:
        raise InvalidValue(
            f"{len(timeline.events)} moments: an EDL numbers at most {_MOST_EVENTS}; choose fewer, or OTIO"
        )
    counting = "DROP FRAME" if timeline.timebase.drop_frame else "NON-DROP FRAME"
    return [f"TITLE: {_text(timeline.title)}", f"FCM: {counting}", ""]


def _text(text: str, bar: str = "|") -> str:
    """A text as a line holds it; ``bar`` stands for the bar that divides a marker's fields."""
    return one_line(text)[:_LINE].replace("|", bar)
