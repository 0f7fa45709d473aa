"""What a file says of itself, read at one opening: when, where and with what it was taken, what it holds,
what it is about. Nothing is decoded.

Facts about the whole film (title, keywords, description, people) are kept apart from the titles of
chapters, each of which is about a stretch of it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import av
from av.container import InputContainer

from moviola.media.capture import CAPTURE_TAGS, capture_of
from moviola.media.container import open_container, video_stream
from moviola.media.holdings import short, stream_holdings
from moviola.media.live_photos import still_of
from moviola.media.measured import Measured, read_measured
from moviola.media.subtitles.captions import has_captions
from moviola.media.subtitles.values import Fix
from moviola.types import Capture, Cue, Holding, Saying

__all__ = ["Facts", "read_facts"]

# Tags on how a file was written, or that are read elsewhere.
_TECHNICAL = frozenset({
    "major_brand", "minor_version", "compatible_brands", "encoder", "encoded_by", "encoding_tool",
    "handler_name", "vendor_id", "language", "duration", "timecode", "creation_time", "software", "bps",
    "number_of_frames", "number_of_bytes", "rotate", "isom", "hw", "filesize", "audiosize", "videosize",
    "metadatacreator",
})  # fmt: skip
# The same in MXF: what wrote it, and identifiers.
_WRITER = re.compile(r"(?:product|toolkit|application|company|generation)_.*|(?:.*_)?(?:uid|umid|ul)")
# Kinds of what is said of a film, by names of tags in small letters, without what stands before the last
# point or slash, and without a language.
_SAID = {
    "title": ("title", "displayname", "name"),
    "keywords": ("keywords", "keyword", "tags", "subject", "category", "genre", "mood"),
    "description": (
        "description", "comment", "comments", "synopsis", "summary", "longdesc", "information", "info",
        "abstract", "subtitle", "lyrics", "subtitledescription", "caption", "note", "notes",
    ),
    "people": (
        "artist", "album_artist", "albumartist", "author", "composer", "performer", "actor", "actors",
        "director", "producer", "writer", "people", "narrator",
    ),
    "series": ("album", "show", "series", "episode", "grouping", "collection"),
}  # fmt: skip
_KINDS = {name: kind for kind, names in _SAID.items() for name in names}
# Letters of a text that are searched: longer ones are no descriptions.
_LONGEST = 20_000
_LANGUAGE = re.compile(r"-[a-z]{2,3}(?:-[a-z]{2,4})?$")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a file says of itself.

    Attributes:
        capture: when, where and with what it was taken.
        holdings: its streams in their order, and what is no stream.
        chapters: titles of its chapters, in the time of its pictures; the end of one that has none is that of
            the next one's beginning, or infinite.
        sayings: what it says of the film as a whole.
        live: whether it is the film of a Live Photo.
        captioned: whether its pictures carry captions.
        fixes: what its camera noted second by second, in streams and boxes that are no subtitles.
    """

    capture: Capture
    holdings: tuple[Holding, ...]
    chapters: tuple[Cue, ...]
    sayings: tuple[Saying, ...]
    live: bool
    captioned: bool
    fixes: tuple[Fix, ...] = ()

    @property
    def has_text(self) -> bool:
        """Whether there are subtitles inside it that can be read."""
        return self.captioned or any(one.held_as == "subtitles" for one in self.holdings)


def read_facts(path: str | Path) -> Facts:
    """Read what a video file says of itself. Errors as in :func:`moviola.media.probe`."""
    path = Path(path)
    with open_container(path) as container:
        tags = {name: value.strip() for name, value in _tags(container).items() if value.strip()}
        small = {name.lower(): value for name, value in reversed(tags.items())}
        of_pictures = {n.lower(): v.strip() for s in container.streams.video for n, v in s.metadata.items()}
        chapters = tuple(_chapters(container, path))
        measured = read_measured(container, path)
        captioned = has_captions(container, video_stream(container, path))
        seconds = container.duration / av.time_base if container.duration else None
        still = still_of(path, small, seconds)
        words = [*_words(tags)]
        return Facts(
            capture=capture_of({**of_pictures, **small}, path, measured),
            holdings=(
                *stream_holdings(container, path, frozenset(one.stream for one in measured)),
                *(_held(one) for one in measured if one.stream is None),
                *(held for _, held in chapters),
                *(held for _, held in words),
                *([Holding("captions", "CEA-608")] if captioned else []),
                *([] if still is None else [Holding("live photo", short(still) or "by its tag")]),
            ),
            chapters=tuple(cue for cue, _ in chapters if cue),
            sayings=tuple(saying for saying, _ in words if saying),
            live=still is not None,
            captioned=captioned,
            fixes=tuple(chain.from_iterable(one.fixes for one in measured)),
        )


def _held(measured: Measured) -> Holding:
    """The boxes of a dash camera."""
    return Holding("measurements" if measured.fixes else "data", "boxes of a dash camera (gps)")


def _tags(container: InputContainer) -> Mapping[str, str]:
    """The tags of a file; Ogg has them with its streams."""
    if container.format.name != "ogg":
        return container.metadata
    return {n: v for stream in reversed(container.streams) for n, v in stream.metadata.items()}


def _chapters(container: InputContainer, path: Path) -> Iterator[tuple[Cue | None, Holding]]:
    """Chapters in order of time; those without a title are held, and say nothing."""
    stream = video_stream(container, path)
    zero = float((stream.start_time or 0) * (stream.time_base or 0))
    chapters = sorted(container.chapters(), key=lambda one: (_second(one, "start"), one["id"]))
    begins = [_second(one, "start") - zero for one in chapters]
    for number, (chapter, start) in enumerate(zip(chapters, begins, strict=True), 1):
        title = {n.lower(): v.strip() for n, v in chapter["metadata"].items()}.get("title", "")
        if not title:
            yield None, Holding("other words", f"chapter {number}, without a title")
            continue
        end = _second(chapter, "end") - zero
        if end <= start:
            end = _after(begins, start)
        shown = max(0.0, start)
        cue = Cue(shown, end, title, "chapter") if end > shown else None
        yield cue, Holding("chapters" if cue else "other words", f"chapter {number}, {short(title)}")


def _after(begins: Sequence[float], start: float) -> float:
    """The first of some rising seconds after one; infinite if there is none."""
    place = bisect_right(begins, start)
    return begins[place] if place < len(begins) else math.inf


def _second(chapter: Mapping[str, Any], name: str) -> float:
    return float(chapter[name] * chapter["time_base"])


def _words(tags: Mapping[str, str]) -> Iterator[tuple[Saying | None, Holding]]:
    """Tags with words, those of a known kind as sayings; each text once."""
    said: set[str] = set()
    for name, value in tags.items():
        if name.lower() in _TECHNICAL | CAPTURE_TAGS or _WRITER.fullmatch(name.lower()):
            continue
        about = f"{short(name)} {short(value)}"
        kind = _KINDS.get(_LANGUAGE.sub("", re.split(r"[./:]", name.lower())[-1]))
        if kind is None or not any(map(str.isalpha, value)):
            yield None, Holding("other words", about)
            continue
        yield None if value in said else Saying(kind, value[:_LONGEST]), Holding("words", about)
        if rest := len(value[_LONGEST:]):
            yield None, Holding("other words", f"{short(name)}, {rest} further letters")
        said.add(value)
