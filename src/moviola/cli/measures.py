"""Commands that measure: `evaluate` and `compare`."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from moviola.cli.app import JsonOption, app, console, emit_json, note
from moviola.cli.runs import MeasureOption, runs_and_qrels

if TYPE_CHECKING:
    from moviola.measures import Results

__all__ = ["compare", "evaluate"]

DEFAULT_MEASURES = ["nDCG@20,IoU>=0.3", "nDCG@20,IoU>=0.5", "nDCG@20,IoU>=0.7"]

PresetOption = Annotated[
    str | None,
    typer.Option(help="Count as a release does: tvr_ranking or spr (moments of zero length are let in)."),
]
FormatOption = Annotated[str | None, typer.Option(help="Format of the file, when its content does not tell.")]


@app.command()
def evaluate(
    run: Annotated[
        Path, typer.Argument(help="Ranked moments: JSON, JSON lines, CSV, TVR, QVHighlights or TREC.")
    ],
    qrels: Annotated[Path, typer.Argument(help="Judgements, in any of the formats.")],
    measure: MeasureOption = None,
    preset: PresetOption = None,
    tvr: Annotated[
        bool,
        typer.Option(
            "--tvr", help="Recall as TVR's evaluator counts it; QRELS is TVR's annotations (jsonl)."
        ),
    ] = False,
    task: Annotated[
        str, typer.Option(help="With --tvr: what the run answers, VCMR, SVMR or VR; a submission says it.")
    ] = "VCMR",
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Show every query's values as well.")
    ] = False,
    run_format: FormatOption = None,
    qrels_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a run against judgements.

    Every judged query with a relevant moment counts; what is missing from the run scores 0 and is named.
    AUROC, Rej-F1 and G-mIoU also count queries without an answer: those judged without a relevant moment.

    Example: `moviola evaluate run.json test.json -m "nDCG@20,IoU>=0.5" -m "R@5,IoU>0.7"`

    Example: `moviola evaluate run.json test.json -m AUROC -m "Rej-F1,score<=0.5" -m "G-mIoU@5,score<=0.5"`

    Example: `moviola evaluate videos.jsonl tvr_val_release.jsonl --tvr --task VR`

    From Python: `moviola.measures.evaluate`; with --tvr `moviola.measures.tvr_recall`.
    """
    from moviola import measures as m

    if tvr:
        _show_tvr(m.tvr_recall_of(run, qrels, task.upper()), as_json)
        return
    results = m.evaluate(
        m.read_run(run, run_format, preset=preset),
        m.read_qrels(qrels, qrels_format, preset=preset),
        measure or DEFAULT_MEASURES,
        preset,
    )
    if as_json:
        found: dict[str, object] = {
            "measures": results.measures,
            "queries": results.queries,
            "counts": results.counts,
            "missing": list(results.missing),
            "extra": list(results.extra),
        }
        if per_query:
            found["per_query"] = _by_query(results)
        emit_json(found)
        return
    table = Table("measure", title=f"{results.queries} queries")
    alike = len(set(results.counts.values())) == 1  # then the title says of how many queries
    for column in ("value",) if alike else ("value", "queries"):
        table.add_column(column, justify="right")
    for name, value in results.measures.items():
        table.add_row(name, f"{value:.4f}", *([] if alike else [str(results.counts[name])]))
    console.print(table)
    if per_query:
        table = Table("query", title="per query")
        for name in results.per_query:
            table.add_column(name, justify="right")
        for query, row in _by_query(results).items():
            table.add_row(query, *("" if value is None else f"{value:.4f}" for value in row.values()))
        console.print(table)
    _name(results.missing, "judged, but missing from the run")
    _name(results.extra, "in the run, but not judged (they do not count)")


def _show_tvr(found: dict[str, dict[str, Any]], as_json: bool) -> None:
    if as_json:
        emit_json(found)
        return
    for task, values in found.items():
        for name, value in values.items():
            console.print(f"{task:>12}  {name:<14}  {value}")


def _by_query(results: Results) -> dict[str, dict[str, float | None]]:
    """Values by query and measure; None where the measure does not count the query."""
    found: dict[str, dict[str, float | None]] = {query: {} for query in results.query_ids}
    for name, values in results.per_query.items():
        for query, value in zip(results.query_ids, values.tolist(), strict=True):
            found[query][name] = None if math.isnan(value) else value
    return found


def _name(queries: tuple[str, ...], what: str) -> None:
    if queries:
        shown = ", ".join(queries[:10]) + (", …" if len(queries) > 10 else "")
        note(f"{len(queries)} {'query' if len(queries) == 1 else 'queries'} {what}: {shown}")


@app.command()
def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN … QRELS", help="Runs, the baseline first; QRELS last.")
    ],
    measure: MeasureOption = None,
    preset: PresetOption = None,
    trials: Annotated[int, typer.Option(min=1, help="Permutations and bootstrap samples.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of both.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Compare runs with the first one: difference, 95 % interval, and p values of two paired tests.

    Example: `moviola compare baseline.json refined.json test.json -m "nDCG@20,IoU>=0.5"`

    From Python: `moviola.measures.compare`.
    """
    from moviola import measures as m

    paths, qrels = runs_and_qrels(runs)
    judged = m.read_qrels(qrels, preset=preset)
    names = [str(m.Measure.parse(name)) for name in measure or DEFAULT_MEASURES]
    found = {str(path): m.evaluate(m.read_run(path, preset=preset), judged, names, preset) for path in paths}
    baseline, *others = found
    rows = [
        (other, m.compare(found[baseline], found[other], name, trials=trials, seed=seed))
        for name in names
        for other in others
    ]
    if as_json:
        comparisons = [{"baseline": baseline, "run": other} | dataclasses.asdict(row) for other, row in rows]
        emit_json({"comparisons": comparisons, "missing": {p: list(r.missing) for p, r in found.items()}})
        return
    table = Table(
        title=f"against {Path(baseline).name}, {found[baseline].queries} queries",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("measure, run", no_wrap=True)
    for column in ("means", "difference, 95 %", "+/-", "p perm.", "p t"):
        table.add_column(column, justify="right", no_wrap=True)
    for other, row in rows:
        table.add_row(
            f"{row.measure}\n{Path(other).name}",
            f"{row.first:.3f} → {row.second:.3f}",
            f"{row.low:+.3f} to {row.high:+.3f}",
            f"{row.wins}/{row.losses}",
            f"{row.permutation:.3g}",
            f"{row.t:.2g}",
        )
    console.print(table)
    for path, results in found.items():
        _name(results.missing, f"judged, but missing from {path}")
        _name(results.extra, f"in {path}, but not judged (they do not count)")
