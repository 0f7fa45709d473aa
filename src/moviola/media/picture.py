"""From a decoded picture to an RGB array of a given size: one pass of swscale, then turning and cropping.

Everything uses this module, so that an encoder always sees the same pixels for the same picture. Alpha is
dropped; HDR and wide gamut are converted by a table (:mod:`~moviola.media.tone_mapping`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, cast

import numpy as np
from av.sidedata.sidedata import SideDataContainer
from av.video.frame import VideoFrame
from av.video.plane import VideoPlane
from av.video.reformatter import Colorspace, Interpolation, VideoReformatter
from av.video.stream import VideoStream
from numpy.typing import NDArray

from moviola.files.reasons import reason
from moviola.media.container import MAX_ASPECT_RATIO
from moviola.media.deinterlace import deinterlaced
from moviola.media.tone_mapping import DEEP_RGB, Tone, ToneMapper
from moviola.types import FrameSize

__all__ = [
    "UNSPECIFIED_COLOURS", "DisplayScaler", "InputScaler", "LetterboxScaler", "Orientation", "SideScaler",
    "TinyScaler", "WidthScaler", "displayed_size", "for_other_screens", "pixel_aspect",
]  # fmt: skip

BT709, UNSPECIFIED_COLOURS = 1, 2
"""Values of ITU-T H.273 for primaries, transfer and matrix alike (8.1 to 8.3)."""

_HIGH_DEFINITION = 720
# Lines of a picture that count for each line of a tiny one, at least.
_LINES = 6


@dataclass(frozen=True, slots=True)
class Orientation:
    """How stored pictures are turned for display: swap the axes, then mirror along x and y."""

    transpose: bool = False
    flip_x: bool = False
    flip_y: bool = False

    @classmethod
    def of(cls, frame: VideoFrame) -> Self:
        """By the display matrix of a picture (ISO/IEC 14496-12, 6.2.2), to the nearest 90 degrees."""
        try:
            data = cast(SideDataContainer, frame.side_data)["DISPLAYMATRIX"]
        except KeyError:
            return cls()
        matrix = np.frombuffer(bytes(data), dtype=np.int32)
        # (x, y) is shown at (a x + c y, b x + d y).
        a, b, c, d = (int(matrix[i]) for i in (0, 1, 3, 4))
        upright = abs(a) + abs(d) >= abs(b) + abs(c)
        return cls(False, a < 0, d < 0) if upright else cls(True, c < 0, b < 0)

    @property
    def rotation(self) -> int:
        """Degrees clockwise, 0, 90, 180 or 270, without the mirroring."""
        if self.transpose:
            return 90 if self.flip_x else 270
        return 180 if self.flip_y else 0

    def apply(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Turn a stored image (h, w, 3) for display; a view."""
        if self.transpose:
            image = image.swapaxes(0, 1)
        return image[:: -1 if self.flip_y else 1, :: -1 if self.flip_x else 1]


def pixel_aspect(stream: VideoStream) -> Fraction:
    """Width of a stored pixel over its height, 1 if the stream has none."""
    ratio = stream.sample_aspect_ratio
    return Fraction(ratio) if ratio and Fraction(1, 32) <= ratio <= 32 else Fraction(1)


def for_other_screens(stream: VideoStream) -> str:
    """Property of a stream that browsers do not show correctly, by its header; empty if there is none."""
    tone = Tone.of_stream(stream)
    if tone is not None and tone.transfer != "sdr":
        return f"HDR ({tone.transfer.upper()})"
    # Orders of fields that libav knows follow on "unknown" and "progressive".
    return "interlaced" if stream.codec_context.field_order > 1 else ""


def displayed_size(frame: VideoFrame, orientation: Orientation, aspect: Fraction) -> tuple[int, int]:
    """Displayed width and height of a picture in pixels. Raises ValueError: one side is longer than the other
    by more than :data:`MAX_ASPECT_RATIO`.
    """
    width, height = max(1, round(frame.width * aspect)), frame.height
    if max(width, height) > MAX_ASPECT_RATIO * min(width, height):
        raise ValueError(reason("too narrow", width=width, height=height, most=MAX_ASPECT_RATIO))
    return (height, width) if orientation.transpose else (width, height)


