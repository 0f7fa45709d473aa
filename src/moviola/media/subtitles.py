"""Subtitles as timed text: from files beside a video and from streams inside it."""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, pairwise, takewhile
from pathlib import Path

import pysubs2
from av.packet import Packet
from av.stream import Disposition
from av.subtitles.stream import SubtitleStream
from av.subtitles.subtitle import AssSubtitle

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.files.names import spellings
from moviola.files.regular import read_regular
from moviola.files.writing import draft_of
from moviola.media.container import DAMAGE, VIDEO_SUFFIXES, open_container, regular_file, video_stream
from moviola.media.probe import TEXT_SUBTITLES
from moviola.types import Cue

__all__ = [
    "SUBTITLE_SUFFIXES", "Subtitles", "embedded_subtitles", "read_subtitles", "sidecars", "write_subtitles",
]  # fmt: skip

SUBTITLE_SUFFIXES = (".srt", ".vtt", ".ass")
"""Suffixes of subtitle files, in lower case with the dot."""

# Two days of talk with styles and positions take a tenth of it; larger files are something else.
_MAX_BYTES = 64 << 20
# Between the stem and the suffix: a language, or a kind of subtitles (`film.pt-BR.forced.srt`).
_TAGS = re.compile(r"(\.[A-Za-z]{2,8}([-_][A-Za-z0-9]{2,8})*){1,2}")
# Commands of SubStation Alpha; those that begin or end a drawing (`\p1`, `\p0`), and that reset the style.
_COMMANDS = re.compile(r"\{[^}]*\}")
_DRAWING = re.compile(r"\\(?:p([0-9])|r([a-zA-Z_0-9 ]*))")
# What words of Windows-1252 do not have, and nearly all of other scripts become in it.
_FOREIGN = re.compile(r"[^\x00-\x7f]{4}")
_OTHER_SCRIPTS = ["cp1251", "cp1253", "cp1255", "cp1256", "cp874", "cp932", "cp949", "gb18030", "big5"]
# Bytes beyond ASCII that it takes to know encodings: by fewer, Japanese is taken for Korean.
_ENOUGH = 150
# Without a byte order mark; all formats begin with ASCII.
_UTF_16 = {"utf-16-le": re.compile(rb"([^\0]\0){2}"), "utf-16-be": re.compile(rb"(\0[^\0]){2}")}
_TIMES = re.compile(r"[ \t]*\d[\d:.,]*[ \t]*-->")
_BLANK_FIRST = re.compile(rf"^({_TIMES.pattern}.*\n)[ \t]+\n", re.MULTILINE)
# A backslash before a letter breaks a line in SubStation Alpha, unless an invisible letter stands between.
_BREAK, _JOINER = re.compile(r"\\(?=[Nnh])"), "\u2060"
_INLINE_TIME = re.compile(r"<(\d+:)?\d\d:\d\d\.\d{3}>")
_ASS_EVENTS = "[Script Info]\nScriptType: v4.00+\n\n[Events]\n"
_ASS_FORMAT = "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text"


@dataclass(frozen=True, slots=True)
class Subtitles:
    """Cues in order of time, and the number of damaged ones that were ``skipped``."""

    cues: tuple[Cue, ...]
    skipped: int = 0


def sidecars(path: Path, names: Sequence[str] | None = None) -> tuple[Path, ...]:
    """Subtitle files beside a video: the same stem, perhaps with a language (``film.en.srt``), accents in
    either form of Unicode, sorted.
    ``names`` are all names in its folder, sorted, where they are known; else the folder is read.
    """
    path = Path(path)
    if names is None:
        names = sorted(other.name for other in path.parent.iterdir())
    beside = chain.from_iterable(_beside(path.stem, stem, names) for stem in spellings(path.stem))
    return tuple(path.parent / name for name in sorted(beside))


def _beside(of: str, stem: str, names: Sequence[str]) -> Iterator[Path]:
    """Names of subtitle files of a video whose stem is ``of``, where they spell it as ``stem``."""
    first = bisect_left(names, stem)
    alike = list(takewhile(lambda name: name.startswith(stem), islice(names, first, None)))
    found = [Path(name) for name in alike if name.lower().endswith(SUBTITLE_SUFFIXES)]
    if not found:
        return
    videos = {Path(name).stem for name in alike if Path(name).suffix.lower() in VIDEO_SUFFIXES}
    if stem != of and stem in videos:  # a twin, with subtitles of its own
        return
    for other in found:
        tags = other.stem[len(stem) :]
        if not tags or (_TAGS.fullmatch(tags) and other.stem not in videos):
            yield other


