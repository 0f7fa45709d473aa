"""Mutants: the product is broken in one of many ways, and a test must notice.

    python tests/find/torture/mutate.py --only "a lock is ignored"

``mutants.toml`` lists them. Each is made in a copy of the source, on which the tests that are expected to
fail are run; where they do not, all that are not ``long``; then a share of all that torture tries. The report
says which of them caught what, and the exit code is 1 if something was caught by nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MUTANTS", "SOURCE", "Mutant"]

_ROOT = Path(__file__).resolve().parents[3]
SOURCE = _ROOT / "src" / "moviola"
_FAST = ["-m", "not long"]
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A way to break the product.

    Attributes:
        name: what is wrong then.
        file: below the package.
        text: occurs once in it.
        instead: takes its place.
        tests: those that are expected to fail.
    """

    name: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]

    def made_in(self, package: Path) -> None:
        """Break a copy of the package."""
        path = package / self.file
        source = path.read_text(encoding="utf-8")
        assert source.count(self.text) == 1, f"{self.name}: not once in {self.file}"
        path.write_text(source.replace(self.text, self.instead), encoding="utf-8")


def _listed() -> Iterator[Mutant]:
    for one in tomllib.loads(Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8"))["mutant"]:
        yield Mutant(one["name"], one["file"], one["text"], one["with"], tuple(one["tests"]))


MUTANTS = tuple(_listed())


def _caught(mutant: Mutant, *, expected: bool) -> tuple[str, str]:
    """Which draw catches a mutant (``fast``, ``slow``, or ``nothing``), and the first test that does.

    Args:
        expected: run those tests alone that are expected to.
    """
    with tempfile.TemporaryDirectory(prefix="moviola-mutant-") as folder:
        package = Path(folder) / "src" / "moviola"
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
        mutant.made_in(package)
        draws = {"fast": [[*mutant.tests, *_FAST]]}
        if not expected:
            draws["fast"].append(["tests", *_FAST])
            draws["slow"] = [["tests/find/torture", "-m", "long"]]
        for draw, runs in draws.items():
            for words in runs:
                if test := _failing(package.parent, Path(folder) / "tmp", words):
                    return draw, test
    return "nothing", ""


def _failing(source: Path, folder: Path, words: Sequence[str]) -> str:
    """The first test that fails on a source; empty if none does."""
    environment = {**os.environ, "PYTHONPATH": str(source), "MOVIOLA_TURN": "all"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--basetemp",
        folder,
        *words,
    ]
    run = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return ""
    found = _FAILED.search(run.stdout)
    if run.returncode != 1 or found is None:
        raise RuntimeError(
            f"pytest {' '.join(map(str, words))} ended with {run.returncode}:\n{run.stdout}{run.stderr}"
        )
    return found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", help="the mutant of this name alone; may be given again")
    parser.add_argument(
        "--expected", action="store_true", help="only run the tests that are expected to fail"
    )
    options = parser.parse_args()
    chosen = options.only or [mutant.name for mutant in MUTANTS]
    if unknown := set(chosen) - {mutant.name for mutant in MUTANTS}:
        parser.error(f"{unknown.pop()!r}: no such mutant")
    counts: Counter[str] = Counter()
    print("| mutant | draw | test |\n|---|---|---|", flush=True)
    for mutant in MUTANTS:
        if mutant.name in chosen:
            draw, test = _caught(mutant, expected=options.expected)
            counts[draw] += 1
            print(f"| {mutant.name} | {draw} | {test} |", flush=True)
    print(", ".join(f"{draw}: {count}" for draw, count in counts.items()))
    sys.exit(1 if counts["nothing"] else 0)


if __name__ == "__main__":
    main()
