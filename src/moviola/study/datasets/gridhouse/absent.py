"""Queries that nothing in a gridhouse answers, in its own words.

Each asks for something like a moment that is there, but with another colour, by another robot or in another
room, so that no moment of any film has a relevance above 0: the nearest that a search can find is a relative
(an orange box, instead of a pink one).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.random import Generator

from moviola.errors import InvalidValue
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.study.datasets.gridhouse.vocabulary import (
    COLOURS,
    FLOORS,
    ROBOTS,
    Slots,
    caption,
    imprecise,
    pick,
    relevance,
)

__all__ = ["absent_queries", "add_absent"]

# Tries for each query, after which the world is taken to hold everything.
_TRIES = 2000


def add_absent(
    folder: Path, moments: Sequence[Slots], counts: Mapping[str, int], taken: set[str], *, share: float
) -> int:
    """Append queries that nothing answers to the pair files of a data set, with empty lists of moments.

    Args:
        folder: with ``test.json``, ``val.json`` and ``train_top*.json``.
        moments: of all films.
        counts: queries of each split that have an answer; ids go on after those of all.
        taken: texts of other queries; those that are added come to them.
        share: of the queries of each split, >= 0.

    Returns:
        how many.

    Raises:
        InvalidValue: the share is none, or films hold too much, see :func:`absent_queries`.
    """
    if not 0 <= share < math.inf:
        raise InvalidValue(f"absent {share}: give a share of the queries of each split, 0 or more, like 0.5")
    draw, number = np.random.default_rng([len(moments), 0xAB5]), sum(counts.values())
    wanted = {
        split: absent_queries(moments, round(share * count), taken, draw) for split, count in counts.items()
    }
    for split, queries in wanted.items():
        entries = [
            {"query_id": place, "query": text, "type": "v", "relevant_moment": []}
            for place, (text, _) in enumerate(queries, start=number)
        ]
        number += len(entries)
        for path in sorted(folder.glob(f"{split}_top*.json" if split == "train" else f"{split}.json")):
            if entries:
                write_json(path, [*read_json(path), *entries])
    return number - sum(counts.values())


def absent_queries(
    moments: Sequence[Slots], count: int, taken: set[str], draw: Generator
) -> list[tuple[str, Slots]]:
    """Texts that are not ``taken``, which they are added to, and what they name.

    Precise and imprecise in turn, as the queries that have an answer.

    Args:
        moments: of all films.
        count: how many queries, >= 0.

    Raises:
        InvalidValue: the films do not lack enough for that number of queries.
    """
    different = list(dict.fromkeys(moments))
    found: list[tuple[str, Slots]] = []
    for number in range(count):
        for _ in range(_TRIES):
            slots = _changed(pick(moments, draw), draw)
            text, named = imprecise(slots, draw) if number % 2 else (caption(slots, draw), slots)
            if text not in taken and not any(relevance(named, there) for there in different):
                taken.add(text)
                found.append((text, named))
                break
        else:
            raise InvalidValue(
                f"{count} queries that nothing answers: after {_TRIES:,} tries the films seem to hold "
                f"everything beside {len(found)}; ask for fewer, or make fewer films"
            )
    return found


def _changed(slots: Slots, draw: Generator) -> Slots:
    """The same action with a thing of another colour, a robot and a room by chance."""
    colour = pick([one for one in COLOURS if one != slots.thing.colour], draw)
    thing = replace(slots.thing, colour=colour)
    return replace(slots, thing=thing, robot=pick(ROBOTS, draw), room=pick(FLOORS, draw))
