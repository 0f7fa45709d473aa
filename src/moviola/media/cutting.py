"""Cutting a moment, or all, out of a video into an MP4 that browsers play, and whether they play a file."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal

import av.container
from av.audio.stream import AudioStream
from av.packet import Packet
from av.stream import Stream
from av.video.frame import VideoFrame
from av.video.reformatter import ColorRange, VideoReformatter
from av.video.stream import VideoStream

from moviola.errors import InvalidValue, MediaError, UnreadableMedia
from moviola.files.writing import draft_of
from moviola.media.container import DAMAGE, add_h264, new_mp4, open_container, video_stream
from moviola.media.deinterlace import without_fields
from moviola.media.display_order import CannotPrune, from_key_frame, from_last_key_frame, in_order
from moviola.media.editlist import set_shown_duration
from moviola.media.frames import LONGEST_VIDEO
from moviola.media.h264 import is_readable
from moviola.media.length import length_of
from moviola.media.picture import BT709, UNSPECIFIED_COLOURS, DisplayScaler, for_other_screens, pixel_aspect
from moviola.media.probe import MediaInfo, probe
from moviola.media.sound import encoded_sound, sound_up_to
from moviola.media.source import Source
from moviola.media.tone_mapping import Tone
from moviola.media.tracks import chosen_track
from moviola.types import Span

__all__ = ["cut", "make_playable", "plays_in_browsers"]

# Codecs that browsers play from an MP4.
_PICTURES = {"h264": ("yuv420p", "yuvj420p")}
_SOUND = frozenset({"aac", "mp3"})
_SOUND_RATE = 48_000
_TICK = Fraction(1, 90_000)
# Seconds to decode before the start where time stamps may be wrong, since earlier ones correct them.
_RUN_UP = 10
# Seconds by which the last picture may outlast its packet, as a still does in Matroska or among B pictures.
_GAP = 0.1
# Seconds from which on a picture is a still, whose own time is no place for a clip to begin.
_STILL = 1
_ENCODE = "choose the mode that encodes: exact for an export, encode for a cut"


def cut(
    path: Path,
    span: Span,
    out: Path,
    *,
    mode: Literal["copy", "key-frames", "remux", "encode"],
    track: int | str | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Write ``span`` of a video, picture and sound, to an MP4 that browsers play.

    The clip starts with the picture on screen at ``span.start``, at that picture's own time, or, where it has
    been there for more than a second, at ``span.start``; it ends at ``span.end`` or with the video.

    Args:
        span: seconds from the video's zero.
        out: the MP4; it appears complete or not at all.
        mode: ``"copy"`` copies the pictures from the key frame before the start, and hides those outside the
            span with an edit list: exact, fast, without loss, for H.264 with AAC or MP3. ``"key-frames"``
            hides none: the clip starts with that key frame. ``"remux"`` copies, but converts sound of other
            codecs to AAC. ``"encode"`` encodes (H.264, AAC), turned for display: slower, for every codec.
        track: see :func:`moviola.media.chosen_track`.
        progress: called after each picture with the written seconds; what it raises ends the cut.

    Raises:
        UnreadableMedia: no such file, no media file, or nothing decodes in that span.
        NoVideoStream: sound or text only.
        MediaError: pictures or sound to copy that browsers do not play from an MP4, or that are damaged; or
            no such track. What cannot be decoded is passed over where pictures are encoded.
        InvalidValue: the span begins after the end of the video, or ``out`` cannot be written.
    """
    writers: dict[str, Callable[[_Excerpt, Path], None]] = {
        "copy": _copy, "key-frames": partial(_copy, hide=False), "remux": partial(_copy, new_sound=True),
        "encode": _encode,
    }  # fmt: skip
    for attempt in count():
        with open_container(path) as container:
            video = video_stream(container, path)
            sound = chosen_track(container, Path(path), track)
            source = Source(container, video)
            if attempt == len(source.run_ups()):
                raise UnreadableMedia(path, f"nothing decodes in {_said(span)}")
            if source.seek(span.start, source.run_ups()[attempt]):
                try:
                    with draft_of(out) as draft:
                        excerpt = _Excerpt(Path(path), span, source, video, sound, track, progress)
                        writers[mode](excerpt, draft)
                    return
                except CannotPrune:
                    continue
                except InvalidValue:
                    raise
                except DAMAGE as error:
                    why = getattr(error, "strerror", None) or error
                    raise UnreadableMedia(path, f"{_said(span)} cannot be written as MP4 ({why})") from error


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """An open file and the part of it to cut out."""

    path: Path
    span: Span
    source: Source
    video: VideoStream
    sound: AudioStream | None
    track: int | str | None
    progress: Callable[[float], None]

    @property
    def start(self) -> int:
        """The last tick that is not after the start of the span."""
        return (self.source.zero or 0) + math.floor(_exact(self.span.start) / self.source.tick)

    @property
    def end(self) -> int:
        """The first tick that is not before the end of the span."""
        return (self.source.zero or 0) + math.ceil(_exact(self.span.end) / self.source.tick)

    def length(self, first: int) -> Fraction:
        return _exact(self.span.end) - (first - (self.source.zero or 0)) * self.source.tick

    def begins_in_still(self, first: int) -> bool:
        """Whether the picture at the start has been on screen for long, since a tick."""
        return (self.start - first) * self.source.tick > _STILL

    def require_before(self, pictures: int) -> int:
        """The tick at which the video ends whose pictures end at one: the last of them stays as long as there
        is sound. Refuses a span that begins there or later.
        """
        end = pictures
        if self.end > pictures:
            whole = _exact(length_of(self.path)) / self.source.tick
            end = max(pictures, (self.source.zero or 0) + round(whole))
        if self.start >= end:
            start, last = self.span.start, self.source.seconds(end)
            raise InvalidValue(f"{self.path}: {start:g} s is after the end of the video at {last:g} s")
        return end


