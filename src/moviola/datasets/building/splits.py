"""The draw of val and test queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from moviola.errors import InvalidValue

__all__ = ["draw_queries"]


def draw_queries(captions: Iterable[str], sizes: Mapping[str, int], seed: int) -> dict[str, dict[str, str]]:
    """Draw queries at random for splits such as val and test, without a text in two of them.

    Args:
        captions: of all moments; identical ones are one query.
        sizes: split to number of queries.
        seed: of the draw.

    Returns:
        split to query id to text; ids are numbers over all splits, from 1.

    Raises:
        InvalidValue: more queries than different captions.
    """
    texts = list(dict.fromkeys(captions))
    wanted = sum(sizes.values())
    if wanted > len(texts):
        raise InvalidValue(f"{wanted} queries of {len(texts)} different captions: give a smaller number")
    drawn = np.random.default_rng(seed).permutation(len(texts))[:wanted].tolist()
    splits: dict[str, dict[str, str]] = {}
    first = 0
    for name, size in sizes.items():
        splits[name] = {str(first + n + 1): texts[drawn[first + n]] for n in range(size)}
        first += size
    return splits