def read_subtitles(path: Path, *, follow: bool = True) -> Subtitles:
    """Read a subtitle file: SubRip, WebVTT or Advanced SubStation Alpha; without tags. It is read as its
    suffix says, and as another of them where that gives no cue.

    Encodings: UTF-8 and UTF-16 with or without byte order mark, else Windows-1252, else Latin-1; where
    that gives no words, the likeliest of those in use for Cyrillic, Greek, Hebrew, Arabic, Thai, Japanese,
    Korean and Chinese. Each cue is parsed alone, so that a damaged one does not affect others. ``follow``:
    the file may be a link to one.

    Raises:
        UnreadableMedia: no such file, no regular file, another suffix, more than 64 MiB, an unknown
            encoding, or no readable cue.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in SUBTITLE_SUFFIXES:
        raise UnreadableMedia(path, f"unknown subtitle format; give one of {', '.join(SUBTITLE_SUFFIXES)}")
    size = regular_file(path).st_size
    if size > _MAX_BYTES:
        raise UnreadableMedia(path, f"{size:,} bytes; subtitles have at most {_MAX_BYTES:,}")
    try:
        data = read_regular(path, _MAX_BYTES, follow=follow)
    except OSError as error:
        raise UnreadableMedia(path, f"cannot be read ({error.strerror})") from error
    text, guessed = _decode_text(data)
    subtitles = _parsed(text, kind)
    if guessed and 2 * sum(bool(_FOREIGN.search(cue.text)) for cue in subtitles.cues) > len(subtitles.cues):
        subtitles = _parsed(_of_other_script(path, data), kind)
    if not subtitles.cues:
        damaged = f" ({subtitles.skipped} damaged)" if subtitles.skipped else ""
        raise UnreadableMedia(path, f"no subtitle in it can be read{damaged}")
    return subtitles


def _parsed(text: str, kind: str) -> Subtitles:
    """The cues by a format; where that gives none, by the first of the others that does."""
    for end in ("\r\r\n", "\r\n", "\r"):  # the first of a program that converted them twice
        text = text.replace(end, "\n")
    formats = dict.fromkeys((kind, *SUBTITLE_SUFFIXES))
    read = (_sorted_cues(_ass(text) if one == ".ass" else _blocks(text, one[1:])) for one in formats)
    first = next(read)
    return first if first.cues else next((other for other in read if other.cues), first)


def write_subtitles(path: str | Path, cues: Iterable[Cue]) -> None:
    """Write cues, in any order, as a subtitle file that appears complete or not at all: SubRip, WebVTT or
    Advanced SubStation Alpha, by its suffix; times are rounded to the format's precision, and a cue lasts one
    step of it at least, since players drop those without a duration.

    Raises:
        InvalidValue: another suffix, or a place that cannot be written.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in SUBTITLE_SUFFIXES:
        raise InvalidValue(f"{path}: unknown subtitle format; give one of {', '.join(SUBTITLE_SUFFIXES)}")
    step = 10 if kind == ".ass" else 1  # milliseconds
    file = pysubs2.SSAFile()
    for cue in sorted(cues, key=lambda cue: (cue.start, cue.end)):
        start, end = (round(time * 1000 / step) * step for time in (cue.start, cue.end))
        event = pysubs2.SSAEvent(start=start, end=max(end, start + step))
        text = cue.text.replace("{", "(").replace("}", ")")  # braces would hold commands
        text = _BREAK.sub(rf"\\{_JOINER}", text)
        event.plaintext = html.escape(text, quote=False) if kind == ".vtt" else text
        file.append(event)
    with draft_of(path) as draft:
        draft.write_text(file.to_string(kind[1:]), encoding="utf-8")


def embedded_subtitles(path: Path, index: int | None = None) -> Subtitles:
    """Text subtitles inside a video file, in the time of its pictures; none if no such stream carries text.

    ``index`` is that of a :class:`~moviola.media.SubtitleStream`; None: the first of text, one of foreign
    lines alone (``forced``) only if there is no other. Errors as of
    :func:`~moviola.media.probe`.
    """
    with open_container(path) as container:
        video = video_stream(container, path)
        assert video.time_base is not None
        zero = float((video.start_time or 0) * video.time_base)
        chosen = [
            stream
            for stream in container.streams.subtitles
            if stream.codec_context is not None
            and stream.codec_context.codec.canonical_name in TEXT_SUBTITLES
            and index in (None, stream.index)
        ]
        if not chosen:
            return Subtitles(())
        track = min(chosen, key=lambda stream: bool(stream.disposition & Disposition.forced))
        cues: list[Cue | None] = []
        try:
            for packet in container.demux(track):
                cues.extend(_cues_of_packet(packet, zero))
        except DAMAGE:
            cues.append(None)
        return _sorted_cues(cues)


