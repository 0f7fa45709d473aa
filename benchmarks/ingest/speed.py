"""Indexing of pictures by this checkout and by another one, turn by turn: seconds, and CPU seconds.

    python benchmarks/ingest/speed.py FOLDER --against ../other/src [--encoder conse-lite1] [--turns 3]

Each turn is a process of its own that loads and warms up the encoder, and then indexes the folder into a new
library, without text and speech. The least of the turns counts; cores are CPU seconds per second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parents[2] / "src"

CHILD = """
import json, sys, tempfile, time
import numpy as np
from moviola.search import Library
folder, encoder = sys.argv[1:]
with tempfile.TemporaryDirectory() as scratch, Library(
    scratch + "/library", encoder=encoder, sentence_encoder="none"
) as library:
    size = library.encoder.frame_size
    library.store.encoders.rows(np.zeros((16, size.height, size.width, 3), np.uint8))
    clock, used = time.perf_counter(), time.process_time()
    library.index(folder, ocr=False)
    print(json.dumps((time.perf_counter() - clock, time.process_time() - used)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", type=Path, required=True, help="src of another checkout")
    parser.add_argument("--encoder", default="conse-lite1")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    sources = {"before": options.against.resolve(), "now": HERE}
    turns: dict[str, list[tuple[float, float]]] = {name: [] for name in sources}
    for _ in range(options.turns):
        for name, source in sources.items():
            turns[name].append(_turn(source, options.folder, options.encoder))
    table = Table(title=f"{options.folder.name}, {options.encoder}, least of {options.turns} turns")
    for column in ("", "s", "CPU s", "cores"):
        table.add_column(column)
    least = {name: tuple(map(min, zip(*found, strict=True))) for name, found in turns.items()}
    for name, (clock, used) in least.items():
        table.add_row(name, f"{clock:.1f}", f"{used:.1f}", f"{max(u / c for c, u in turns[name]):.2f}")
    clocks, cpu = zip(*least.values(), strict=True)
    table.add_row("before / now", f"{clocks[0] / clocks[1]:.2f}", f"{cpu[0] / cpu[1]:.2f}", "")
    Console(width=110).print(table)


def _turn(source: Path, folder: Path, encoder: str) -> tuple[float, float]:
    """Seconds on the clock and of CPU time of one indexing by the package in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", CHILD, str(folder), encoder]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    clock, used = json.loads(printed.splitlines()[-1])
    return clock, used


if __name__ == "__main__":
    main()
