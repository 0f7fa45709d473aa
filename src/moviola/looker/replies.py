"""JSON objects in what models say, which may stand in prose, in a fence, or after thoughts."""

from __future__ import annotations

import json
import re
from typing import Any

from moviola.files.plain import plain

__all__ = ["one_line", "only_object"]

_THOUGHT, _THOUGHT_ENDS = re.compile(r"<think(?:ing)?>"), re.compile(r"</think(?:ing)?>")
_MOST_TRIED = 50  # braces at which an object may begin
_LARGEST = 1e12  # of numbers: seconds, counts, weights


def only_object(said: str, *names: str) -> dict[str, Any] | None:
    """The object with one of some names in a reply; None without, and where several contradict each other.

    What holds a number that is none, or is larger than 1e12, is no object.
    """
    text = _without_thoughts(said)
    decoder = json.JSONDecoder(
        parse_int=lambda digits: int(_bounded(digits)), parse_float=_bounded, parse_constant=_bounded
    )
    found: list[dict[str, Any]] = []
    place = text.find("{")
    for _ in range(_MOST_TRIED):
        if place < 0:
            break
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            if isinstance(value, dict) and any(name in value for name in names):
                found.append(value)
        place = text.find("{", end)
    return found[0] if found and all(one == found[0] for one in found) else None


def _without_thoughts(said: str) -> str:
    """A reply without thoughts that have an end; one expression for both would search on to the end of the
    reply from every beginning.
    """
    parts, place = [], 0
    while begins := _THOUGHT.search(said, place):
        ends = _THOUGHT_ENDS.search(said, begins.end())
        if ends is None:
            break
        parts.append(said[place : begins.start()])
        place = ends.end()
    return "".join(parts) + said[place:]


def _bounded(digits: str) -> float:
    """A number of a reply; ValueError: none, or larger than anything that is counted here."""
    number = float(digits)
    if not abs(number) <= _LARGEST:
        raise ValueError(f"{digits:.20}: no number that is used here")
    return number


def one_line(text: Any, most: int) -> str:
    """A text of others on one line, without letters that steer a terminal, at most ``most`` long."""
    if not isinstance(text, str):
        return ""
    line = " ".join(plain(text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
