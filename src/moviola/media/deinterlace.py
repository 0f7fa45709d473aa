"""Deinterlacing by libav's ``bwdif``: interlaced pictures hold two fields, taken one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain, groupby
from typing import Literal

import av.filter
from av.error import BlockingIOError, EOFError
from av.video.frame import VideoFrame

__all__ = ["deinterlaced", "without_fields"]

_TICK = Fraction(1, 1000)  # any value: filters require one


def deinterlaced(frame: VideoFrame) -> VideoFrame:
    """One interlaced picture: one of its fields, the lines between filled in from those around."""
    # Of a picture alone the filter leaves the first field as it is, and fills in the second.
    *_, (_, whole) = _filtered([(0, frame)], "send_field")
    return whole


def without_fields(pictures: Iterable[tuple[int, VideoFrame]]) -> Iterator[tuple[int, VideoFrame]]:
    """Pictures that follow each other, with their ticks; interlaced ones are made whole."""
    for (_, interlaced), group in groupby(pictures, lambda picture: _kind(picture[1])):
        if not interlaced:
            yield from group
            continue
        alike = iter(group)
        first, second = next(alike), next(alike, None)
        if second is None:
            yield first[0], deinterlaced(first[1])
        else:
            yield from _filtered(chain((first, second), alike), "send_frame")


def _kind(frame: VideoFrame) -> tuple[tuple[str, int, int], bool]:
    return (frame.format.name, frame.width, frame.height), frame.interlaced_frame


def _filtered(
    pictures: Iterable[tuple[int, VideoFrame]], mode: Literal["send_frame", "send_field"]
) -> Iterator[tuple[int, VideoFrame]]:
    graph: av.filter.Graph | None = None
    for since, frame in pictures:
        if graph is None:
            graph = av.filter.Graph()
            graph.threads = 1
            source = graph.add_buffer(
                width=frame.width, height=frame.height, format=frame.format, time_base=_TICK
            )
            bwdif = graph.add("bwdif", mode=mode, parity="auto", deint="all")
            graph.link_nodes(source, bwdif, graph.add("buffersink")).configure()
        frame.pts, frame.time_base = since, _TICK
        graph.vpush(frame)
        yield from _pulled(graph)
    if graph is not None:
        graph.vpush(None)
        yield from _pulled(graph)


def _pulled(graph: av.filter.Graph) -> Iterator[tuple[int, VideoFrame]]:
    while True:
        try:
            frame = graph.vpull()
        except (BlockingIOError, EOFError):
            return
        assert frame.pts is not None and frame.time_base is not None
        yield round(frame.pts * frame.time_base / _TICK), frame
