"""Text in the pictures of a video: stills are read, and text that stays becomes one cue.

A still is that of a sampled frame wherever one lies in the stretch that it stands for, since that was decoded
in any case (:mod:`.held_stills`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import astuple, dataclass
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.readers import TextLine, TextReader
from moviola.library.ingest.decode_ahead import ahead
from moviola.library.ingest.held_stills import FilmStills
from moviola.media import packed, sample_stills, unpacked
from moviola.types import Box, Cue, Span

__all__ = ["EVERY", "Look", "looks", "millisecond", "read_text", "spans_of", "written_cues"]

EVERY = 2.5
"""Longest stretch of a shot, in seconds, per still; title cards are rarely shorter."""

# Side of the compared blocks, and the difference of their means, of 255, below which no text has changed.
_BLOCK, _SAME = 8, 12.0
# Texts of this similarity are one text read twice, unless both were read this surely.
_ALIKE, _SURE = 0.8, 0.95


@dataclass(frozen=True, slots=True)
class Look:
    """A still to read: its second, and the stretch of time that it covers."""

    time: float
    span: Span


def looks(shots: Sequence[Span], apart: Fraction | None = None, every: float = EVERY) -> list[Look]:
    """One still in the middle of each shot, which follow each other; of one that is longer than ``every``
    seconds, in the middle of each of its equal parts. It is moved to the nearest moment of those that are
    ``apart`` seconds from each other, if that is in the same part; None: it is not.
    """
    stills: list[Look] = []
    for shot in shots:
        parts = math.ceil(shot.duration / every)
        edges = np.linspace(shot.start, shot.end, parts + 1).tolist()
        for start, end in pairwise(edges):
            time = (start + end) / 2
            if apart is not None:
                near = float(math.ceil(Fraction(time) / apart - Fraction(1, 2)) * apart)
                time = near if start <= near < end else time
            if not stills or time > stills[-1].time + 0.002:  # stills are distinct by the millisecond
                stills.append(Look(time, Span(start, end)))
    return stills


def spans_of(starts: Sequence[float], end: float) -> list[Span]:
    """Shots of a video by the seconds at which they begin; one, where they are unknown."""
    return [Span(start, stop) for start, stop in pairwise([*(starts or [0.0]), end]) if stop > start]


def read_text(
    path: Path,
    shots: Sequence[Span],
    apart: Fraction | None,
    reader: TextReader,
    on_seconds: Callable[[float], None],
    *,
    held: FilmStills | None = None,
) -> list[Cue]:
    """Cues of the text in the pictures of a video; ``on_seconds`` is called with the number of seconds that
    are read. Stills that are not held are decoded.

    Raises:
        MediaError: the file cannot be read any more.
    """
    stills = looks(shots, apart)
    if not stills:
        return []

    def read(images: Iterable[NDArray[np.uint8]]) -> Iterator[tuple[Look, Sequence[TextLine]]]:
        for look, lines in zip(stills, _read_changes(images, reader), strict=True):
            yield look, lines
            on_seconds(look.span.end)

    with closing(ahead(_images(path, stills, reader.longest_side, held))) as images:
        return written_cues(read(images))


def millisecond(look: Look) -> int:
    """By which its still is held."""
    return round(1000 * look.time)


def _images(
    path: Path, stills: Sequence[Look], longest_side: int, held: FilmStills | None
) -> Iterator[NDArray[np.uint8]]:
    """The stills of a video, those that are held, and the others decoded."""
    known = held.milliseconds() if held else set()
    missing = [look.time for look in stills if millisecond(look) not in known]
    with sample_stills(path, missing, longest_side=longest_side) if missing else nullcontext(()) as decoded:
        others = iter(decoded)
        for look in stills:
            ms = millisecond(look)
            still = held.still(ms) if held and ms in known else packed(next(others).image)
            if still is None:  # it is not held any more: a disk failed
                with sample_stills(path, [look.time], longest_side=longest_side) as one:
                    still = packed(next(one).image)
            yield unpacked(still)


def _read_changes(images: Iterable[NDArray[np.uint8]], reader: TextReader) -> Iterator[Sequence[TextLine]]:
    """Lines of each picture; one that looks like the last that was read has the same."""
    seen: NDArray[np.float32] | None = None
    lines: Sequence[TextLine] = ()
    for image in images:
        blocks = _blocks(image)
        if seen is None or seen.shape != blocks.shape or np.abs(blocks - seen).max() >= _SAME:
            lines, seen = reader.read(image), blocks
        yield lines


def _blocks(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Mean brightness of blocks of a picture (height, width, 3); partial blocks are cut off."""
    height, width = (max(1, side // _BLOCK) for side in image.shape[:2])
    tall, wide = min(_BLOCK, image.shape[0]), min(_BLOCK, image.shape[1])
    whole = image[: height * tall, : width * wide].reshape(height, tall, width, wide, 3)
    return np.asarray(whole.mean((1, 3, 4), dtype=np.float32))


@dataclass(slots=True)
class _Shown:
    """A line while it is on screen, as it was read last, and most surely, which counts."""

    start: float
    end: float
    last: TextLine
    surest: TextLine


def written_cues(read: Iterable[tuple[Look, Sequence[TextLine]]]) -> list[Cue]:
    """Lines of successive stills as cues of the kind ``"text"`` in order of time: a line that stays is one
    cue, and so are lines that appear together, from top to bottom.
    """
    done: list[_Shown] = []
    shown: list[_Shown] = []
    for look, lines in read:
        before = [line for line in shown if line.end == look.span.start]
        done += [line for line in shown if line.end != look.span.start]
        shown = []
        for line in lines:
            same = max(before, key=lambda old: _likeness(old.last, line), default=None)
            if same is not None and _likeness(same.last, line) >= _ALIKE:
                before.remove(same)
                surest = max(same.surest, line, key=lambda read: read.confidence)
                shown.append(_Shown(same.start, look.span.end, line, surest))
            else:
                shown.append(_Shown(look.span.start, look.span.end, line, line))
        done += before
    done += shown
    done.sort(key=lambda line: (line.start, line.end))
    groups = groupby(done, key=lambda line: (line.start, line.end))
    return [_cue(start, end, [line.surest for line in group]) for (start, end), group in groups]


def _likeness(one: TextLine, other: TextLine) -> float:
    """Similarity of two lines, in [0, 1]; 0 where both are sure, or a digit differs (clocks run)."""
    texts = one.text.casefold(), other.text.casefold()
    sure = min(one.confidence, other.confidence) >= _SURE
    if texts[0] != texts[1] and (sure or re.findall(r"\d", texts[0]) != re.findall(r"\d", texts[1])):
        return 0.0
    return SequenceMatcher(None, *texts, autojunk=False).ratio()


def _cue(start: float, end: float, lines: list[TextLine]) -> Cue:
    lines.sort(key=lambda line: (line.box.top, line.box.left))
    left, top, right, bottom = zip(*(astuple(line.box) for line in lines), strict=True)
    around = Box(min(left), min(top), max(right), max(bottom))
    confidence = sum(line.confidence for line in lines) / len(lines)
    return Cue(start, end, "\n".join(line.text for line in lines), "text", round(confidence, 4), around)
