"""How many people a server answers: 50 clients on loopback, each with one query after the other.

    python benchmarks/serve.py [--library lib] [--clients 50] [--seconds 60]

Without ``--library``, films of robots are made and indexed with the demo's encoder and searched with its
models. The server is a process of its own, as ``moviola serve`` starts it; the clients are another one, on
the same cores. First one client asks by itself; with n clients on c cores a fair share is n / c of its
medians. Wanted: no error, and 95 of 100 answers within three fair shares.

Measured on two quiet cores for sixty seconds: one client 64 ms (median) and 68 ms (p95); fifty 637 ms and
784 ms, where 4,794 ms were allowed; 4,588 answers, no error.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

import httpx2
import numpy as np

from comparison.table import Table
from moviola.media import write_video
from moviola.search import Library
from moviola.study.datasets import gridhouse
from serving import served

QUERIES = [
    f"{verb} a {colour} {thing}"
    for verb in ("pick up", "open", "go to", "drop")
    for colour in ("red", "green", "blue", "purple", "yellow", "grey")
    for thing in ("key", "ball", "box", "door")
]
ALONE = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--library", type=Path)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = options.library or made_library(Path(folder))
        with served(library) as url:
            alone = asyncio.run(load(url, clients=1, most=ALONE, seconds=600.0))
            together = asyncio.run(load(url, clients=options.clients, most=10**9, seconds=options.seconds))
    report(alone, together, options.clients)


def made_library(folder: Path) -> Path:
    gridhouse.build(folder / "world", videos=24, seed=1, workers=os.cpu_count() or 1, write_video=write_video)
    with Library(folder / "library", encoder="demo") as library:
        library.index(folder / "world" / "videos", ocr=False)
        library.indexer.use(stage1="demo", refiner="demo")
    return folder / "library"


async def load(url: str, *, clients: int, most: int, seconds: float) -> tuple[list[float], int]:
    """Milliseconds of each answer, and the number of errors; each client asks up to ``most`` queries."""
    times: list[float] = []
    errors = 0
    end = time.perf_counter() + seconds

    async def client(number: int, http: httpx2.AsyncClient) -> None:
        nonlocal errors
        sent = 0
        while sent < most and time.perf_counter() < end:
            query = QUERIES[(7 * number + sent) % len(QUERIES)]
            began = time.perf_counter()
            answer = await http.post("/api/search", json={"query": query})
            times.append(1000 * (time.perf_counter() - began))
            errors += answer.status_code != 200
            sent += 1

    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(base_url=url, timeout=120.0, limits=limits) as http:
        while (await http.get("/readyz")).status_code != 200:
            await asyncio.sleep(0.1)
        await asyncio.gather(*(client(number, http) for number in range(clients)))
    return times, errors


def report(alone: tuple[list[float], int], together: tuple[list[float], int], clients: int) -> None:
    """Print a table, and whether what is wanted was reached."""
    rows = []
    for count, (times, errors) in ((1, alone), (clients, together)):
        middle, slow = np.percentile(times, (50, 95))
        rows.append((str(count), str(len(times)), str(errors), f"{middle:.1f}", f"{slow:.1f}"))
    cores = os.cpu_count() or 1
    most = 3 * float(np.median(alone[0])) * clients / cores
    slow = float(np.percentile(together[0], 95))
    met = slow <= most and not together[1]
    wanted = f"wanted: p95 <= {most:.0f} ms on {cores} cores, no error: {'met' if met else 'not met'}"
    Table("", ("clients", "answers", "errors", "median ms", "p95 ms"), rows, wanted).print()


if __name__ == "__main__":
    main()
