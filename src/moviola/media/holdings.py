"""The streams of a file, and what is taken of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction
from pathlib import Path

from av.container import InputContainer
from av.stream import AttachmentStream, DataStream, Disposition, Stream

from moviola.media.container import video_stream
from moviola.media.tracks import boxed_text, chosen_track, text_streams
from moviola.types import HeldAs, Holding

__all__ = ["short", "stream_holdings"]

_PICTURED = frozenset({"dvd_subtitle", "dvb_subtitle", "hdmv_pgs_subtitle", "xsub"})
# Letters of a tag that are shown.
_SHOWN = 80


def stream_holdings(
    container: InputContainer, path: Path, measured: Collection[int | None]
) -> Iterator[Holding]:
    """The streams of an open file, in their order; ``measured`` are numbers of those whose measurements are
    read. Errors as in :func:`moviola.media.probe`.
    """
    film, sound = video_stream(container, path), chosen_track(container, path)
    texts, boxed = {stream.index for stream in text_streams(container)}, boxed_text(container)
    chapters = {round(float(one["start"] * (one["time_base"] or 0)), 3) for one in container.chapters()}
    for stream in container.streams:
        held_as: HeldAs = "data"
        if stream is film:
            held_as = "film"
        elif stream is sound:
            held_as = "sound"
        elif stream.type == "video":
            held_as = "cover" if stream.disposition & Disposition.attached_pic else "other pictures"
        elif stream.type == "audio":
            held_as = "other sound"
        elif stream.index in boxed or stream.type == "subtitle":
            held_as = "subtitles" if stream.index in texts else "unread text"
            if _codec(stream) in _PICTURED:
                held_as = "pictures of text"
        elif stream.type == "attachment":
            held_as = "attachment"
        elif any(name.lower() == "timecode" for name in stream.metadata):
            held_as = "timecode"
        elif stream.index in measured:
            held_as = "measurements"
        elif chapters and _begins(stream) == chapters:  # MP4 has their titles in a track
            held_as = "chapters"
        yield Holding(held_as, _said_of(stream, boxed.get(stream.index, "")), stream.index)


def _begins(stream: Stream) -> set[float]:
    """Seconds at which the packets of a stream begin, by the file's index."""
    tick = stream.time_base or Fraction(0)
    return {round(float(entry.timestamp * tick), 3) for entry in stream.index_entries}


def _said_of(stream: Stream, boxed: str) -> str:
    tags = {name.lower(): value for name, value in stream.metadata.items()}
    title = tags.get("title") or tags.get("filename") or ""
    if isinstance(stream, DataStream) and not boxed:  # cameras name their measurements there
        title = title or tags.get("handler_name", "")
    said = ("subtitle" if boxed else stream.type, boxed or _codec(stream), tags.get("language", ""), title)
    return ", ".join(short(part) for part in said if part and part != "und")


def _codec(stream: Stream) -> str:
    if isinstance(stream, AttachmentStream):
        return stream.mimetype or ""
    if isinstance(stream, DataStream):
        return stream.name or ""
    return stream.codec_context.codec.canonical_name if stream.codec_context else "unknown"


def short(text: str) -> str:
    """A text on one line, of as many letters as are shown."""
    shown = " ".join(text.split())
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
