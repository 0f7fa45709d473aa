"""Pictures as they are meant: HDR and wide gamut, ranges and matrices, fields, pixels that are not square."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange
from numpy.typing import NDArray

from moviola.errors import MediaError
from moviola.media import cut, frame_at, make_playable, plays_in_browsers, probe, sample_frames
from moviola.media.tone_mapping import Tone, shown
from moviola.types import FrameSize, Span

# Colours as they are coded, and what ffmpeg 5.1 makes of them: zscale to linear BT.709 with npl=203,
# tonemap=mobius:param=0.4532:desat=0:peak=4.926 (knee and peak of BT.2390 for 1,000 cd/m²), zscale=t=bt709.
CODED = np.array(
    [
        (0.2, 0.2, 0.2), (0.4, 0.4, 0.4), (0.5, 0.5, 0.5), (0.58, 0.58, 0.58), (0.65, 0.65, 0.65),
        (0.72, 0.72, 0.72), (0.5, 0.4, 0.35), (0.35, 0.45, 0.3), (0.3, 0.35, 0.5), (0.6, 0.5, 0.45),
        (0.45, 0.55, 0.4), (0.45, 0.5, 0.62),
    ]
)  # fmt: skip
BY_FFMPEG = {
    "pq": [
        (40, 40, 40), (119, 119, 119), (184, 184, 184), (225, 225, 225), (243, 243, 243), (252, 252, 252),
        (207, 103, 85), (0, 154, 56), (0, 95, 190), (241, 126, 106), (24, 217, 91), (69, 144, 239),
    ],
    # Of HLG zimg brightens each channel by itself, BT.2100 all alike by their luminance.
    "hlg": [
        (57, 57, 57), (114, 114, 114), (143, 143, 143), (169, 169, 169), (197, 197, 197), (218, 218, 218),
        (159, 110, 97), (77, 132, 79), (67, 101, 147), (195, 137, 125), (107, 162, 108), (113, 144, 190),
    ],
}  # fmt: skip
TRANSFERS = {"pq": 16, "hlg": 18, "sdr": 14}
# Matrices of ITU-T H.273: weights of red and blue.
WEIGHTS = {1: (0.2126, 0.0722), 5: (0.299, 0.114), 6: (0.299, 0.114), 9: (0.2627, 0.0593)}


def patches(colours: NDArray[Any], side: int = 48) -> NDArray[Any]:
    """Twelve colours as a picture of 4 x 3 squares."""
    return colours.reshape(3, 4, 3).repeat(side, 0).repeat(side, 1)


def read(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The colours in the middle of the squares, (12, 3)."""
    height, width = image.shape[0] // 3, image.shape[1] // 4
    squares = image.reshape(3, height, 4, width, 3)[
        :, height // 3 : -height // 3, :, width // 3 : -width // 3
    ]
    return squares.mean((1, 3)).reshape(12, 3)


