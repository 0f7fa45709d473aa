"""Writing frames, sound and text as an MP4, reproducible to the byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path

import av.container
import numpy as np
from av.subtitles.subtitle import SubtitleSet
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.files.writing import draft_of
from moviola.media.container import add_h264, new_mp4
from moviola.media.sound import encoded_sound
from moviola.types import Cue

__all__ = ["TEXT_STYLE", "write_video"]

TEXT_STYLE = b"""[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, \
Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, \
MarginR, MarginV, Encoding
Style: Default,Arial,16,&Hffffff,&Hffffff,&H0,&H0,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,0

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""
"""Header that the encoder of mov_text wants: white Arial at the bottom."""


def write_video(
    path: Path,
    frames: Iterable[NDArray[np.uint8]],
    *,
    rate: float,
    crf: int = 20,
    keyframe_every: float = 2.0,
    subtitles: Sequence[Cue] | None = None,
    sound: NDArray[np.float32] | None = None,
    sound_rate: int = 48_000,
) -> None:
    """Write frames as an MP4 that browsers play: H.264, 4:2:0, the index in front.

    Same frames and same versions of the libraries, same bytes: one thread, no dates, no names of programs.

    Args:
        path: the file; it appears complete or not at all.
        frames: (h, w, 3) uint8 RGB, all of one size with even sides, at least one.
        rate: frames per second, above 0 and at most 1000.
        crf: quality of x264, 0 (lossless) to 51; smaller is better and bigger.
        keyframe_every: seconds between two key frames, at most.
        subtitles: cues for a text track (mov_text); one that overlaps the next ends when that begins.
        sound: samples (n,) in [-1, 1], mono, from the first frame on, ``sound_rate`` per second; None:
            silent.

    Raises:
        InvalidValue: no frames, odd sides, several sizes, a rate out of range, or a place that cannot be
            written.
    """
    if not 0 < rate <= 1000:
        raise InvalidValue(f"rate {rate}: give frames per second, above 0 and at most 1000")
    remaining = iter(frames)
    first = next(remaining, None)
    if first is None:
        raise InvalidValue(f"{path}: no frames to write")
    height, width = first.shape[:2]
    if height % 2 or width % 2:
        raise InvalidValue(f"{path}: frames of {width}x{height}; both sides must be even for H.264 4:2:0")
    # Simple fractions, such as 30000/1001; of a slow film the seconds of a picture.
    exact = Fraction(max(rate, 1 / rate)).limit_denominator(1001) ** (1 if rate >= 1 else -1)
    with draft_of(path) as draft, new_mp4(draft, fflags="+bitexact") as container:
        # x264's macroblock tree reads uninitialised memory, so that its choices differ from run to run.
        options = {"crf": str(crf), "x264-params": "mbtree=0"}
        stream = add_h264(container, exact, (width, height), **options)
        stream.codec_context.gop_size = max(1, round(keyframe_every * rate))
        stream.codec_context.thread_count = 1
        if subtitles:
            _write_cues(container, subtitles)
        if sound is not None:
            track = container.add_stream("aac", rate=sound_rate, layout="mono")
            starts = range(0, len(sound), sound_rate)
            pieces = (sound[start : start + sound_rate, None].astype(np.float32) for start in starts)
            for packet in encoded_sound(track, pieces):
                container.mux(packet)
        reformatter = VideoReformatter()
        for number, image in enumerate(chain([first], remaining)):
            if image.shape != first.shape or image.dtype != np.uint8:
                raise InvalidValue(
                    f"{path}: frame {number} is {image.shape} {image.dtype}; the first was {first.shape}"
                )
            picture = VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            picture = reformatter.reformat(picture, format="yuv420p", threads=1)
            picture.pts, picture.time_base = number, 1 / exact
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))


def _write_cues(container: av.container.OutputContainer, cues: Sequence[Cue]) -> None:
    track = container.add_stream("mov_text")
    track.codec_context.subtitle_header = TEXT_STYLE
    ordered = sorted(cues, key=lambda cue: (cue.start, cue.end))
    starts = [round(cue.start * 1000) for cue in ordered]
    for number, (cue, start) in enumerate(zip(ordered, starts, strict=True)):
        end = min([round(cue.end * 1000), *starts[number + 1 : number + 2]])
        if end <= start:
            continue
        text = f"{number},0,Default,,0,0,0,,{cue.text}".replace("\n", "\\N")
        subtitle = SubtitleSet.create(text.encode(), 0, end - start, start)
        packet = track.codec_context.encode_subtitle(subtitle)
        packet.stream, packet.time_base = track, Fraction(1, 1000)
        container.mux(packet)
