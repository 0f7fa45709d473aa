"""What a media file holds, read from its header and its first picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import av
import av.container
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from moviola.errors import UnreadableMedia
from moviola.media.container import DAMAGE, open_container, promised_duration, video_stream
from moviola.media.picture import Orientation, displayed_size, pixel_aspect

__all__ = ["TEXT_SUBTITLES", "MediaInfo", "SubtitleStream", "probe"]

TEXT_SUBTITLES = frozenset({"mov_text", "subrip", "srt", "ass", "ssa", "webvtt", "text"})
"""Subtitle codecs that carry text; the others (DVD, Blu-ray, DVB) carry pictures of text."""


@dataclass(frozen=True, slots=True)
class SubtitleStream:
    """A subtitle stream in a container: its ``index`` there, codec, tags, and whether it is ``text``."""

    index: int
    codec: str
    language: str
    title: str
    text: bool


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """What a video file is.

    Attributes:
        path: the file.
        container: short name of the format, such as ``mp4``, ``matroska``, ``avi``.
        duration: seconds that the header promises, None when it is silent; the exact duration is known
            after decoding (:class:`~moviola.media.FrameStream`).
        width, height: pixels as displayed, after rotation and sample aspect ratio.
        rotation: degrees clockwise by which stored pictures are turned for display: 0, 90, 180 or 270.
        frame_rate: average pictures a second, None when not known.
        video_codec: such as ``h264``.
        pixel_format: of the pictures as they are stored, such as ``yuv420p``.
        audio_codec: such as ``aac``, None without sound.
        subtitle_streams: all subtitle streams.
    """

    path: Path
    container: str
    duration: float | None
    width: int
    height: int
    rotation: int
    frame_rate: float | None
    video_codec: str
    pixel_format: str
    audio_codec: str | None
    subtitle_streams: tuple[SubtitleStream, ...]


def probe(path: Path) -> MediaInfo:
    """Read what a video file is. One picture is decoded, since rotation travels with the pictures.

    Raises:
        UnreadableMedia: no such file, no regular file, zero bytes, no media file, no picture that decodes, or
            pictures that are too large or too elongated.
        NoVideoStream: sound or text only; cover art is not video.
    """
    with open_container(path) as container:
        stream = video_stream(container, path)
        picture = _first_picture(container, stream, path)
        orientation = Orientation.of(picture)
        try:
            width, height = displayed_size(picture, orientation, pixel_aspect(stream))
        except ValueError as error:
            raise UnreadableMedia(path, str(error)) from error
        rate = stream.average_rate or stream.guessed_rate
        whole = container.duration / av.time_base if container.duration and container.duration > 0 else None
        audio = container.streams.audio[0] if container.streams.audio else None
        return MediaInfo(
            path=Path(path),
            container=_container_name(container.format.name, Path(path)),
            duration=promised_duration(container, stream) or whole,
            width=width,
            height=height,
            rotation=orientation.rotation,
            frame_rate=float(rate) if rate else None,
            video_codec=stream.codec_context.codec.canonical_name,
            pixel_format=stream.pix_fmt or "",
            audio_codec=_codec_name(audio) if audio else None,
            subtitle_streams=tuple(
                SubtitleStream(
                    index=s.index,
                    codec=_codec_name(s),
                    language=s.language or "",
                    title=s.metadata.get("title", ""),
                    text=_codec_name(s) in TEXT_SUBTITLES,
                )
                for s in container.streams.subtitles
            ),
        )


def _first_picture(container: av.container.InputContainer, stream: VideoStream, path: Path) -> VideoFrame:
    stream.thread_count = 1
    try:
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except DAMAGE:
                continue
            if frames:
                return frames[0]
    except DAMAGE as error:
        raise UnreadableMedia(path, f"no picture can be decoded ({error})") from error
    raise UnreadableMedia(path, "no picture can be decoded")


def _codec_name(stream: av.stream.Stream) -> str:
    return stream.codec_context.codec.canonical_name if stream.codec_context else "unknown"


def _container_name(names: str, path: Path) -> str:
    """libav names families (``mov,mp4,m4a,…``); the suffix says which format, if it is of the family."""
    family = names.split(",")
    suffix = path.suffix.lower().lstrip(".")
    return suffix if suffix in family else family[0]
