"""Properties of a media file, from its header and its first picture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import av.container
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from moviola.errors import MediaError, UnreadableMedia
from moviola.media.animated_webp import is_animated
from moviola.media.container import DAMAGE, has_box, open_container, promised_duration, video_stream
from moviola.media.length import length_of
from moviola.media.picture import Orientation, displayed_size, for_other_screens, pixel_aspect
from moviola.media.tracks import SoundTrack, boxed_text, chosen_track, sound_tracks, text_streams
from moviola.threads import DECODING

__all__ = ["MediaInfo", "SubtitleStream", "lead_of", "probe"]

# A comma or a full stop before the frames also marks drop-frame (SMPTE ST 12-1 leaves the sign open).
_TIMECODE = re.compile(r"((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)([:;.,])(\d\d)")
# Formats by their short names whose header may be that of the first fragment.
_IN_FRAGMENTS = frozenset({"mov", "mp4", "m4a", "3gp", "3g2", "mj2"})
# Seconds by which pictures begin later that count as a lead.
_LEAST_LEAD = 0.1


@dataclass(frozen=True, slots=True)
class SubtitleStream:
    """A subtitle stream: its ``index`` in the container, codec, tags, and whether it is ``text``."""

    index: int
    codec: str
    language: str
    title: str
    text: bool


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """Properties of a video file.

    Attributes:
        container: short name of the format, such as ``mp4``, ``matroska``, ``avi``.
        lead: seconds of the file before its first picture, sound alone, 0 where less than a tenth. Moviola
            counts from the picture, players and subtitle files from the file's beginning.
        promised: seconds by the header, which may be wrong; None if it has none.
        width, height: pixels as displayed, after rotation and sample aspect ratio.
        rotation: degrees clockwise by which stored pictures are turned for display: 0, 90, 180 or 270.
        average_rate: average pictures per second, exact as in the file (``30000/1001``), None if unknown.
        base_rate: the lowest rate that contains all time stamps, as far as libav sees: the average of a
            constant rate, a phone camera's nominal one.
        video_codec, pixel_format: of the stored pictures, such as ``h264`` and ``yuv420p``.
        special: what screens and browsers show wrongly: ``HDR (PQ)``, ``HDR (HLG)``, ``interlaced``, or "".
        audio_codec: of the default sound track, such as ``aac``; None without sound.
        sample_rate: samples per second, None without sound.
        channels: of the sound, 0 without.
        start_timecode: of the first picture, ``hh:mm:ss:ff``, with ``;`` before the frames for drop-frame
            counting; None without a valid tag ``timecode`` of the file or its streams.
        sound_tracks, subtitle_streams: all of them.
    """

    path: Path
    container: str
    lead: float
    promised: float | None
    width: int
    height: int
    rotation: int
    average_rate: Fraction | None
    base_rate: Fraction | None
    video_codec: str
    pixel_format: str
    special: str
    audio_codec: str | None
    sample_rate: int | None
    channels: int
    start_timecode: str | None
    sound_tracks: tuple[SoundTrack, ...]
    subtitle_streams: tuple[SubtitleStream, ...]

    @property
    def duration(self) -> float:
        """Seconds until the end, by :func:`moviola.media.length_of`, which reads the file."""
        return length_of(self.path)

    @property
    def about(self) -> float:
        """Seconds until about the end: by the header, but for recordings in fragments, whose header speaks of
        the first; without one, :attr:`duration`.
        """
        in_fragments = self.container in _IN_FRAGMENTS and has_box(self.path, b"moof")
        return self.duration if self.promised is None or in_fragments else self.promised

    @property
    def frame_rate(self) -> float | None:
        """Average pictures per second, None if unknown."""
        return float(self.average_rate) if self.average_rate else None


def probe(path: str | Path) -> MediaInfo:
    """Read the properties of a video file. One picture is decoded, since rotation is stored with pictures.

    Raises:
        UnreadableMedia: no regular or media file, no picture that decodes, or too large or elongated ones.
        NoVideoStream: sound or text only; cover art is not video.
    """
    path = Path(path)
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
        audio, boxed = chosen_track(container, path), boxed_text(container)
        texts = {s.index for s in text_streams(container)}
        # libav names families (``mov,mp4,m4a,…``); the suffix says which format, if it is of the family.
        family, suffix = container.format.name.split(","), path.suffix.lower().lstrip(".")
        kind, codec = suffix if suffix in family else family[0], stream.codec_context.codec.canonical_name
        if is_animated(path):
            kind = codec = "webp"
        return MediaInfo(
            path=path,
            container=kind,
            lead=_lead(container, stream),
            promised=promised_duration(container, stream) or whole,
            width=width,
            height=height,
            rotation=orientation.rotation,
            average_rate=Fraction(rate) if rate else None,
            base_rate=Fraction(stream.base_rate) if stream.base_rate else None,
            video_codec=codec,
            pixel_format=stream.pix_fmt or "",
            special=for_other_screens(stream),
            audio_codec=_codec_name(audio) if audio else None,
            sample_rate=audio.codec_context.sample_rate if audio else None,
            channels=audio.codec_context.layout.nb_channels if audio else 0,
            start_timecode=_start_timecode(container, stream),
            sound_tracks=sound_tracks(container),
            subtitle_streams=tuple(
                SubtitleStream(
                    index=s.index,
                    codec=boxed.get(s.index) or _codec_name(s),
                    language=s.language or "",
                    title=s.metadata.get("title", ""),
                    text=s.index in texts,
                )
                for s in container.streams
                if s.type == "subtitle" or s.index in boxed
            ),
        )


def lead_of(path: str | Path) -> float:
    """:attr:`MediaInfo.lead` of a file; 0 where it cannot be read."""
    try:
        return probe(path).lead
    except MediaError:
        return 0.0


def _lead(container: av.container.InputContainer, stream: VideoStream) -> float:
    if stream.start_time is None or stream.time_base is None or container.start_time is None:
        return 0.0
    lead = float(stream.start_time * stream.time_base) - container.start_time / av.time_base
    # A damaged header may have any time; decoders of sound and reordered pictures begin a little apart.
    return lead if _LEAST_LEAD <= lead < (container.duration or 0) / av.time_base else 0.0


def _first_picture(container: av.container.InputContainer, stream: VideoStream, path: Path) -> VideoFrame:
    stream.thread_count = DECODING
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


def _start_timecode(container: av.container.InputContainer, stream: VideoStream) -> str | None:
    """The first tag that is a timecode: of the video, then of the file, then of other streams (``tmcd``)."""
    holders = (stream.metadata, container.metadata, *(other.metadata for other in container.streams))
    for tags in holders:
        for name, value in tags.items():
            if name.lower() == "timecode" and (match := _TIMECODE.fullmatch(value.strip())):
                return f"{match[1]}{':' if match[2] == ':' else ';'}{match[3]}"
    return None


def _codec_name(stream: av.stream.Stream) -> str:
    return stream.codec_context.codec.canonical_name if stream.codec_context else "unknown"
