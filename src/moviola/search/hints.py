"""What a text asks for that a filter knows better: when something was filmed, and where."""

from __future__ import annotations

import re

from moviola.words.english import is_english

__all__ = ["dates_in", "names_in"]

_MONTHS = (
    "jan|january|januar|enero|ene", "feb|february|februar|febrero", "mar|march|märz|marzo",
    "apr|april|abril|abr", "may|mai|mayo", "jun|june|juni|junio", "jul|july|juli|julio",
    "aug|august|agosto|ago", "sep|sept|september|septiembre|setiembre", "oct|october|oktober|okt|octubre",
    "nov|november|noviembre",
    "dec|december|dezember|dez|diciembre|dic",
)  # fmt: skip
_NUMBER_OF = {name: at for at, names in enumerate(_MONTHS, 1) for name in names.split("|")}
_YEAR, _NAME = r"(?P<year>(?:19|20)\d\d)", rf"(?P<name>{'|'.join(_NUMBER_OF)})"
_DAY = r"(?P<day>[1-3]?\d)(?:st|nd|rd|th|\.)?"
_HAN = re.compile(rf"(?<!\d){_YEAR}年(?:(?P<month>1?\d)月(?:(?P<day>[1-3]?\d)[日号])?)?")
_WORDS = (
    rf"{_YEAR}-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?",
    rf"(?:{_DAY}\s+(?:de\s+)?)?{_NAME}\.?,?\s+(?:de\s+)?{_YEAR}",
    rf"{_NAME}\s+{_DAY},?\s+{_YEAR}",
    _YEAR,
)
_FORMS = (_HAN, *(re.compile(rf"(?<![\w.-]){form}(?![\w-]|[.,]\d)", re.IGNORECASE) for form in _WORDS))


def dates_in(text: str) -> list[tuple[str, str]]:
    """Years, months and days that a text names, each as it is written and as ``--taken`` reads it.

    They are read in English, German, Spanish and Chinese, and as ISO 8601.

    >>> dates_in("the harbour in July 2024"), dates_in("am 3. Mai 2019"), dates_in("a Boeing 747")
    ([('July 2024', '2024-07')], [('3. Mai 2019', '2019-05-03')], [])
    """
    found: list[tuple[int, int, str]] = []
    for form in _FORMS:
        for match in form.finditer(text):
            taken = any(start < match.end() and match.start() < end for start, end, _ in found)
            value = "" if taken else _value(match.groupdict())
            if value:
                found.append((*match.span(), value))
    return [(text[start:end], value) for start, end, value in sorted(found)]


def names_in(text: str) -> list[str]:
    """Words of an English text that are written as names are: inside it with a capital, or alone.

    >>> names_in("a tram in Berlin"), names_in("Hamburg"), names_in("A dog"), names_in("ein Hund am Strand")
    (['Berlin'], ['Hamburg'], [], [])
    """
    first, *words = re.findall(r"\w+", text) or [""]
    if words and not is_english(text):
        return []
    named = [word for word in (words or [first]) if word[:1].isupper() and not word.isupper()]
    return [word for word in named if word.lower() not in _NUMBER_OF]


def _value(parts: dict[str, str | None]) -> str:
    """A date as ISO 8601, as far as it is known; empty for a month or day that is none."""
    name = parts.get("name")
    month = _NUMBER_OF[name.lower()] if name else int(parts.get("month") or 0)
    day = int(parts.get("day") or 0)
    if month > 12 or day > 31 or (day and not month) or (parts.get("month") and not month):
        return ""
    return f"{parts['year']}" + (f"-{month:02d}" if month else "") + (f"-{day:02d}" if day else "")
