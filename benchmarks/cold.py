"""Processor time of cold commands, of two states of moviola in turns.

    python benchmarks/cold.py --before OTHER/src --library before=A now=B --pairs 15 --out cold.json

Each command runs in a process of its own, with its children; the two states take turns, and every second turn
begins with the other one, so that other work falls on both. Bytecode is there, as after an installation.

``cold.json`` compares with commit 03f4a818, in libraries of the same 37 files that each state has made.
That one reads no sounds, so a second run was with a library without them (``index --no-sounds``).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

from measuring import arguments, say

HERE = Path(__file__).resolve().parents[1] / "src"
COMMANDS = {
    "version": ["--version"],
    "search help": ["search", "--help"],
    "search": ["search", "--library", "LIBRARY", "a car on a road"],
}


def cost(source: Path, words: list[str]) -> float:
    """Milliseconds of processor time of a command and its children."""
    environment = {**os.environ, "PYTHONPATH": str(source), "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", "from moviola.__main__ import main; main()", *words]
    subprocess.run(
        command, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def compared(
    sources: dict[str, Path], libraries: dict[str, str], words: list[str], pairs: int
) -> dict[str, float]:
    """Medians and least of both states, ms, and the median of the ratios of pairs."""
    commands = {
        state: [libraries[state] if word == "LIBRARY" else word for word in words] for state in sources
    }
    spent: dict[str, list[float]] = {state: [] for state in sources}
    for turn in range(-1, pairs):  # the first one writes bytecode, and does not count
        for state in sorted(sources, reverse=turn % 2 == 1):
            one = cost(sources[state], commands[state])
            if turn >= 0:
                spent[state].append(one)
    ratios = [now / before for now, before in zip(spent["now"], spent["before"], strict=True)]
    found = {f"{state}, median": median(own) for state, own in spent.items()}
    found |= {f"{state}, least": min(own) for state, own in spent.items()}
    return {name: round(value, 1) for name, value in found.items()} | {"ratio": round(median(ratios), 3)}


def main() -> None:
    given = arguments(__doc__, before=Path("before/src"), library=["before=A", "now=B"], pairs=15, out=None)
    libraries = dict(one.split("=", 1) for one in given.library)
    sources = {"before": given.before.resolve(), "now": HERE}
    found = {name: compared(sources, libraries, words, given.pairs) for name, words in COMMANDS.items()}
    print(json.dumps(found, indent=1))
    say(found, given.out)


if __name__ == "__main__":
    main()
