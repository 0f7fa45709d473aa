"""What a file holds beside the film, and what of it is used: its streams, attachments, chapters and tags."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from av.container import InputContainer
from av.stream import AttachmentStream, DataStream, Disposition, Stream

from moviola.media.capture import CAPTURE_TAGS
from moviola.media.container import open_container, video_stream
from moviola.media.tracks import chosen_track, read_tracks, text_streams
from moviola.types import HeldAs, Holding

__all__ = ["read_holdings"]

# Tags on how a file was written, or that are read elsewhere.
_TECHNICAL = frozenset({
    "major_brand", "minor_version", "compatible_brands", "encoder", "encoded_by", "encoding_tool",
    "handler_name", "vendor_id", "language", "duration", "timecode", "creation_time", "software", "bps",
    "number_of_frames", "number_of_bytes", "rotate", "isom", "hw", "filesize", "audiosize", "videosize",
    "metadatacreator",
})  # fmt: skip
_PICTURED = frozenset({"dvd_subtitle", "dvb_subtitle", "hdmv_pgs_subtitle", "xsub"})
# Letters of a tag that are shown.
_SHOWN = 80


def read_holdings(path: str | Path, *, beside: bool = False) -> tuple[Holding, ...]:
    """What a video file holds, streams in their order first; nothing is decoded.

    ``beside``: cues come from a subtitle file, so that text in the file is not read. Errors as of
    :func:`moviola.media.probe`.
    """
    path = Path(path)
    with open_container(path) as container:
        return (*_streams(container, path, beside), *_chapters(container), *_words(container))


def _streams(container: InputContainer, path: Path, beside: bool) -> Iterator[Holding]:
    film, sound = video_stream(container, path), chosen_track(container, path)
    texts: dict[int, HeldAs] = dict.fromkeys((s.index for s in text_streams(container)), "other text")
    texts |= dict.fromkeys((s.index for s in read_tracks(container)), "beside" if beside else "subtitles")
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
        elif stream.type == "subtitle":
            held_as = texts.get(stream.index, "unread text")
            if _codec(stream) in _PICTURED:
                held_as = "pictures of text"
        elif stream.type == "attachment":
            held_as = "attachment"
        elif any(name.lower() == "timecode" for name in stream.metadata):
            held_as = "timecode"
        yield Holding(held_as, _said_of(stream), stream.index)


def _said_of(stream: Stream) -> str:
    tags = {name.lower(): value for name, value in stream.metadata.items()}
    title = tags.get("title") or tags.get("filename") or ""
    if isinstance(stream, DataStream):  # cameras name their measurements there
        title = title or tags.get("handler_name", "")
    said = (stream.type, _codec(stream), tags.get("language", ""), title)
    return ", ".join(_short(part) for part in said if part and part != "und")


def _codec(stream: Stream) -> str:
    if isinstance(stream, AttachmentStream):
        return stream.mimetype or ""
    if isinstance(stream, DataStream):
        return stream.name or ""
    return stream.codec_context.codec.canonical_name if stream.codec_context else "unknown"


def _chapters(container: InputContainer) -> Iterator[Holding]:
    for number, chapter in enumerate(container.chapters(), 1):
        tags = {name.lower(): value for name, value in chapter["metadata"].items()}
        yield Holding("chapters", f"chapter {number}, {_short(tags.get('title') or 'without a title')}")


def _words(container: InputContainer) -> Iterator[Holding]:
    for name, value in container.metadata.items():
        if value.strip() and name.lower() not in _TECHNICAL | CAPTURE_TAGS:
            yield Holding("words", f"{_short(name)} {_short(value)}")


def _short(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
