"""FCPXML 1.9, for Final Cut Pro, DaVinci Resolve and Premiere (by a converter).

Written here, since the adapter of OpenTimelineIO writes version 1.8 without ``asset-clip``, takes 23.976 for
23 frames a second, goes through floating point, and calls a program. All times are exact: whole frames of
the timeline, or, where a clip starts, of its video.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from moviola.export.selection import clean_lines, one_line
from moviola.export.timebase import Timebase
from moviola.export.timeline import Event, SourceVideo, Timeline
from moviola.files.writing import write_text

__all__ = ["write_fcpxml"]


def write_fcpxml(timeline: Timeline, out: Path) -> None:
    """Write the events as a project whose spine holds one asset-clip per moment."""
    root = Element("fcpxml", version="1.9")
    resources = SubElement(root, "resources")
    width, height = timeline.frame_size
    sequence_format = _format(resources, timeline.timebase.rate, width, height)
    assets: dict[str, Element] = {}
    for event in timeline.events:
        if event.video.video_id not in assets:
            assets[event.video.video_id] = _asset(resources, event.video)
    event_element = SubElement(SubElement(root, "library"), "event", name=timeline.title)
    project = SubElement(event_element, "project", name=timeline.title)
    start = timeline.timebase.seconds(timeline.first_frame)
    sequence = SubElement(
        project, "sequence", format=sequence_format,
        duration=_time(timeline.timebase.seconds(timeline.duration)), tcStart=_time(start),
        tcFormat=_counting(timeline.timebase), audioLayout="stereo", audioRate="48k",
    )  # fmt: skip
    spine = SubElement(sequence, "spine")
    for event in timeline.events:
        _asset_clip(spine, event, timeline.timebase, assets[event.video.video_id], start)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    write_text(out, f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n{text}\n')


def _format(resources: Element, rate: Fraction, width: int, height: int) -> str:
    """The id of a format, created for the first video that has it."""
    duration = f"{rate.denominator}/{rate.numerator}s"
    wanted = {"frameDuration": duration, "width": str(width), "height": str(height)}
    for known in resources.iter("format"):
        if wanted.items() <= known.attrib.items():
            return known.attrib["id"]
    return SubElement(resources, "format", {"id": f"r{len(resources) + 1}", **wanted}).attrib["id"]


def _asset(resources: Element, video: SourceVideo) -> Element:
    info, timebase = video.info, video.timebase
    format_id = _format(resources, timebase.rate, info.width, info.height)
    asset = SubElement(
        resources, "asset", id=f"r{len(resources) + 1}", name=one_line(video.path.stem) or "video",
        start=_time(timebase.seconds(video.first_frame)), hasVideo="1", videoSources="1", format=format_id,
    )  # fmt: skip
    asset.set("duration", _time(timebase.seconds(video.frame_count)))
    if tracks := info.sound_tracks:
        most = max(track.channels for track in tracks)  # of each source, by its definition
        sound = {"hasAudio": "1", "audioSources": str(len(tracks)), "audioChannels": str(most)}
        asset.attrib |= sound | ({"audioRate": str(info.sample_rate)} if info.sample_rate else {})
    SubElement(asset, "media-rep", kind="original-media", src=video.path.as_uri())
    return asset


def _asset_clip(spine: Element, event: Event, timebase: Timebase, asset: Element, origin: Fraction) -> None:
    """A clip; its content is in the order of the document type."""
    video, selection = event.video, event.selection
    start = _time(video.timebase.seconds(video.first_frame + event.source[0]))
    clip = SubElement(
        spine, "asset-clip", ref=asset.attrib["id"], name=selection.name,
        offset=_time(origin + timebase.seconds(event.record[0])), start=start,
        duration=_time(timebase.seconds(event.duration)), format=asset.attrib["format"],
        tcFormat=_counting(video.timebase),
    )  # fmt: skip
    note = clean_lines(selection.note)
    if note:
        SubElement(clip, "note").text = note
    if video.timebase.rate != timebase.rate:
        # Without it, 23.976 in a timeline of 24 plays faster instead of repeating a frame now and then.
        SubElement(clip, "conform-rate", scaleEnabled="0")
    frame = _time(timebase.seconds(1))
    marker = SubElement(clip, "marker", start=start, duration=frame, value=selection.name)
    if note:
        marker.set("note", one_line(note))


def _counting(timebase: Timebase) -> str:
    return "DF" if timebase.drop_frame else "NDF"


def _time(seconds: Fraction) -> str:
    """Exact seconds as FCPXML writes them: ``3600s``, ``1001/30000s``."""
    return f"{seconds}s"
