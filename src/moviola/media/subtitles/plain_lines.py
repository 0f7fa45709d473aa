"""Formats of a line or two a cue: MicroDVD, MPL2, SubViewer, TMPlayer, LRC."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from moviola.media.subtitles.stamps import STAMP, seconds_of
from moviola.media.subtitles.values import Line, Notes
from moviola.media.subtitles.visible import of_tags

__all__ = ["read_lrc", "read_microdvd", "read_mpl2", "read_subviewer", "read_tmplayer", "until_next"]

_MICRODVD = re.compile(r"\s*\{\s*(\d{1,9})\s*\}\s*\{\s*(\d{0,9})\s*\}(.*)")
_MPL2 = re.compile(r"\s*\[\s*(\d{1,9})\s*\]\s*\[\s*(\d{0,9})\s*\](.*)")
_SUBVIEWER = re.compile(rf"\s*{STAMP.format('a')}\s*,\s*{STAMP.format('b')}\s*")
_TMPLAYER = re.compile(r"\s*(\d{1,3}):(\d\d):(\d\d)(?:,\d)?[:=](.*)")
_LRC_STAMP = re.compile(r"\[(\d{1,4}):(\d{1,2})(?:[.:](\d{1,3}))?\]")
_LRC_OFFSET = re.compile(r"\[offset:\s*([-+]?\d{1,9})\s*\]", re.IGNORECASE)
_LRC_WORD = re.compile(r"<\d{1,4}:\d\d(?:[.:]\d{1,3})?>")
# Styles of MicroDVD, and slashes for italics.
_STYLES = re.compile(r"\{[A-Za-z]:[^{}]*\}|(?:^|(?<=\n))[ \t]*/")
# Seconds that a cue is shown whose end is not in the file and that none follows sooner.
_SHOWN = 10.0


def until_next(lines: Iterable[tuple[float, float | None, str]], longest: float = _SHOWN) -> Iterator[Line]:
    """Lines of which some have no end: these last until the next begins, and not longer than ``longest``
    seconds. A line without text ends the one before.
    """
    known = sorted(lines, key=lambda line: line[0])
    following, later = [float("inf")] * len(known), float("inf")
    for place in range(len(known) - 2, -1, -1):
        if known[place + 1][0] > known[place][0]:
            later = known[place + 1][0]
        following[place] = later
    for (start, end, text), after in zip(known, following, strict=True):
        last = min(after, start + longest) if end is None else end
        if text and last > start:
            yield Line(start, last, text)


def read_microdvd(text: str, notes: Notes, rate: float | None) -> Iterator[Line]:
    """``{25}{50}text|second line``, in pictures: by the rate that the first cue states, else ``rate``."""
    found: list[tuple[float, float | None, str]] = []
    for line in text.split("\n"):
        if not (match := _MICRODVD.fullmatch(line)):
            continue
        first, last, said = match.groups()
        if first == last and int(first) <= 1 and not found and (stated := _rate_in(said)):
            rate = stated
            continue
        if rate is None:
            notes.add("no rate", line)
            return
        start, end = int(first) / rate, int(last) / rate if last else None
        if end is not None and end <= start:
            notes.add("damaged", line)
            continue
        found.append((start, end, _shown(said)))
    yield from until_next(found)


def _rate_in(said: str) -> float | None:
    """A number of pictures a second."""
    match = re.fullmatch(r"\s*(\d{1,3}(?:[.,]\d{1,4})?)\s*", said)
    return float(match[1].replace(",", ".")) or None if match else None


def read_mpl2(text: str, notes: Notes) -> Iterator[Line]:
    """``[25][50]text|second line``, in tenths of a second."""
    found: list[tuple[float, float | None, str]] = []
    for line in text.split("\n"):
        if match := _MPL2.fullmatch(line):
            start, end = int(match[1]) / 10, int(match[2]) / 10 if match[2] else None
            if end is not None and end <= start:
                notes.add("damaged", line)
            else:
                found.append((start, end, _shown(match[3])))
    yield from until_next(found)


def _shown(said: str) -> str:
    return of_tags(_STYLES.sub("", said.replace("|", "\n")))


def read_subviewer(text: str, notes: Notes) -> Iterator[Line]:
    """Two times with a comma between them, the text below, ``[br]`` between its lines."""
    times: tuple[float, float] | None = None
    said: list[str] = []

    def cue() -> Iterator[Line]:
        if times and (shown := of_tags("\n".join(said).replace("[br]", "\n"))):
            yield Line(*times, shown)

    for line in text.split("\n"):
        if not (match := _SUBVIEWER.fullmatch(line)):
            said.append(line)
            continue
        yield from cue()
        start, end, said = seconds_of(match, "a"), seconds_of(match, "b"), []
        if start is None or end is None or end <= max(start, 0.0):
            times = None
            notes.add("damaged", line)
        else:
            times = max(start, 0.0), end
            if start < 0:
                notes.add("before zero", line)
    yield from cue()


def read_tmplayer(text: str, notes: Notes) -> Iterator[Line]:
    """``00:01:02:text|second line``, which is shown until the next."""
    found: list[tuple[float, float | None, str]] = []
    for line in text.split("\n"):
        if "-->" not in line and (match := _TMPLAYER.fullmatch(line)):
            hours, minutes, seconds = (int(match[place]) for place in (1, 2, 3))
            if minutes > 59 or seconds > 59:
                notes.add("damaged", line)
            else:
                found.append((float(hours * 3600 + minutes * 60 + seconds), None, _shown(match[4])))
    yield from until_next(found)


def read_lrc(text: str, notes: Notes) -> Iterator[Line]:
    """``[01:02.50]text``: a line of a song, at one time or several, which is sung until the next."""
    offset = int(match[1]) / 1000 if (match := _LRC_OFFSET.search(text)) else 0.0
    found: list[tuple[float, float | None, str]] = []
    for line in text.split("\n"):
        place, starts = 0, []
        line = line.strip()
        while match := _LRC_STAMP.match(line, place):
            place = match.end()
            minutes, seconds, fraction = match.groups()
            starts.append(int(minutes) * 60 + int(f"{seconds}{fraction or ''}") / 10 ** len(fraction or ""))
        if not starts:
            continue
        said = of_tags(_LRC_WORD.sub("", line[place:]))
        if max(starts) - offset < 0:
            notes.add("damaged", line)
        # A positive offset has lines come sooner.
        found += [(max(0.0, start - offset), None, said) for start in starts if start - offset > -1]
    yield from until_next(found)
