"""Timelines of moments in sequence, the common input of formats of editing programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from moviola.errors import InvalidValue, MediaError
from moviola.export.clips import source_of
from moviola.export.selection import Selection
from moviola.export.timebase import Timebase, can_drop, nominal_rate, sequence_rate
from moviola.media import MediaInfo, probe
from moviola.types import Span

__all__ = ["Event", "SourceVideo", "Timeline", "lay_out", "read_sources"]

Paths = Mapping[str, str | Path]


@dataclass(frozen=True, slots=True)
class SourceVideo:
    """A video with its rate and its timecode.

    Attributes:
        timebase: its nominal rate, and the counting of its timecode.
        seconds: its duration, where it is known without reading the file.
    """

    video_id: str
    info: MediaInfo
    timebase: Timebase
    seconds: float | None = None

    @property
    def first_frame(self) -> int:
        """Number of its first picture by its start timecode; 0 without one.

        A drop-frame sign at a rate without such counting is ignored.

        Raises:
            MediaError: the timecode does not exist at its rate.
        """
        try:
            return self.timebase.frame_of((self.info.start_timecode or "00:00:00:00").replace(";", ":"))
        except InvalidValue as error:
            raise MediaError(
                self.path,
                f"its start timecode cannot be at {float(self.timebase.rate):g} frames a second ({error}); "
                "correct the tag 'timecode', or leave its moments out",
            ) from error

    @property
    def path(self) -> Path:
        """Its file, absolute."""
        return self.info.path.absolute()

    @property
    def duration(self) -> float:
        """Seconds until its end, by :func:`moviola.media.length_of`."""
        return self.info.duration if self.seconds is None else self.seconds

    @property
    def frame_count(self) -> int:
        """Frames until its end, at least one; the last picture stays as long as the sound."""
        return self.timebase.frames(Span(0.0, self.duration))[1]


@dataclass(frozen=True, slots=True)
class Event:
    """A moment on the timeline.

    Attributes:
        number: from 1.
        source: its frames ``(first, end)``, counted from the video's first picture at the video's rate.
        record: its frames on the timeline, counted from the timeline's beginning at the timeline's rate.
    """

    number: int
    selection: Selection
    video: SourceVideo
    source: tuple[int, int]
    record: tuple[int, int]

    @property
    def duration(self) -> int:
        """Frames of the timeline."""
        return self.record[1] - self.record[0]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events in sequence, without gaps except the requested lead.

    Attributes:
        title: one line, not empty.
        first_frame: number of its first frame by its timecode.
    """

    title: str
    timebase: Timebase
    first_frame: int
    events: tuple[Event, ...]

    @property
    def frame_size(self) -> tuple[int, int]:
        """Width and height of its largest video, the first of several, as even numbers."""
        infos = (event.video.info for event in self.events)
        largest = max(infos, key=lambda info: info.width * info.height)
        return max(2, largest.width // 2 * 2), max(2, largest.height // 2 * 2)

    @property
    def duration(self) -> int:
        """Frames from the beginning to the end of the last event."""
        return self.events[-1].record[1] if self.events else 0


def read_sources(
    chosen: Iterable[Selection], paths: Paths, durations: Mapping[str, float] = MappingProxyType({})
) -> dict[str, SourceVideo]:
    """The videos of selections, by id; each file is opened once. Where ``durations`` lacks its seconds, it is
    read to its end.

    Raises:
        NotFound: a video without a path.
        MediaError: a file is missing or unreadable.
    """
    sources: dict[str, SourceVideo] = {}
    for selection in chosen:
        video_id = selection.moment.video_id
        if video_id not in sources:
            info = probe(source_of(video_id, paths))
            rate = nominal_rate(info.average_rate, info.base_rate)
            drop_frame = ";" in (info.start_timecode or "") and can_drop(rate)
            sources[video_id] = SourceVideo(
                video_id, info, Timebase(rate, drop_frame), durations.get(video_id)
            )
    return sources


def lay_out(
    chosen: Sequence[Selection],
    videos: Mapping[str, SourceVideo],
    *,
    title: str,
    rate: Fraction | None = None,
    drop_frame: bool | None = None,
    start: str | None = "01:00:00:00",
    lead: float = 0.0,
) -> Timeline:
    """Put moments in sequence.

    Args:
        rate: frames per second; None: the rate of most moments (:func:`sequence_rate`).
        drop_frame: counting at 29.97 and 59.94; None: that of the first of the videos of that rate with a
            start timecode, without one non-drop.
        start: timecode of the first frame; None: without timecode.
        lead: free seconds before each moment, rounded to frames.

    Raises:
        InvalidValue: a moment begins after the end of its video, or a rate, a counting or a timecode that
            does not exist.
    """
    used = [videos[selection.moment.video_id] for selection in chosen]
    rate = rate or sequence_rate(video.timebase.rate for video in used)
    if drop_frame is None:
        drop_frame = next(
            (v.timebase.drop_frame for v in used if v.timebase.rate == rate and v.info.start_timecode), False
        )
    timebase = Timebase(rate, drop_frame)
    gap, at, events = round(Fraction(lead) * rate), 0, []
    for number, (selection, video) in enumerate(zip(chosen, used, strict=True), start=1):
        first, end = video.timebase.frames(selection.moment.span)
        count = video.frame_count
        if first >= count:
            raise InvalidValue(
                f"{video.path}: {selection.moment.start:g} s is after the end of the video at "
                f"{video.duration:g} s; correct the moment or leave it out"
            )
        end = min(end, count)
        at += gap
        # Whole frames of the timeline, so that none is after the end of the selection.
        after = at + max(1, math.floor((end - first) * rate / video.timebase.rate))
        events.append(Event(number, selection, video, (first, end), (at, after)))
        at = after
    first_frame = timebase.frame_of(start.replace(";", ":")) if start else 0
    return Timeline(title, timebase, first_frame, tuple(events))
