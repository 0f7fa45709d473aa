"""What the similarity of pseudo labels changes: gridhouse's slots against a sentence encoder.

    python benchmarks/pseudo_similarity.py [--videos 120] [--seed 71]

Both ways of `moviola gridhouse --similarity` on the same films and queries: how similarity follows true
relevance over all pairs of a query and a moment, how the two orders differ, what the best 20 moments of a
query are worth. `pseudo_similarity.json` beside it is what the defaults print. What models learn of each is
in the comparison ("The similarity of pseudo labels").
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from moviola.encoders import load_sentence_encoder
from moviola.study.datasets import gridhouse
from moviola.study.datasets.gridhouse import Slots
from moviola.study.datasets.gridhouse.dataset import SentenceSimilarity, WordSimilarity
from moviola.study.datasets.gridhouse.vocabulary import plain

TOP = 20
ENCODER = "minilm"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=int, default=120)
    parser.add_argument("--seed", type=int, default=71)
    options = parser.parse_args()
    print(json.dumps(labels(options.videos, options.seed), indent=1))


def labels(videos: int, seed: int) -> dict[str, Any]:
    """Both similarities of queries and moments of the training films, beside true relevance."""
    films = [gridhouse.simulate(seed, number=n, video_id=f"gh-{n:04d}") for n in range(round(0.6 * videos))]
    moments = [moment for film in films for moment in film.moments]
    draw = np.random.default_rng(seed)
    slots_of = dict(ask(moment.slots, number, draw) for number, moment in enumerate(moments))
    grades = np.array([[gridhouse.relevance(q, m.slots) for m in moments] for q in slots_of.values()])
    words = WordSimilarity([plain(moment.slots) for moment in moments])
    sentences = SentenceSimilarity([m.caption for m in moments], load_sentence_encoder(ENCODER))
    ways = {
        "slots": np.stack([words.to(plain(slots)) for slots in slots_of.values()]),
        ENCODER: np.stack([sentences.to(text) for text in slots_of]),
    }
    best = {name: np.argsort(-table, axis=1, kind="stable")[:, :TOP] for name, table in ways.items()}
    shared = [
        len(set(a) & set(b)) / TOP for a, b in zip(*(rows.tolist() for rows in best.values()), strict=True)
    ]
    a, b = ways.values()
    return {
        "queries": len(slots_of),
        "moments": len(moments),
        "Spearman of both": correlation(a, b),
        "Spearman of both, mean of queries": per_query(a, b),
        "share of the best 20 in both": float(np.mean(shared)),
        "same best moment": float(np.mean(best["slots"][:, 0] == best[ENCODER][:, 0])),
        **{name: of_one(table, grades, best[name]) for name, table in ways.items()},
    }  # fmt: skip


def ask(slots: Slots, number: int, draw: np.random.Generator) -> tuple[str, Slots]:
    """A query about a moment: precise and imprecise in turn, as the data set's."""
    return gridhouse.imprecise(slots, draw) if number % 2 else (gridhouse.caption(slots, draw), slots)


def correlation(a: Any, b: Any) -> float:
    """Spearman's rank correlation of all values."""
    return float(spearmanr(np.ravel(a), np.ravel(b)).statistic)


def per_query(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The mean over queries (rows) of :func:`correlation`."""
    return float(np.mean([correlation(x, y) for x, y in zip(a, b, strict=True)]))


def of_one(table: Floats, grades: NDArray[np.int64], best: NDArray[np.int64]) -> dict[str, Any]:
    """What one way of similarity is like."""
    chosen, levels = (np.take_along_axis(values, best, axis=1) for values in (table, grades))
    squared = chosen**2
    return {
        "Spearman with relevance": correlation(table, grades),
        "Spearman with relevance, mean of queries": per_query(table, grades),
        "Spearman with relevance, relevant pairs alone": correlation(table[grades > 0], grades[grades > 0]),
        "mean relevance of the best 20": float(levels.mean()),
        "share of the best 20 that is not relevant": float((levels == 0).mean()),
        "similarity of the best 20, quantiles": np.quantile(chosen, QUANTILES).tolist(),
        "squared, quantiles": np.quantile(squared, QUANTILES).tolist(),
        "squared, by relevance 0 to 4": [
            float(squared[levels == grade].mean()) if (levels == grade).any() else None for grade in range(5)
        ],
        "squared, 20th beside 1st of a query": float((squared[:, -1] / squared[:, 0]).mean()),
    }


if __name__ == "__main__":
    main()
