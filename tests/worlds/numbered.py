"""Films whose pictures say which they are, with the facts that editing programs ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from moviola.media import write_video

BITS = 10
NTSC_FILM, NTSC, NTSC_FAST = (Fraction(rate * 1000, 1001) for rate in (24, 30, 60))


def picture(number: int, size: tuple[int, int] = (160, 96)) -> NDArray[np.uint8]:
    """Of a width and a height: its number in binary, as bars from left to right."""
    width, height = size
    bits = [number >> bit & 1 for bit in range(BITS)]
    bars = np.repeat(np.array(bits, np.uint8) * 200 + 28, width // BITS)
    return np.broadcast_to(np.pad(bars, (0, width - len(bars)))[None, :, None], (height, width, 3)).copy()


def number_of(image: NDArray[np.uint8], width: int | None = None) -> int:
    """The number of a picture that was encoded; of black bars beside it only the middle is looked at."""
    shown = width or image.shape[1]
    left = (image.shape[1] - shown) // 2
    row = image[image.shape[0] // 2, left : left + shown].mean(axis=1)
    middles = [row[int((bit + 0.5) * (shown // BITS))] for bit in range(BITS)]
    return sum(1 << bit for bit, value in enumerate(middles) if value > 128)


def numbered_film(
    path: Path,
    rate: Fraction | int,
    seconds: float,
    *,
    timecode: str | None = None,
    size: tuple[int, int] = (160, 96),
    sound: bool = False,
) -> Path:
    """Write pictures 0, 1, … at a rate; with a start timecode, and a hum."""
    frames = (picture(number, size) for number in range(round(rate * seconds)))
    hum = (np.sin(np.arange(int(48_000 * seconds)) / 20) / 4).astype(np.float32) if sound else None
    made = path if timecode is None else path.with_name(f"plain-{path.stem}.mp4")
    write_video(made, frames, rate=float(rate), sound=hum, keyframe_every=1.0)
    if timecode is not None:
        _copy(made, path, timecode)
        made.unlink()
    return path


def varying_film(path: Path, stamps: Sequence[int]) -> Path:
    """Write pictures 0, 1, … that are shown at these milliseconds, as a phone does that saves light."""
    with av.open(str(path), "w") as target:
        track = target.add_stream("libx264", rate=30)
        track.width, track.height, track.pix_fmt = 160, 96, "yuv420p"
        track.codec_context.time_base = Fraction(1, 1000)
        track.codec_context.options = {"preset": "veryfast", "bf": "0"}
        for number, stamp in enumerate(stamps):
            frame = av.VideoFrame.from_ndarray(picture(number), format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = stamp, Fraction(1, 1000)
            target.mux(track.encode(frame))
        target.mux(track.encode(None))
    return path


def numbers_in(path: Path, width: int | None = None) -> list[int]:
    """The numbers of all pictures that a player shows."""
    with av.open(str(path)) as container:
        return [number_of(image, width) for image in _shown(container)]


def _shown(container: av.container.InputContainer) -> Iterable[NDArray[np.uint8]]:
    for frame in container.decode(video=0):
        if frame.pts is not None and frame.pts >= 0:
            yield frame.to_ndarray(format="rgb24")


def _copy(source: Path, out: Path, timecode: str) -> None:
    with av.open(str(source)) as given, av.open(str(out), "w") as target:
        tracks = {stream.index: target.add_stream_from_template(stream) for stream in given.streams}
        target.metadata["timecode"] = timecode
        for packet in given.demux():
            if packet.dts is not None:
                packet.stream = tracks[packet.stream_index]
                target.mux(packet)
