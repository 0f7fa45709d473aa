"""What the stages beside retrieval take for one query: SPR's Table 2.

Times do not depend on what a model has learnt, so weights are random, and the sizes are the paper's: a text
tower of 12 layers of 768 (CLIP ViT-L/14's), SPR_ReLo with a hidden size of 384 and 768, SPR_CLIP-L; and Reel.
Segments are those of exact search, so every refiner has the same proposals.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from moviola.encoders import load_encoder
from moviola.features import VideoFeatures
from moviola.retrieval import Proposals, Refiner
from random_models import random_clip, random_refiner, text_tower
from scale.corpus import Corpus
from scale.measured import Spent, spent

__all__ = ["REFINERS", "stages"]

REFINERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "SPR_ReLo-S": ("spr-relo", ("model.hidden_size=384",)),
    "SPR_ReLo-L": ("spr-relo", ("model.hidden_size=768",)),
    "SPR_CLIP-L": ("spr-clip", ()),
    "Reel (ours)": ("reel", ()),
}
"""By their names in the paper: the recipe, and what is set."""

_TEXT = "a person in a red coat opens the door and picks up the key"
_WIDTH = 768


def stages(corpus: Corpus, exact: Path, queries: int) -> dict[str, Any]:
    """Seconds of each stage but retrieval, medians of some queries by text.

    Args:
        corpus: what was searched.
        exact: answers of exact search, as :func:`scale.measured.measured` keeps them.
        queries: how many.
    """
    first = len(corpus.queries["picture"])
    with np.load(exact) as found:
        hits = [
            (found["scores"][row][None], found["ids"][row][None]) for row in range(first, first + queries)
        ]
    proposing = [spent(corpus.proposals, *hit) for hit in hits]
    proposals = [found for found, _ in proposing]
    return {
        "queries": queries,
        "proposals": median(len(found.query) for found in proposals),
        "embedding": _median(_embedding(queries)),
        "proposing": _median([taken for _, taken in proposing]),
        "refining": {
            shown: _median(_refining(corpus, random_refiner(name, corpus.features, settings), proposals))
            for shown, (name, settings) in REFINERS.items()
        },
    }


def _median(taken: list[Spent]) -> dict[str, float]:
    return {clock: median(getattr(one, clock) for one in taken) for clock in ("wall", "cpu")}


def _embedding(queries: int) -> list[Spent]:
    with tempfile.TemporaryDirectory() as scratch:
        encoder = load_encoder(str(random_clip(Path(scratch) / "encoder", **text_tower(_WIDTH))))
        encoder.encode_text([_TEXT])
        return [spent(encoder.encode_text, [f"{_TEXT} {n}"])[1] for n in range(queries)]


def _refining(corpus: Corpus, refiner: Refiner, proposals: list[Proposals]) -> list[Spent]:
    """Seconds of each query's proposals; what does not depend on queries is made before, as in a library."""
    queries = corpus.query_features("text", len(proposals))

    def refine(row: int, features: VideoFeatures) -> None:
        refiner.refine(queries, row, features, proposals[row])

    refine(0, corpus.features.with_fresh_cache())
    features = corpus.features.with_fresh_cache()
    for video in np.unique(np.concatenate([found.video for found in proposals])).tolist():
        refiner.prepare(features, video)
    return [spent(refine, row, features)[1] for row in range(len(proposals))]
