"""When, where and with what a video was taken, from the metadata of its file.

Times, best first:

- text tags with a date and a time of day (``com.apple.quicktime.creationdate``, ``DATE_RECORDED``): local
  clock time, with its zone where the text has one;
- satellites, as cameras note them (:mod:`moviola.media.measured`): universal time;
- ``creation_time``: universal time by QuickTime and Matroska, but for years of an unset clock (1904, 1970);
- the name of the file (``IMG_20230501_143000``, ``2023-05-01 14.30.00``, ``DJI_20230501143000_0001_D``,
  ``2023_0501_143000_F``, ``Screen Recording 2023-05-01 at 2.30.00 PM``): local clock time without a zone,
  universal time after ``GMT``, before ``Z``, and in seconds since 1970 where a program is known for these
  (``RPReplay_Final1682944200``), or the day alone;
- what the camera noted second by second, in its telemetry among subtitles: local clock time.

Times in the future say nothing, nor do those of clocks that were never set: in names and ``creation_time``
those of the first day of 1980, 2000 or 2001.

Places are points of ISO 6709 (annex H). Tags of the file take precedence over those of the video stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from itertools import chain
from pathlib import Path

from moviola.media.measured import Measured
from moviola.media.subtitles.values import Fix
from moviola.types import Capture, CaptureSource

__all__ = ["CAPTURE_TAGS", "capture_of", "parse_point", "said_by_name", "with_fixes"]

_DATES = ("com.apple.quicktime.creationdate", "date_recorded", "datetimeoriginal", "date_digitized", "date")
_PLACES = ("com.apple.quicktime.location.iso6709", "location", "location-eng", "com.android.location")
_MAKES = ("com.apple.quicktime.make", "com.android.manufacturer", "make", "manufacturer")
_MODELS = ("com.apple.quicktime.model", "com.android.model", "model")
CAPTURE_TAGS = frozenset({*_DATES, *_PLACES, *_MAKES, *_MODELS})
"""Names of the tags that are read here, in small letters, beside ``creation_time``."""

# An unset clock starts in one of these years.
_UNSET = (1904, 1970)
_EPOCHS = {date(year, 1, 1) for year in _UNSET}
_FIRST_DAYS = {date(1980, 1, 1), date(2000, 1, 1), date(2001, 1, 1)}
# Years of films that are older than files; the first and the last year stand for none.
_YEARS = range(1888, 9999)
# Hours by which clocks of cameras may be ahead of this machine's: those of zones, and a little.
_AHEAD = timedelta(hours=15)
# Zones are quarters of an hour; and how wrong a camera's clock may be to show its zone.
_QUARTER, _WRONG = timedelta(minutes=15), timedelta(minutes=5)
_BEST_FIRST: tuple[CaptureSource, ...] = ("tags", "satellites", "container", "name")
# A day, and a time of day after a sign or at once (DJI: 14 digits), of 12 hours with AM or PM after it. Dash
# cameras part the year alone (Viofo: ``2023_0501_143000``). Between them may be a short word or two (``um``,
# ``a las``). After a time, thousandths may follow, and a zone.
_IN_NAME = re.compile(
    r"(?<!\d)(?P<gmt>GMT|UTC)?[-_ ]?(?<!\d)(?P<year>(?:19|20)\d\d)"
    r"(?:(?P<sign>[-_.]?)(?P<month>0[1-9]|1[0-2])(?P=sign)|[-_](?P<month2>0[1-9]|1[0-2]))"
    r"(?P<day>0[1-9]|[12]\d|3[01])"
    r"(?:(?:[-_ T.]*|\s+(?:[^\W\d_]{1,5}\s+){1,2})(?P<hour>[01]\d|2[0-3]|\d(?=[-_.:h]))"
    r"(?:(?P<part>[-_.:]?)(?P<minute>[0-5]\d)(?P=part)(?P<second>[0-5]\d)"
    r"|h(?P<minute2>[0-5]\d)[mh]?(?P<second2>[0-5]\d)s?)(?:\d{3})?(?!\d)"
    r"(?P<half>\s*[AaPp][Mm])?(?P<zone>Z(?![A-Za-z])|[+-](?:0\d|1[0-4]):?[0-5]\d(?!\d))?|(?!\d))"
)
# Names of programs and cameras that have another order: month first (screen recordings of iPhones), years of
# two digits (Nextbase and others), and seconds or thousandths since 1970.
_OTHERWISE = (
    re.compile(r"ScreenRecording_(?P<month>\d\d)-(?P<day>\d\d)-(?P<year>\d{4}) "
               r"(?P<hour>\d\d)-(?P<minute>\d\d)-(?P<second>\d\d)(?!\d)"),
    re.compile(r"(?:FILE)?(?P<year>\d\d)(?P<month>\d\d)(?P<day>\d\d)(?:(?<=FILE.{6})-|(?<!FILE.{6})_)"
               r"(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)(?:_\d{3}_[FR][HL]|(?<=FILE.{13})[FR]?)"),
)  # fmt: skip
_SINCE_1970 = re.compile(r"(?:RPReplay_Final|mmexport|wx_camera_|FB_VID_)(\d{10})(?:\d{3})?(?!\d)")
# Identifiers, which may look like a day.
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_EXIF = re.compile(r"(\d{4})[:/](\d\d)[:/](\d\d)([ T].*)")
_IN_WORDS = re.compile(r"[A-Za-z]{3},? .*\d\d:\d\d:\d\d")
_POINT = re.compile(r"([+-]\d{2,6}(?:\.\d+)?)([+-]\d{3,7}(?:\.\d+)?)(?:[+-]\d+(?:\.\d+)?)?(?:CRS[^/]*)?/?")


def capture_of(tags: Mapping[str, str], path: Path, measured: Sequence[Measured] = ()) -> Capture:
    """Capture data of a file by its tags, names in small letters, by its name, and by what a camera
    measured.
    """
    times: dict[CaptureSource, str] = {}
    for taken, read_of in _times(tags, path):
        times.setdefault(read_of, taken)
    place = next(filter(None, map(parse_point, _values(tags, _PLACES))), None)
    make, model = (next(_values(tags, names), "") for names in (_MAKES, _MODELS))
    for one in measured:
        if one.began and (began := _by_satellites(one.began, times.get("container", ""))):
            times.setdefault("satellites", began)
        if one.camera and not (make or model):
            make, model = "GoPro", one.camera
    source: CaptureSource = next((source for source in _BEST_FIRST if source in times), "")
    latitude, longitude = place or (None, None)
    capture = Capture(times.get(source, ""), source, latitude, longitude, make, model)
    return with_fixes(capture, chain.from_iterable(one.fixes for one in measured))


def _by_satellites(began: datetime, clock: str) -> str:
    """A universal time as ISO 8601; empty for one in the future. Cameras that write their local time as if it
    were universal show their zone, by how far it is from that of satellites.
    """
    if began > datetime.now(UTC) + _AHEAD:
        return ""
    zone = UTC
    if clock:
        ahead = datetime.fromisoformat(clock) - began
        quarters = round(ahead / _QUARTER)
        if abs(ahead - quarters * _QUARTER) <= _WRONG and abs(quarters) * _QUARTER <= _AHEAD:
            zone = timezone(quarters * _QUARTER)
    return began.astimezone(zone).isoformat(timespec="seconds")


def with_fixes(capture: Capture, fixes: Iterable[Fix]) -> Capture:
    """Capture data, and what they lack from what the camera noted second by second."""
    for fix in fixes:
        if not capture.taken and fix.taken and (found := _moment(fix.taken)):
            began = found - timedelta(seconds=int(fix.time))
            source: CaptureSource = "container" if found.tzinfo else "tags"  # universal time, or that there
            capture = replace(capture, taken=began.isoformat(timespec="seconds"), source=source)
        if capture.latitude is None and fix.place:
            capture = replace(capture, latitude=fix.latitude, longitude=fix.longitude)
    return capture


def _times(tags: Mapping[str, str], path: Path) -> Iterator[tuple[str, CaptureSource]]:
    """Times, the most informative first."""
    for text in _values(tags, _DATES):
        # A year, or a day, in a tag is usually that of the film's release.
        if len(text) > len("2023-05-01") and (found := _moment(text)) and found.date() not in _EPOCHS:
            yield found.isoformat(), "tags"
    for text in _values(tags, ("creation_time",)):
        if (found := _of_clock(text)) and found.year not in _UNSET:
            said = found.isoformat() if len(text) > len("2023-05-01") else found.date().isoformat()
            yield said, "container" if found.tzinfo else "tags"
    if text := said_by_name(path):
        yield text, "name"


def said_by_name(path: Path) -> str:
    """The time, or the day, in the name of a file, as ISO 8601; empty where no clock can have said one."""
    stem = _UUID.sub("", path.stem)
    text = _of_other_name(stem)
    if not text and (named := _IN_NAME.search(stem)):
        text = _of_name(named)
    if not text or (found := _of_clock(text)) is None:
        return ""
    return found.isoformat() if "T" in text else text


def _of_other_name(stem: str) -> str:
    """The time in a name of :data:`_OTHERWISE` or :data:`_SINCE_1970` as ISO 8601; empty for other names."""
    if since := _SINCE_1970.match(stem):
        return datetime.fromtimestamp(int(since[1]), UTC).isoformat()
    for pattern in _OTHERWISE:
        if named := pattern.match(stem):
            year = named["year"] if len(named["year"]) == 4 else f"20{named['year']}"
            return (
                f"{year}-{named['month']}-{named['day']}T{named['hour']}:{named['minute']}:{named['second']}"
            )
    return ""


def _of_name(named: re.Match[str]) -> str:
    """A date, or a date and a time, in a file's name as ISO 8601; empty for an impossible one."""
    day = f"{named['year']}-{named['month'] or named['month2']}-{named['day']}"
    if named["hour"] is None:
        return "" if named["month2"] else day
    hour = int(named["hour"])
    if half := named["half"]:
        if not 1 <= hour <= 12:
            return ""
        hour = hour % 12 + (12 if "p" in half.lower() else 0)
    minute, second = named["minute"] or named["minute2"], named["second"] or named["second2"]
    zone = "+00:00" if named["gmt"] or named["zone"] == "Z" else named["zone"] or ""
    return f"{day}T{hour:02}:{minute}:{second}{zone}"


def _of_clock(text: str) -> datetime | None:
    """A :func:`_moment`, not of a clock that was never set."""
    found = _moment(text)
    return None if found and found.date() in _FIRST_DAYS else found


def _moment(text: str) -> datetime | None:
    """A time in ISO 8601, as EXIF writes it (``2023:05:01 14:30:00``), or as mail and C do (``Mon May  1
    14:30:00 2023``), that a clock may have said.
    """
    if exif := _EXIF.fullmatch(text):
        text = f"{exif[1]}-{exif[2]}-{exif[3]}{exif[4]}"
    try:
        found = datetime.fromisoformat(re.sub(r"\s+(?=[+-]\d|Z$)", "", text.replace("UTC", "+00:00")))
    except ValueError:
        try:
            found = parsedate_to_datetime(text if _IN_WORDS.match(text) else "")
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    latest = datetime.now(UTC) + _AHEAD
    is_past = found.replace(tzinfo=found.tzinfo or UTC) <= latest
    return found if found.year in _YEARS and is_past else None


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
