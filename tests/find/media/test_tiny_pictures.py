"""Tiny pictures are made of some of the lines, and show what all lines do."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, Colorspace

from moviola.media import write_video
from moviola.media.picture import InputScaler, TinyScaler
from moviola.types import FrameSize

TINY = FrameSize(18, 32, "stretch", interpolation="bilinear")
FORMATS = (
    "yuv420p", "yuv422p10le", "yuv410p", "nv12", "p010le", "yuyv422", "gray", "rgb24", "bgra", "gbrp",
    "pal8", "bayer_bggr8", "monob",
)  # fmt: skip


def drawn(height: int, width: int) -> VideoFrame:
    """Soft colours, another one in each corner, so that a turn, a shift or swapped colours show."""
    down, right = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    waves = 30 * np.sin(40 * down + 25 * right)
    picture = np.stack([230 * down, 230 * right, 230 * (1 - down) * right], -1) + 12 + waves[..., None]
    return VideoFrame.from_ndarray(picture.clip(0, 255).astype(np.uint8), format="rgb24")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("size", [(720, 1280), (541, 963)])
def test_some_lines_show_what_all_do(kind: str, size: tuple[int, int]) -> None:
    """Catches lines of the wrong place or plane, palettes and mosaics cut apart, colours read by another
    matrix or range.
    """
    made = {"bayer_bggr8": mosaic, "pal8": painted}
    frame = made[kind](drawn(*size)) if kind in made else drawn(*size).reformat(format=kind)
    for colours, values in ((Colorspace.ITU709, ColorRange.MPEG), (Colorspace.ITU601, ColorRange.JPEG)):
        frame.colorspace, frame.color_range = int(colours), int(values)
        all_lines = InputScaler(TINY, Fraction(1))(frame).astype(int)
        some_lines = TinyScaler(TINY)(frame).astype(int)
        assert np.abs(all_lines - some_lines).mean() < 1.5
        assert np.abs(all_lines - some_lines).max() <= 24


def painted(frame: VideoFrame) -> VideoFrame:
    """A picture of 216 colours, by their numbers."""
    steps = np.array([36, 6, 1])
    numbers = ((frame.to_ndarray(format="rgb24").astype(int) * 5 + 127) // 255 * steps).sum(-1)
    palette = np.full((256, 4), 255, np.uint8)
    palette[:216, 1:] = np.arange(216)[:, None] // steps % 6 * 51
    pair: Any = numbers.astype(np.uint8), palette
    return VideoFrame.from_ndarray(pair, format="pal8")


def mosaic(frame: VideoFrame) -> VideoFrame:
    """A picture as a sensor sees it, one colour a pixel."""
    colours = frame.to_ndarray(format="rgb24")
    height, width = colours.shape[:2]
    seen = np.empty((height, width), np.uint8)
    for top, left, colour in ((0, 0, 2), (0, 1, 1), (1, 0, 1), (1, 1, 0)):
        seen[top::2, left::2] = colours[top::2, left::2, colour]
    made = VideoFrame(width, height, "bayer_bggr8")
    plane: Any = made.planes[0]
    np.frombuffer(plane, np.uint8).reshape(height, plane.line_size)[:, :width] = seen
    return made


def test_few_lines_are_scaled_and_frames_may_change_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails where all lines of large pictures are scaled, or lines of an earlier picture are kept."""
    scaler, heights = TinyScaler(TINY), []
    real = scaler._reformatter

    class Watched:
        def reformat(self, frame: VideoFrame, *arguments: object, **options: object) -> VideoFrame:
            heights.append(frame.height)
            return real.reformat(frame, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(scaler, "_reformatter", Watched())
    for height, width, kind in ((720, 1280, "yuv420p"), (1080, 1920, "yuv420p"), (720, 1280, "rgb24")):
        frame = drawn(height, width).reformat(format=kind)
        assert np.abs(scaler(frame).astype(int) - InputScaler(TINY, Fraction(1))(frame)).mean() < 1.5
    scaler(drawn(100, 160))
    assert heights == [144, 120, 144, 100]


def test_a_turned_picture_is_turned(tmp_path: Path) -> None:
    """Catches a picture whose turn is lost with its lines."""
    picture = drawn(720, 960).to_ndarray().astype(np.uint8)
    write_video(tmp_path / "film.mp4", [picture] * 3, rate=5)
    turned = tmp_path / "turned.mov"
    with av.open(str(tmp_path / "film.mp4")) as source, av.open(str(turned), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        stream.set_display_rotation(90)
        for packet in source.demux(video=0):
            if packet.size:
                packet.stream = stream
                target.mux(packet)
    with av.open(str(turned)) as container:
        frame = next(container.decode(video=0))
        scaled = TinyScaler(TINY)(frame).astype(int)
        assert np.abs(scaled - InputScaler(TINY, Fraction(1))(frame)).mean() < 1.5
