"""When, where and with what a video was taken, from the metadata of its file.

Times, best first:

- text tags with a date and a time of day (``com.apple.quicktime.creationdate``, ``DATE_RECORDED``): local
  clock time, with its zone where the text has one;
- ``creation_time``: universal time by QuickTime and Matroska, but for dates of an unset clock (1904, 1970);
- the name of the file (``IMG_20230501_143000``, ``2023-05-01 14.30.00``): local clock time without a zone, or
  the day alone.

Places are points of ISO 6709 (annex H). Tags of the file take precedence over those of the video stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from moviola.media.container import open_container
from moviola.types import Capture, CaptureSource

__all__ = ["CAPTURE_TAGS", "parse_point", "read_capture"]

_DATES = ("com.apple.quicktime.creationdate", "date_recorded", "datetimeoriginal", "date_digitized", "date")
_PLACES = ("com.apple.quicktime.location.iso6709", "location", "location-eng", "com.android.location")
_MAKES = ("com.apple.quicktime.make", "com.android.manufacturer", "make", "manufacturer")
_MODELS = ("com.apple.quicktime.model", "com.android.model", "model")
CAPTURE_TAGS = frozenset({*_DATES, *_PLACES, *_MAKES, *_MODELS})
"""Names of the tags that are read here, in small letters, beside ``creation_time``."""

# An unset clock starts in one of these years.
_UNSET = (1904, 1970)
# The first and the last year, which some programs write for none, have no time in every zone.
_YEARS = range(2, 9999)
_IN_NAME = re.compile(
    r"(?<!\d)((?:19|20)\d\d)([-_.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])"
    r"(?:[-_ T.]+([01]\d|2[0-3])([-_.:h]?)([0-5]\d)\6([0-5]\d)(?!\d)|(?!\d))"
)
_POINT = re.compile(r"([+-]\d{2,6}(?:\.\d+)?)([+-]\d{3,7}(?:\.\d+)?)(?:[+-]\d+(?:\.\d+)?)?(?:CRS[^/]*)?/?")


def read_capture(path: str | Path) -> Capture:
    """Read the capture data of a video file without decoding. Errors as of :func:`moviola.media.probe`."""
    with open_container(path) as container:
        tags: dict[str, str] = {}
        for holder in (container.metadata, *(stream.metadata for stream in container.streams.video)):
            for name, value in holder.items():
                tags.setdefault(name.lower(), value.strip())
    taken, source = next(_times(tags, Path(path)), ("", ""))
    latitude, longitude = next(filter(None, map(parse_point, _values(tags, _PLACES))), (None, None))
    make, model = (next(_values(tags, names), "") for names in (_MAKES, _MODELS))
    return Capture(taken, source, latitude, longitude, make, model)


def _times(tags: Mapping[str, str], path: Path) -> Iterator[tuple[str, CaptureSource]]:
    """Times, the most informative first."""
    for text in _values(tags, _DATES):
        # A year, or a day, in a tag is usually that of the film's release.
        if len(text) > len("2023-05-01") and (found := _moment(text)):
            yield found.isoformat(), "tags"
    for text in _values(tags, ("creation_time",)):
        if (found := _moment(text)) and found.year not in _UNSET:
            yield found.isoformat(), "container" if found.tzinfo else "tags"
    if named := _IN_NAME.search(path.stem):
        year, _, month, day, hour, _, minute, second = named.groups()
        text = f"{year}-{month}-{day}" + (f"T{hour}:{minute}:{second}" if hour else "")
        if found := _moment(text):
            yield found.isoformat() if hour else text, "name"


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.replace("UTC", "+00:00").replace(" +", "+"))
    except ValueError:
        return None
    return found if found.year in _YEARS else None


def _values(tags: Mapping[str, str], names: tuple[str, ...]) -> Iterator[str]:
    return (tags[name] for name in names if tags.get(name))


def parse_point(text: str) -> tuple[float, float] | None:
    """Latitude and longitude in degrees of a point of ISO 6709; None of anything else, and of a null.

    >>> parse_point("+52.5200+013.4050+034.0/")
    (52.52, 13.405)
    >>> parse_point("+5231.2-01324.3/")
    (52.52, -13.405)
    """
    match = _POINT.fullmatch(text.strip())
    if not match:
        return None
    latitude, longitude = _degrees(match[1], 2), _degrees(match[2], 3)
    known = abs(latitude) <= 90 and abs(longitude) <= 180 and (latitude, longitude) != (0.0, 0.0)
    return (latitude, longitude) if known else None


def _degrees(text: str, digits: int) -> float:
    """Degrees; written as degrees, degrees and minutes, or with seconds too, by the number of digits."""
    sign = -1.0 if text.startswith("-") else 1.0
    whole, _, fraction = text[1:].partition(".")
    parts = [whole[:digits], *re.findall("..?", whole[digits:])]
    parts[-1] += f".{fraction}"
    return sign * sum(float(part) / 60.0**place for place, part in enumerate(parts))
