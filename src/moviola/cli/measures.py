"""Commands that measure: `evaluate`, `compare` and `study`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from moviola.cli.app import JsonOption, app, console, emit_json, note

if TYPE_CHECKING:
    from moviola.measures import Results

__all__ = ["evaluate"]

DEFAULT_MEASURES = ["nDCG@20,IoU>=0.3", "nDCG@20,IoU>=0.5", "nDCG@20,IoU>=0.7"]

MeasureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--measure", "-m", help="A measure, e.g. 'nDCG@20,IoU>=0.5', 'R@5,IoU>0.7', 'AxIoU@10'; repeat."
    ),
]
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
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Show every query's values as well.")
    ] = False,
    run_format: FormatOption = None,
    qrels_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a run against judgements.

    Every judged query with a relevant moment counts; what is missing from the run scores 0 and is named.

    Example: `moviola evaluate run.json test.json -m "nDCG@20,IoU>=0.5" -m "R@5,IoU>0.7"`
    """
    from moviola import measures as m

    zero_length = preset is not None
    results = m.evaluate(
        m.read_run(run, run_format, zero_length=zero_length),
        m.read_qrels(qrels, qrels_format, zero_length=zero_length),
        measure or DEFAULT_MEASURES,
        preset,
    )
    if as_json:
        found = {
            "measures": results.measures,
            "queries": results.queries,
            "missing": list(results.missing),
            "extra": list(results.extra),
        }
        if per_query:
            found["per_query"] = _by_query(results)
        emit_json(found)
        return
    console.print(
        _table(f"{results.queries} queries", "measure", {n: [v] for n, v in results.measures.items()}, [""])
    )
    if per_query:
        console.print(_table("per query", "query", _values_by_query(results), list(results.measures)))
    _name(results.missing, "judged, but missing from the run")
    _name(results.extra, "in the run, but not judged (they do not count)")


def _values_by_query(results: Results) -> dict[str, list[float]]:
    columns = [values.tolist() for values in results.per_query.values()]
    return {query: list(values) for query, *values in zip(results.query_ids, *columns, strict=True)}


def _by_query(results: Results) -> dict[str, dict[str, float]]:
    names = list(results.measures)
    return {
        query: dict(zip(names, values, strict=True)) for query, values in _values_by_query(results).items()
    }


def _table(title: str, first: str, rows: dict[str, list[float]], columns: list[str]) -> Table:
    table = Table(title=title)
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    for name, values in rows.items():
        table.add_row(name, *(f"{value:.4f}" for value in values))
    return table


def _name(queries: tuple[str, ...], what: str) -> None:
    if queries:
        shown = ", ".join(queries[:10]) + (", …" if len(queries) > 10 else "")
        note(f"{len(queries)} {'query' if len(queries) == 1 else 'queries'} {what}: {shown}")
