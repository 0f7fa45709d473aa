"""``moviola study``: the studies of measures (AxIoU paper) and of judgements (TVR-Ranking)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from moviola.cli.app import JsonOption, command_group, note, show_records
from moviola.cli.options import MeasureOption, runs_and_qrels

if TYPE_CHECKING:
    from moviola.measures import Qrels, Run
    from moviola.measures.study_reports import Study

study = command_group(
    "study", "Studies of measures (AxIoU) and judgements (TVR-Ranking): figures (PNG, SVG) and numbers (CSV)."
)

RunsArgument = Annotated[list[Path], Argument(metavar="RUN RUN … QRELS", help="Runs, then the judgements.")]
OutOption = Annotated[Path, Option("--out", "-o", help="Folder for the figure and the numbers.")]
SeedOption = Annotated[int, Option(help="Random seed.")]


def _input(paths: list[Path]) -> tuple[dict[str, Run], Qrels]:
    from moviola.measures import read_qrels
    from moviola.measures.study_reports import read_runs

    runs, qrels = runs_and_qrels(paths)
    return read_runs(runs), read_qrels(qrels)


def _show(made: Study, out: Path, json: bool) -> None:
    """Write numbers and figure, and print the numbers."""
    files = [str(path) for path in made.write(out)]
    rows = ([f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row] for row in made.rows)
    show_records(json, [dict(zip(made.header, row, strict=True)) for row in made.rows], made.header, rows)
    note(f"written: {', '.join(files)}")


@study.command()
def agreement(
    paths: RunsArgument,
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
    json: JsonOption = False,
) -> None:
    """Do two measures rank the systems alike? Kendall's τ-b between all pairs of measures.

    Example: `moviola study agreement a.json b.json c.json test.json --out figures`

    From Python: `moviola.measures.study_reports.agreement`.
    """
    from moviola.measures import study_reports

    _show(study_reports.agreement(*_input(paths), measure or study_reports.STUDY_MEASURES), out, json)


@study.command()
def self_agreement(
    paths: RunsArgument,
    measure: MeasureOption = None,
    size: Annotated[list[int] | None, Option(help="Queries per subset; repeatable.")] = None,
    trials: Annotated[int, Option(min=1, help="Number of pairs of subsets per size.")] = 5000,
    disjoint: Annotated[bool, Option("--disjoint", help="Draw subsets that share no query.")] = False,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
    json: JsonOption = False,
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
    _show(made, out, json)


@study.command()
def noise(
    paths: RunsArgument,
    measure: MeasureOption = None,
    model: Annotated[
        str, Option(help="literal (as printed) or paper_fit (as computed there).")
    ] = "paper_fit",
    datasets: Annotated[int, Option(min=1, help="Number of noisy data sets per level.")] = 100,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
    json: JsonOption = False,
) -> None:
    """How far do noisy labels move a measure? Root mean squared error by noise level, mean over systems.

    Example: `moviola study noise a.json b.json test.json --model paper_fit --datasets 100`

    From Python: `moviola.measures.study_reports.label_noise`.
    """
    from moviola.measures import study_reports

    made = study_reports.label_noise(
        *_input(paths), measure or study_reports.STUDY_MEASURES, model=model, datasets=datasets, seed=seed
    )
    _show(made, out, json)


@study.command()
def labels(
    qrels: Annotated[Path, Argument(help="Judgements, whose labels get noise.")],
    datasets: Annotated[int, Option(min=1, help="Number of noisy data sets per level.")] = 20,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
    json: JsonOption = False,
) -> None:
    """How far are noisy labels from the true ones? Mean IoU by noise level, for both models of noise.

    Example: `moviola study labels test.json --out figures`

    From Python: `moviola.measures.study_reports.label_iou`.
    """
    from moviola.measures import read_qrels, study_reports

    _show(study_reports.label_iou(read_qrels(qrels), datasets=datasets, seed=seed), out, json)


@study.command()
def tied(
    paths: RunsArgument,
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
    json: JsonOption = False,
) -> None:
    """On how many queries do all systems score exactly the same, so that the query does not separate them?

    Example: `moviola study tied a.json b.json c.json test.json`

    From Python: `moviola.measures.study_reports.tied`.
    """
    from moviola.measures import study_reports

    _show(study_reports.tied(*_input(paths), measure or study_reports.STUDY_MEASURES), out, json)


@study.command()
def selection(
    validation: Annotated[Path, Argument(help="Folder with qrels.json and one run per model, *.json.")],
    test: Annotated[Path, Argument(help="The same for the test split, with runs of the same names.")],
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
    json: JsonOption = False,
) -> None:
    """How good is the model that a measure picks on validation data? Z-scores on test data.

    Example: `moviola study selection runs/val runs/test --out figures`

    From Python: `moviola.measures.study_reports.model_selection`.
    """
    from moviola.measures import study_reports

    made = study_reports.model_selection(validation, test, measure or study_reports.STUDY_MEASURES)
    _show(made, out, json)


@study.command()
def bias(
    iou: Annotated[float, Option(min=0, max=1, help="True IoU of the one moment.")] = 0.5,
    noise: Annotated[list[float] | None, Option(help="Standard deviation γ of the IoU; repeatable.")] = None,
    out: OutOption = Path("study"),
    json: JsonOption = False,
) -> None:
    """Bias, variance and error of AxIoU@1 and R@1,θ for one moment whose IoU is measured with noise.

    Example: `moviola study bias --iou 0.5 --noise 0.05 --noise 0.1`

    From Python: `moviola.measures.study_reports.bias`.
    """
    from moviola.measures import study_reports

    made = study_reports.bias(iou, noise) if noise else study_reports.bias(iou)
    _show(made, out, json)


@study.command()
def cases(
    run: Annotated[Path, Argument(help="A run.")],
    qrels: Annotated[Path, Argument(help="The judgements.")],
    query: Annotated[
        list[str] | None,
        Option("--query", "-q", help="Id of a query; repeatable; by default the first three."),
    ] = None,
    measure: Annotated[
        str, Option("--measure", "-m", help="Measure with the depth and overlap to match at.")
    ] = "nDCG@10,IoU>=0.3",
    out: OutOption = Path("study"),
    json: JsonOption = False,
) -> None:
    """Show answers beside the truth, query by query, as the examples of the papers.

    Example: `moviola study cases run.json test.json --query 12 --out figures`

    From Python: `moviola.measures.cases.case_study`.
    """
    from moviola.measures import read_qrels, read_run
    from moviola.measures.cases import case_study

    _show(case_study(read_run(run), read_qrels(qrels), query or (), measure=measure), out, json)


@study.command()
def relevance(
    judged: Annotated[Path, Argument(help="A judged pair file (val or test).")],
    queries: Annotated[int, Option(min=1, help="Number of queries to show, drawn at random.")] = 10,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
    json: JsonOption = False,
) -> None:
    """Does relevance follow query-caption similarity? By value and by rank (TVR-Ranking, Figure 4).

    Example: `moviola study relevance val.json --out figures`

    From Python: `moviola.datasets.building.studies.relevance_study`.
    """
    from moviola.datasets.building.analysis import read_judged
    from moviola.datasets.building.studies import relevance_study

    _show(relevance_study(read_judged(judged), queries=queries, seed=seed), out, json)


@study.command()
def ratings(
    raw: Annotated[Path, Argument(help="CSV with pair_id, worker, relevance.")],
    out: OutOption = Path("study"),
    json: JsonOption = False,
) -> None:
    """How far apart are the ratings of a pair, and which levels result? (TVR-Ranking, Figure 5)

    Example: `moviola study ratings raw_annotation.csv --out figures`

    From Python: `moviola.datasets.building.studies.rating_study`.
    """
    from moviola.datasets.building.annotation_files import read_ratings
    from moviola.datasets.building.studies import rating_study

    _show(rating_study(read_ratings(raw)), out, json)
