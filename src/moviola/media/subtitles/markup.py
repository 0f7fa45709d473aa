"""Formats of elements: Timed Text (TTML, DFXP) and SAMI."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf
from xml.parsers import expat

from moviola.media.subtitles.plain_lines import until_next
from moviola.media.subtitles.values import Line, Notes

__all__ = ["read_sami", "read_timed_text"]

_CLOCK = re.compile(r"(\d{1,6}):([0-5]\d):([0-5]\d)(?:([.,]\d{1,9})|:(\d{1,3})(?:\.\d{1,3})?)?")
_OFFSET = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(h|ms|m|s|f|t)")
# Seconds of a unit of time.
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# Elements whose text is not shown.
_ASIDE = frozenset({"metadata", "title", "desc", "copyright", "agent", "actor", "name", "styling", "layout"})
# Names of characters that XML does not know and HTML does.
_NAMED = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z][A-Za-z0-9]{1,31};")

_SYNC = re.compile(r"<SYNC\b[^<>]{0,200}?\bStart\s*=\s*[\"']?\s*(-?\d{1,12})[^<>]{0,200}>", re.I)
_PARAGRAPH = re.compile(r"<P\b(?:[^<>]{0,200}?\bClass\s*=\s*[\"']?([\w-]{1,40}))?[^<>]{0,400}>", re.I)
_BREAK, _TAG = re.compile(r"<br\b[^<>]{0,200}>", re.I), re.compile(r"<[A-Za-z/!][^<>]*>")
_LONGEST = 10.0


class _Entities(Exception):
    """The file declares entities, which could stand for anything."""


@dataclass(slots=True)
class _Element:
    """An open element: from when to when it is shown, whether it or one around it says so, whether it is a
    paragraph or part of one, and of one with times, whether text in it is shown, and when the next one in it
    begins, None where those in it do not follow each other.
    """

    begin: float = 0.0
    end: float = inf
    timed: bool = False
    paragraph: bool = False
    timed_paragraph: bool = False
    shown: bool = True
    closes: bool = False
    following: float | None = None


@dataclass(slots=True)
class _TimedText:
    """Handlers of a parser of XML, and what they found."""

    notes: Notes
    found: list[tuple[float, float | None, str]] = field(default_factory=list)
    open: list[_Element] = field(default_factory=lambda: [_Element()])
    said: list[str] = field(default_factory=list)
    rate: float = 30.0
    ticks: float = 1.0

    def start(self, name: str, given: Mapping[str, str]) -> None:
        name = name.rpartition(":")[2]
        values = {key.rpartition(":")[2]: value for key, value in given.items()}
        if name == "tt":
            self._adopt_rates(values)
        above = self.open[-1]
        timed = not values.keys().isdisjoint({"begin", "end", "dur"})
        element = replace(
            above, timed=above.timed or timed, paragraph=above.paragraph or name == "p",
            timed_paragraph=above.timed_paragraph or (name == "p" and timed),
            shown=above.shown and name not in _ASIDE,
            closes=name == "p" or (name == "span" and timed and not above.timed_paragraph),
        )  # fmt: skip
        if timed:
            self._set_times(element, values, above)
        element.following = element.begin if values.get("timeContainer") == "seq" else None
        if name == "br":
            self.said.append("\n")
        elif element.closes:
            self._flush()
        self.open.append(element)

    def end(self, _: str) -> None:
        if self.open[-1].closes:
            self._flush()
        ended = self.open.pop()
        if self.open[-1].following is not None and ended.end < inf:
            self.open[-1].following = ended.end

    def text(self, data: str) -> None:
        if self.open[-1].paragraph and self.open[-1].shown:
            self.said.append(re.sub(r"\s+", " ", data))

    def _flush(self) -> None:
        """Keep what was said in the innermost element so far."""
        lines = (" ".join(line.split()) for line in "".join(self.said).split("\n"))
        self.said.clear()
        shown = self.open[-1]
        if said := "\n".join(filter(None, lines)):
            if not shown.end > shown.begin:
                self.notes.add("damaged", said)
            elif shown.timed:
                self.found.append((shown.begin, None if shown.end == inf else shown.end, said))
            else:
                self.notes.add("stray", said)

    def _adopt_rates(self, values: Mapping[str, str]) -> None:
        top, _, below = values.get("frameRateMultiplier", "1 1").replace(":", " ").partition(" ")
        try:
            self.rate = float(values.get("frameRate", 30)) * float(top) / float(below or 1) or self.rate
            self.ticks = float(values.get("tickRate", 0)) or (self.rate if "frameRate" in values else 1.0)
        except (ValueError, ZeroDivisionError):
            self.notes.add("damaged", f"frameRate {values.get('frameRate')}")

    def _set_times(self, element: _Element, values: Mapping[str, str], above: _Element) -> None:
        """Times of an element, counted from the beginning of the one around it, or from the end of the one
        before it.
        """
        times = {name: self._seconds(values[name]) for name in ("begin", "end", "dur") if name in values}
        if None in times.values():
            self.notes.add("damaged", " ".join(f'{name}="{values[name]}"' for name in times))
            element.end = element.begin - 1  # what is in it is not shown
            return
        around = above.begin if above.following is None else above.following
        element.begin = around + (times.get("begin") or 0.0)
        ends = [element.end]
        if (end := times.get("end")) is not None:
            ends.append(around + end)
        if (lasts := times.get("dur")) is not None:
            ends.append(element.begin + lasts)
        element.end = min(ends)

    def _seconds(self, given: str) -> float | None:
        if match := _CLOCK.fullmatch(given.strip()):
            hours, minutes, seconds, fraction, pictures = match.groups()
            whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
            return float(f"{whole}{(fraction or '').replace(',', '.')}") + (
                int(pictures) / self.rate if pictures else 0.0
            )
        if match := _OFFSET.fullmatch(given.strip()):
            number, unit = float(match[1]), match[2]
            if unit in _UNITS:
                return number * _UNITS[unit]
            return number / (self.rate if unit == "f" else self.ticks)
        return None


def read_timed_text(text: str, notes: Notes) -> Iterator[Line]:
    """Paragraphs of Timed Text, or their spans where only these have times; up to the damage in a damaged
    file, nothing of one that declares entities.
    """
    handlers = _TimedText(notes)

    def refuse(*_: object) -> None:
        raise _Entities

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = handlers.start, handlers.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = handlers.text, refuse
    parser.buffer_text = True
    named = _NAMED.sub(lambda found: html.unescape(found[0]), text[max(0, text.find("<")) :])
    try:
        parser.Parse(named.encode("utf-8", errors="replace"), True)
    except expat.ExpatError as error:
        notes.add("damaged", f"{expat.ErrorString(error.code)} in line {error.lineno}")
    except _Entities:
        notes.add("damaged", "declares entities")
        return
    yield from until_next(handlers.found, _LONGEST)


def read_sami(text: str, notes: Notes) -> Iterator[Line]:
    """Paragraphs of SAMI, each class by itself: shown until its next one, which may be empty."""
    syncs = [*_SYNC.finditer(text)]
    tracks: dict[str, list[tuple[float, float | None, str]]] = {}
    for sync, stop in pairwise([*((sync, sync.start()) for sync in syncs), (None, len(text))]):
        if sync[0] is not None:
            _add_paragraphs(int(sync[0][1]) / 1000, text[sync[0].end() : stop[1]], tracks)
    for lines in tracks.values():
        yield from until_next(lines, _LONGEST)


def _add_paragraphs(
    start: float, body: str, tracks: dict[str, list[tuple[float, float | None, str]]]
) -> None:
    heads = [*_PARAGRAPH.finditer(body)]
    stops = [*(head.start() for head in heads[1:]), len(body)]
    places = [(head[1] or "", head.end(), stop) for head, stop in zip(heads, stops, strict=False)]
    for name, begin, stop in places or [("", 0, len(body))]:
        shown = _TAG.sub("", _BREAK.sub("\n", " ".join(body[begin:stop].split())))
        lines = (" ".join(line.split()) for line in html.unescape(shown).split("\n"))
        tracks.setdefault(name.lower(), []).append((max(0.0, start), None, "\n".join(filter(None, lines))))
