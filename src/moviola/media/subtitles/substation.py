"""SubStation Alpha, also the advanced one: a line an event; what is drawn piece by piece is put together.

Typesetters write a sung line as one event for each syllable, layer and phase of an effect, and keep the line
itself as a comment with the effect ``karaoke``; a sign may be an event for each letter.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from moviola.media.subtitles.stamps import STAMP, seconds_of
from moviola.media.subtitles.values import Line, Notes
from moviola.media.subtitles.visible import of_commands, without_commands

__all__ = ["join_parts", "part_of", "read_substation"]

_COLUMNS = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")
_STAMP = re.compile(rf"\s*{STAMP.format('a')}\s*")
_PLACED = re.compile(r"\\(?:pos|move|org|k[fo]?\d|t\()")
_PLACE = re.compile(r"\\(?:pos|move)\(([^,()]{1,20},[^,()]{1,20})")
# Most letters of a part without the name of an effect, and the least number of such parts of a line.
_LETTERS, _LEAST = 3, 4
# In seconds: parts of a line follow one another within this gap, and last this long together; an effect
# begins earlier than its line; phases of a part follow at once.
_GAP, _LONGEST, _LEAD, _SAME = 0.3, 10.0, 1.0, 0.02


class Part(NamedTuple):
    """A part of a line, its letters with the blanks around them, where it stands, and whether an effect made
    it.
    """

    line: Line
    letters: str
    place: str
    effect: bool


def read_substation(text: str, notes: Notes) -> Iterator[Line]:
    """Events in order of the file, then lines that are drawn piece by piece; no comments and no drawings."""
    columns: Sequence[str] = _COLUMNS
    parts: list[Part] = []
    sung: list[Line] = []
    for line in text.split("\n"):
        if line.startswith("Format:") and "Text" in line:
            columns = _columns_of(line)
        elif line.startswith(("Dialogue:", "Comment:")):
            name, _, rest = line.partition(":")
            event = dict(zip(columns, rest.split(",", len(columns) - 1), strict=False))
            effect = event.get("effect", "").strip().lower()
            if name == "Comment":
                if effect.startswith("karaoke") and (found := _line_of(event, Notes())):
                    sung.append(found)
            elif (found := _line_of(event, notes, line)) is None:
                pass
            elif part := part_of(found, event["text"], effect):
                parts.append(part)
            else:
                yield found
    yield from join_parts(parts, sung, notes)


def _columns_of(line: str) -> Sequence[str]:
    """Names of columns; the usual ones where the text, which may hold commas, is not the last of them."""
    names = [name.strip().lower() for name in line.partition(":")[2].split(",")]
    return names if names[-1] == "text" and {"start", "end"}.issubset(names) else _COLUMNS


def _line_of(event: dict[str, str], notes: Notes, line: str = "") -> Line | None:
    """The line of an event; None where it shows no text, or is damaged, which is noted."""
    matches = [_STAMP.fullmatch(event.get(name, "")) for name in ("start", "end")]
    start, end = (None if match is None else seconds_of(match, "a") for match in matches)
    if start is None or end is None or end <= max(start, 0.0) or "text" not in event:
        notes.add("damaged", line)
        return None
    if not (said := of_commands(event["text"])):
        return None
    if start < 0:
        notes.add("before zero", line)
    return Line(max(start, 0.0), end, said)


def part_of(line: Line, text: str, effect: str) -> Part | None:
    """An event as part of a line, by its text with commands and the name of its effect in lower case; None of
    what is a line of its own.
    """
    by_effect = effect.startswith(("fx", "karaoke"))
    if not by_effect and (len(line.text) > _LETTERS or not _PLACED.search(text)):
        return None
    place = _PLACE.search(text)
    return Part(line, without_commands(text), place[1] if place else "", by_effect)


def join_parts(parts: Sequence[Part], sung: Sequence[Line], notes: Notes) -> Iterator[Line]:
    """Lines that are drawn piece by piece: as the comments ``sung`` have them, else put together."""
    parts, sung = sorted(parts, key=lambda part: part.line.start), sorted(sung)
    made = [part.line.start for part in parts if part.effect]
    used = [line for line in sung if _any_within(made, line.start - _LEAD, line.end)]
    begins, ends = [line.start - _LEAD for line in used], list(accumulate((line.end for line in used), max))
    rest = []
    for part in parts:
        place = bisect_right(begins, part.line.start)
        if part.effect and place and ends[place - 1] >= part.line.start:
            notes.add("syllables", used[place - 1].text)
        else:
            rest.append(part)
    yield from used
    for group in _groups(rest):
        yield from _joined(group, notes)


def _any_within(times: Sequence[float], first: float, last: float) -> bool:
    place = bisect_left(times, first)
    return place < len(times) and times[place] <= last


def _groups(parts: Sequence[Part]) -> Iterator[list[Part]]:
    group: list[Part] = []
    end = 0.0
    for part in parts:
        line = part.line
        if group and (line.start > end + _GAP or line.end > group[0].line.start + _LONGEST):
            yield group
            group = []
        end = line.end if not group else max(end, line.end)
        group.append(part)
    if group:
        yield group


def _joined(group: Sequence[Part], notes: Notes) -> Iterator[Line]:
    """A line of its parts, each once though it has several layers and phases."""
    ends: dict[tuple[str, str], float] = {}
    said: list[str] = []
    for line, letters, place, _ in group:
        before = ends.get((line.text, place), -1.0)
        if line.start > before + _SAME:
            said.append(letters)
        ends[line.text, place] = max(before, line.end)
    if len(said) < _LEAST and not any(part.effect for part in group):
        yield from (part.line for part in group)
        return
    blanks = any(letters != letters.strip() for letters in said)
    between = "" if blanks or sum(map(len, said)) <= _LETTERS * len(said) else " "
    text = of_commands(between.join(said))
    start, end = group[0].line.start, max(part.line.end for part in group)
    notes.add("syllables", text, len(group))
    yield Line(start, end, text)