def yuv(coded: NDArray[Any], matrix: int, *, full: bool = False, deep: bool = False) -> VideoFrame:
    """R'G'B' in [0, 1], (h, w, 3), as a picture of 4:2:0, computed here and not by libav."""
    red, blue = WEIGHTS[matrix]
    luma = coded @ np.array([red, 1 - red - blue, blue])
    planes = [luma, (coded[..., 2] - luma) / (2 - 2 * blue), (coded[..., 0] - luma) / (2 - 2 * red)]
    frame = VideoFrame(coded.shape[1], coded.shape[0], "yuv420p10le" if deep else "yuv420p")
    step, kind = (4, "<u2") if deep else (1, np.uint8)
    for number, (plane, values) in enumerate(zip(frame.planes, planes, strict=True)):
        values = values if not number else values[::2, ::2]
        if full:
            values = values * (256 * step - 1) + (128 * step if number else 0)
        else:
            values = (values * (224 if number else 219) + (128 if number else 16)) * step
        lines = np.zeros((plane.height, plane.line_size // np.dtype(kind).itemsize), kind)
        lines[:, : plane.width] = np.rint(values)
        plane.update(lines.tobytes())
    frame.colorspace, frame.color_range = matrix, ColorRange.JPEG if full else ColorRange.MPEG
    return frame


def film(
    path: Path, frame: VideoFrame, codec: str, transfer: int = 2, primaries: int = 2, **more: Any
) -> Path:
    """Two seconds of one picture, at 10 a second."""
    options = {"crf": "4", "preset": "ultrafast"}
    if codec == "libx265":
        options |= {"x265-params": "log-level=none"}
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10, options=options)
        stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, frame.format.name
        context = stream.codec_context
        context.colorspace, context.color_range = frame.colorspace, frame.color_range
        context.color_trc, context.color_primaries = transfer, primaries
        if "aspect" in more:
            context.sample_aspect_ratio = more["aspect"]
        if "turn" in more:
            stream.set_display_rotation(more["turn"])
        for number in range(20):
            frame.pts, frame.time_base = number, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def lab(rgb: NDArray[Any]) -> NDArray[np.float64]:
    """CIE L*a*b* of colours of a screen of BT.709 and gamma 2.4, (n, 3) of 255."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = (np.asarray(rgb) / 255) ** 2.4 @ to_xyz.T / to_xyz.sum(1)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], -1)


def difference(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """CIEDE2000 of colours of 255, (n,)."""
    (l1, a1, b1), (l2, a2, b2) = lab(one).T, lab(other).T
    chroma = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 1.5 - 0.5 * np.sqrt(chroma**7 / (chroma**7 + 25**7))
    c1, c2 = np.hypot(a1 * g, b1), np.hypot(a2 * g, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a * g)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180
    hue = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    light, c, h = (l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2) % 360
    t = sum(
        k * np.cos(np.radians(n * h - off))
        for k, n, off in ((1, 0, 0), (-0.17, 1, 30), (0.24, 2, 0), (0.32, 3, -6), (-0.2, 4, 63))
    )
    sl = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    sc, sh = 1 + 0.045 * c, 1 + 0.015 * c * t
    rt = -2 * np.sqrt(c**7 / (c**7 + 25**7)) * np.sin(np.radians(60 * np.exp(-(((h - 275) / 25) ** 2))))
    dc = (c2 - c1) / sc
    return np.sqrt(((l2 - l1) / sl) ** 2 + dc**2 + (hue / sh) ** 2 + rt * dc * hue / sh)


@pytest.mark.parametrize("name", BY_FFMPEG)
def test_tones_are_mapped_as_by_zscale_and_tonemap(name: Any) -> None:
    ours = shown(Tone(name), CODED) * 255
    away = difference(ours, np.array(BY_FFMPEG[name]))
    assert away.mean() <= 2
    greys = CODED[:, 0] == CODED[:, 2]
    assert away[greys].mean() < 0.8


def test_bright_material_is_rolled_off_by_its_peak() -> None:
    light = np.full((1, 3), 0.75)  # of PQ: 983 cd/m²
    for peak in (1000.0, 4000.0):
        values = [shown(Tone("pq", peak), light * share)[0, 0] for share in (0.8, 0.9, 1.0)]
        assert values == sorted(values) and values[-1] <= 1
    assert shown(Tone("pq", 1000.0), light)[0, 0] > shown(Tone("pq", 4000.0), light)[0, 0]


@pytest.mark.parametrize("name", TRANSFERS)
def test_hdr_and_wide_gamut_become_what_screens_show(tmp_path: Path, name: Any) -> None:
    path = film(
        tmp_path / "deep.mp4", yuv(patches(CODED), 9, deep=True), "libx265", TRANSFERS[name], primaries=9
    )
    expected = shown(Tone(name), CODED) * 255
    assert probe(path).special == ("" if name == "sdr" else f"HDR ({name.upper()})")
    assert not plays_in_browsers(probe(path))
    out = tmp_path / "clip.mp4"
    cut(path, Span(0.5, 1.5), out, mode="encode")
    whole = tmp_path / "whole.mp4"
    make_playable(path, whole)
    stills = [frame_at(path, 1, 192), frame_at(out, 0.5, 192), frame_at(whole, 1, 192)]
    with sample_frames(path, size=FrameSize(144, 192, fit="stretch")) as frames:
        stills.append(next(frames).image)
    for still in stills:
        assert difference(read(still), expected).mean() < 1.2
    for made in (out, whole):
        with av.open(str(made)) as container:
            context = container.streams.video[0].codec_context
            assert (context.colorspace, context.color_primaries, context.color_trc) == (1, 1, 1)
        assert plays_in_browsers(probe(made))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("matrix", WEIGHTS)
def test_ranges_and_matrices(tmp_path: Path, matrix: int, full: bool) -> None:
    coded = np.round(CODED * 255) / 255
    path = film(tmp_path / "sdr.mp4", yuv(patches(coded), matrix, full=full), "libx264")
    cut(path, Span(0.5, 1.5), tmp_path / "clip.mp4", mode="encode")
    for still in (frame_at(path, 1, 192), frame_at(tmp_path / "clip.mp4", 0.5, 192)):
        assert np.abs(read(still) - coded * 255).max() < 6


def test_hdr_that_is_turned_with_long_pixels(tmp_path: Path) -> None:
    frame = yuv(patches(CODED), 9, deep=True)
    path = film(tmp_path / "t.mp4", frame, "libx265", 16, primaries=9, aspect=Fraction(2), turn=-90)
    info = probe(path)
    assert (info.width, info.height, info.rotation) == (144, 384, 90)
    cut(path, Span(0, 1), tmp_path / "clip.mp4", mode="encode")
    expected = shown(Tone("pq"), CODED) * 255
    for still in (frame_at(path, 1, 144), frame_at(tmp_path / "clip.mp4", 0.5, 144)):
        assert still.shape == (384, 144, 3)
        assert difference(read(np.rot90(still)[:, ::2]), expected).mean() < 1.2


def interlaced(path: Path, *, aspect: Fraction = Fraction(1), codec: str = "libx264") -> Path:
    """A bar that moves by 6 pixels from field to field."""

    def field(number: int) -> VideoFrame:
        image = np.full((96, 256, 3), 40, np.uint8)
        image[24:72, 6 * number : 6 * number + 40] = 220
        return VideoFrame.from_ndarray(image).reformat(format="yuv420p")

    x264 = {"x264-params": "tff=1:bframes=2", "preset": "ultrafast"}
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            codec, rate=25, options=x264 if codec == "libx264" else {"b": "2M", "flags": "+ildct+ilme"}
        )
        stream.width, stream.height, stream.pix_fmt = 256, 192, "yuv420p"
        stream.codec_context.sample_aspect_ratio = aspect
        stream.codec_context.thread_count = 1
        for number in range(16):
            frame = VideoFrame(256, 192, "yuv420p")
            fields = [field(2 * number), field(2 * number + 1)]
            for plane, *lines in zip(frame.planes, *(one.planes for one in fields), strict=True):
                woven = np.zeros((plane.height, plane.line_size), np.uint8)
                for parity, source in enumerate(lines):
                    whole = np.frombuffer(source, np.uint8).reshape(source.height, -1)
                    woven[parity::2, : plane.width] = whole[:, : plane.width]
                plane.update(woven.tobytes())
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def combed(image: NDArray[np.uint8]) -> float:
    """How far lines differ from their neighbours, on average."""
    lines = image[..., 1].astype(float)
    return float(np.abs(2 * lines[1:-1] - lines[:-2] - lines[2:]).mean())


@pytest.mark.parametrize(("codec", "suffix"), [("libx264", "mp4"), ("mpeg2video", "mpg")])
def test_fields_are_made_whole_pictures(tmp_path: Path, codec: str, suffix: str) -> None:
    path = interlaced(tmp_path / f"fields.{suffix}", codec=codec)
    info = probe(path)
    assert info.special == "interlaced"
    assert not plays_in_browsers(info)
    with sample_frames(path, rate=25, size=FrameSize(192, 256, fit="stretch")) as frames:
        woven = [frame.image for frame in frames]
    assert min(combed(image) for image in woven) > 8
    out = tmp_path / "clip.mp4"
    with pytest.raises(MediaError):
        cut(path, Span(0.1, 0.5), out, mode="copy")
    cut(path, Span(0.1, 0.5), out, mode="encode")
    assert not probe(out).special
    with sample_frames(out, rate=25, size=FrameSize(192, 256, fit="stretch")) as frames:
        clip = [frame.image for frame in frames]
    assert len(clip) == 11
    assert max(combed(image) for image in clip) < 4
    for number, image in enumerate(clip):
        bar = np.flatnonzero(image[96, :, 1] > 130)
        assert bar[0] - 12 * (number + 2) in range(-2, 9)
        assert len(bar) == pytest.approx(40, abs=4)
    cut(path, Span(0.1, 0.12), out, mode="encode")  # one picture alone
    for still in (frame_at(path, 0.3, 256), frame_at(out, 0, 256)):
        assert combed(still) < 4


def test_fields_of_long_pixels(tmp_path: Path) -> None:
    path = interlaced(tmp_path / "wide.mp4", aspect=Fraction(64, 45))
    assert (probe(path).width, probe(path).height) == (364, 192)
    assert frame_at(path, 0.2, 364).shape == (192, 364, 3)
    assert combed(frame_at(path, 0.2, 364)) < 4
