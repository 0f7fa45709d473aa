"""Whether browsers play a file, and converting it so that they do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moviola.errors import MediaError
from moviola.media.cutting import cut
from moviola.media.frames import LONGEST_VIDEO
from moviola.media.probe import MediaInfo, probe
from moviola.types import Span

__all__ = ["make_playable", "plays_in_browsers"]

# What all browsers play: container, codecs of pictures, pixel formats, codecs of sound.
_PLAYED = (
    (("mp4", "mov", "m4v"), ("h264",), ("yuv420p", "yuvj420p"), ("aac", "mp3")),
    (("webm",), ("vp8", "vp9", "av1"), ("yuv420p",), ("opus", "vorbis")),
)


def plays_in_browsers(info: MediaInfo) -> bool:
    """Whether browsers play a file unchanged: H.264 with AAC or MP3 in MP4; VP8, VP9 or AV1 in WebM. HDR and
    interlaced pictures do not count, which browsers show wrongly, nor do files that begin with sound alone,
    from which browsers count.
    """
    return not (info.special or info.lead) and any(
        info.container in containers
        and info.video_codec in pictures
        and info.pixel_format in pixels
        and info.audio_codec in (None, *sound)
        for containers, pictures, pixels, sound in _PLAYED
    )


def make_playable(
    path: Path, out: Path, track: int | None = None, progress: Callable[[float], None] = lambda _: None
) -> None:
    """Write a whole video as an MP4 that browsers play: copied where its codecs allow that, else encoded.

    ``track`` is the number of the sound track, from 1 on; None: the default one. ``progress`` and errors are
    as of :func:`moviola.media.cut`.
    """
    whole = Span(0, LONGEST_VIDEO)
    if probe(path).video_codec == "h264":
        try:
            cut(path, whole, out, mode="remux", track=track, progress=progress)
            return
        except MediaError:
            pass
    cut(path, whole, out, mode="encode", track=track, progress=progress)
