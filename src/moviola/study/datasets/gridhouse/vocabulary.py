"""The language of gridhouse: the slots of an event, sentences for them, and the rule of relevance.

The rule (:func:`relevance`) is the one place that decides how well a moment answers a query. A query names
some slots; a moment fills all of them. From 4, each slot that the query names and the moment does not match
takes away what it is worth:

===========================  =  ========================================================
robot's colour               1
room                         1
second object's colour       1
second object's type         1
second object                2  the query names one and the moment has none
object's colour              3
a related action             3  pick up ~ put ~ drop; open ~ close; go to ~ pick up, open, close
object's type                4
another action               4
===========================  =  ========================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from numpy.random import Generator

__all__ = [
    "ACTIONS", "COLOURS", "FLOORS", "ROBOTS", "TYPES", "Action", "Slots", "Thing", "caption", "imprecise",
    "pick", "plain", "relevance",
]  # fmt: skip

_Choice = TypeVar("_Choice")

COLOURS = ("red", "green", "blue", "purple", "yellow", "grey", "orange", "pink", "cyan", "brown")
ROBOTS = ("red", "green", "blue", "purple", "yellow", "orange")
FLOORS = ("grey", "blue", "green", "yellow", "pink", "purple")
TYPES = ("key", "ball", "box", "door")

Action = Literal["go to", "pick up", "put", "drop", "open", "close"]
ACTIONS: tuple[Action, ...] = ("go to", "pick up", "put", "drop", "open", "close")

_RELATED = {
    frozenset(pair)
    for pair in (
        ("pick up", "put"), ("pick up", "drop"), ("put", "drop"), ("open", "close"),
        ("go to", "pick up"), ("go to", "open"), ("go to", "close"),
    )
}  # fmt: skip

# Third person and imperative of each way to say an action; the first object goes into {}.
_VERBS: dict[Action, tuple[tuple[str, str], ...]] = {
    "go to": (
        ("goes to {}", "go to {}"), ("walks up to {}", "walk up to {}"), ("approaches {}", "approach {}"),
    ),
    "pick up": (("picks up {}", "pick up {}"), ("takes {}", "take {}"), ("grabs {}", "get {}")),
    "put": (("puts {}", "put {}"), ("places {}", "place {}")),
    "drop": (("drops {}", "drop {}"), ("puts down {}", "put down {}")),
    "open": (("opens {}", "open {}"),),
    "close": (("closes {}", "close {}"), ("shuts {}", "shut {}")),
}  # fmt: skip
_BESIDE = ("next to {}", "beside {}")


@dataclass(frozen=True, slots=True)
class Thing:
    """An object as a sentence names it; what is None is left open."""

    colour: str | None
    type: str | None


@dataclass(frozen=True, slots=True)
class Slots:
    """Subject, action, objects and room. In a moment all are filled (``second`` for "put" only)."""

    robot: str | None
    action: Action
    thing: Thing
    second: Thing | None
    room: str | None


def relevance(query: Slots, moment: Slots) -> int:
    """How well a moment answers a query, 0 (not at all) to 4 (perfectly), by the rule above."""
    worth = [
        (1, query.robot, moment.robot),
        (1, query.room, moment.room),
        (3, query.thing.colour, moment.thing.colour),
        (4, query.thing.type, moment.thing.type),
    ]
    penalty = 0
    if query.action != moment.action:
        penalty = 3 if frozenset((query.action, moment.action)) in _RELATED else 4
    if query.second is not None and moment.second is None:
        penalty += 2
    elif query.second is not None and moment.second is not None:
        worth.append((1, query.second.colour, moment.second.colour))
        worth.append((1, query.second.type, moment.second.type))
    return max(0, 4 - penalty - sum(cost for cost, named, there in worth if named not in (None, there)))


def caption(slots: Slots, generator: Generator) -> str:
    """A precise sentence: every slot that is filled, in one of several wordings.

    >>> import numpy as np
    >>> key = Slots("green", "pick up", Thing("pink", "key"), None, "grey")
    >>> caption(key, np.random.default_rng(0)).endswith("the pink key in the grey room")
    True
    """
    return _sentence(slots, generator, "the", imperative=False)


def imprecise(slots: Slots, generator: Generator) -> tuple[str, Slots]:
    """A query about the same event that leaves one or two slots open, and the slots that it still names."""
    options = ["robot", "room", "colour"] if slots.second is None else ["robot", "room", "colour", "second"]
    if slots.thing.type != "door":
        options.append("type")
    count = int(generator.integers(1, 3))
    dropped = set(generator.permutation(options)[:count].tolist())
    if {"colour", "type"} <= dropped:
        dropped.remove("type")  # "pick up something" is about everything
    thing = replace(slots.thing, **dict.fromkeys(dropped & {"colour", "type"}))
    unnamed: dict[str, Any] = dict.fromkeys(dropped & {"robot", "room"})
    left = replace(slots, thing=thing, **unnamed)
    if slots.second is not None and "second" in dropped:
        left = replace(left, second=replace(slots.second, colour=None))
    imperative = left.robot is None and generator.random() < 0.5
    return _sentence(left, generator, "a", imperative=imperative), left


def plain(slots: Slots) -> str:
    """The slots that are named, in one wording: equal slots give equal texts.

    >>> plain(Slots(None, "pick up", Thing("pink", "key"), None, "grey"))
    'robot pick up pink key in the grey room'
    """
    things = [thing for thing in (slots.thing, slots.second) if thing is not None]
    named = [" ".join(filter(None, (thing.colour, thing.type or "something"))) for thing in things]
    who = f"{slots.robot} robot" if slots.robot else "robot"
    where = f" in the {slots.room} room" if slots.room else ""
    return f"{who} {slots.action} {' next to '.join(named)}{where}"


def _sentence(slots: Slots, generator: Generator, article: Literal["a", "the"], *, imperative: bool) -> str:
    third, order = pick(_VERBS[slots.action], generator)
    words = (order if imperative else third).format(_named(slots.thing, article))
    if slots.second is not None:
        words += " " + pick(_BESIDE, generator).format(_named(slots.second, article))
    if slots.room is not None:
        words += f" in the {slots.room} room"
    if imperative:
        return words
    who = f"{article} {slots.robot} robot" if slots.robot else "a robot"
    return f"{_with_article(who)} {words}"


def _named(thing: Thing, article: Literal["a", "the"]) -> str:
    if thing.type is None:
        return f"something {thing.colour}" if thing.colour else "something"
    noun = f"{thing.colour} {thing.type}" if thing.colour else thing.type
    return _with_article(f"{article} {noun}")


def _with_article(words: str) -> str:
    """``a orange key`` -> ``an orange key``."""
    return f"an {words[2:]}" if words.startswith("a ") and words[2] in "aeiou" else words


def pick(choices: Sequence[_Choice], generator: Generator) -> _Choice:
    """One of some choices, each equally likely."""
    return choices[int(generator.integers(len(choices)))]
