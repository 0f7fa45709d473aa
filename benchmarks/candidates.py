"""Nearest captions at TVR-Ranking's size: 69,317 queries x 94,259 captions, top 40, on random embeddings.

    python benchmarks/candidates.py            full size
    python benchmarks/candidates.py --share 0.1

Prints seconds, throughput and peak memory. The embeddings are random unit vectors: the time of the products
and of the selection hardly depends on the numbers.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from numpy.typing import NDArray

from moviola.study.datasets.building.nearest import nearest

QUERIES, CAPTIONS, DIM, TOP = 69_317, 94_259, 384, 40


def unit_rows(count: int, seed: int) -> NDArray[np.float32]:
    """(count, DIM) float32 rows of length 1."""
    rows = np.random.default_rng(seed).standard_normal((count, DIM), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="part of the queries and of the captions")
    share = parser.parse_args().share
    queries, captions = unit_rows(int(QUERIES * share), 1), unit_rows(int(CAPTIONS * share), 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.perf_counter()
    positions, _ = nearest(queries, captions, TOP)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(queries):,} queries x {len(captions):,} captions, top {positions.shape[1]}: {seconds:.1f} s")
    print(f"{len(queries) * len(captions) / seconds / 1e6:,.0f} million pairs a second")
    print(f"peak {peak:,.0f} MiB, of which {before:,.0f} MiB before the search")


if __name__ == "__main__":
    main()
