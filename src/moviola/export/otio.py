"""OpenTimelineIO, for Resolve, Premiere (by a plug-in), Kdenlive, Blender's add-ons and pipelines.

Each clip keeps its video's own rate, which the format allows, so that no edit is rounded.
"""

from __future__ import annotations

from pathlib import Path

from opentimelineio import opentime, schema
from opentimelineio.opentime import TimeRange
from opentimelineio.schema import Clip, Track

from moviola.export.selection import clean_lines, one_line
from moviola.export.timebase import Timebase
from moviola.export.timeline import Event, Timeline
from moviola.files.writing import write_text

__all__ = ["write_otio"]


def write_otio(timeline: Timeline, out: Path) -> None:
    """Write the events as a timeline of one picture track and, where there is sound, one sound track.

    Title and note are in a marker on the clip, moment, score and note in ``metadata["moviola"]``.
    """
    start = opentime.RationalTime(timeline.first_frame, float(timeline.timebase.rate))
    made = schema.Timeline(timeline.title, global_start_time=start)
    made.metadata["moviola"] = {"drop_frame": timeline.timebase.drop_frame}
    made.tracks.append(_track(timeline, schema.TrackKind.Video))
    if any(event.video.info.audio_codec for event in timeline.events):
        made.tracks.append(_track(timeline, schema.TrackKind.Audio))
    write_text(out, made.to_json_string() + "\n")


def _track(timeline: Timeline, kind: str) -> Track:
    track = schema.Track(kind, kind=kind)
    for event in timeline.events:
        if kind == schema.TrackKind.Video or event.video.info.audio_codec:
            track.append(_clip(event, marked=kind == schema.TrackKind.Video))
        else:
            track.append(schema.Gap(source_range=_range(event.video.timebase, 0, _length(event))))
    return track


def _clip(event: Event, *, marked: bool) -> Clip:
    video, selection, timebase = event.video, event.selection, event.video.timebase
    available = _range(timebase, video.first_frame, video.frame_count)
    media = schema.ExternalReference(target_url=video.path.as_uri(), available_range=available)
    media.name = one_line(video.path.name)
    clip = schema.Clip(
        selection.name, media, _range(timebase, video.first_frame + event.source[0], _length(event))
    )
    moment = selection.moment
    clip.metadata["moviola"] = {
        "video_id": one_line(moment.video_id), "start": moment.start, "end": moment.end,
        "score": moment.score, "title": one_line(selection.title), "note": clean_lines(selection.note),
    }  # fmt: skip
    if marked:
        marker = schema.Marker(selection.name, clip.source_range, schema.MarkerColor.GREEN)
        marker.comment = clean_lines(selection.note)
        clip.markers.append(marker)
    return clip


def _length(event: Event) -> int:
    return event.source[1] - event.source[0]


def _range(timebase: Timebase, first: int, count: int) -> TimeRange:
    rate = float(timebase.rate)
    return opentime.TimeRange(opentime.RationalTime(first, rate), opentime.RationalTime(count, rate))
