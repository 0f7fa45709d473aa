"""``moviola study``: which measure, and which judgement, can be trusted?

One command for each study of the AxIoU paper, and two for TVR-Ranking's of its annotations.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from moviola.cli.app import JsonOption, app, emit_json, note, show_table
from moviola.cli.runs import MeasureOption, runs_and_qrels

if TYPE_CHECKING:
    from moviola.measures import Qrels, Run
    from moviola.measures.study_reports import Study

study = typer.Typer(
    no_args_is_help=True,
    help="Study measures (AxIoU) and judgements (TVR-Ranking): figures as PNG and SVG, numbers as CSV.",
)
app.add_typer(study, name="study")

RunsArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN RUN … QRELS", help="Runs, then the judgements.")
]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Folder for the figure and the numbers.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the draws.")]


def _input(paths: list[Path]) -> tuple[dict[str, Run], Qrels]:
    from moviola.measures import read_qrels
    from moviola.measures.study_reports import read_runs

    runs, qrels = runs_and_qrels(paths)
    return read_runs(runs), read_qrels(qrels)


def _show(made: Study, out: Path, as_json: bool) -> None:
    """Write the numbers and the figure, print the numbers, and say where they are."""
    files = [str(path) for path in made.write(out)]
    if as_json:
        rows = [dict(zip(made.header, row, strict=True)) for row in made.rows]
        emit_json({"rows": rows, "files": files})
        return
    table = Table(*made.header, title=made.name)
    show_table(
        table,
        ([f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in made.rows),
    )
    note(f"written: {', '.join(files)}")


@study.command("agreement")
def agreement(
    paths: RunsArgument,
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """Do two measures rank the systems alike? Kendall's τ-b between all pairs of measures.

    Example: `moviola study agreement a.json b.json c.json test.json --out figures`

    From Python: `moviola.measures.study_reports.agreement`.
    """
    from moviola.measures import study_reports

    _show(study_reports.agreement(*_input(paths), measure or study_reports.STUDY_MEASURES), out, as_json)


@study.command("self-agreement")
def self_agreement(
    paths: RunsArgument,
    measure: MeasureOption = None,
    size: Annotated[
        list[int] | None, typer.Option(help="Queries per subset; repeat. Default: ten sizes.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Pairs of subsets per size.")] = 5000,
    disjoint: Annotated[bool, typer.Option("--disjoint", help="The two subsets share no query.")] = False,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """Does a measure rank the systems alike on two random subsets of the queries?

    Example: `moviola study self-agreement a.json b.json test.json -m "AxIoU@10" --trials 1000`

    From Python: `moviola.measures.study_reports.self_agreement`.
    """
    from moviola.measures import study_reports

    made = study_reports.self_agreement(
        *_input(paths), measure or study_reports.STUDY_MEASURES,
        sizes=size, trials=trials, disjoint=disjoint, seed=seed,
    )  # fmt: skip
    _show(made, out, as_json)


@study.command("noise")
def noise(
    paths: RunsArgument,
    measure: MeasureOption = None,
    model: Annotated[
        str, typer.Option(help="literal (as the paper prints it) or paper_fit (as it computed).")
    ] = "paper_fit",
    datasets: Annotated[int, typer.Option(min=1, help="Noisy data sets per level.")] = 100,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """How far do noisy labels move a measure? Root mean squared error by noise level, mean over systems.

    Example: `moviola study noise a.json b.json test.json --model paper_fit --datasets 100`

    From Python: `moviola.measures.study_reports.label_noise`.
    """
    from moviola.measures import study_reports

    made = study_reports.label_noise(
        *_input(paths), measure or study_reports.STUDY_MEASURES, model=model, datasets=datasets, seed=seed
    )
    _show(made, out, as_json)


@study.command("labels")
def labels(
    qrels: Annotated[Path, typer.Argument(help="Judgements: the labels to disturb.")],
    datasets: Annotated[int, typer.Option(min=1, help="Noisy data sets per level.")] = 20,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """How far are noisy labels from the true ones? Mean IoU by noise level, for both models of noise.

    Example: `moviola study labels test.json --out figures`

    From Python: `moviola.measures.study_reports.label_iou`.
    """
    from moviola.measures import read_qrels, study_reports

    _show(study_reports.label_iou(read_qrels(qrels), datasets=datasets, seed=seed), out, as_json)


@study.command("tied")
def tied(
    paths: RunsArgument,
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """On how many queries do all systems score exactly the same, so that the query tells nothing?

    Example: `moviola study tied a.json b.json c.json test.json`

    From Python: `moviola.measures.study_reports.tied`.
    """
    from moviola.measures import study_reports

    _show(study_reports.tied(*_input(paths), measure or study_reports.STUDY_MEASURES), out, as_json)


@study.command("selection")
def selection(
    validation: Annotated[Path, typer.Argument(help="Folder with qrels.json and one run per model, *.json.")],
    test: Annotated[Path, typer.Argument(help="The same for the test split; runs of the same names.")],
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """How good is the model that a measure picks on validation data? Z-scores on test data.

    Example: `moviola study selection runs/val runs/test --out figures`

    From Python: `moviola.measures.study_reports.model_selection`.
    """
    from moviola.measures import study_reports

    made = study_reports.model_selection(validation, test, measure or study_reports.STUDY_MEASURES)
    _show(made, out, as_json)


@study.command("bias")
def bias(
    iou: Annotated[float, typer.Option(min=0, max=1, help="True IoU of the one moment.")] = 0.5,
    noise: Annotated[
        list[float] | None, typer.Option(help="Standard deviation γ of the IoU seen; repeat.")
    ] = None,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """Bias, variance and error of AxIoU@1 and R@1,θ for one moment whose IoU is seen with noise.

    Example: `moviola study bias --iou 0.5 --noise 0.05 --noise 0.1`

    From Python: `moviola.measures.study_reports.bias`.
    """
    from moviola.measures import study_reports

    made = study_reports.bias(iou, noise) if noise else study_reports.bias(iou)
    _show(made, out, as_json)


@study.command("cases")
def cases(
    run: Annotated[Path, typer.Argument(help="A run.")],
    qrels: Annotated[Path, typer.Argument(help="The judgements.")],
    query: Annotated[
        list[str] | None,
        typer.Option("--query", "-q", help="Id of a query; repeat. Default: the first three."),
    ] = None,
    measure: Annotated[
        str, typer.Option("--measure", "-m", help="Its depth and its overlap match both.")
    ] = "nDCG@10,IoU>=0.3",
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """What was found for a query beside what is true, as the papers show their examples.

    Example: `moviola study cases run.json test.json --query 12 --out figures`

    From Python: `moviola.measures.query_cases.case_study`.
    """
    from moviola.measures import read_qrels, read_run
    from moviola.measures.query_cases import case_study

    _show(case_study(read_run(run), read_qrels(qrels), query or (), measure=measure), out, as_json)


@study.command("relevance")
def relevance(
    judged: Annotated[Path, typer.Argument(help="A judged pair file (val or test).")],
    queries: Annotated[int, typer.Option(min=1, help="Queries to show, drawn at random.")] = 10,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """Does relevance follow query-caption similarity? By value and by rank (TVR-Ranking, Figure 4).

    Example: `moviola study relevance val.json --out figures`

    From Python: `moviola.datasets.building.query_studies.relevance_study`.
    """
    from moviola.datasets.building.analysis import read_judged
    from moviola.datasets.building.query_studies import relevance_study

    _show(relevance_study(read_judged(judged), queries=queries, seed=seed), out, as_json)


@study.command("ratings")
def ratings(
    raw: Annotated[Path, typer.Argument(help="CSV with pair_id, worker, relevance.")],
    out: OutOption = Path("study"),
    as_json: JsonOption = False,
) -> None:
    """How far apart are the ratings of a pair, and what levels result? (TVR-Ranking, Figure 5).

    Example: `moviola study ratings raw_annotation.csv --out figures`

    From Python: `moviola.datasets.building.query_studies.rating_study`.
    """
    from moviola.datasets.building.annotation_files import read_ratings
    from moviola.datasets.building.query_studies import rating_study

    _show(rating_study(read_ratings(raw)), out, as_json)