def _said(span: Span) -> str:
    """A span as text; the whole video is given by a length that no video has."""
    if span.end >= LONGEST_VIDEO:
        return f"the video from {span.start:g} s on" if span.start else "the video"
    return f"the part from {span.start:g} to {span.end:g} s"


def _exact(seconds: float) -> Fraction:
    """An exact time; rounded, 0.3 s would fall into the picture before."""
    return Fraction(seconds).limit_denominator(1_000_000)


def _copy(excerpt: _Excerpt, draft: Path, hide: bool = True, new_sound: bool = False) -> None:
    """Copy packets; hide what comes before the start, or begin with it; encode sound if necessary."""
    copied = replace(excerpt, sound=None) if new_sound and not _copies(excerpt.sound) else excerpt
    _require_playable(copied, as_meant=hide)
    source, video, sound = copied.source, copied.video, copied.sound
    packets = _packets(copied)
    with new_mp4(draft) as target:
        tracks: dict[int, Stream] = {video.index: target.add_stream_from_template(video)}
        if sound is not None:
            tracks[sound.index] = target.add_stream_from_template(sound)
        held, first, floor = _run_up(copied, packets, hide)
        if hide and copied.begins_in_still(first):
            raise MediaError(copied.path, f"cannot be copied, it begins amid a still; {_ENCODE}")
        first, last = first if hide else floor, 0
        streams: list[Iterator[Packet[Any]]] = [
            _shifted(copied, chain(held, packets), tracks, first * source.tick, floor)
        ]
        if copied is not excerpt:
            streams.append(_encoded_audio(excerpt, target, first))
        for packet in heapq.merge(*streams, key=lambda p: (p.dts or 0) * p.time_base):
            if packet.stream is tracks[video.index]:
                last = max(last, (packet.pts or 0) + (packet.duration or 0))
                excerpt.progress(float(last * packet.time_base))
            target.mux(packet)
    set_shown_duration(draft, min(excerpt.length(first), last * source.tick))


