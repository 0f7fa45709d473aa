"""``moviola dataset``: commands on annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json

dataset = typer.Typer(help="Annotations: reading them and building ranked ones.", no_args_is_help=True)
app.add_typer(dataset, name="dataset")


@dataset.callback()
def _group() -> None:
    """Annotations: reading them and building ranked ones."""


@dataset.command("consensus")
def consensus_(
    ratings: Annotated[Path, typer.Argument(help="CSV with pair_id, worker, relevance.")],
    out: Annotated[Path, typer.Option(help="Where the agreed levels go (CSV).")],
    json: JsonOption = False,
) -> None:
    """Agreed relevance of each pair by TVR-Ranking's rule, and how well raters agree.

    Example: `moviola dataset consensus raw_annotation.csv --out agreed.csv`
    """
    from moviola.datasets.consensus import agreement, consensus, read_ratings, write_agreed

    given = read_ratings(ratings)
    outcome, figures = consensus(given), agreement(given)
    write_agreed(outcome.agreed, out)
    histogram = figures.histogram.tolist()
    if json:
        emit_json({
            "agreed": len(outcome.agreed), "discarded": len(outcome.discarded), "open": len(outcome.open),
            "uncountable": len(outcome.uncountable), "levels": histogram, "kappa": figures.kappa,
            "weighted_kappa": figures.weighted_kappa, "low_high": figures.low_high.tolist(),
        })  # fmt: skip
        return
    console.print(
        f"{out}: {len(outcome.agreed)} pairs agreed, {len(outcome.discarded)} discarded, "
        f"{len(outcome.open)} need more ratings, {len(outcome.uncountable)} with another number of ratings",
        markup=False,
    )
    console.print("levels 0 to 4: " + " / ".join(map(str, histogram)))
    console.print(f"Cohen's kappa {figures.kappa:.3f}, weighted by squares {figures.weighted_kappa:.3f}")
