"""Commands that measure: `evaluate`, `compare` and `study`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from moviola.cli.app import JsonOption, app, console, emit_json, note
from moviola.errors import InvalidValue
from moviola.files.writing import write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from moviola.measures import Qrels, Results, Run

__all__ = ["compare", "evaluate", "study"]

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
            "missing": list(results.missing),
            "extra": list(results.extra),
        }
        if per_query:
            found["per_query"] = _by_query(results)
        emit_json(found)
        return
    console.print(
        _table(
            f"{results.queries} queries", "measure", {n: [v] for n, v in results.measures.items()}, ["mean"]
        )
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
    """
    from moviola import measures as m

    paths, qrels = _runs_and_qrels(runs)
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


def _runs_and_qrels(paths: list[Path]) -> tuple[list[Path], Path]:
    if len(paths) < 3:
        raise InvalidValue(
            f"{len(paths)} files given: at least two runs and, last, the judgements are needed"
        )
    *runs, qrels = paths
    if len(set(runs)) != len(runs):
        raise InvalidValue("a run is given twice; give each once")
    return runs, qrels


study = typer.Typer(
    no_args_is_help=True,
    help="Study the measures themselves (the AxIoU paper): figures as PNG and SVG, numbers as CSV.",
)
app.add_typer(study, name="study")

STUDY_MEASURES = [
    *(f"R@{k},IoU>{overlap}" for overlap in (0.3, 0.5, 0.7) for k in (1, 5, 10)),
    *(f"AxIoU@{k}" for k in (1, 5, 10)),
]
RunsArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN RUN … QRELS", help="Runs, then the judgements.")
]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Folder for the figure and the numbers.")]


def _study_input(paths: list[Path], measure: list[str] | None) -> tuple[dict[str, Run], Qrels, list[str]]:
    from moviola import measures as m

    runs, qrels = _runs_and_qrels(paths)
    names = [path.name for path in runs]
    shown = [path.name if names.count(path.name) == 1 else str(path) for path in runs]
    read = {name: m.read_run(path) for name, path in zip(shown, runs, strict=True)}
    return read, m.read_qrels(qrels), [str(m.Measure.parse(name)) for name in measure or STUDY_MEASURES]


def _leave(
    out: Path, name: str, header: list[str], rows: list[list[object]], figure: Figure, as_json: bool
) -> None:
    """Write the numbers and the figure, and say where. What is not defined (NaN) is left empty."""
    from moviola.measures import figures

    rows = [[None if cell != cell else cell for cell in row] for row in rows]  # noqa: PLR0124

    path = out / f"{name}.csv"
    write_csv(path, header, rows)
    files = [str(path), *(str(p) for p in figures.save(figure, out / name))]
    if as_json:
        emit_json({"rows": [dict(zip(header, row, strict=True)) for row in rows], "files": files})
        return
    table = Table(title=name)
    for column in header:
        table.add_column(column)
    for row in rows:
        table.add_row(*(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row))
    console.print(table)
    note(f"written: {', '.join(files)}")


