"""``moviola judge``: a graded test set by people, on a library of one's own."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from moviola.cli.app import (
    JsonOption,
    app,
    console,
    emit_json,
    leave_partial,
    note,
    progress_bar,
    show_table,
)

judge = typer.Typer(
    name="judge",
    help="Judge moments of a library: a graded test set, and pairs to train on.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(judge)

TaskArgument = Annotated[Path, typer.Argument(help="The task's file, of `moviola judge new`.")]


@judge.command()
def new(
    library: Annotated[Path, typer.Argument(help="The library whose moments are judged.")],
    queries: Annotated[Path, typer.Argument(help="Queries: one per line, or TVR-Ranking JSON.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The task's file; none may be there.")],
    run: Annotated[
        list[Path] | None,
        typer.Option(help="Another system's answers to these queries, as `evaluate` reads them; repeatable."),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="Ways to search the library: refined, coarse, said, text, joined; repeatable; by default "
            "all for which it has evidence."
        ),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Moments taken of each system per query.")] = 20,
    near: Annotated[
        float, typer.Option(min=0, max=0.99, help="Moments that overlap more (IoU) are judged as one.")
    ] = 0.5,
    raters: Annotated[
        int, typer.Option(help="Who judge every moment: 2 (4 where they differ), 4, or 1 alone.")
    ] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the order in which moments are shown.")] = 0,
    json: JsonOption = False,
) -> None:
    """Pool what several systems find, for people to judge in the page: `moviola serve LIBRARY --judge TASK`.

    At most 40 moments per query, in batches of 20; the second one is judged where the first ends relevant.

    Example: `moviola judge new lib queries.txt --out task.sqlite --run other.trec`

    From Python: `moviola.judging.make_task`.
    """
    from moviola.datasets.readers.queries import read_queries
    from moviola.judging import TaskSettings, make_task
    from moviola.search import Library

    asked = read_queries(queries)
    bar = progress_bar()
    with Library(library, read_only=True) as lib, bar:
        line = bar.add_task("searching", total=None)
        found = make_task(
            out, lib, asked, run_files=run or (), systems=system, depth=depth, near=near,
            settings=TaskSettings(raters=raters, seed=seed),
            progress=lambda name, done: bar.update(line, description=f"{name}: {done} of {len(asked)}"),
        )  # fmt: skip
    systems = {
        name: {"moments": count, "alone": alone} for name, (count, alone) in found.contributions().items()
    }
    judged = {pair.query_id for pair in found.pairs}
    if json:
        emit_json({
            "out": str(out), "queries": len(judged), "moments": len(found.pairs), "systems": systems,
        })  # fmt: skip
        return
    console.print(f"{out}: {len(found.pairs)} moments of {len(judged)} queries")
    for name, counts in systems.items():
        console.print(f"  {name}: {counts['moments']}, {counts['alone']} of them alone")
    for query in asked:
        if query.query_id not in judged:
            note(f"{query.query_id}: no system found anything; it is not judged")


@judge.command()
def progress(task: TaskArgument, json: JsonOption = False) -> None:
    """How far a task is, what raters agree on, and how well they agree.

    Kappa is Cohen's, of the first two ratings of each moment; beside a rater stand the mean distance from the
    median of all, and the mean kappa with each other rater.

    Example: `moviola judge progress task.sqlite`

    From Python: `moviola.judging.progress_of`.
    """
    from dataclasses import asdict

    from moviola.judging import JudgingTask, progress_of

    found = progress_of(JudgingTask(task))
    figures = found.agreement
    if json:
        emit_json({
            "queries": [asdict(query) for query in found.queries],
            "raters": [asdict(rater) for rater in found.raters],
            "kappa": _number(figures.kappa), "weighted_kappa": _number(figures.weighted_kappa),
            "levels": figures.histogram.tolist(),
        })  # fmt: skip
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("query", "moments", "agreed", "discarded", "set aside", "open"):
        table.add_column(title, justify="left" if title == "query" else "right", overflow="fold")
    rows = [
        [q.query, *map(str, (q.moments, q.agreed, q.discarded, q.set_aside, q.open))] for q in found.queries
    ]
    fields = ("moments", "agreed", "discarded", "set_aside", "open")
    show_table(table, [*rows, ["all", *(str(found.count(field)) for field in fields)]])
    for rater in found.raters:
        apart = "" if rater.distance is None else f", {rater.distance:.2f} levels from the median"
        kappa = "" if rater.kappa is None else f", kappa {rater.kappa:.2f} with the others"
        console.print(f"{rater.name}: {rater.judged} judged, {rater.passed} passed over{apart}{kappa}")
    console.print(f"kappa {figures.kappa:.3f}, weighted {figures.weighted_kappa:.3f}")
    console.print(f"agreed at levels 0 to 4: {', '.join(map(str, figures.histogram.tolist()))}")


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if isnan(value) else value


@judge.command()
def export(
    task: TaskArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where it goes.")],
    form: Annotated[
        Literal["tvr_ranking", "qrels", "ratings", "pairs"],
        typer.Option(
            "--as",
            help="Graded test set; the same by query; every rating, or the moments to rate (CSV).",
        ),
    ] = "tvr_ranking",
    json: JsonOption = False,
) -> None:
    """Write what raters agreed on, for `moviola evaluate`, or every rating.

    Example: `moviola judge export task.sqlite --out judged.json`

    From Python: `moviola.judging.export_task`.
    """
    from moviola.judging import JudgingTask, export_task

    count = export_task(JudgingTask(task), out, form)
    what = form if form in ("ratings", "pairs") else "judged moments"
    if json:
        emit_json({"out": str(out), "as": form, "rows": count})
    else:
        console.print(f"{out}: {count} {what}")


@judge.command("import")
def import_(
    task: TaskArgument,
    ratings: Annotated[Path, typer.Argument(help="CSV with pair_id, worker, relevance.")],
    json: JsonOption = False,
) -> None:
    """Take in ratings of another task (`judge export --as ratings`), or of another program.

    Example: `moviola judge import task.sqlite ratings.csv`

    From Python: `moviola.judging.import_ratings`.
    """
    from moviola.judging import JudgingTask, import_ratings

    refused = import_ratings(JudgingTask(task), ratings)
    if json:
        emit_json({"refused": refused})
    for reason in refused.values():
        note(reason)
    if refused:
        leave_partial()


@judge.command()
def training(
    task: TaskArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for train.json, val.json and test.json.")],
    val: Annotated[int, typer.Option(min=1, help="Queries that choose the weights.")],
    test: Annotated[int, typer.Option(min=0, help="Queries that are kept for `moviola evaluate`.")] = 0,
    level: Annotated[int, typer.Option(min=1, max=4, help="Learn from moments of this level and above.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the draw of val and test.")] = 0,
    json: JsonOption = False,
) -> None:
    """Judged moments as what `moviola train` reads; no query text is in two of the files.

    Example: `moviola judge training task.sqlite --out judged --val 5 --test 5`

    From Python: `moviola.judging.export_splits`.
    """
    from moviola.judging import JudgingTask, export_splits

    counts = export_splits(JudgingTask(task), out, val=val, test=test, level=level, seed=seed)
    if json:
        emit_json({name: {"queries": q, "moments": m} for name, (q, m) in counts.items()})
        return
    for name, (queries, moments) in counts.items():
        console.print(f"{out / name}.json: {moments} moments of {queries} queries")
