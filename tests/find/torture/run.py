"""What a library must survive: damage, failing calls and power, odd files and arguments, many at once, time.

    python tests/find/torture/run.py --seconds 600 --seed 7

The seed is printed; with the same one the same is tried in the same order. The report says how often what
happened, and what must not have happened; the exit code is 1 if anything did.
"""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "worlds"))

from ages import Ages
from calls import STRACE, SystemCalls
from crowd import ManyAtOnce
from damaged_media import DamagedMedia
from disturbed import Disturbed
from flips import Flips
from floods import Floods
from inputs import Inputs
from power import PowerLoss
from serving import Served
from writes import Changes, Writes

Part = Ages | Flips | Floods | Inputs | ManyAtOnce | DamagedMedia | PowerLoss | Served | SystemCalls | Writes
PARTS: dict[str, type[Part]] = {
    "flips": Flips, "writes": Writes, "changes": Changes, "system calls": SystemCalls,
    "media": DamagedMedia, "input": Inputs,
    "many at once": ManyAtOnce, "server": Served, "floods": Floods, "power": PowerLoss, "time": Ages,
}  # fmt: skip

SHARES = {
    "flips": 3, "writes": 20, "changes": 4, "system calls": 10, "media": 1, "input": 28, "many at once": 8,
    "server": 3,
    "floods": 3, "power": 8, "time": 16,
}  # fmt: skip
"""Parts of the whole time."""


def tortured(
    part: str, folder: Path, seed: int, goes_on: Callable[[int], bool], share: tuple[int, int] = (0, 1)
) -> tuple[dict[str, int], list[str]]:
    """Counts by outcome, and what must not have happened.

    Args:
        part: of :data:`PARTS`.
        folder: an empty one to work in.
        seed: of what is tried, and in which order.
        goes_on: asked with the number of what was tried, before each.
        share: number of a part of all points, and the number of parts, where points can be counted.
    """
    torture = PARTS[part](folder, seed)

    def on() -> bool:
        return goes_on(torture.counts["tried"])

    if isinstance(torture, Flips | Disturbed):
        torture.run(on, share)
    else:
        torture.run(on)
    return dict(torture.counts), torture.failures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="of all parts (default: %(default)g)")
    parser.add_argument("--seed", type=int, help="by default another one each time")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    options = parser.parse_args()
    logging.getLogger("moviola").setLevel(logging.ERROR)  # graphs that are made again are what is tried
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    parts = [options.only] if options.only else list(PARTS)
    if "system calls" in parts and STRACE is None:
        print("torture: no strace is installed, system calls are left out")
        parts.remove("system calls")
    print(f"torture: seed {seed}, {options.seconds:g} s", flush=True)
    lost = 0
    for part in parts:
        end = time.monotonic() + options.seconds * SHARES[part] / sum(SHARES[one] for one in parts)
        with tempfile.TemporaryDirectory(prefix="moviola-torture-") as folder:
            counts, failures = tortured(part, Path(folder), seed, lambda _, end=end: time.monotonic() < end)
        print(f"\n| {part} | |\n|---|---:|")
        for outcome, count in counts.items():
            print(f"| {outcome} | {count} |")
        print(f"| lost | {len(failures)} |")
        for failure in failures:
            print(f"  {failure}")
        lost += len(failures)
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
