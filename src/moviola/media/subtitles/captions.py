"""Captions inside pictures (CEA-608, as ATSC A/53 part 4 carries it in MPEG-2, H.264 and H.265).

Those of CEA-708 beside them say the same, and are not read; where they are alone, that is noted.

Each picture has some bytes of them, in its own data; they count in the order in which pictures are shown.
libav reads what they say, and not when: a text ends where it gives it out, and begins where it shows it, or
with its first letter since the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice

import av
from av.container import InputContainer
from av.packet import Packet
from av.subtitles.codeccontext import SubtitleCodecContext
from av.subtitles.subtitle import AssSubtitle, SubtitleSet
from av.video.stream import VideoStream

from moviola.media.subtitles.values import Line, Notes
from moviola.media.subtitles.visible import of_commands

__all__ = ["captions_of", "has_captions", "read_captions"]

_CODECS = frozenset({"mpeg2video", "mpeg1video", "h264", "hevc"})
# Identifiers of ATSC in user data of MPEG-2, and in messages of H.264 and H.265, and the kind of data behind.
_MARKS = (b"\x00\x00\x01\xb2GA94\x03", b"\xb5\x00\x31GA94\x03")
# Packets by which it is seen whether a film has captions: a programme has some in every picture.
_SAMPLE = 25
# Bytes at the beginning of a picture among which its messages are.
_HEAD = 4096
_TICK = Fraction(1, 1000)


def has_captions(container: InputContainer, film: VideoStream) -> bool:
    """Whether pictures at the beginning of an open file carry captions; they are read from where it
    stands.
    """
    if film.codec_context.codec.canonical_name not in _CODECS:
        return False
    return any(_bytes_in(packet) for packet in islice(container.demux(film), _SAMPLE))


def read_captions(container: InputContainer, film: VideoStream, zero: float, notes: Notes) -> list[Line]:
    """The captions of a film as lines, in seconds after ``zero``; reads all packets from where the file
    stands.
    """
    found = (
        (float(packet.pts * packet.time_base) - zero, own)
        for packet in container.demux(film)
        if packet.pts is not None and (own := _bytes_in(packet))
    )
    return captions_of(found, notes)


def captions_of(carried: Iterable[tuple[float, bytes]], notes: Notes) -> list[Line]:
    """The captions as lines of bytes that pictures, or a track beside them, carry, in threes, each with its
    second.
    """
    pairs = sorted(carried)
    ended, shown = (_decoder(real_time=real_time) for real_time in (False, True))
    lines: list[Line] = []
    known: dict[str, float] = {}
    begun: float | None = None
    for second, found in pairs:
        now = [*_texts(shown, found, second)]
        known |= dict.fromkeys(filter(None, now), second)
        for text in _texts(ended, found, second):
            start = known.pop(text, begun if begun is not None else second)
            if text:
                lines.append(Line(max(0.0, start), second, text))
            begun = None if "" in now else second  # what rolls goes on, unless it was erased
        if begun is None and _has_letters(found):
            begun = second
    if pairs and known and (text := next(reversed(known))):  # is shown to the end
        lines.append(Line(max(0.0, known[text]), pairs[-1][0] + 1.0, text))
    lines = [line for line in lines if line.end > line.start]
    if not lines and (others := sum(_others(found) for _, found in pairs)):
        notes.add("other captions", count=others)
    return lines


def _others(found: bytes) -> int:
    """The number of packets of CEA-708 that begin here and hold something: behind the head of a packet is
    that of a block, with its length.
    """
    triples = (found[at : at + 3] for at in range(0, len(found) - 2, 3))
    return sum(kind & 7 == 7 and bool(length & 31) for kind, _, length in triples)


def _has_letters(found: bytes) -> bool:
    """Whether there is a pair that is no command, whose first byte would be low."""
    return any(found[at + 1] & 0x7F >= 0x20 for at in range(0, len(found) - 2, 3))


def _decoder(*, real_time: bool) -> SubtitleCodecContext:
    context = av.CodecContext.create("cc_dec", "r")
    assert isinstance(context, SubtitleCodecContext)
    context.options = {"real_time": "1" if real_time else "0", "real_time_latency_msec": "0"}
    return context


def _texts(decoder: SubtitleCodecContext, found: bytes, second: float) -> Iterator[str]:
    """The texts that a decoder gives out after these bytes."""
    packet = Packet(found)
    packet.pts = packet.dts = round(second * 1000)
    packet.time_base, packet.duration = _TICK, 0
    subtitles = decoder.decode2(packet)
    for subtitle in subtitles if isinstance(subtitles, SubtitleSet) else ():
        if isinstance(subtitle, AssSubtitle):
            yield of_commands(subtitle.ass.decode(errors="replace").split(",", 8)[-1])


def _bytes_in(packet: Packet[VideoStream]) -> bytes:
    """The bytes of captions, in threes, of the picture of a packet; none without."""
    data = bytes(memoryview(packet)[:_HEAD])
    for mark in _MARKS:
        if (at := data.find(mark)) >= 0:
            # A null byte of a message may be followed by one that prevents a false beginning.
            body = data[at + len(mark) : at + len(mark) + 200].replace(b"\0\0\3", b"\0\0")
            count = body[0] & 31 if body and body[0] & 64 else 0
            triples = (body[2 + 3 * n : 5 + 3 * n] for n in range(count))
            return b"".join(one for one in triples if len(one) == 3 and one[0] & 4)
    return b""
