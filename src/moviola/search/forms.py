"""Forms of the fields of a question: which values each takes, and how they are written in JSON.

Values of filters are written as texts, the same on the command line, over HTTP, by agents and on the page:
``10..1:30``, ``2021..2023-05``, ``52.52,13.40,5km``, ``0..10%``. The text of any value is read as an equal
value.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

from moviola.errors import InvalidValue
from moviola.search.times import is_integer, is_number, parse_range, parse_seconds
from moviola.types import BANDS, Capture, plain_seconds, require_kind, several
from moviola.words import require_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CHOICE",
    "FLAG",
    "INTEGER",
    "LANGUAGES",
    "LINES",
    "NAMES",
    "PATHS",
    "PLACE",
    "POSITIONS",
    "SCORE",
    "SECONDS",
    "TIMES",
    "UNKNOWN_LANGUAGE",
    "Bounds",
    "Form",
    "Near",
    "Position",
    "assumed_distance",
    "lines_of",
]  # fmt: skip

_PART = r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?"
_PERCENT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*")
_EARTH = 6_371_008.8
"""Metres, mean radius."""
_UNSURE = 1.0
"""Metres, above all differences by rounding: on the other side of the earth they are some decimetres."""
_NEARBY = 1_000.0
_NEAR = r"([+-]?\d+(?:\.\d*)?)\s*,\s*([+-]?\d+(?:\.\d*)?)(?:\s*,\s*(\d+(?:\.\d*)?)\s*(km|m)?)?"
_TICK = timedelta(microseconds=1)

Bounds = tuple[float | None, float | None]
"""Minimum and maximum, both included; None for no limit."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a video: seconds, or a share of its length; from the end if negative, ``-0`` included.

    Raises:
        InvalidValue: no number.
    """

    value: float
    share: bool = False

    def __post_init__(self) -> None:
        require_kind("position", self.value, Real, "a number")

    def __str__(self) -> str:
        """As :meth:`parse` reads it."""
        value = float(self.value)
        return f"{Decimal(str(value)).scaleb(2).normalize():f}%" if self.share else plain_seconds(value)

    def seconds(self, duration: float) -> float:
        """Seconds from the start of a video of some length, in [0, duration]."""
        value = self.value * duration if self.share else self.value
        return min(max(value + duration if self.from_end else value, 0.0), duration)

    def all_seconds(self, durations: NDArray[np.float64]) -> NDArray[np.float64]:
        """:meth:`seconds` of videos of some lengths (V,)."""
        import numpy as np

        value = self.value * durations if self.share else self.value
        return np.minimum(np.maximum(value + durations if self.from_end else value, 0.0), durations)

    @property
    def from_end(self) -> bool:
        """Whether it is counted from the end."""
        return math.copysign(1.0, self.value) < 0

    @classmethod
    def parse(cls, text: str, what: str) -> Self:
        """``12.5``, ``1:30``, ``25%``; with ``-`` in front from the end. ``what`` names it in the message."""
        bare = text.strip().removeprefix("-")
        sign = -1 if bare != text.strip() else 1
        if not bare.endswith("%"):
            return cls(sign * parse_seconds(bare, what))
        # Decimal: a share that was written is read to the last bit.
        number = _PERCENT.fullmatch(bare[:-1])
        share = float(Decimal(number[1]).scaleb(-2)) if number else parse_seconds(bare[:-1], what) / 100
        if share > 1:
            raise InvalidValue(f"{what} {text!r}: at most 100%")
        return cls(sign * share, True)


@dataclass(frozen=True, slots=True)
class Near:
    """At most ``metres`` from a point, in degrees north and east, on a spherical earth.

    Raises:
        InvalidValue: impossible coordinates, or a distance that is no number above 0.
    """

    latitude: float
    longitude: float
    metres: float = _NEARBY

    def __post_init__(self) -> None:
        for name in ("latitude", "longitude", "metres"):
            require_kind(name, getattr(self, name), Real, "a number")
        if not (abs(self.latitude) <= 90 and abs(self.longitude) <= 180 and 0 < self.metres < math.inf):
            raise InvalidValue(
                f"near {self.latitude:g},{self.longitude:g},{self.metres:g}m: give degrees north (-90 to 90) "
                "and east (-180 to 180), and a distance above 0"
            )

    def __str__(self) -> str:
        """As :meth:`parse` reads it."""
        point = ",".join(plain_seconds(float(one)) for one in (self.latitude, self.longitude))
        return f"{point},{plain_seconds(float(self.metres))}m"

    @classmethod
    def parse(cls, text: str, what: str = "near") -> Self:
        """``52.52,13.40,5km`` or ``52.52,13.40,300m``; a number alone are kilometres, no distance 1 km."""
        require_kind(what, text, str, "a text, 52.52,13.40,5km")
        match = re.fullmatch(_NEAR, text.strip())
        if not match:
            raise InvalidValue(
                f"{what} {text!r}: write degrees north, degrees east, distance: 52.52,13.40,5km"
            )
        north, east, distance, unit = match.groups()
        metres = float(distance) * (1.0 if unit == "m" else 1000.0) if distance else _NEARBY
        return cls(float(north), float(east), metres)

    def holds(self, capture: Capture) -> bool:
        """Whether a video was taken there; False where its place is unknown."""
        if capture.latitude is None or capture.longitude is None:
            return False
        here, there = math.radians(self.latitude), math.radians(capture.latitude)
        across = math.radians(capture.longitude - self.longitude)
        # The haversine formula; the mean radius of the earth.
        half = math.sin((there - here) / 2) ** 2
        half += math.cos(here) * math.cos(there) * math.sin(across / 2) ** 2
        return 2 * _EARTH * math.asin(min(1.0, math.sqrt(half))) <= self.metres

    def reached(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """:meth:`holds` of points (V, 2), degrees north and east, NaN where they are unknown: (V,) bool."""
        import numpy as np

        here, (there, east) = math.radians(self.latitude), np.radians(points.T)
        half = np.sin((there - here) / 2) ** 2
        half += math.cos(here) * np.cos(there) * np.sin((east - math.radians(self.longitude)) / 2) ** 2
        away = 2 * _EARTH * np.arcsin(np.minimum(1.0, np.sqrt(half)))
        reached = away <= self.metres
        # Rounding is another one than that of single numbers, and that of each kind of processor.
        for place in np.flatnonzero(abs(away - self.metres) < _UNSURE).tolist():
            reached[place] = self.holds(Capture("", "", *points[place].tolist()))
        return np.asarray(reached)


@dataclass(frozen=True, slots=True)
class Form:
    """What the values of a field are, and how they are written.

    Attributes:
        name: as schemas and the page know it.
        checked: gives the value of a field, by its name; raises :class:`InvalidValue`.
        read: the value of what JSON or a command line has, ``what`` names it in the message of
            :class:`InvalidValue`. A text for filters.
        written: the reverse: what JSON has of a value, which ``read`` reads as an equal one.
        nothing: the value that asks for nothing.
        metavar: placeholder of its texts on the command line; empty for that of its type.
    """

    name: str
    checked: Callable[[str, Any], Any]
    read: Callable[[Any, str], Any] = lambda given, _: given
    written: Callable[[Any], Any] = lambda value: value
    nothing: Any = None
    metavar: str = ""


# -- texts ---------------------------------------------------------------------------------------------------


def lines_of(text: str) -> list[str]:
    """The lines of a text that are not empty, without spaces around."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _text(name: str, value: Any) -> str:
    require_kind(name, value, str, "a text")
    if not lines_of(value):
        raise InvalidValue(f"{name} {value!r}: empty; name one, or leave it out")
    return str(value)


