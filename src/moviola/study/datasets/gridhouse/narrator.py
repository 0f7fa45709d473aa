"""Speech of films, as subtitles: a narrator, of things that the pictures do not show, and robots.

By the narrator there are queries that only words can answer ("t" in TVR's terms), that only pictures can
("v"), and that need both ("vt"). Robots speak in edited films only, of what they are about to do or of
nothing; no query is about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from moviola.study.datasets.gridhouse.episode import GridMoment
from moviola.study.datasets.gridhouse.vocabulary import pick
from moviola.types import Cue

__all__ = ["SpokenLine", "Tale", "converse", "narrate", "tale_query", "tale_relevance", "to_srt"]

_WHO = ("postman", "lighthouse keeper", "dentist", "violinist", "baker", "sailor", "librarian", "gardener",
        "astronomer", "tailor", "ferryman", "magician")  # fmt: skip
_DEEDS = ("lost", "found", "sold", "painted", "repaired", "forgot", "stole", "buried")
_WHAT = ("umbrella", "violin", "telescope", "teapot", "bicycle", "map", "lantern", "piano", "compass",
         "letter", "clock", "suitcase")  # fmt: skip
_WHERE = ("Elmsford", "Ravenhill", "Port Amber", "Larkspur", "Whitcombe", "Saltmarsh", "Dunmore", "Oakhaven")
_WHEN = ("in the fog", "during the storm", "one snowy morning", "on a summer night", "in the rain",
         "before the harvest")  # fmt: skip

# Approximate duration of a line, and of the silence before it (seconds).
_LINE = (2.4, 4.2)
_SILENCE = (6.0, 30.0)

# What robots say, how often on the way to a deed, and for how many seconds.
_SAID = (
    "Where did I leave that {}?", "I have looked for a {} all day.", "Wait, I see a {}.", "Is anybody there?",
    "Not again.", "It is so quiet here.", "Nobody must know of this.", "I will be back in a minute.",
)  # fmt: skip
_TALKS, _TALK = 0.5, (1.2, 2.4)


@dataclass(frozen=True, slots=True)
class Tale:
    """Facts of one line; in a query, None leaves a fact open."""

    who: str | None
    deed: str
    what: str
    where: str | None
    when: str | None


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """A line with its time."""

    cue: Cue
    tale: Tale


def narrate(seed: int, number: int, duration: float) -> list[SpokenLine]:
    """The lines of a film of ``duration`` seconds; same numbers, same story."""
    draw = np.random.default_rng([seed, 0x7461, number + 1])
    lines = []
    time = float(draw.uniform(*_SILENCE)) / 2
    while time + _LINE[1] < duration:
        end = round(time + float(draw.uniform(*_LINE)), 3)
        tale = Tale(*(pick(facts, draw) for facts in (_WHO, _DEEDS, _WHAT, _WHERE, _WHEN)))
        text = f"The {tale.who} from {tale.where} {tale.deed} a {tale.what} {tale.when}."
        lines.append(SpokenLine(Cue(round(time, 3), end, text), tale))
        time = end + float(draw.uniform(*_SILENCE))
    return lines


def converse(seed: int, number: int, moments: Sequence[GridMoment], lines: Sequence[SpokenLine]) -> list[Cue]:
    """What robots say on the way to some of the moments of a film, while the narrator is silent."""
    draw = np.random.default_rng([seed, 0x7361, number + 1])
    said = []
    for moment in moments:
        start = moment.start + 0.2
        text = pick(_SAID, draw).format(moment.slots.thing.type)
        cue = Cue(round(start, 3), round(start + float(draw.uniform(*_TALK)), 3), text)
        silent = all(line.cue.end <= cue.start or cue.end <= line.cue.start for line in lines)
        if draw.random() < _TALKS and silent and cue.end <= moment.event:
            said.append(cue)
    return said


def tale_query(tale: Tale, draw: Generator) -> tuple[str, Tale]:
    """A query about a line that leaves one or two of its facts open, and the facts that it names."""
    open_facts = draw.permutation(["who", "where", "when"])[: int(draw.integers(1, 3))].tolist()
    unsaid: dict[str, Any] = dict.fromkeys(open_facts)
    left = replace(tale, **unsaid)
    who = f"a {left.who}" if left.who else "somebody"
    home = f" from {left.where}" if left.where else ""
    when = f" {left.when}" if left.when else ""
    return f"{who}{home} {left.deed} a {left.what}{when}", left


def tale_relevance(query: Tale, line: Tale) -> int:
    """0 to 4: the deed and the thing are worth 3 each, every other fact that the query names 1."""
    penalty = 3 * (query.deed != line.deed) + 3 * (query.what != line.what)
    for fact in ("who", "where", "when"):
        wanted = getattr(query, fact)
        penalty += wanted is not None and wanted != getattr(line, fact)
    return max(0, 4 - penalty)


def to_srt(cues: Sequence[Cue]) -> str:
    """The cues as a SubRip file."""
    return "\n".join(
        f"{number}\n{_stamp(cue.start)} --> {_stamp(cue.end)}\n{cue.text}\n"
        for number, cue in enumerate(cues, start=1)
    )


def _stamp(seconds: float) -> str:
    minutes, rest = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d},{rest % 1000:03d}"
