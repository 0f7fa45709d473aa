"""Recordings that a camera has written into several files, one after the other.

Two signs are trusted, within a folder:

- names of GoPro's chapters: ``GX010123``, ``GX020123`` (also ``GH``, ``GL``, ``GS``), ``GOPR0123``,
  ``GP010123``;
- names with the time of day that differ in their digits alone (DJI, dash cameras), of the same camera and
  size of picture, where each file begins when the one before ends: restarting by hand takes longer. Dash
  cameras write a second or two into both files.

Files stay videos of their own, with times of their own: a recording is their order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from moviola.library.disk.catalogue import VideoRow
from moviola.types import Capture

__all__ = ["Recording", "common_recording", "recordings_of"]

_GOPRO = re.compile(
    r"(?P<kind>G[HXLS])(?P<chapter>\d\d)(?P<number>\d{4})|GOPR(?P<first>\d{4})"
    r"|GP(?P<later>\d\d)(?P<of>\d{4})",
    re.IGNORECASE,
)
# Seconds by which a file may begin before the one before it ends, or after.
_BOTH, _LATE = 3.0, 1.5


@dataclass(frozen=True, slots=True)
class Recording:
    """The files of one recording: ids of the videos in order, at least two."""

    video_ids: tuple[str, ...]

    def part(self, video_id: str) -> int:
        """The place of a video, from 1 on."""
        return self.video_ids.index(video_id) + 1

    def said_of(self, video_id: str) -> str:
        """``part 2 of 3 of a recording``."""
        return f"part {self.part(video_id)} of {len(self.video_ids)} of a recording"

    def next(self, video_id: str) -> str | None:
        """The video that goes on where this one ends."""
        return next(iter(self.video_ids[self.part(video_id) :]), None)


def recordings_of(videos: Iterable[VideoRow], captures: Mapping[int, Capture]) -> dict[str, Recording]:
    """The recordings among videos, by the ids of their parts; ``captures`` by row number."""
    from moviola.media import said_by_name

    named: dict[tuple[str, ...], list[tuple[int, VideoRow]]] = defaultdict(list)
    timed: dict[tuple[object, ...], list[tuple[float, VideoRow]]] = defaultdict(list)
    for video in videos:
        path, capture = Path(video.path), captures.get(video.row, Capture())
        if video.state == "refused":
            continue
        if (chapter := _chapter(path)) is not None:
            key, place = chapter
            named[str(path.parent), *key, path.suffix.lower()].append((place, video))
        elif "T" in (began := said_by_name(path)):
            alike = (str(path.parent), re.sub(r"\d", "0", path.name.lower()), capture.camera)
            pictures = (video.width, video.height, video.codec)
            timed[*alike, *pictures].append((_seconds(began), video))
    groups = [[video for _, video in sorted(own, key=lambda one: one[0])] for own in named.values()]
    for own in timed.values():
        groups += _runs(sorted(own, key=lambda one: (one[0], one[1].path)))
    recordings = (Recording(tuple(video.video_id for video in own)) for own in groups if len(own) > 1)
    return {video_id: recording for recording in recordings for video_id in recording.video_ids}


def common_recording(recordings: Mapping[str, Recording], video_ids: Iterable[str]) -> tuple[str, ...]:
    """The files of the recording of which all of some videos are parts; none where they have none in common.

    ``recordings`` are those of :func:`recordings_of`, by the ids of their parts.
    """
    found = {recordings.get(video_id) for video_id in video_ids}
    common = found.pop() if len(found) == 1 else None
    return common.video_ids if common else ()


def _chapter(path: Path) -> tuple[tuple[str, str], int] | None:
    """Kind and number of a GoPro's recording, and the place of the chapter; None of another name."""
    match = _GOPRO.fullmatch(path.stem)
    if match is None:
        return None
    if match["kind"]:
        return (match["kind"].upper(), match["number"]), int(match["chapter"])
    return ("GP", match["first"] or match["of"]), int(match["later"] or 0)


def _seconds(time: str) -> float:
    """Seconds on the clock that wrote a time, from any beginning."""
    return (datetime.fromisoformat(time).replace(tzinfo=None) - datetime.min).total_seconds()


def _runs(ordered: Sequence[tuple[float, VideoRow]]) -> Iterator[list[VideoRow]]:
    """Files in order of time, divided where one does not begin when the one before ends."""
    run: list[VideoRow] = []
    end = 0.0
    for began, video in ordered:
        if run and not -_BOTH <= began - end <= _LATE:
            yield run
            run = []
        run.append(video)
        end = began + video.duration
    if run:
        yield run
