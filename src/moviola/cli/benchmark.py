"""``moviola benchmark``: train and compare every model on one generated world."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, note
from moviola.errors import InvalidValue

benchmark = typer.Typer(
    name="benchmark",
    help="Train and compare every model on one generated world.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(benchmark)


@benchmark.callback()
def _group() -> None:
    """Train and compare every model on one generated world."""


@benchmark.command("gridhouse")
def gridhouse_(
    preset: Annotated[str, typer.Option(help="small (minutes) or full (hours on 2 cores).")] = "small",
    work: Annotated[
        Path, typer.Option(help="Films, features, models and answers; kept between calls.")
    ] = Path("benchmark-gridhouse"),
    out: Annotated[Path | None, typer.Option(help="The report's folder; WORK/report by default.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as cores by default.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Train every model on the same films and features, and write one report: Markdown, CSV and figures.

    What is done already in WORK is kept, so an interrupted comparison goes on where it was.

    Example: `moviola benchmark gridhouse --preset small --work bench`

    From Python: `moviola.benchmark.run.run_jobs` and `moviola.benchmark.report.write_report`.
    """
    from moviola.benchmark.plan import PRESETS, jobs
    from moviola.benchmark.report import write_report
    from moviola.benchmark.run import Bench, run_jobs
    from moviola.benchmark.world import prepare

    if preset not in PRESETS:
        raise InvalidValue(f"preset {preset!r}: unknown; there are {', '.join(PRESETS)}")
    chosen, processes = PRESETS[preset], workers or os.cpu_count() or 1
    world = prepare(work, videos=chosen.videos, seed=chosen.seed, workers=processes, tell=note)
    bench = Bench(world, work / "trained", chosen.segments)
    run_jobs(bench, jobs(chosen), workers=processes, tell=note)
    path = write_report(bench, chosen, out or work / "report", title=f"Gridhouse, {preset} preset", tell=note)
    if json:
        emit_json({"report": str(path), "models": [job.name for job in jobs(chosen)]})
    else:
        console.print(f"the report is in {path}")