def _shifted(
    excerpt: _Excerpt,
    packets: Iterator[Packet[Stream]],
    tracks: Mapping[int, Stream],
    zero: Fraction,
    floor: int,
) -> Iterator[Packet[Stream]]:
    """Packets for the tracks of a clip, from its zero in seconds and the tick of its key frame on."""
    last: dict[int, int] = {}
    for packet in packets:
        assert packet.pts is not None
        if packet.dts is None:
            packet.dts = packet.pts
        if packet.stream_index == excerpt.video.index:
            # Pictures shown before the key frame refer to earlier ones.
            if packet.pts < floor:
                continue
            if not is_readable(bytes(packet), excerpt.video.codec_context.extradata):  # players stop there
                where = f"its picture at {excerpt.source.seconds(packet.pts):.1f} s is damaged"
                raise MediaError(excerpt.path, f"cannot be copied, {where}; {_ENCODE}")
            packet.duration = packet.duration or excerpt.source.step
        elif (packet.pts + 2 * (packet.duration or 0)) * packet.time_base <= zero:
            continue  # keep one packet before the first audible sound: decoders start with it
        shift = round(zero / packet.time_base)
        packet.pts -= shift
        packet.dts -= shift
        # A muxer wants decoding times that rise, and no picture shown before it is decoded.
        packet.dts = max(packet.dts, last.get(packet.stream_index, packet.dts - 1) + 1)
        packet.pts = max(packet.pts, packet.dts)
        last[packet.stream_index] = packet.dts
        packet.stream = tracks[packet.stream_index]
        yield packet


def _copies(sound: AudioStream | None) -> bool:
    return sound is None or sound.codec_context.codec.canonical_name in _SOUND


def _require_playable(excerpt: _Excerpt, *, as_meant: bool) -> None:
    """Refuse to copy streams that browsers do not play, or do not show ``as_meant``."""
    codec, pixels = excerpt.video.codec_context.codec.canonical_name, excerpt.video.pix_fmt or "unknown"
    if pixels not in _PICTURES.get(codec, ()):
        raise MediaError(excerpt.path, f"{codec} {pixels} cannot be copied for browsers; {_ENCODE}")
    if as_meant and (what := for_other_screens(excerpt.video)):
        raise MediaError(excerpt.path, f"{what}, which browsers do not show correctly; {_ENCODE}")
    if excerpt.source.numbered or excerpt.source.sparse or excerpt.source.zero is None:
        raise MediaError(excerpt.path, f"cannot be copied, its pictures have no times; {_ENCODE}")
    if excerpt.sound is not None and not _copies(excerpt.sound):
        sound = excerpt.sound.codec_context.codec.canonical_name
        raise MediaError(excerpt.path, f"{sound} sound cannot be copied for browsers; {_ENCODE}")


def _packets(excerpt: _Excerpt) -> Iterator[Packet[Stream]]:
    """Packets of picture and sound in file order, up to the last that the span needs."""
    streams: list[Stream] = [excerpt.video, *([excerpt.sound] if excerpt.sound else [])]
    end = excerpt.end
    finished: set[int] = set()
    deferred: list[Packet[Stream]] = []  # pictures shown after the end, needed only if an earlier one follows
    last: int | None = None  # where pictures end by their packets
    for packet in excerpt.source.packets_with(excerpt.sound):
        if packet.pts is None:
            raise MediaError(excerpt.path, f"cannot be copied, time stamps are missing; {_ENCODE}")
        if packet.is_discard and excerpt.start <= packet.pts < end and packet.stream is excerpt.video:
            raise MediaError(excerpt.path, f"cannot be copied, its edit list leaves pictures out; {_ENCODE}")
        if packet.stream_index != excerpt.video.index:
            if packet.pts * packet.time_base < end * excerpt.source.tick:
                yield packet
            else:
                finished.add(packet.stream_index)
        elif packet.dts is not None and packet.dts >= end:
            finished.add(packet.stream_index)
        elif packet.pts >= end:
            deferred.append(packet)
        else:
            until = packet.pts + (packet.duration or excerpt.source.step)
            last = until if last is None else max(last, until)
            yield from deferred
            deferred.clear()
            yield packet
        if len(finished) == len(streams):
            break
    followed = deferred or excerpt.video.index in finished
    if followed and last is not None and (end - last) * excerpt.source.tick > _GAP:
        raise MediaError(excerpt.path, f"cannot be copied, its last picture outlasts its packet; {_ENCODE}")


