"""Run the tests of what computes as on other machines: results must not rest on rounding.

    python scripts/kernels.py            the numeric folders, with shifted sums (in `make test`)
    python scripts/kernels.py --turn     a part of these and of what shows their results, as on further kinds
                                         of machines, which the number of commits chooses (in `make turn`)
    python scripts/kernels.py --all      these folders as on all kinds
    python scripts/kernels.py --folders  names the numeric folders, and runs nothing

A kind of machine is a set of kernels of BLAS and of torch, and a number of threads; the first one also shifts
all of torch's sums by a few last bits (tests/worlds/other_rounding.py). One that this processor cannot run
(an illegal instruction would end it) is named, and the next takes its place.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "worlds"))

from turns import NUMERIC, TURNS, share  # noqa: E402

SHOWN = {
    "tests/find/search": 85, "tests/find/library": 70, "tests/find/cli": 40, "tests/study/benchmark": 25,
    "tests/study/datasets": 10,
}  # fmt: skip
"""What shows results, or builds on them, and about how many seconds each takes on two quiet cores."""
NUMERIC_SECONDS = 120
LONG_SECONDS = (440, 185, 535, 180)
"""What the long tests of each turn take beside them."""


@dataclass(frozen=True)
class Kind:
    """A kind of machine.

    Attributes:
        name: of OpenBLAS's kernels.
        needs: flag of the processor without which they cannot run; empty for none.
        variables: further ones of the environment.
        options: of pytest.
    """

    name: str
    needs: str
    variables: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()


def _threads(number: int) -> tuple[tuple[str, str], ...]:
    return (("OMP_NUM_THREADS", str(number)), ("OPENBLAS_NUM_THREADS", str(number)))


SHIFTED = Kind(
    "Haswell", "avx2",
    (("ATEN_CPU_CAPABILITY", "default"), ("PYTHONPATH", "tests/worlds"), *_threads(1)),
    ("-p", "other_rounding"),
)  # fmt: skip
OTHERS = (
    Kind("Sandybridge", "avx", (("MKL_CBWR", "COMPATIBLE"), *_threads(2))),
    Kind("Nehalem", "sse4_2", (("MKL_CBWR", "COMPATIBLE"), *_threads(2))),
    Kind("Zen", "avx2", _threads(1)),
    Kind("SkylakeX", "avx512f", _threads(2)),
)
"""The kinds that take turns; with shifted sums, too, only what shows results does."""

Run = tuple[Kind, tuple[str, ...]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--turn", action="store_true", help="the folders and kinds whose turn it is")
    which.add_argument("--all", action="store_true", help="all folders under all kinds")
    which.add_argument("--folders", action="store_true", help="the names of the numeric folders alone")
    given = parser.parse_args()
    if given.folders:
        print(*NUMERIC)
        return
    flags = processor_flags()
    for kind in (SHIFTED, *OTHERS):
        if not able(kind, flags):
            print(f"{kind.name}: this processor lacks {kind.needs}; left out", flush=True)
    kinds = [kind for kind in (SHIFTED, *OTHERS) if able(kind, flags)]
    own = share(TURNS)
    runs: list[Run]
    if given.all or (given.turn and own is None):
        runs = [(kind, (*NUMERIC, *SHOWN)) for kind in kinds]
    elif given.turn:
        runs = turns(kinds)[own or 0]
    else:
        runs = [(kind, NUMERIC) for kind in kinds[:1]]
    # `make test` runs its slow tests nowhere else.
    marks = "not slow and not long" if given.turn or given.all else "not long"
    if failed := [kind.name for kind, folders in runs if not passes(kind, folders, marks)]:
        sys.exit(f"failed under the kernels of {', '.join(failed)}")


def turns(kinds: Sequence[Kind]) -> list[list[Run]]:
    """What each turn runs, so that all turns do all under each kind: the longest pieces first, each in the
    turn that has the least to do by then.
    """
    pieces: list[tuple[int, Kind, tuple[str, ...]]]
    pieces = [(NUMERIC_SECONDS, kind, NUMERIC) for kind in kinds if kind is not SHIFTED]
    pieces += [(seconds, kind, (folder,)) for kind in kinds for folder, seconds in SHOWN.items()]
    seconds_of, folders_of = list(LONG_SECONDS), [dict[Kind, tuple[str, ...]]() for _ in LONG_SECONDS]
    for seconds, kind, folders in sorted(pieces, key=lambda piece: -piece[0]):
        turn = seconds_of.index(min(seconds_of))
        seconds_of[turn] += seconds
        folders_of[turn][kind] = folders_of[turn].get(kind, ()) + folders
    return [list(of.items()) for of in folders_of]


def able(kind: Kind, flags: frozenset[str]) -> bool:
    """Whether a processor has what a kind needs; one that does not say its flags is left to try."""
    return not flags or kind.needs in flags


def processor_flags() -> frozenset[str]:
    """What this processor can do; empty where the system does not say."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(found.partition(":")[2].split())


def passes(kind: Kind, folders: tuple[str, ...], marks: str) -> bool:
    """Whether the tests of these folders with such marks pass under a kind."""
    print(f"== as with kernels of {kind.name} ==", flush=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "worksteal",
        "-m",
        marks,
        *folders,
        *kind.options,
    ]
    environment = os.environ | dict(kind.variables) | {"OPENBLAS_CORETYPE": kind.name}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    main()
