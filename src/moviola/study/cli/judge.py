"""``moviola judge``: a graded test set of a library, judged by people."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option, Typer

from moviola.cli.app import JsonOption, command_group, console, leave_partial, note, show, show_records
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption, reading
from moviola.cli.progress import progress_bar
from moviola.errors import counted
from moviola.study.cli import STUDIES

commands = Typer()
"""What this module adds to ``moviola``."""

judge = command_group(
    "judge",
    "Judgements by people: a test set, pairs to train on.",
    below=commands,
    panel=STUDIES,
)

TaskArgument = Annotated[Path, Argument(help="Task file of `moviola judge new`.")]


@judge.command()
def new(
    queries: Annotated[Path, Argument(help="Queries: TVR-Ranking JSON, or one query per line.")],
    out: Annotated[Path, Option("--out", "-o", help="New task file.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    run: Annotated[list[Path] | None, Option(help="Run of another system; repeatable.")] = None,
    system: Annotated[
        list[str] | None,
        Option(
            help="Kind of search: refined, coarse, said, text, joined; repeatable; by default all for which "
            "the library has evidence."
        ),
    ] = None,
    depth: Annotated[int, Option(min=1, help="Moments per system and query.")] = 20,
    raters: Annotated[int, Option(help="Raters per moment: 2 (4 if they differ), 4, or 1.")] = 2,
    seed: Annotated[int, Option(min=0, help="Random seed of the order of moments.")] = 0,
    json: JsonOption = False,
) -> None:
    """Pool the moments of several systems into a task for raters: `moviola serve --judge TASK`.

    At most 40 moments per query, in batches of 20; the second batch follows if the first ends relevant. A
    query that cannot be answered, for instance with the @name of a concept that is not there, is named and
    left out; the exit code is then 3.

    Example: `moviola judge new queries.txt --library lib --out task.sqlite --run other.trec`

    From Python: `moviola.study.judging.make_task`.
    """
    from moviola.study.datasets.readers.queries import read_queries
    from moviola.study.judging import TaskSettings, make_task

    chosen = read_queries(queries)
    with reading(library) as lib, progress_bar() as bar:
        lib.store.require_outside(out)
        line = bar.add_task("searching", total=None)
        found = make_task(
            out, lib, chosen, run_files=run or (), systems=system, depth=depth,
            settings=TaskSettings(raters=raters, seed=seed),
            progress=lambda name, done: bar.update(line, description=f"{name}: {done} of {len(chosen)}"),
        )  # fmt: skip
    shares = found.contributions()
    systems = {name: {"moments": moments, "alone": alone} for name, (moments, alone) in shares.items()}
    judged = {pair.query_id for pair in found.pairs}
    show(
        json,
        {"out": str(out), "queries": len(judged), "moments": len(found.pairs), "systems": systems,
         "refused": found.refused},
        f"{out}: {counted(len(found.pairs), 'moment')} of {counted(len(judged), 'query')}",
        *(f"  {name}: {moments}, {alone} of them alone" for name, (moments, alone) in shares.items()),
    )  # fmt: skip
    for query in chosen:
        if query.query_id not in judged:
            reason = found.refused.get(query.query_id, "no system found a moment")
            note(f"query {query.query_id} is left out: {reason}")
    if found.refused:
        leave_partial()


@judge.command()
def progress(task: TaskArgument, json: JsonOption = False) -> None:
    """Show the progress of a task and the agreement of its raters.

    Kappa is Cohen's, of the first two ratings of each moment. Raters have the mean distance from the median
    of all, and the mean kappa with each other rater.

    Example: `moviola judge progress task.sqlite`

    From Python: `moviola.study.judging.progress_of`.
    """
    from moviola.study.judging import JudgingTask, progress_of

    found = progress_of(JudgingTask(task))
    kappas = {name: getattr(found.agreement, name) for name in ("kappa", "weighted_kappa")}
    levels = found.agreement.histogram.tolist()
    fields = ("moments", "agreed", "discarded", "set_aside", "open")
    rows = [[query.query, *(str(getattr(query, field)) for field in fields)] for query in found.queries]
    rows.append(["all", *(str(found.count(field)) for field in fields)])
    about = {"queries": found.queries, "raters": found.raters, **kappas, "levels": levels}
    show_records(json, about, ("query", *(field.replace("_", " ") for field in fields)), rows)
    if json:
        return
    for rater in found.raters:
        apart = "" if rater.distance is None else f", {rater.distance:.2f} levels from the median"
        kappa = "" if rater.kappa is None else f", kappa {rater.kappa:.2f} with the others"
        console.print(f"{rater.name}: {rater.judged} judged, {rater.passed} skipped{apart}{kappa}")
    kappa, weighted = ("undefined so far" if isnan(k) else f"{k:.3f}" for k in kappas.values())
    console.print(f"kappa {kappa}, weighted {weighted}")
    console.print(f"agreed at levels 0 to 4: {', '.join(map(str, levels))}")


@judge.command()
def export(
    task: TaskArgument,
    out: Annotated[Path, Option("--out", "-o", help="File to write.")],
    form: Annotated[
        Literal["tvr_ranking", "qrels", "ratings", "pairs"],
        Option(
            "--as",
            help="Graded test set; the same by query (.json, .jsonl, .csv, .trec); all ratings, or the "
            "moments to rate (CSV).",
        ),
    ] = "tvr_ranking",
    json: JsonOption = False,
) -> None:
    """Write the agreed judgements, for `moviola evaluate`, all ratings, or the moments still to be rated.

    Example: `moviola judge export task.sqlite --out judged.json`

    From Python: `moviola.study.judging.export_task`.
    """
    from moviola.study.judging import JudgingTask, export_task

    count = export_task(JudgingTask(task), out, form)
    said = counted(count, form[:-1] if form in ("ratings", "pairs") else "judged moment")
    show(json, {"out": str(out), "as": form, "rows": count}, f"{out}: {said}")


@judge.command("import")
def import_(
    task: TaskArgument,
    ratings: Annotated[Path, Argument(help="CSV with pair_id, worker, relevance.")],
    json: JsonOption = False,
) -> None:
    """Import ratings of another task (`judge export --as ratings`), or of another program.

    Example: `moviola judge import task.sqlite ratings.csv`

    From Python: `moviola.study.judging.import_ratings`.
    """
    from moviola.study.judging import JudgingTask, import_ratings

    found = import_ratings(JudgingTask(task), ratings)
    said = f"{task}: {counted(found.accepted, 'rating')} accepted, {found.refusals:,} refused"
    show(json, found, said)
    if found.replaced:
        note(f"{counted(found.replaced, 'rating')} replaced by a later one of the same rater in {ratings}")
    for reason in found.refused.values():
        note(reason)
    if found.refused:
        leave_partial()


@judge.command()
def training(
    task: TaskArgument,
    out: Annotated[Path, Option("--out", "-o", help="Folder for train.json, val.json and test.json.")],
    val: Annotated[int, Option(min=1, help="Number of queries for val, which select the weights.")],
    test: Annotated[int, Option(min=0, help="Number of queries for test, for `moviola evaluate`.")] = 0,
    level: Annotated[int, Option(min=1, max=4, help="Lowest level of the moments to learn from.")] = 2,
    seed: Annotated[int, Option(min=0, help="Random seed of the split.")] = 0,
    json: JsonOption = False,
) -> None:
    """Write judged moments as pair files for `moviola train`; no query text is in two files.

    Example: `moviola judge training task.sqlite --out judged --val 5 --test 5`

    From Python: `moviola.study.judging.export_splits`.
    """
    from moviola.study.judging import JudgingTask, export_splits

    counts = export_splits(JudgingTask(task), out, val=val, test=test, level=level, seed=seed)
    made = {name: {"queries": queries, "moments": moments} for name, (queries, moments) in counts.items()}
    lines = (
        f"{out / name}.json: {counted(moments, 'moment')} of {counted(queries, 'query')}"
        for name, (queries, moments) in counts.items()
    )
    show(json, made, *lines)