def _run_up(
    excerpt: _Excerpt, packets: Iterator[Packet[Stream]], hide: bool
) -> tuple[list[Packet[Stream]], int, int]:
    """Packets from the last key frame before the start of the span on, the tick of the picture on screen at
    the start, and that of the key frame.

    The picture is known once a packet's decoding time is past it, since all later ones are shown later.
    """
    start, index = excerpt.start, excerpt.video.index
    held: list[Packet[Stream]] = []
    for packet in packets:
        is_picture = packet.stream_index == index
        if is_picture and packet.is_keyframe and packet.pts is not None and packet.pts <= start:
            since = packet.pts * packet.time_base
            held = [p for p in held if p.stream_index != index and (p.pts or 0) * p.time_base > since]
        held.append(packet)
        if is_picture and packet.dts is not None and packet.dts > start:
            break
    else:
        ends = [(p.pts or 0) + (p.duration or excerpt.source.step) for p in held if p.stream_index == index]
        pictures_end = max(ends, default=excerpt.start)
        excerpt.require_before(pictures_end)
        if hide and start >= pictures_end:
            raise MediaError(
                excerpt.path, f"cannot be copied, its last picture stays while there is sound; {_ENCODE}"
            )
    pictures = [p for p in held if p.stream_index == index]
    stamps = [p.pts for p in pictures if p.pts is not None and not p.is_discard]
    shown = [stamp for stamp in stamps if stamp <= start]
    if not shown and not excerpt.source.sought:
        shown = [min(stamps, default=start)]  # before the first picture there is none
    if not shown or not pictures[0].is_keyframe or pictures[0].pts is None:
        raise CannotPrune
    _fill_decoding_times(pictures, excerpt.source.step)
    return held, max(shown), pictures[0].pts


def _fill_decoding_times(pictures: list[Packet[Stream]], step: int) -> None:
    """Matroska leaves them out for the first pictures after a seek; a muxer wants them to rise."""
    known = next((n for n, p in enumerate(pictures) if p.dts is not None), len(pictures))
    base = pictures[known].dts if known < len(pictures) else min(p.pts or 0 for p in pictures)
    for number, packet in enumerate(pictures[:known]):
        packet.dts = (base or 0) - step * (known - number)


def _encode(excerpt: _Excerpt, draft: Path) -> None:
    pictures = without_fields(_pictures_of(excerpt))
    first, frame = next(pictures)
    first = excerpt.start if excerpt.begins_in_still(first) else first
    with new_mp4(draft) as target:
        scale = DisplayScaler(frame, pixel_aspect(excerpt.video))
        track = add_h264(target, excerpt.video.average_rate or Fraction(25), (scale.width, scale.height))
        track.codec_context.time_base = _TICK
        matrix = _say_colours(excerpt.video, track)
        streams: list[Iterator[Packet[Any]]] = [
            _encoded_pictures(excerpt, track, scale, matrix, chain([(first, frame)], pictures))
        ]
        if excerpt.sound is not None:
            streams.append(_encoded_audio(excerpt, target, first))
        for packet in heapq.merge(*streams, key=lambda p: (p.dts or 0) * p.time_base):
            if packet.stream is track:
                excerpt.progress(float((packet.pts or 0) * packet.time_base))
            target.mux(packet)
    assert excerpt.source.end is not None
    set_shown_duration(draft, min(excerpt.length(first), (excerpt.source.end - first) * excerpt.source.tick))