class _Scaler:
    """Scales and turns the pictures of a stream for display; one swscale context is used for all of them.

    ``aspect`` is the width of a stored pixel over its height. ``whole`` deinterlaces, for people; encoders
    see both fields, which scaling mixes.
    """

    def __init__(
        self, aspect: Fraction, interpolation: Interpolation = Interpolation.BICUBIC, *, whole: bool = True
    ) -> None:
        self._aspect, self._interpolation, self._whole = aspect, interpolation, whole
        self._reformatter = VideoReformatter()
        self._rotation: int | None = None
        self._orientation = Orientation()
        self._coded: tuple[int, int] | None = None
        self._tone: Tone | None = None
        self._mapper: ToneMapper | None = None

    def __call__(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """Scale one picture; returns (height, width, 3) uint8 RGB."""
        return np.ascontiguousarray(self._scaled(frame, *self._size(frame)))

    def _size(self, frame: VideoFrame) -> tuple[int, int]:
        raise NotImplementedError

    def _read(self, frame: VideoFrame, height: int) -> VideoFrame:
        """The rows of a stored picture that are scaled to a stored height."""
        return frame

    def _turned(self, frame: VideoFrame) -> Orientation:
        """The orientation of a picture, read again only when the rotation changes: reading it ties a picture
        into a cycle that only the garbage collector frees, a few megabytes each.
        """
        if frame.rotation != self._rotation:
            self._rotation, self._orientation = frame.rotation, Orientation.of(frame)
        return self._orientation

    def _shown_size(self, frame: VideoFrame) -> tuple[int, int]:
        return displayed_size(frame, self._turned(frame), self._aspect)

    def _scaled(
        self, frame: VideoFrame, width: int, height: int, colours: Colorspace | None = None
    ) -> NDArray[np.uint8]:
        """The picture turned for display at ``width`` x ``height``: (height, width, 3) uint8 RGB, a view.

        ``colours`` is the colour matrix to read; None: that of the picture, else BT.601.
        """
        orientation = self._turned(frame)
        if orientation.transpose:
            width, height = height, width
        if self._whole and frame.interlaced_frame:
            frame = deinterlaced(frame)
        if (coded := (frame.color_trc, frame.color_primaries)) != self._coded:
            self._coded, self._tone = coded, Tone.of(frame)
        tone, mapper = self._tone, self._mapper
        if tone is not None:
            colours = Colorspace.BT2020 if frame.colorspace == UNSPECIFIED_COLOURS else None
            if mapper is None or (mapper.tone, mapper.width, mapper.height) != (tone, width, height):
                mapper = self._mapper = ToneMapper(tone, width, height)
        scaled = self._reformatter.reformat(
            self._read(frame, height), width, height, "rgb24" if tone is None else DEEP_RGB,
            src_colorspace=colours, interpolation=self._interpolation, threads=1,
        )  # fmt: skip
        if tone is not None and mapper is not None:
            return orientation.apply(mapper(scaled))
        return orientation.apply(cast(NDArray[np.uint8], scaled.to_ndarray()))


class InputScaler(_Scaler):
    """Scales pictures of a stream to an encoder's input size (:class:`~moviola.types.FrameSize`)."""

    def __init__(self, size: FrameSize, aspect: Fraction) -> None:
        super().__init__(aspect, Interpolation[size.interpolation.upper()], whole=False)
        self._target = size

    def __call__(self, frame: VideoFrame) -> NDArray[np.uint8]:
        size = self._target
        if size.fit == "patches":
            height, width = size.sides(*self._shown_size(frame))
            return np.ascontiguousarray(self._scaled(frame, width, height))
        width, height = size.width, size.height
        if size.fit == "crop":
            # The longer side is rounded down, as the CLIP image processor of transformers does.
            shown_width, shown_height = self._shown_size(frame)
            short = min(shown_width, shown_height)
            width = size.shortest_edge * shown_width // short
            height = size.shortest_edge * shown_height // short
        image = self._scaled(frame, width, height)
        top, left = (height - size.height) // 2, (width - size.width) // 2
        return np.ascontiguousarray(image[top : top + size.height, left : left + size.width])


class TinyScaler(InputScaler):
    """Scales pictures down so far that some of their lines are enough: a fifth of the work at 720 lines.

    Of every few lines one counts, an odd number of them, so that both fields of an interlaced picture do.
    """

    def __init__(self, size: FrameSize) -> None:
        # Whatever the shape of a pixel, the picture is stretched.
        super().__init__(size, Fraction(1))
        self._few: VideoFrame | None = None

    def _read(self, frame: VideoFrame, height: int) -> VideoFrame:
        step = frame.height // (_LINES * height)
        step -= 1 - step % 2
        kind = frame.format
        whole = kind.has_palette or kind.is_bayer or kind.is_bit_stream  # lines that need their neighbours
        if step < 3 or whole or any(plane.line_size < 0 for plane in frame.planes):
            return frame
        return self._thinned(frame, step)

    def _thinned(self, frame: VideoFrame, step: int) -> VideoFrame:
        """Every ``step``-th line of a picture, in the middle of those that it stands for."""
        few, height = self._few, frame.height // step // 2 * 2
        if few is None or (few.width, few.height, few.format.name) != (
            frame.width,
            height,
            frame.format.name,
        ):
            few = self._few = VideoFrame(frame.width, height, frame.format.name)
        for name in ("colorspace", "color_range", "color_trc", "color_primaries"):
            setattr(few, name, getattr(frame, name))
        for plane, own in zip(frame.planes, few.planes, strict=True):
            lines, kept = _lines(plane), _lines(own)
            first = (len(lines) - (len(kept) - 1) * step) // 2
            length = min(lines.shape[1], kept.shape[1])
            kept[:, :length] = lines[first::step, :length][: len(kept)]
        return few


def _lines(plane: VideoPlane) -> NDArray[np.uint8]:
    """The lines of a plane with what pads them, (lines, bytes)."""
    return np.frombuffer(cast(Any, plane), np.uint8).reshape(-1, plane.line_size)


class WidthScaler(_Scaler):
    """Scales pictures of a stream to a displayed width; the height follows from the aspect ratio."""

    def __init__(self, width: int, aspect: Fraction) -> None:
        super().__init__(aspect)
        self._width = width

    def _size(self, frame: VideoFrame) -> tuple[int, int]:
        shown_width, shown_height = self._shown_size(frame)
        return self._width, max(1, round(self._width * shown_height / shown_width))


class SideScaler(_Scaler):
    """Scales pictures of a stream down to a longest displayed side; smaller ones keep their size."""

    def __init__(self, longest: int, aspect: Fraction) -> None:
        super().__init__(aspect)
        self._longest = longest

    def _size(self, frame: VideoFrame) -> tuple[int, int]:
        width, height = self._shown_size(frame)
        share = min(1.0, self._longest / max(width, height))
        return max(1, round(width * share)), max(1, round(height * share))


class DisplayScaler(_Scaler):
    """Scales pictures of a stream for display, all to the size of the first with even sides."""

    def __init__(self, first: VideoFrame, aspect: Fraction) -> None:
        super().__init__(aspect)
        width, height = self._shown_size(first)
        self.width, self.height = max(2, width - width % 2), max(2, height - height % 2)

    def _size(self, frame: VideoFrame) -> tuple[int, int]:
        return self.width, self.height


class LetterboxScaler(_Scaler):
    """Scales pictures of a stream into one size, with black bars where the shape is another."""

    def __init__(self, width: int, height: int, aspect: Fraction) -> None:
        super().__init__(aspect)
        self._width, self._height = width, height

    def __call__(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """Scale one picture; returns (height, width, 3) uint8 RGB."""
        shown_width, shown_height = self._shown_size(frame)
        scale = min(Fraction(self._width, shown_width), Fraction(self._height, shown_height))
        width = min(self._width, max(1, round(shown_width * scale)))
        height = min(self._height, max(1, round(shown_height * scale)))
        canvas = np.zeros((self._height, self._width, 3), np.uint8)
        top, left = (self._height - height) // 2, (self._width - width) // 2
        # As players do: BT.709 where a picture of high definition names no colours.
        silent = frame.colorspace == UNSPECIFIED_COLOURS and frame.height >= _HIGH_DEFINITION
        colours = Colorspace.ITU709 if silent else None
        canvas[top : top + height, left : left + width] = self._scaled(frame, width, height, colours)
        return canvas