@study.command("agreement")
def study_agreement(
    paths: RunsArgument,
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """Do two measures rank the systems alike? Kendall's τ-b between all pairs of measures.

    Example: `moviola study agreement a.json b.json c.json test.json --out figures`
    """
    from moviola.measures import figures, studies

    runs, qrels, names = _study_input(paths, measure)
    values = studies.per_query_values(runs, qrels, names)
    tau = studies.agreement(np.stack([values[name].mean(axis=1) for name in names]))
    rows = [[names[i], names[j], float(tau[i, j])] for i in range(len(names)) for j in range(len(names))]
    figure = figures.heatmap(names, tau, f"Agreement between measures, {len(runs)} systems")
    _leave(out, "agreement", ["first", "second", "tau_b"], rows, figure, as_json)


@study.command("self-agreement")
def study_self_agreement(
    paths: RunsArgument,
    measure: MeasureOption = None,
    size: Annotated[
        list[int] | None, typer.Option(help="Queries a subset; repeat. Default: ten sizes.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Pairs of subsets a size.")] = 5000,
    disjoint: Annotated[bool, typer.Option("--disjoint", help="The two subsets share no query.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """Does a measure rank the systems alike on two random subsets of the queries?

    Example: `moviola study self-agreement a.json b.json test.json -m "AxIoU@10" --trials 1000`
    """
    from moviola.measures import figures, studies

    runs, qrels, names = _study_input(paths, measure)
    values = studies.per_query_values(runs, qrels, names)
    most = values[names[0]].shape[1] // (2 if disjoint else 1)
    sizes = size or sorted({max(1, most * tenth // 10) for tenth in range(1, 11)})
    found = {
        name: studies.self_agreement(values[name], sizes, trials=trials, disjoint=disjoint, seed=seed)
        for name in names
    }
    rows: list[list[object]] = [
        [name, *cells]
        for name, curve in found.items()
        for cells in zip(
            curve.sizes.tolist(),
            curve.mean.tolist(),
            curve.variance.tolist(),
            curve.undefined.tolist(),
            strict=True,
        )
    ]
    figure = figures.self_agreement_curves(
        found, f"Self-agreement, {len(runs)} systems, {trials} trials a size"
    )
    _leave(out, "self-agreement", ["measure", "size", "mean", "variance", "undefined"], rows, figure, as_json)


@study.command("noise")
def study_noise(
    paths: RunsArgument,
    measure: MeasureOption = None,
    model: Annotated[
        str, typer.Option(help="literal (as the paper prints it) or paper_fit (as it computed).")
    ] = "paper_fit",
    datasets: Annotated[int, typer.Option(min=1, help="Noisy data sets a level.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """How far do noisy labels move a measure? Root mean squared error by noise level, mean over systems.

    Example: `moviola study noise a.json b.json test.json --model paper_fit --datasets 100`
    """
    from moviola.measures import figures, studies

    runs, qrels, names = _study_input(paths, measure)
    levels = list(studies.LEVELS)
    error = studies.label_noise(runs, qrels, names, datasets=datasets, model=model, seed=seed)
    rows: list[list[object]] = [
        [name, level, float(error[i, j])] for i, name in enumerate(names) for j, level in enumerate(levels)
    ]
    curves = {name: error[i].tolist() for i, name in enumerate(names)}
    title = f"Error under label noise ({model}), {len(runs)} systems, {datasets} data sets"
    figure = figures.lines(levels, curves, title, "noise level", "mean RMSE")
    _leave(out, "noise", ["measure", "level", "rmse"], rows, figure, as_json)


@study.command("labels")
def study_labels(
    qrels: Annotated[Path, typer.Argument(help="Judgements: the labels to disturb.")],
    datasets: Annotated[int, typer.Option(min=1, help="Noisy data sets a level.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """How far are noisy labels from the true ones? Mean IoU by noise level, for both models of noise.

    Example: `moviola study labels test.json --out figures`
    """
    from moviola import measures as m
    from moviola.measures import figures, studies

    judged = m.read_qrels(qrels)
    levels = list(studies.LEVELS)
    curves = {
        model: [
            studies.label_iou(judged.start, judged.end, level, model=model, seed=seed, datasets=datasets)
            for level in levels
        ]
        for model in studies.NOISE
    }
    rows: list[list[object]] = [
        [model, level, value]
        for model, curve in curves.items()
        for level, value in zip(levels, curve, strict=True)
    ]
    title = f"Noisy labels beside the true ones, {len(judged)} moments"
    figure = figures.lines(levels, curves, title, "noise level", "mean IoU")
    _leave(out, "labels", ["model", "level", "iou"], rows, figure, as_json)


@study.command("tied")
def study_tied(
    paths: RunsArgument,
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """On how many queries do all systems score exactly the same, so that the query tells nothing?

    Example: `moviola study tied a.json b.json c.json test.json`
    """
    from moviola.measures import figures, studies

    runs, qrels, names = _study_input(paths, measure)
    shares = {n: studies.all_tied(v) for n, v in studies.per_query_values(runs, qrels, names).items()}
    figure = figures.bars(shares, f"Queries on which all {len(runs)} systems tie", "share of queries")
    _leave(out, "tied", ["measure", "share"], [[n, v] for n, v in shares.items()], figure, as_json)


@study.command("selection")
def study_selection(
    validation: Annotated[Path, typer.Argument(help="Folder with qrels.json and a run a model, *.json.")],
    test: Annotated[Path, typer.Argument(help="The same for the test split; runs of the same names.")],
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """How good is the model that a measure picks on validation data? Z-scores on test data.

    Example: `moviola study selection runs/val runs/test --out figures`
    """
    from moviola import measures as m
    from moviola.measures import figures, studies

    names = [str(m.Measure.parse(name)) for name in measure or STUDY_MEASURES]
    models = sorted(path.name for path in validation.glob("*.json") if path.name != "qrels.json")
    missing = [name for name in models if not (test / name).is_file()]
    if missing or len(models) < 2:
        raise InvalidValue(
            f"{test if missing else validation}: "
            + (
                f"{missing[0]} is missing"
                if missing
                else "at least two runs (*.json beside qrels.json) are needed"
            )
        )
    scores = []
    for folder in (validation, test):
        runs = {name: m.read_run(folder / name) for name in models}
        values = studies.per_query_values(runs, m.read_qrels(folder / "qrels.json"), names)
        scores.append(np.stack([values[name].mean(axis=1) for name in names]))
    picked, z = studies.model_selection(*scores)
    rows: list[list[object]] = [
        [names[i], models[picked[i]], names[j], float(z[i, j])]
        for i in range(len(names))
        for j in range(len(names))
    ]
    curves = {name: z[i].tolist() for i, name in enumerate(names)}
    figure = figures.profiles(names, curves, f"Models picked by {len(names)} measures out of {len(models)}")
    _leave(out, "selection", ["picked_by", "model", "test_measure", "z"], rows, figure, as_json)


@study.command("bias")
def study_bias(
    iou: Annotated[float, typer.Option(min=0, max=1, help="True IoU of the one moment.")] = 0.5,
    noise: Annotated[
        list[float] | None, typer.Option(help="Standard deviation γ of the IoU seen; repeat.")
    ] = None,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """Bias, variance and error of AxIoU@1 and R@1,θ for one moment whose IoU is seen with noise.

    Example: `moviola study bias --iou 0.5 --noise 0.05 --noise 0.1`
    """
    from moviola.measures import figures, studies

    thetas = np.round(np.arange(0, 1.0001, 0.01), 2)
    noises = noise or [0.05, 0.1, 0.2]
    rows: list[list[object]] = [
        [name, gamma, *cells]
        for gamma in noises
        for name, curves in studies.bias_variance(thetas, gamma, iou).items()
        for cells in zip(thetas.tolist(), *(curve.tolist() for curve in curves), strict=True)
    ]
    header = ["measure", "noise", "theta", "squared_bias", "variance", "mse"]
    _leave(out, "bias", header, rows, figures.bias_curves(thetas, noises, iou), as_json)