def _say_colours(video: VideoStream, track: VideoStream) -> int | None:
    """Write the colour properties of a clip as its video has them, since players guess missing ones.

    Returns the matrix of its colours, None for that of BT.601, which is not written.
    """
    given, made = video.codec_context, track.codec_context
    made.color_range = ColorRange.MPEG
    if Tone.of_stream(video):  # looked up for screens of BT.709
        made.colorspace = made.color_primaries = made.color_trc = BT709
        return BT709
    made.colorspace, made.color_primaries = given.colorspace, given.color_primaries
    made.color_trc = given.color_trc
    return None if given.colorspace == UNSPECIFIED_COLOURS else given.colorspace


def _pictures_of(excerpt: _Excerpt) -> Iterator[tuple[int, VideoFrame]]:
    """Pictures on screen in the span, with the tick since which each is; ``source.end`` ends the last."""
    source = excerpt.source
    packets = source.packets()
    if source.sought:
        packets = from_key_frame(packets, excerpt.start)
    elif source.zero is not None:
        before = round(_RUN_UP / source.tick) if source.sparse else 0
        packets = from_last_key_frame(packets, excerpt.start - before)
    shown: tuple[int, VideoFrame] | None = None
    end = excerpt.start
    for since, frame in in_order(source, packets):
        if source.zero is None:
            source.zero = since
        if shown is None and source.sought and since > excerpt.start:
            raise CannotPrune
        if shown is not None and since < shown[0]:
            continue  # its time has passed
        end = since + (frame.duration or source.step)
        # A picture stays until a later one; of several with one time stamp the last is seen.
        if shown is not None and since > max(shown[0], excerpt.start):
            yield shown
        if since >= excerpt.end and shown is not None:
            source.end = since
            return
        shown = since, frame
    source.end = excerpt.require_before(end)
    if shown is None:
        raise CannotPrune
    yield shown


def _encoded_pictures(
    excerpt: _Excerpt,
    track: VideoStream,
    scale: DisplayScaler,
    matrix: int | None,
    pictures: Iterator[tuple[int, VideoFrame]],
) -> Iterator[Packet[VideoStream]]:
    to_yuv = VideoReformatter()
    durations: dict[int | None, int] = {}
    tick = excerpt.source.tick / _TICK
    current = next(pictures, None)
    first = current[0] if current else 0
    while current is not None:
        since, frame = current
        current = next(pictures, None)
        until = current[0] if current else excerpt.source.end or since
        image = VideoFrame.from_ndarray(scale(frame))
        picture = to_yuv.reformat(image, format="yuv420p", dst_colorspace=matrix, threads=1)
        picture.pts, picture.time_base = round((since - first) * tick), _TICK
        durations[picture.pts] = max(1, round((until - since) * tick))
        for packet in track.encode(picture):
            packet.duration = durations.pop(packet.pts, 0)
            yield packet
    for packet in track.encode(None):
        packet.duration = durations.pop(packet.pts, 0)
        yield packet


def _encoded_audio(
    excerpt: _Excerpt, target: av.container.OutputContainer, first: int
) -> Iterator[Packet[AudioStream]]:
    """Sound from a tick to the end of the span, encoded for a new track; read beside the pictures."""
    assert excerpt.sound is not None
    channels = 1 if excerpt.sound.codec_context.layout.nb_channels == 1 else 2
    track = target.add_stream("aac", rate=_SOUND_RATE, layout="mono" if channels == 1 else "stereo")
    start = float((first - (excerpt.source.zero or 0)) * excerpt.source.tick)
    most = math.ceil(excerpt.length(first) * _SOUND_RATE)
    heard = sound_up_to(
        most, excerpt.path, rate=_SOUND_RATE, start=start, channels=channels, track=excerpt.track
    )
    return encoded_sound(track, heard)


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
    those of :func:`moviola.media.cut`.
    """
    whole = Span(0, LONGEST_VIDEO)
    if probe(path).video_codec == "h264":
        try:
            cut(path, whole, out, mode="remux", track=track, progress=progress)
            return
        except MediaError:
            pass
    cut(path, whole, out, mode="encode", track=track, progress=progress)
