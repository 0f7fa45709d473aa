"""How long a query's text takes with all BLAS threads, with one, and compiled; alone and beside other work.

    python benchmarks/text_threads.py [--encoder random] [--texts 40] [--busy 2]

The text tower by itself takes one thread (``moviola.threads``); for comparison its products get all threads
again here. A process that keeps asking has the tower compiled, on a few threads. All take turns, text by
text, so that a machine whose speed changes meets all alike; the last column is the median relative to one
thread in the same company. ``random`` is a CLIP ViT-B/32 with random weights; times do not depend on their
values.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_info

from moviola import threads
from moviola.encoders import FrameTextEncoder, load_encoder
from runtimes import graphs_of_its_own, random_vit

Ways = dict[str, tuple[FrameTextEncoder, Callable[[], AbstractContextManager[None]]]]
"""Encoders, and surroundings in which each is asked, by name."""

TEXT = "a person in a red coat opens the door and picks up the key"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--encoder", default="random", help="random, demo, a folder or a hub id")
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--busy", type=int, default=2, help="processes beside which it is measured")
    options = parser.parse_args()
    with graphs_of_its_own() as scratch:
        name = random_vit(scratch / "vit") if options.encoder == "random" else options.encoder
        plain, single, resident = (load_encoder(name, resident=which) for which in (False, True, True))
        with patch.dict(os.environ, OMP_NUM_THREADS="1"):
            single.encode_text([TEXT])
        ways: Ways = {
            "one thread": (plain, nullcontext),
            "all threads": (plain, every_thread),
            "compiled, one thread": (single, nullcontext),
            "compiled, a few": (resident, nullcontext),
        }
        for encoder, _ in ways.values():
            encoder.encode_text([TEXT])
        alone = measured(ways, options.texts)
        with busy(options.busy):
            beside = measured(ways, options.texts)
    report({"alone": alone, f"beside {options.busy} busy": beside})


def measured(ways: Ways, count: int) -> dict[str, list[float]]:
    """Seconds of each text with each encoder in its surroundings, in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(count):
        for name, (encoder, surroundings) in ways.items():
            with surroundings():
                started = time.perf_counter()
                encoder.encode_text([f"{TEXT} {number}"])
                seconds[name].append(time.perf_counter() - started)
    return seconds


@contextmanager
def every_thread() -> Iterator[None]:
    """The text towers leave the BLAS as it is."""
    with patch.object(threads, "_blas"):
        yield


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Processes that multiply matrices on all cores without a pause."""
    context = multiprocessing.get_context("spawn")
    ready = context.Semaphore(0)
    others = [context.Process(target=multiply, args=(ready,), daemon=True) for _ in range(count)]
    for other in others:
        other.start()
    for _ in others:
        ready.acquire()
    try:
        yield
    finally:
        for other in others:
            other.terminate()
            other.join()


def multiply(ready: Any) -> None:
    matrix = np.random.default_rng(0).standard_normal((1000, 1000), dtype=np.float32)
    matrix @ matrix
    ready.release()
    while True:
        matrix @ matrix


def report(cases: dict[str, dict[str, list[float]]]) -> None:
    """Print the table."""
    blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    table = Table("company", "BLAS", "median ms", "90 % within ms", "to one thread")
    for company, found in cases.items():
        for name, seconds in found.items():
            table.add_row(
                company, name if name != "all threads" else f"all threads ({max(blas, default=1)})",
                f"{1000 * median(seconds):.0f}", f"{1000 * np.quantile(seconds, 0.9):.0f}",
                f"{median(seconds) / median(found['one thread']):.2f}",
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
