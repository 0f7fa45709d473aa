"""Tone mapping of high dynamic range and wide gamut to BT.709.

PQ (SMPTE ST 2084) and HLG (ITU-R BT.2100) are brought to the brightness of such a screen by the curve of
ITU-R BT.2390 (5.4.1): below its knee luminance stays, highlights are rolled off up to the peak of the
material. Diffuse white at 203 cd/m² (ITU-R BT.2408) sets the scale. Colours of BT.2020 are converted to
BT.709. All of this is one table of colours, which libav's ``lut3d`` applies.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Self, cast

import av.filter
import numpy as np
from av.sidedata.sidedata import SideDataContainer
from av.video.format import VideoFormat
from av.video.frame import VideoFrame
from av.video.reformatter import ColorPrimaries, ColorTrc
from av.video.stream import VideoStream
from numpy.typing import NDArray

__all__ = ["DEEP_RGB", "Tone", "ToneMapper"]

DEEP_RGB = "gbrp16le"
"""Planes of 16 bits, G'B'R' as coded, for which ``lut3d`` is five times as fast as for others."""

_WHITE = 203.0
"""Luminance of diffuse white in cd/m²."""
_USUAL_PEAK = 1000.0
_PEAKS = (300.0, 10_000.0)
# Colours of the table per axis.
_SIZE = 33

# Linear RGB of BT.2020 in BT.709 (ITU-R BT.2087, 2.2), both with the white D65.
_TO_BT709 = np.array(
    [[1.660491, -0.587641, -0.072850], [-0.124550, 1.132900, -0.008349], [-0.018151, -0.100579, 1.118730]]
)
_LUMINANCE = np.array([0.2627, 0.6780, 0.0593])

_TRANSFERS: dict[int, Literal["pq", "hlg"]] = {ColorTrc.SMPTE2084: "pq", ColorTrc.ARIB_STD_B67: "hlg"}
_TICK = Fraction(1, 1000)  # any value: filters require one
# SDR transfers that screens show alike.
_STANDARD = {ColorTrc.BT709, ColorTrc.SMPTE170M, ColorTrc.BT2020_10, ColorTrc.BT2020_12}


@dataclass(frozen=True, slots=True)
class Tone:
    """Transfer of a picture's values (sdr: of wide gamut), and luminance of the brightest pixel in cd/m²."""

    transfer: Literal["pq", "hlg", "sdr"]
    peak: float = _USUAL_PEAK

    @classmethod
    def of_stream(cls, stream: VideoStream) -> Self | None:
        """From the header; None for ordinary SDR. The peak is not in all headers."""
        return cls._said(stream.codec_context.color_trc, stream.codec_context.color_primaries)

    @classmethod
    def of(cls, frame: VideoFrame) -> Self | None:
        """From a picture and its side data; None for ordinary SDR."""
        tone = cls._said(frame.color_trc, frame.color_primaries)
        if tone is None or tone.transfer != "pq":
            return tone
        return cls("pq", float(np.clip(_peak(frame), *_PEAKS)))

    @classmethod
    def _said(cls, transfer: int, primaries: int) -> Self | None:
        if transfer in _TRANSFERS:
            return cls(_TRANSFERS[transfer])
        return cls("sdr") if transfer in _STANDARD and primaries == ColorPrimaries.BT2020 else None


def _peak(frame: VideoFrame) -> float:
    """Luminance of the brightest pixel: of the content, else of the screen that it was made on."""
    data = cast(SideDataContainer, frame.side_data)
    if "CONTENT_LIGHT_LEVEL" in data:
        (content,) = struct.unpack_from("=I", bytes(data["CONTENT_LIGHT_LEVEL"]))
        if content:
            return float(content)
    if "MASTERING_DISPLAY_METADATA" in data:
        # Fractions of 32 bits: 6 of primaries, 2 of white, luminance of black and of the peak; then flags.
        values = struct.unpack_from("=22i", bytes(data["MASTERING_DISPLAY_METADATA"]))
        if values[21] and values[18] > 0 and values[19] > 0:
            return float(values[18] / values[19])
    return _USUAL_PEAK


