"""Pseudo training sets and candidates for annotation (TVR-Ranking, sections 3.2 and 3.3).

Both rest on sim(q, m.c), the cosine of sentence embeddings of a query and a moment's caption.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.building.nearest import nearest
from moviola.types import several

__all__ = ["pseudo_training_set"]


def pseudo_training_set(
    moments: Annotations,
    embeddings: NDArray[np.float32],
    top: int,
    *,
    queries: tuple[Sequence[str], NDArray[np.float32]] | None = None,
    held_out: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """Every query with the ``top`` moments whose captions are most similar to it.

    Identical queries are one. Those whose text is in ``held_out`` (val and test), whatever blanks are
    around it, are removed; moments are not: the paper has 69,317 queries over a pool of 94,259 moments.

    Args:
        moments: the pool; captions that are imprecise already.
        embeddings: (m, d) float32 sentence embeddings of the captions, L2-normalised.
        top: N of the paper (1, 20, 40 or any other), >= 1.
        queries: q texts and their embeddings (q, d) float32, L2-normalised; by default the captions.

    Returns:
        entries in TVR-Ranking's pair-file form.

    Raises:
        InvalidValue: not one embedding for each moment and query, or a single text for ``held_out``.
    """
    texts, vectors = queries or (moments.captions, embeddings)
    for kind, rows, count in (("moments", embeddings, len(moments)), ("queries", vectors, len(texts))):
        if len(rows) != count:
            raise InvalidValue(f"{len(rows)} embeddings for {count} {kind}: give one each")
    banned = {text.strip() for text in several("held_out", held_out)}
    first_of: dict[str, int] = {}
    for place, text in enumerate(texts):
        if text.strip() not in banned:
            first_of.setdefault(text, place)
    positions, similarities = nearest(vectors[list(first_of.values())], embeddings, top)
    entries = []
    for number, (query, places, values) in enumerate(zip(first_of, positions, similarities, strict=True)):
        pairs = [
            {**moments.pair(place), "similarity": round(value, 6)}
            for place, value in zip(places.tolist(), values.tolist(), strict=True)
        ]
        entries.append({"query_id": number, "query": query, "relevant_moment": pairs})
    return entries
