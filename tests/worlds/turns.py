"""Which part of what takes long this run does: another one after each commit, so that few runs do all of it.

The number is that of the commits, or ``MOVIOLA_TURN``; ``MOVIOLA_TURN=all`` takes every part.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["ALL", "NUMERIC", "SHARES", "TURNS", "changed", "number", "share"]

TURNS = 4
"""How many runs do all that is marked ``long``."""
SHARES = 31
"""How many runs let each call of an operation fail in each way (``tests/find/torture``). It has no divisor in
common with :data:`TURNS`, so that each turn comes to each share.
"""
ALL = "all"

NUMERIC = (
    "tests/find/beside", "tests/find/compiled", "tests/find/encoders", "tests/find/index",
    "tests/find/retrieval", "tests/find/temporal", "tests/study/golden",
    "tests/study/measures", "tests/study/models", "tests/study/training",
)  # fmt: skip
"""Folders of what computes: ``make test`` runs their tests with shifted sums (``scripts/kernels.py``) instead
of once more without.
"""


@cache
def number() -> int | None:
    """The number of this run; None for all parts. Without a repository, as in an archive, 0.

    Raises:
        ValueError: ``MOVIOLA_TURN`` is neither a number nor ``all``.
    """
    if given := os.environ.get("MOVIOLA_TURN", ""):
        return None if given == ALL else int(given)
    folder = Path(__file__).resolve().parent
    try:
        counted = subprocess.run(
            ["git", "rev-list", "--count", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
        )
        return int(counted.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return 0


def share(of: int) -> int | None:
    """The part of this run, from 0 to ``of`` - 1; None for all."""
    return None if (own := number()) is None else own % of


@cache
def changed(*paths: str) -> bool:
    """Whether files, or folders, of the repository differ from those of :data:`TURNS` commits ago, or it
    cannot be said, as in an archive or a shallow clone.
    """
    top = Path(__file__).resolve().parents[2]
    command = ["git", "diff", "--quiet", f"HEAD~{TURNS}", "--", *paths]
    try:
        return subprocess.run(command, cwd=top, capture_output=True, check=False).returncode != 0
    except OSError:
        return True