def _path(name: str, value: Any) -> str:
    return _text(name, os.fspath(value) if isinstance(value, os.PathLike) else value)


def _languages(name: str, value: Any) -> str:
    found = []
    for line in lines_of(_text(name, value)):
        is_unknown = line.casefold() == UNKNOWN_LANGUAGE
        found.append(UNKNOWN_LANGUAGE if is_unknown else require_language(name, line))
    return "\n".join(dict.fromkeys(found))


UNKNOWN_LANGUAGE = "und"
"""Tag of a language that is not known."""

LINES = Form("lines", _text)
"""A text; several values one a line, of which one is enough."""
LANGUAGES = Form("languages", _languages)
"""Tags of BCP 47, one a line; names and codes of ISO 639 become such a tag, ``und`` stands for an unknown
language.
"""
PATHS = Form("paths", _path)
"""Paths or patterns, one a line; a path becomes its text."""


# -- ranges --------------------------------------------------------------------------------------------------


def _pair(name: str, pair: Any, kind: type = object) -> tuple[Any, Any]:
    if isinstance(pair, str) or not (isinstance(pair, Sequence) and len(pair) == 2):
        raise InvalidValue(f"{name} {pair!r:.200}: give two bounds; None is no limit")
    for bound in pair:
        if bound is not None:
            require_kind(name, bound, kind, f"a {kind.__name__}; `Filter.parse` reads texts")
    return pair[0], pair[1]


