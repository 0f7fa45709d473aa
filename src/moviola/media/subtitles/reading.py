"""Reading a subtitle file: its letters, its format, and what in it is no speech."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

from moviola.errors import UnreadableMedia
from moviola.files.regular import read_regular
from moviola.media.container import regular_file
from moviola.media.subtitles.blocks import read_subrip, read_webvtt
from moviola.media.subtitles.encodings import decode
from moviola.media.subtitles.languages import languages_in
from moviola.media.subtitles.markup import read_sami, read_timed_text
from moviola.media.subtitles.plain_lines import (
    read_lrc,
    read_microdvd,
    read_mpl2,
    read_subviewer,
    read_tmplayer,
)
from moviola.media.subtitles.repeats import without_repeats
from moviola.media.subtitles.substation import read_substation
from moviola.media.subtitles.telemetry import split_telemetry
from moviola.media.subtitles.values import Line, Notes, Subtitles, cues_of, in_order

__all__ = ["FORMATS", "SUBTITLE_SUFFIXES", "read_subtitles"]

Reader = Callable[[str, Notes], Iterable[Line]]

FORMATS: dict[str, tuple[Reader, ...]] = {
    ".srt": (read_subrip,),
    ".vtt": (read_webvtt,),
    ".ass": (read_substation,),
    ".ssa": (read_substation,),
    ".ttml": (read_timed_text,),
    ".dfxp": (read_timed_text,),
    ".smi": (read_sami,),
    ".sami": (read_sami,),
    ".sbv": (read_subviewer,),
    ".sub": (read_subviewer, read_mpl2, read_tmplayer),
    ".lrc": (read_lrc,),
}
"""Readers of subtitle files by suffix, the likeliest first. MicroDVD counts pictures, and is read besides."""

SUBTITLE_SUFFIXES = tuple(FORMATS)
"""Suffixes of subtitle files, in lower case with the dot."""

# Two days of talk with styles and positions take a tenth of it; larger files are something else.
_MAX_BYTES = 64 << 20
# What pads files, ends those of DOS, and is no letter or space of a text.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f]+")
# Names in a folder that are looked at for their languages.
_NEIGHBOURS = 2000
# A film on DVD, whose subtitles are pictures: `.sub` is the name of these too.
_PICTURES = (b"\x00\x00\x01\xba", b"PG")


def read_subtitles(
    path: Path, *, encoding: str | None = None, frame_rate: float | None = None, follow: bool = True
) -> Subtitles:
    """Read a subtitle file: SubRip, WebVTT, SubStation Alpha, TTML, SAMI, SubViewer, MicroDVD, MPL2, TMPlayer
    or LRC. It is read as its suffix says, and as another of them where that gives no cue. Each cue is parsed
    alone, so that a damaged one does not affect others.

    Cues are without tags, each once though captions roll, signs move and songs are drawn syllable by
    syllable; what cameras note (``fixes``) is none. All else that was met is in ``notices``.

    Args:
        encoding: encoding of a file that is not Unicode; None: the likeliest by its letters and by the
            languages in its name and in those beside it, which is named in ``encoding`` and in the notices.
        frame_rate: pictures a second of the film, for MicroDVD without its own.
        follow: the file may be a link to one.

    Raises:
        UnreadableMedia: no such file, no regular file, another suffix, more than 64 MiB, an unknown
            encoding, or nothing readable.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise UnreadableMedia(path, f"unknown subtitle format; give one of {', '.join(FORMATS)}")
    size = regular_file(path).st_size
    if size > _MAX_BYTES:
        raise UnreadableMedia(path, f"{size:,} bytes; subtitles have at most {_MAX_BYTES:,}")
    try:
        data = read_regular(path, _MAX_BYTES, follow=follow)
    except OSError as error:
        raise UnreadableMedia(path, f"cannot be read ({error.strerror})") from error
    if data.startswith(_PICTURES):
        raise UnreadableMedia(path, "pictures of text, no letters (VobSub or PGS); give a file of text")
    decoded = decode(data, encoding=encoding, hints=lambda: _languages_by_names(path))
    if decoded is None:
        remedy = "name it with --subtitle-encoding, or save it as UTF-8"
        raise UnreadableMedia(path, f"its encoding cannot be recognised; {remedy}")
    lines, notes = _parsed(_CONTROLS.sub("", decoded.text), kind, frame_rate)
    if decoded.chosen:
        notes.add("encoding", decoded.encoding)
    if decoded.lost:
        notes.add("letters", "", decoded.lost)
    said, fixes = split_telemetry(lines, notes)
    cues = cues_of(without_repeats(said, notes))
    if not cues and not notes.counts["telemetry"]:
        raise UnreadableMedia(path, _why_none(notes))
    return Subtitles(cues, notes.notices(), decoded.encoding, fixes)


def _languages_by_names(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Languages in the name of a file, and in those of its neighbours and its folder."""
    named = languages_in(path.stem)
    beside = languages_in(path.parent.name)
    with suppress(OSError), os.scandir(path.parent) as entries:
        names = islice((entry.name for entry in entries), _NEIGHBOURS)
        others = (Path(name) for name in names if name != path.name)
        beside |= {
            one for other in others if other.suffix.lower() in FORMATS for one in languages_in(other.stem)
        }
    return named, beside


def _parsed(text: str, kind: str, frame_rate: float | None) -> tuple[Sequence[Line], Notes]:
    """Lines by a format, in order of time; where it gives none, by the first of the others that does."""
    for end in ("\r\r\n", "\r\n", "\r"):  # the first of a program that converted them twice
        text = text.replace(end, "\n")
    first: Notes | None = None
    for read in _readers(kind, frame_rate):
        notes = Notes()
        if lines := in_order(read(text, notes)):
            return lines, notes
        first = first or notes
    assert first is not None
    return [], first


def _readers(kind: str, frame_rate: float | None) -> list[Reader]:
    """Readers of a file in the order in which they are tried."""
    own = FORMATS[kind]
    by_picture: Reader = partial(read_microdvd, rate=frame_rate)
    every = dict.fromkeys(reader for readers in FORMATS.values() for reader in readers)
    others = [reader for reader in every if reader not in own]
    return [by_picture, *own, *others] if kind == ".sub" else [*own, *others, by_picture]


def _why_none(notes: Notes) -> str:
    if notes.counts["no rate"]:
        return "it counts pictures (MicroDVD), and the rate of its film is not known; save it as SubRip"
    damaged = f" ({notes.counts['damaged']} damaged)" if notes.counts["damaged"] else ""
    return f"no subtitle in it can be read{damaged}"