def _cues_of_packet(packet: Packet[SubtitleStream], zero: float) -> Iterator[Cue | None]:
    """Cues in a packet. Players show text while its packet lasts, so the times are the packet's."""
    if packet.pts is None or not packet.size:
        return
    start = float(packet.pts * packet.time_base) - zero
    end = start + float((packet.duration or 0) * packet.time_base)
    try:
        shown = packet.decode()
    except DAMAGE:
        yield None
        return
    for subtitle in shown:
        said = subtitle.dialogue.decode(errors="replace") if isinstance(subtitle, AssSubtitle) else ""
        if text := _shown_text(said):
            yield Cue(max(0.0, start), end, text) if end > max(0.0, start) else None


def _sorted_cues(found: Iterable[Cue | None]) -> Subtitles:
    found = list(found)
    cues = sorted((cue for cue in found if cue is not None), key=lambda cue: (cue.start, cue.end))
    return Subtitles(tuple(cues), sum(cue is None for cue in found))


def _decode_text(data: bytes) -> tuple[str, bool]:
    """The text of a file, and whether its encoding is a guess."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace"), False
    for order, begins in _UTF_16.items():
        if begins.match(data):
            return data.decode(order, errors="replace"), False
    text = data.decode("utf-8-sig", errors="replace")
    # Damage to a few letters does not make it another encoding.
    if 2 * text.count("\ufffd") <= len(text) - len(text.encode("ascii", errors="ignore")):
        return text, False
    with suppress(UnicodeDecodeError):
        return data.decode("cp1252"), True
    return data.decode("latin-1"), True


def _of_other_script(path: Path, data: bytes) -> str:
    """The text of a file in the encoding of another script, the likeliest by its letters."""
    from charset_normalizer import from_bytes  # only here: most subtitles are in Unicode

    enough = sum(byte > 127 for byte in data) >= _ENOUGH
    best = from_bytes(data, cp_isolation=_OTHER_SCRIPTS).best() if enough else None
    if best is None:
        raise UnreadableMedia(path, "its encoding cannot be recognised; save it as UTF-8")
    return str(best)


def _blocks(text: str, kind: str) -> Iterator[Cue | None]:
    """Cues of SubRip and WebVTT: times, and the lines below up to an empty one or to other times."""
    header = "WEBVTT\n\n" if kind == "vtt" else "1\n"
    if kind == "vtt":  # YouTube writes a blank in the first line of a cue that stands in the second alone
        text = _BLANK_FIRST.sub(r"\1", text)
    for block in re.split(r"\n[ \t]*\n", text):
        lines = block.strip("\n").split("\n")
        begins = [n for n, line in enumerate(lines) if "-->" in line and (n < 2 or _TIMES.match(line))]
        for begin, stop in pairwise([*begins, len(lines)]):
            # pysubs2 takes a number in the last line for that of the next cue.
            following = "\n0" if begin + 1 < stop == len(lines) else ""
            yield from _parse_cue(header + "\n".join(lines[begin:stop]) + following + "\n", kind)


def _ass(text: str) -> Iterator[Cue | None]:
    format_line = _ASS_FORMAT
    for line in text.split("\n"):
        if line.startswith("Format:") and "Text" in line:
            format_line = line
        elif line.startswith("Dialogue:"):
            yield from _parse_cue(f"{_ASS_EVENTS}{format_line}\n{line}\n", "ass")


def _parse_cue(text: str, kind: str) -> Iterator[Cue | None]:
    """The cue of a document that holds one, None if it is damaged, nothing if it shows no text."""
    try:
        events = list(pysubs2.SSAFile.from_string(text, format_=kind))
    except (ValueError, IndexError, KeyError, pysubs2.exceptions.Pysubs2Error):
        events = []
    if not events or events[0].end <= events[0].start or events[0].start < 0:
        yield None
    elif text := _shown_text(events[0].text):
        yield Cue(events[0].start / 1000, events[0].end / 1000, text)


def _shown_text(text: str) -> str:
    """The visible letters of a SubStation Alpha event: none where its commands draw a shape.

    pysubs2's own properties take time quadratic in the commands, or in braces that are opened alone.
    """
    closed, brace, rest = text.rpartition("}")
    drawing = False
    for block in _COMMANDS.findall(closed + brace):
        for number, style in _DRAWING.findall(block):
            # A reset to a named style changes nothing: there are no styles here.
            drawing = int(number) > 0 if number else drawing and bool(style)
        if drawing:
            return ""
    plain = _COMMANDS.sub("", closed + brace) + rest
    return _clean_text(plain.replace(r"\h", " ").replace(r"\n", "\n").replace(r"\N", "\n"))


def _clean_text(text: str) -> str:
    """Text without entities, time tags and needless white space, its lines kept."""
    lines = html.unescape(_INLINE_TIME.sub("", text)).replace(_JOINER, "").splitlines()
    return "\n".join(stripped for line in lines if (stripped := " ".join(line.split())))
