"""The draw of val and test queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

import numpy as np

from moviola.errors import InvalidValue

__all__ = ["draw_queries"]


def draw_queries(captions: Iterable[str], sizes: Mapping[str, int], seed: int) -> dict[str, dict[str, str]]:
    """Draw queries at random for splits such as val and test, without a text in two of them.

    Args:
        captions: of all moments; identical ones are one query.
        sizes: split to number of queries, >= 0.

    Returns:
        split to query id to text; ids are numbers over all splits, from 1.

    Raises:
        InvalidValue: more queries than different captions, or less than none; a seed below 0.
    """
    texts = list(dict.fromkeys(captions))
    wanted = sum(sizes.values())
    if wanted > len(texts):
        raise InvalidValue(f"{wanted} queries of {len(texts)} different captions: give a smaller number")
    if min(sizes.values(), default=0) < 0:
        raise InvalidValue(f"{dict(sizes)}: numbers of queries; give at least 0")
    if seed < 0:
        raise InvalidValue(f"seed {seed}: give at least 0")
    drawn = np.random.default_rng(seed).permutation(len(texts))[:wanted].tolist()
    numbered = ((str(number), texts[place]) for number, place in enumerate(drawn, start=1))
    return {name: dict(islice(numbered, size)) for name, size in sizes.items()}
