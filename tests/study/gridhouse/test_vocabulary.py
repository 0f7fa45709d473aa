"""The rule of relevance and the sentences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.study.datasets.gridhouse.vocabulary import (
    ACTIONS,
    COLOURS,
    FLOORS,
    ROBOTS,
    TYPES,
    Slots,
    Thing,
    caption,
    imprecise,
    relevance,
)

things = st.builds(Thing, st.sampled_from(COLOURS), st.sampled_from(TYPES))


@st.composite
def moments(draw: st.DrawFn) -> Slots:
    action = draw(st.sampled_from(ACTIONS))
    second = draw(things) if action == "put" else None
    return Slots(draw(st.sampled_from(ROBOTS)), action, draw(things), second, draw(st.sampled_from(FLOORS)))


seeds = st.integers(0, 2**32 - 1)


@given(moments(), moments())
def test_levels_are_0_to_4_and_the_moment_itself_is_perfect(a: Slots, b: Slots) -> None:
    assert relevance(a, a) == 4
    assert 0 <= relevance(a, b) <= 4
    assert (relevance(a, b) == 4) == (a == b or (b.action == a.action and _same_but_unnamed(a, b)))


def _same_but_unnamed(query: Slots, moment: Slots) -> bool:
    """Equal in everything that the query names."""
    same_second = query.second is None or query.second == moment.second
    return (
        (query.robot, query.action, query.thing, query.room)
        == (moment.robot, moment.action, moment.thing, moment.room)
    ) and same_second


@given(moments(), moments(), seeds)
def test_naming_less_never_loses_relevance(moment: Slots, other: Slots, seed: int) -> None:
    _, left = imprecise(moment, np.random.default_rng(seed))
    assert relevance(left, moment) == 4
    assert relevance(left, other) >= relevance(moment, other) - (1 if left.second != moment.second else 0)


@given(moments(), seeds)
def test_an_imprecise_query_names_less_and_something(moment: Slots, seed: int) -> None:
    text, left = imprecise(moment, np.random.default_rng(seed))
    named = [left.robot, left.room, left.thing.colour, left.thing.type, left.second and left.second.colour]
    full = [
        moment.robot,
        moment.room,
        moment.thing.colour,
        moment.thing.type,
        moment.second and moment.second.colour,
    ]
    assert sum(x is None for x in named) > sum(x is None for x in full)
    assert left.thing.colour or left.thing.type
    for word in (left.robot, left.thing.colour, left.thing.type, left.room):
        assert word is None or word in text


@given(moments(), seeds)
def test_a_caption_names_every_slot(moment: Slots, seed: int) -> None:
    words = caption(moment, np.random.default_rng(seed)).split()
    for slot in (moment.robot, moment.thing.colour, moment.thing.type, moment.room):
        assert slot in words
    if moment.second:
        assert moment.second.colour in words and moment.second.type in words


@pytest.mark.parametrize(
    ("query", "moment", "level"),
    [
        (Slots("red", "open", Thing("blue", "door"), None, "grey"), {}, 4),
        (Slots("green", "open", Thing("blue", "door"), None, "grey"), {}, 3),
        (Slots("green", "open", Thing("blue", "door"), None, "pink"), {}, 2),
        (Slots("red", "open", Thing("pink", "door"), None, "grey"), {}, 1),
        (Slots("red", "close", Thing("blue", "door"), None, "grey"), {}, 1),
        (Slots("red", "go to", Thing("blue", "door"), None, "grey"), {}, 1),
        (Slots("red", "drop", Thing("blue", "door"), None, "grey"), {}, 0),
        (Slots("red", "open", Thing("blue", "box"), None, "grey"), {}, 0),
        (Slots(None, "open", Thing(None, "door"), None, None), {}, 4),
        (Slots("red", "put", Thing("blue", "key"), Thing("pink", "box"), "grey"), {"drop": True}, 0),
        (Slots("red", "put", Thing("blue", "key"), Thing("pink", "box"), "grey"), {"put": True}, 2),
    ],
)
def test_the_rule_by_example(query: Slots, moment: dict[str, bool], level: int) -> None:
    slots = Slots("red", "open", Thing("blue", "door"), None, "grey")
    if "drop" in moment:  # a related action (3) and no second object (2)
        slots = Slots("red", "drop", Thing("blue", "key"), None, "grey")
    if "put" in moment:
        slots = Slots("red", "put", Thing("blue", "key"), Thing("cyan", "ball"), "grey")
    assert relevance(query, slots) == level
