"""What the commands on runs share: their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moviola.errors import InvalidValue

__all__ = ["MeasureOption", "runs_and_qrels"]

MeasureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--measure", "-m", help="A measure, e.g. 'nDCG@20,IoU>=0.5', 'R@5,IoU>0.7', 'AxIoU@10'; repeat."
    ),
]


def runs_and_qrels(paths: list[Path]) -> tuple[list[Path], Path]:
    """The runs, and the judgements that stand last.

    Raises:
        InvalidValue: fewer than two runs, or a run is given twice.
    """
    if len(paths) < 3:
        raise InvalidValue(
            f"{len(paths)} files given: at least two runs and, last, the judgements are needed"
        )
    *runs, qrels = paths
    if len(set(runs)) != len(runs):
        raise InvalidValue("a run is given twice; give each once")
    return runs, qrels