def _require_order(name: str, low: Any, high: Any) -> None:
    if low is not None and high is not None and low > high:
        if isinstance(low, datetime) and low.date() != high.date():
            low, high = low.date(), high.date()
        raise InvalidValue(f"{name} {low}..{high}: the first must not be above the second")


def _seconds(name: str, pair: Any) -> Bounds:
    low, high = _pair(name, pair)
    for bound in (low, high):
        if bound is not None and not is_number(bound, 0):
            raise InvalidValue(f"{name} {bound!r:.200}: give seconds, 0 or more")
    _require_order(name, low, high)
    if low == math.inf:
        raise InvalidValue(f"{name} {low!r}..: nothing is as long; give seconds")
    return None if low is None else float(low), None if high in (None, math.inf) else float(high)


def _positions(name: str, pair: Any) -> tuple[Position | None, Position | None]:
    low, high = _pair(name, pair, Position)
    for bound in filter(None, (low, high)):
        if not math.isfinite(bound.value):
            raise InvalidValue(f"{name} {bound.value}: give finite positions")
        if bound.share and abs(bound.value) > 1:
            raise InvalidValue(f"{name} {bound}: at most 100%")
    # Others depend on the length of a video.
    alike = low and high and (low.share, low.from_end) == (high.share, high.from_end)
    if alike and low.value > high.value:
        raise InvalidValue(f"{name} {low}..{high}: the first must not be above the second")
    return low, high


def _times(name: str, pair: Any) -> tuple[datetime | None, datetime | None]:
    first, last = _pair(name, pair, datetime)
    try:
        instants = [bound and bound.astimezone() for bound in (first, last)]
    except (ValueError, OverflowError, OSError) as error:
        # The first and the last year do not exist in every zone.
        raise InvalidValue(f"{name} {first}..{last}: give years from 0002 to 9998") from error
    _require_order(name, *instants)
    return first, last


def _ranged(text: Callable[[Any], str]) -> Callable[[tuple[Any, Any]], str]:
    return lambda pair: "..".join("" if bound is None else text(bound) for bound in pair)


SECONDS = Form(
    "seconds", _seconds, lambda text, what: parse_range(text, what, parse_seconds), _ranged(plain_seconds),
    (None, None), "LOW..HIGH",
)  # fmt: skip
"""Seconds, ``LOW..HIGH``: :data:`Bounds`."""
POSITIONS = Form(
    "positions", _positions, lambda text, what: parse_range(text, what, Position.parse), _ranged(str),
    (None, None), "LOW..HIGH",
)  # fmt: skip
"""Two :class:`Position`, ``LOW..HIGH``."""


def _periods(text: str | None, what: str) -> tuple[datetime | None, datetime | None]:
    """Times of ``FROM..TO``, or of one period; years, months and days count whole."""
    if text is not None:
        require_kind(what, text, str, "a text, FROM..TO")
    if text is not None and ".." not in text:
        text = f"{text}..{text}"
    since, until = parse_range(text, what, _period)
    return since and since[0], until and until[1]


