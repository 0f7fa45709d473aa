"""What a reader of subtitles gives back: cues, and an account of what it met besides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from moviola.errors import counted
from moviola.types import Cue

__all__ = ["Fix", "Line", "Notes", "Notice", "NoticeKind", "Subtitles", "cues_of", "in_order"]

NoticeKind = Literal[
    "damaged", "no rate", "before zero", "stray", "letters", "encoding", "telemetry", "repeated", "syllables",
    "past the end", "shifted", "crowded", "unreadable", "doubled", "other captions",
]  # fmt: skip
"""Kind of a notice; :data:`NOTICES` says each in words."""

NOTICES: dict[NoticeKind, tuple[str, str]] = {
    "damaged": ("damaged cue", "skipped"),
    "no rate": ("cue", "counted in pictures of a film whose rate is not known, skipped"),
    "before zero": ("cue", "before the beginning of the film, shown from there on"),
    "stray": ("line", "outside of cues, not read"),
    "letters": ("letter", "that the encoding does not have"),
    "encoding": ("", "not in Unicode, by its letters read as"),
    "telemetry": ("cue", "of a camera's or a drone's instruments, no speech"),
    "repeated": ("cue", "that say again what the one before says, read once"),
    "syllables": ("piece", "of lines that are sung or drawn piece by piece, read as lines"),
    "past the end": ("cue", "after the end of the film, not kept"),
    "shifted": ("cue", "moved by the timecode at which the film begins"),
    "crowded": ("cue", "more than ten a second, joined with their neighbours"),
    "doubled": ("cue", "that another track has in the same language, read once"),
    "other captions": ("packet", "of captions in a form that is not read (CEA-708)"),
    "unreadable": ("text", "longer than can be read while it is shown, the rest left out"),
}
"""For each kind of notice what is counted, and what is said of it; an example follows."""

_LOSSES: frozenset[NoticeKind] = frozenset(
    {"damaged", "no rate", "stray", "letters", "past the end", "unreadable", "other captions"}
)
# Letters of an example.
_SHOWN = 60


class Line(NamedTuple):
    """A cue as it stands in a file: ``start`` and ``end`` in seconds, 0 <= start < end, and its visible text,
    not empty.
    """

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that was met in subtitles and not used, or not as it stands there: its kind, how often, and
    the first of it, at most 60 letters.

    >>> str(Notice("damaged", 2, "00:00:xx,000 --> 00:00:04,000"))
    '2 damaged cues skipped (00:00:xx,000 --> 00:00:04,000)'
    """

    kind: NoticeKind
    count: int
    example: str = ""

    @property
    def loss(self) -> bool:
        """Whether words may be missing."""
        return self.kind in _LOSSES

    def __str__(self) -> str:
        noun, said = NOTICES[self.kind]
        if not noun:
            return f"{said} {self.example}"
        example = f" ({self.example})" if self.example else ""
        return f"{counted(self.count, noun)} {said}{example}"


@dataclass(slots=True)
class Notes:
    """Counts what a reader meets, and keeps the first of each kind."""

    counts: Counter[NoticeKind] = field(default_factory=Counter)
    examples: dict[NoticeKind, str] = field(default_factory=dict)

    def add(self, kind: NoticeKind, example: str = "", count: int = 1) -> None:
        """Count something of a kind."""
        self.counts[kind] += count
        if kind not in self.examples and (shown := " ".join(example[: 4 * _SHOWN].split())):
            self.examples[kind] = shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"

    def notices(self) -> tuple[Notice, ...]:
        """All that was counted, in the order of :data:`NOTICES`."""
        counts = self.counts
        return tuple(
            Notice(kind, counts[kind], self.examples.get(kind, "")) for kind in NOTICES if counts[kind]
        )


@dataclass(frozen=True, slots=True)
class Fix:
    """What a camera noted at a second of a film, None or empty where it noted nothing: clock time (ISO 8601,
    local without a zone, else universal), latitude and longitude in degrees, north and east above 0, altitude
    in metres.
    """

    time: float
    taken: str = ""
    latitude: float | None = None
    longitude: float | None = None
    altitude: float | None = None

    @property
    def place(self) -> tuple[float, float] | None:
        """Degrees north and east; None where no satellite was seen, which some write as two zeros."""
        if self.latitude is None or self.longitude is None or (self.latitude, self.longitude) == (0.0, 0.0):
            return None
        return self.latitude, self.longitude


@dataclass(frozen=True, slots=True)
class Subtitles:
    """Subtitles of a file or a stream.

    Attributes:
        cues: in order of time.
        notices: what was met and not used, or not as it stands there.
        encoding: that of the file, ``utf-8`` for streams.
        fixes: what a camera noted instead of speech, in order of time, at most one a second.
    """

    cues: tuple[Cue, ...]
    notices: tuple[Notice, ...] = ()
    encoding: str = "utf-8"
    fixes: tuple[Fix, ...] = ()

    @property
    def skipped(self) -> int:
        """The number of damaged cues."""
        return sum(notice.count for notice in self.notices if notice.kind == "damaged")


def in_order(lines: Iterable[Line]) -> list[Line]:
    """Lines in order of time, those of the same time in order of the file."""
    return sorted(lines, key=lambda line: line[:2])


def cues_of(lines: Iterable[Line]) -> tuple[Cue, ...]:
    """Lines as cues, in their order."""
    return tuple(Cue(*line) for line in lines)