class ToneMapper:
    """Converts the colours of pictures of one tone and size."""

    def __init__(self, tone: Tone, width: int, height: int) -> None:
        self.tone, self.width, self.height = tone, width, height
        graph = av.filter.Graph()
        graph.threads = 1
        source = graph.add_buffer(width=width, height=height, format=VideoFormat(DEEP_RGB), time_base=_TICK)
        with TemporaryDirectory(prefix="moviola-") as folder:
            table = Path(folder) / "tone.cube"
            table.write_bytes(_table(tone))
            look_up = graph.add("lut3d", file=str(table), interp="tetrahedral")
            graph.link_nodes(source, look_up, graph.add("buffersink")).configure()
        self._graph = graph

    def __call__(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """A picture of :data:`DEEP_RGB` as (height, width, 3) uint8 RGB of BT.709."""
        frame.time_base = _TICK
        self._graph.vpush(frame)
        planes = self._graph.vpull().planes
        image = np.empty((self.height, self.width, 3), np.uint8)
        for channel, plane in zip((1, 2, 0), planes, strict=True):
            lines = np.frombuffer(memoryview(plane), np.uint8).reshape(self.height, -1)
            image[:, :, channel] = lines[:, 1 : 2 * self.width : 2]  # the upper of two bytes
        return image


@lru_cache(maxsize=8)
def _table(tone: Tone) -> bytes:
    """The table in the format of ``.cube`` files, red fastest."""
    axis = np.linspace(0, 1, _SIZE)
    blue, green, red = np.meshgrid(axis, axis, axis, indexing="ij")
    colours = shown(tone, np.stack([red, green, blue], -1).reshape(-1, 3))
    colours = (256 * 255 * colours + 128) / 65535  # so that the upper byte is rounded
    lines = "\n".join(f"{r:.6f} {g:.6f} {b:.6f}" for r, g, b in colours.tolist())
    return f"LUT_3D_SIZE {_SIZE}\n{lines}\n".encode()


def shown(tone: Tone, coded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Colours of BT.709 for a screen of gamma 2.4 (ITU-R BT.1886), (n, 3) in [0, 1], from those of a tone."""
    if tone.transfer == "sdr":
        linear = coded**2.4 @ _TO_BT709.T
    else:
        light = _pq_light(coded) if tone.transfer == "pq" else _hlg_light(coded)
        linear = light @ _TO_BT709.T / _WHITE
        brightest = linear.max(-1, keepdims=True).clip(1e-9)
        linear = linear * _rolled_off(brightest * _WHITE, tone.peak) / (brightest * _WHITE)
    return np.asarray(linear.clip(0, 1) ** (1 / 2.4))


_M1, _M2 = 2610 / 16384, 2523 / 4096 * 128
_C1, _C2, _C3 = 3424 / 4096, 2413 / 4096 * 32, 2392 / 4096 * 32


def _pq_light(coded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Luminance in cd/m² of values of PQ (ITU-R BT.2100, table 4)."""
    power = coded ** (1 / _M2)
    return np.asarray(10_000 * ((power - _C1).clip(0) / (_C2 - _C3 * power)) ** (1 / _M1))


def _pq_coded(light: NDArray[np.float64]) -> NDArray[np.float64]:
    power = (light / 10_000).clip(0) ** _M1
    return np.asarray(((_C1 + _C2 * power) / (1 + _C3 * power)) ** _M2)


def _hlg_light(coded: NDArray[np.float64]) -> NDArray[np.float64]:
    """Luminance in cd/m² of values of HLG on a screen of 1,000 cd/m² (ITU-R BT.2100, table 5)."""
    a, b, c = 0.17883277, 0.28466892, 0.55991073
    scene = np.where(coded <= 0.5, coded**2 / 3, (np.exp((coded - c) / a) + b) / 12)
    return np.asarray(_USUAL_PEAK * scene * (scene @ _LUMINANCE)[:, None] ** 0.2)


def _rolled_off(light: NDArray[np.float64], peak: float) -> NDArray[np.float64]:
    """Luminance on the screen, up to diffuse white, in cd/m²: the curve of ITU-R BT.2390."""
    if peak <= _WHITE:
        return light
    top = _pq_coded(np.array(peak))
    most = _pq_coded(np.array(_WHITE)) / top
    knee = 1.5 * most - 0.5
    value = (_pq_coded(light) / top).clip(0, 1)
    t = ((value - knee) / (1 - knee)).clip(0, 1)
    spline = (
        (2 * t**3 - 3 * t**2 + 1) * knee + (t**3 - 2 * t**2 + t) * (1 - knee) + (-2 * t**3 + 3 * t**2) * most
    )
    return _pq_light(np.where(value < knee, value, spline) * top)
