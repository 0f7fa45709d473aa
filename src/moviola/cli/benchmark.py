"""``moviola benchmark``: every model on one generated world, every type of index at the paper's sizes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, note
from moviola.errors import InvalidValue

benchmark = typer.Typer(
    name="benchmark",
    help="Compare every model on one generated world, and every type of index at the paper's sizes.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(benchmark)


@benchmark.callback()
def _group() -> None:
    """Compare every model on one generated world, and every type of index at the paper's sizes."""


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


@benchmark.command("scale")
def scale_(
    preset: Annotated[str, typer.Option(help="paper (hours, 25 GB), or small (seconds).")] = "paper",
    sizes: Annotated[
        str, typer.Option(help="Segments, 383828,860917 for instance; the preset's by default.")
    ] = "",
    types: Annotated[
        str, typer.Option(help="Types of index, flat,reranked for instance; all by default.")
    ] = "",
    features: Annotated[
        Path | None,
        typer.Option(help="A folder of features whose segments are searched; made ones by default."),
    ] = None,
    work: Annotated[Path, typer.Option(help="Vectors, indexes and results; kept between calls.")] = Path(
        "benchmark-scale"
    ),
    out: Annotated[Path | None, typer.Option(help="The report's folder; WORK/report by default.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew what was measured, with the indexes that are there.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Every type of index at the paper's sizes beside exact search: times, recall, NDCG, memory, bytes.

    Each size and type is a piece with a result of its own in WORK, so an interrupted comparison goes on where
    it was. The report, Markdown, CSV and figures, has all that was measured in WORK.

    Example: `moviola benchmark scale --sizes 383828 --types flat,reranked --work bench`

    From Python: `moviola.benchmark.scale.run.run_scale` and
    `moviola.benchmark.scale.report.write_scale_report`.
    """
    from moviola.benchmark.scale.plan import chosen
    from moviola.benchmark.scale.report import write_scale_report
    from moviola.benchmark.scale.run import ScaleBench, run_scale

    numbers = [_size(word) for word in sizes.split(",") if word]
    bench = ScaleBench(work, chosen(preset, numbers, [word for word in types.split(",") if word]), features)
    run_scale(bench, again=again, tell=note)
    path = write_scale_report(bench, out or work / "report")
    if json:
        emit_json({"report": str(path), "pieces": bench.results()})
    else:
        console.print(f"the report is in {path}")


def _size(word: str) -> int:
    if not word.strip().isdecimal():
        raise InvalidValue(f"--sizes {word!r}: no number of segments; give numbers with commas between")
    return int(word)
