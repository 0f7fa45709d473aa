"""Property tests with fresh examples until the time is up or one of them fails.

    python tests/fuzz.py --seconds 300

Every round runs all property tests in another order with another seed, which is printed; beside a failure
stands the command that runs the same examples again. The tests' own runs are derandomised
(tests/conftest.py), so what is found here belongs into a test of its own.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, default=300, help="after which it ends (default: %(default)g)"
    )
    end = time.monotonic() + parser.parse_args().seconds
    rounds = 0
    while (left := end - time.monotonic()) > 0:
        seed = secrets.randbelow(2**32)
        fresh = ["--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}"]
        words = ["pytest", "-m", "hypothesis", "-x", "-q", *fresh]
        print(f"fuzz: round {rounds + 1}, seed {seed}, {left:.0f} s left", flush=True)
        try:
            done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, timeout=left, check=False)
        except subprocess.TimeoutExpired:
            break
        if done.returncode:
            sys.exit(f"fuzz: failed; the same examples again: {' '.join(words)}")
        rounds += 1
    print(f"fuzz: the time is up; nothing found in {rounds} whole rounds and the begun one")


if __name__ == "__main__":
    main()
