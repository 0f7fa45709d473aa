"""Cues that say again what the one before says: rolling captions, signs that are drawn picture by picture.

Captions of live programmes and of machines show a line while it is said, again while the next one is said
below it, and often once more between the two; others grow word by word.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moviola.media.subtitles.values import Line, Notes

__all__ = ["without_repeats"]

# Seconds between a cue and one that goes on with it; where new lines stand below the old ones, more.
_AT_ONCE, _SOON = 0.05, 1.0
# Lines that captions show at a time, and cues that may be shown side by side.
_ROWS, _SIDE_BY_SIDE = 8, 4
# The longest row that may be the beginning of another word than that which grows, and the longest that grows.
_WORD, _ROW = 3, 200


@dataclass(slots=True)
class _Kept:
    start: float
    end: float
    text: str


@dataclass(slots=True)
class _Shown:
    """A cue as it stands in the file, and the kept one that has its last row."""

    rows: Sequence[str]
    end: float
    kept: _Kept


def without_repeats(lines: Iterable[Line], notes: Notes) -> list[Line]:
    """Lines, which come in order of time, each once, from when it is first said: without rows that the cue
    before shows already, and what grows as one. A line that is said again after a pause stays.
    """
    found: list[_Kept] = []
    by_text: dict[str, _Kept] = {}
    recent: deque[_Shown] = deque(maxlen=_SIDE_BY_SIDE)
    for start, end, text in lines:
        rows = text.split("\n")
        same = by_text.get(text)
        kept: _Kept | None
        if same is not None and start <= same.end + _AT_ONCE:
            known, kept = len(rows), same
            kept.end = max(kept.end, end)
        else:
            known, kept = _known(rows, start, recent)
            if kept is not None and not kept.text.endswith(rows[known - 1]):
                kept.text = kept.text[: kept.text.rfind("\n") + 1] + rows[known - 1]
                kept.end = max(kept.end, end)
                by_text[kept.text] = kept
        if known:
            notes.add("repeated", text)
        if kept is None or known < len(rows):
            kept = _Kept(start, end, "\n".join(rows[known:]))
            found.append(kept)
            by_text[kept.text] = kept
        recent.append(_Shown(rows, end, kept))
    return [Line(kept.start, kept.end, kept.text) for kept in found]


def _known(rows: Sequence[str], start: float, recent: Iterable[_Shown]) -> tuple[int, _Kept | None]:
    """How many rows of a cue were shown before, and where the last of them was kept; it may have grown."""
    for before in recent:
        gap = start - before.end
        if gap > _SOON:
            continue
        for count in range(min(_ROWS, len(rows), len(before.rows)), 0, -1):
            shown, again = before.rows[-count:], rows[:count]
            if not again[-1].startswith(shown[-1]) or again[:-1] != shown[:-1]:
                continue
            grown = len(again[-1]) > len(shown[-1])
            # Without a pause, or with new rows below the old ones.
            if gap <= _AT_ONCE and (not grown or count > 1 or _goes_on(again[-1], shown[-1])):
                return count, before.kept
            if not grown and count < len(rows):
                return count, before.kept
    return 0, None


def _goes_on(row: str, before: str) -> bool:
    """Whether a row is an earlier one with further words, or letters of a longer one."""
    return len(row) <= _ROW and (len(before) > _WORD or not row[len(before)].isalnum())
