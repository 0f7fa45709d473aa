"""``moviola benchmark``: every model on one generated world, every type of index at the paper's sizes."""

from __future__ import annotations

import os
from dataclasses import asdict
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
    out: Annotated[
        Path, typer.Option(help="Films, features, models and figures; kept between calls.")
    ] = Path("benchmark-gridhouse"),
    report: Annotated[Path | None, typer.Option(help="The report's folder; OUT/report by default.")] = None,
    only: Annotated[
        str | None,
        typer.Option(help="Rows to train: patterns of names, models or groups, for instance 'xml*,reel'."),
    ] = None,
    minutes: Annotated[float | None, typer.Option(min=0, help="Stop after so many.")] = None,
    status: Annotated[bool, typer.Option("--status", help="Say what is left, and train nothing.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that film; as many as cores by default.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Train every model on the same films and features, and write one report: Markdown, CSV and figures.

    It works in pieces of minutes, one a training, on one core. What is done already in OUT is kept, so an
    interrupted comparison goes on where it was, within a training too. Start it once per core: each piece is
    done by one of them. OUT/results can be carried to another machine, which then trains what is left.

    Example: `moviola benchmark gridhouse --preset small --out bench --only 'spr-stage1*' --minutes 30`

    From Python: `moviola.benchmark.run.run_pieces` and `moviola.benchmark.report.write_report`.
    """
    from moviola.benchmark.bench import Bench
    from moviola.benchmark.plan import PRESETS
    from moviola.benchmark.report import write_report
    from moviola.benchmark.run import run_pieces, what_is_left

    if preset not in PRESETS:
        raise InvalidValue(f"preset {preset!r}: unknown; there are {', '.join(PRESETS)}")
    bench, rows = Bench(out, PRESETS[preset]), tuple(only.split(",")) if only else ()
    if not status:
        bench.prepare(workers or os.cpu_count() or 1, note)
        run_pieces(bench, only=rows, minutes=minutes, tell=note)
    left, path = what_is_left(bench, rows), None
    if not status and bench.done(f"spr-stage1-n{bench.preset.top}"):
        path = write_report(bench, report or out / "report", title=f"Gridhouse, {preset} preset", tell=note)
    if json:
        emit_json({"report": path and str(path), **asdict(left)})
        return
    console.print(f"{left.done} of {left.planned} trainings are finished")
    if left.names:
        unknown = f", and {left.unknown} of models of which none is finished" if left.unknown else ""
        console.print(f"left: about {left.cpu_seconds / 3600:.1f} CPU hours{unknown}")
    if left.names and status:
        console.print("left: " + ", ".join(left.names))
    if path:
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
