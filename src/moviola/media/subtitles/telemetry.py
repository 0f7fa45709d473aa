"""What cameras and drones write into subtitles: their instruments, a cue for every picture or second."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from moviola.media.subtitles.values import Fix, Line, Notes

__all__ = ["split_telemetry"]

_NUMBER = r"[-+]?\d{1,9}(?:\.\d{1,12})?"
# Names of instruments with a number or a bracket behind them.
_FIELDS = re.compile(
    r"(?<![A-Za-z.])(lat(?:itude)?|lon(?:g|gt?itude)?|gps|home|(?:rel_|abs_)?alt(?:itude)?|baro(?:meter)?|iso"
    r"|shutter|ss|fnum|f(?=/)|ev|ct|focal_len|d?zoom(?:_ratio)?|color_md|framecnt|srtcnt|difftime|flighttime"
    r"|(?:uav|gls)bat(?:cells)?|signal|bitrate|rcsignal|delay|ch|[hv]\.s|[hd](?= \d)|speed|heading|course|yaw"
    r"|pitch|roll|sats?|satellites|hdop|[nsew](?=[: ]?\d))\s{0,2}[:=/]?\s{0,2}[\[(]?\s?[-+]?\d",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?<!\d)((?:19|20)\d\d)[-./:](\d\d)[-./:](\d\d)[ T,]{1,3}(\d\d):(\d\d):(\d\d)"
    r"(?:[.,:]\d{1,6}){0,2}(?!\d)(Z?)"
)
_LATITUDE = re.compile(rf"(?<![a-z])lat(?:itude)?\s?[:=]?\s?({_NUMBER})", re.IGNORECASE)
_LONGITUDE = re.compile(rf"(?<![a-z])lon(?:g|gt?itude)?\s?[:=]?\s?({_NUMBER})", re.IGNORECASE)
_BY_LETTER = tuple(
    re.compile(rf"(?<![a-z])([{first}])[: ]{{0,2}}({_NUMBER})\W{{0,4}}([{then}])[: ]{{0,2}}({_NUMBER})", re.I)
    for first, then in (("NS", "EW"), ("EW", "NS"))
)
# Text before it may be the place of the start.
_HERE = re.compile(r"(?<![a-z])gps(?![a-z])", re.IGNORECASE)
# Longitude first.
_POINT = re.compile(
    rf"gps\s?[:=]?\s?\(\s?({_NUMBER})\s?,\s?({_NUMBER})\s?(?:,\s?({_NUMBER}))?", re.IGNORECASE
)
_ALTITUDE = re.compile(rf"(?<![a-z_])(?:abs_)?alt(?:itude)?\s?[:=]?\s?({_NUMBER})", re.IGNORECASE)
# What receivers of satellites send (NMEA 0183, RMC): time, whether they are seen, degrees and minutes, day.
_RECEIVER = re.compile(
    r"\$G[A-Z]RMC,(\d\d)(\d\d)(\d\d)(?:\.\d*)?,A,(\d{2})(\d\d\.\d+),([NS]),(\d{3})(\d\d\.\d+),([EW]),"
    r"[^,]*,[^,]*,(\d\d)(\d\d)(\d\d)"
)
_SEVERAL = 3
# Cues by which it is decided whether a file is of instruments, and that differ in their numbers alone.
_SAMPLE, _ALIKE = 100, 5
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


def split_telemetry(lines: Sequence[Line], notes: Notes) -> tuple[Sequence[Line], tuple[Fix, ...]]:
    """Lines that say something, and what a camera noted. Where less than half of the cues are of instruments,
    they are words about such, and stay.
    """
    sample = lines[:: max(1, len(lines) // _SAMPLE)]
    form = _common_form(sample)
    if 2 * sum(_is_reading(line.text, form) for line in sample) < max(1, len(sample)):
        return lines, ()
    said: list[Line] = []
    fixes: dict[int, Fix] = {}
    for line in lines:
        if not _is_reading(line.text, form):
            said.append(line)
            continue
        notes.add("telemetry", line.text)
        if int(line.start) not in fixes and (fix := _fix_of(line)):
            fixes[int(line.start)] = fix
    return said, tuple(fixes[second] for second in sorted(fixes))


def _common_form(sample: Sequence[Line]) -> str:
    """What most of some cues are but for their numbers, of which there are several, as a clock has or a
    display of any instruments; empty where they are not alike.
    """
    forms = Counter(_form_of(line.text) for line in sample)
    form, count = forms.most_common(1)[0] if forms else ("", 0)
    return form if count >= max(_ALIKE, len(sample) / 2) and form.count("0") >= _SEVERAL else ""


def _form_of(text: str) -> str:
    return _NUMBERS.sub("0", text[:2000])


def _is_reading(text: str, form: str) -> bool:
    """Whether a text names several instruments with their numbers, is a date and a time alone, or has the
    form that most have.
    """
    text = text[:2000]
    if (form and _form_of(text) == form) or _RECEIVER.search(text):
        return True
    clock = _CLOCK.search(text)
    if clock and len(text) - len(clock[0]) <= 2:
        return True
    fields = {name.lower() for name in _FIELDS.findall(text)}
    return len(fields) + bool(clock) >= _SEVERAL


def _fix_of(line: Line) -> Fix | None:
    """Time and place of a reading; None where it has neither."""
    text = line.text[:2000]
    taken = ""
    if received := _RECEIVER.search(text):
        return _received(line.start, received)
    if clock := _CLOCK.search(text):
        with suppress(ValueError):  # a 32nd of a month
            taken = datetime.fromisoformat("{}-{}-{}T{}:{}:{}{}".format(*clock.groups())).isoformat()
    latitude, longitude, altitude = _place_of(text)
    if not taken and latitude is None:
        return None
    return Fix(line.start, taken, latitude, longitude, altitude)


def _received(start: float, found: re.Match[str]) -> Fix:
    hour, minute, second, north, north_minutes, south, east, east_minutes, west, day, month, year = (
        found.groups()
    )
    taken = ""
    with suppress(ValueError):  # a 32nd of a month
        taken = datetime.fromisoformat(f"20{year}-{month}-{day}T{hour}:{minute}:{second}Z").isoformat()
    latitude = (int(north) + float(north_minutes) / 60) * (-1 if south == "S" else 1)
    longitude = (int(east) + float(east_minutes) / 60) * (-1 if west == "W" else 1)
    if abs(latitude) > 90 or abs(longitude) > 180:
        return Fix(start, taken)
    return Fix(start, taken, latitude, longitude)


def _place_of(text: str) -> tuple[float | None, float | None, float | None]:
    """Latitude, longitude and altitude; None where no satellite was seen, which is written as a null."""
    high = _ALTITUDE.search(text)
    altitude = float(high[1]) if high else None
    north, east = _LATITUDE.search(text), _LONGITUDE.search(text)
    if north and east:
        latitude, longitude = float(north[1]), float(east[1])
    elif point := _POINT.search(text):
        longitude, latitude = float(point[1]), float(point[2])
        if altitude is None and point[3]:
            altitude = float(point[3])
    elif by_letter := _lettered(text):
        latitude, longitude = by_letter
    else:
        return None, None, None
    if (latitude, longitude) == (0.0, 0.0) or abs(latitude) > 90 or abs(longitude) > 180:
        return None, None, None
    return latitude, longitude, altitude


def _lettered(text: str) -> tuple[float, float] | None:
    """Degrees north and east of a place whose numbers have letters, in either order."""
    here = _HERE.search(text)
    for pattern in _BY_LETTER:
        if found := pattern.search(text, here.end() if here else 0):
            signed = {
                letter.upper(): -float(number) if letter in "sSwW" else float(number)
                for letter, number in (found.group(1, 2), found.group(3, 4))
            }
            north, east = (next(signed[one] for one in both if one in signed) for both in ("NS", "EW"))
            return north, east
    return None