def _period(text: str, what: str) -> tuple[datetime, datetime]:
    """The first and the last moment of a year, a month, a day, or a time."""
    match = re.fullmatch(_PART, text.strip())
    try:
        if not match:
            moment = datetime.fromisoformat(text.strip())
            return moment, moment
        year, month, day = match.groups()
        first = datetime(int(year), int(month or 1), int(day or 1))
        if day:
            after = first + timedelta(days=1)
        elif month:
            after = (first + timedelta(days=32)).replace(day=1)
        else:
            after = first.replace(year=first.year + 1)
    except (ValueError, OverflowError) as error:
        remedy = "write it as 2024-05-31, or with a time as 2024-05-31T18:30"
        if match:
            remedy = "no such day; write 2021, 2023-05 or 2023-05-31"
        raise InvalidValue(f"{what} {text!r}: {remedy}") from error
    return first, after - _TICK


def _period_text(pair: tuple[datetime | None, datetime | None]) -> str:
    """The shortest text that :func:`_periods` reads as these times."""
    since, until = (_bound_text(bound, place) for place, bound in enumerate(pair))
    return since if since == until else f"{since}..{until}"


def _bound_text(bound: datetime | None, place: int) -> str:
    if bound is None:
        return ""
    exact = bound.isoformat(timespec="auto" if bound.second or bound.microsecond else "minutes")
    if bound.tzinfo is not None:
        return exact
    day = bound.date().isoformat()
    return next((text for text in (day[:4], day[:7], day) if _period(text, "")[place] == bound), exact)


TIMES = Form("times", _times, _periods, _period_text, (None, None), "FROM..TO")
"""Two times, ``FROM..TO``; without a zone they are local."""


# -- places --------------------------------------------------------------------------------------------------


def _near(name: str, value: Any) -> Any:
    require_kind(name, value, Near, "a Near; `Filter.parse` reads texts")
    return value


PLACE = Form("place", _near, Near.parse, str, metavar="LAT,LON[,DISTANCE]")
"""A :class:`Near`."""


def assumed_distance(near: str | None) -> str:
    """A note on a place, as text of :meth:`Near.parse`, that has no distance; else an empty text."""
    if near is None or near.count(",") != 1:
        return ""
    return f"near {near}: at most {_NEARBY / 1000:g} km away; another distance: {near},5km"


# -- options -------------------------------------------------------------------------------------------------


def _integer(name: str, value: Any) -> int:
    if not is_integer(value, 1):
        raise InvalidValue(f"{name}={value!r:.200}: give an integer, at least 1")
    return int(value)


def _score(name: str, value: Any) -> float:
    least: Any = BANDS.get(value) if isinstance(value, str) else value  # type: ignore[call-overload]
    if not is_number(least, 0, 1):
        raise InvalidValue(f"{name}={value!r:.200}: give a score from 0 to 1, or {', '.join(BANDS)}")
    return float(least)


def _written_score(given: Any, _: str) -> Any:
    """A score or a band, as people write them on a command line."""
    if not isinstance(given, str):
        return given
    try:
        return float(given)
    except ValueError:
        return given.strip().lower()


def _flag(name: str, value: Any) -> bool:
    require_kind(name, value, bool, "True or False")
    return bool(value)


def _names(name: str, value: Any) -> frozenset[str]:
    names = several(name, value)
    for one in names:
        require_kind(name, one, str, "ids of videos")
    return frozenset(names)


INTEGER = Form("integer", _integer)
"""At least 1."""
SCORE = Form("score", _score, _written_score, metavar="SCORE|BAND")
"""In [0, 1], or a band, which becomes the least score that it has."""
FLAG = Form("flag", _flag)
"""True or False."""
NAMES = Form("names", _names, written=sorted)
"""Ids of videos."""
CHOICE = Form("choice", lambda _, value: value)
"""One of the ``choices`` of its field."""
