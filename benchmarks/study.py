"""Which measure, and which judgement, can be trusted? Figures as PNG and SVG, numbers as CSV.

    python benchmarks/study.py agreement a.json b.json c.json test.json --out figures
    python benchmarks/study.py --help

A command for each study of measures in the AxIoU paper, and for those of TVR-Ranking of its queries and
annotations; cases as all papers show them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from measure_studies import reports
from measure_studies.cases import case_study
from measure_studies.judged_pairs import caption_changes, read_judged, relevance_by_similarity
from measure_studies.judged_pairs import replacements as replaced
from measure_studies.judgements import rating_study, relevance_study
from measure_studies.reports import Study, read_runs
from moviola.errors import InvalidValue, MoviolaError
from moviola.study.datasets.building.annotation_files import read_ratings
from moviola.study.datasets.readers import read_annotations
from moviola.study.measures import Qrels, Run, read_qrels, read_run

study = typer.Typer(no_args_is_help=True, help=(__doc__ or "").splitlines()[0])

RunsArgument = Annotated[
    list[Path], typer.Argument(metavar="RUN RUN … QRELS", help="Runs, then the judgements.")
]
MeasureOption = Annotated[
    list[str] | None, typer.Option("--measure", "-m", help="A measure, e.g. 'AxIoU@10'; repeat.")
]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Folder for the figure and the numbers.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the draws.")]


def _input(paths: list[Path]) -> tuple[dict[str, Run], Qrels]:
    if len(paths) < 3:
        raise InvalidValue(f"{len(paths)} files: give at least two runs and, last, the judgements")
    return read_runs(paths[:-1]), read_qrels(paths[-1])


def _show(made: Study, out: Path) -> None:
    """Write the numbers and the figure, print the numbers, and say where they are."""
    files = [str(path) for path in made.write(out)]
    print(*made.header, sep="	")
    for row in made.rows:
        print(*(f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row), sep="	")
    print(f"written: {', '.join(files)}", file=sys.stderr)


@study.command("effectiveness")
def effectiveness(
    paths: RunsArgument,
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
) -> None:
    """How good is each system by each measure? Means over queries, the systems sorted by R@5,IoU>0.5.

    Example: `python benchmarks/study.py effectiveness a.json b.json test.json --out figures`
    """
    _show(reports.effectiveness(*_input(paths), measure or reports.STUDY_MEASURES), out)


@study.command("agreement")
def agreement(
    paths: RunsArgument,
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
) -> None:
    """Do two measures rank the systems alike? Kendall's τ-b between all pairs of measures.

    Example: `python benchmarks/study.py agreement a.json b.json c.json test.json --out figures`
    """
    _show(reports.agreement(*_input(paths), measure or reports.STUDY_MEASURES), out)


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
) -> None:
    """Does a measure rank the systems alike on two random subsets of the queries?

    Example: `python benchmarks/study.py self-agreement a.json b.json test.json -m "AxIoU@10" --trials 1000`
    """
    made = reports.self_agreement(
        *_input(paths), measure or reports.STUDY_MEASURES,
        sizes=size, trials=trials, disjoint=disjoint, seed=seed,
    )  # fmt: skip
    _show(made, out)


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
) -> None:
    """How far do noisy labels move a measure? Root mean squared error by noise level, mean over systems.

    Example: `python benchmarks/study.py noise a.json b.json test.json --model paper_fit --datasets 100`
    """
    made = reports.label_noise(
        *_input(paths), measure or reports.STUDY_MEASURES, model=model, datasets=datasets, seed=seed
    )
    _show(made, out)


@study.command("labels")
def labels(
    qrels: Annotated[Path, typer.Argument(help="Judgements: the labels to disturb.")],
    datasets: Annotated[int, typer.Option(min=1, help="Noisy data sets per level.")] = 20,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
) -> None:
    """How far are noisy labels from the true ones? Mean IoU by noise level, for both models of noise.

    Example: `python benchmarks/study.py labels test.json --out figures`
    """
    _show(reports.label_iou(read_qrels(qrels), datasets=datasets, seed=seed), out)


@study.command("tied")
def tied(
    paths: RunsArgument,
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
) -> None:
    """On how many queries do all systems score exactly the same, so that the query separates none?

    Example: `python benchmarks/study.py tied a.json b.json c.json test.json`
    """
    _show(reports.tied(*_input(paths), measure or reports.STUDY_MEASURES), out)


@study.command("selection")
def selection(
    validation: Annotated[Path, typer.Argument(help="Folder with qrels.json and one run per model, *.json.")],
    test: Annotated[Path, typer.Argument(help="The same for the test split; runs of the same names.")],
    measure: MeasureOption = None,
    out: OutOption = Path("study"),
) -> None:
    """How good is the model that a measure picks on validation data? Z-scores on test data.

    Example: `python benchmarks/study.py selection runs/val runs/test --out figures`
    """
    made = reports.model_selection(validation, test, measure or reports.STUDY_MEASURES)
    _show(made, out)


@study.command("bias")
def bias(
    iou: Annotated[float, typer.Option(min=0, max=1, help="True IoU of the one moment.")] = 0.5,
    noise: Annotated[
        list[float] | None, typer.Option(help="Standard deviation γ of the IoU seen; repeat.")
    ] = None,
    out: OutOption = Path("study"),
) -> None:
    """Bias, variance and error of AxIoU@1 and R@1,θ for one moment whose IoU is seen with noise.

    Example: `python benchmarks/study.py bias --iou 0.5 --noise 0.05 --noise 0.1`
    """
    made = reports.bias(iou, noise) if noise else reports.bias(iou)
    _show(made, out)


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
) -> None:
    """What was found for a query beside what is true, as the papers show their examples.

    Example: `python benchmarks/study.py cases run.json test.json --query 12 --out figures`
    """
    _show(case_study(read_run(run), read_qrels(qrels), query or (), measure=measure), out)


@study.command("relevance")
def relevance(
    judged: Annotated[Path, typer.Argument(help="A judged pair file (val or test).")],
    queries: Annotated[int, typer.Option(min=1, help="Queries to show, drawn at random.")] = 10,
    seed: SeedOption = 0,
    out: OutOption = Path("study"),
) -> None:
    """Does relevance follow query-caption similarity? By value and by rank (TVR-Ranking, Figure 4).

    Example: `python benchmarks/study.py relevance val.json --out figures`
    """
    _show(relevance_study(read_judged(judged), queries=queries, seed=seed), out)


@study.command("ratings")
def ratings(
    raw: Annotated[Path, typer.Argument(help="CSV with pair_id, worker, relevance.")],
    out: OutOption = Path("study"),
) -> None:
    """How far apart are the ratings of a pair, and what levels result? (TVR-Ranking, Figure 5).

    Example: `python benchmarks/study.py ratings raw_annotation.csv --out figures`
    """
    _show(rating_study(read_ratings(raw)), out)


@study.command("similarity")
def similarity(
    path: Annotated[Path, typer.Argument(help="A judged pair file (val or test).")],
    bins: Annotated[int, typer.Option(min=1, help="Bins of similarity.")] = 10,
) -> None:
    """How relevance follows query-caption similarity (Figure 4), and relevant moments a query (Table 4).

    Example: `python benchmarks/study.py similarity val.json`
    """
    judged = read_judged(path)
    table = relevance_by_similarity(judged, bins)
    print(
        f"{len(judged.queries):,} queries, {len(judged.relevance):,} pairs, "
        f"{judged.relevant_per_query:.1f} relevant moments a query, Spearman {table.rank_correlation:.3f}"
    )
    print("similarity        pairs of level 0 / 1 / 2 / 3 / 4   mean")
    for place, mean in enumerate(table.means):
        counts = " / ".join(f"{count:,}" for count in table.counts[:, place])
        print(f"{table.edges[place]:.2f} to {table.edges[place + 1]:.2f}   {counts}   {mean:.2f}")


@study.command("replacements")
def replacements(
    before: Annotated[Path, typer.Argument(help="Annotations with the original captions.")],
    after: Annotated[Path, typer.Argument(help="The same moments with imprecise captions.")],
    kind: Annotated[str, typer.Option(help="Data set of both files, as `moviola dataset stats` takes it.")],
    top: Annotated[int, typer.Option(min=1, help="How many words.")] = 12,
    durations: Annotated[Path | None, typer.Option(help="File of video durations.")] = None,
) -> None:
    """The words that took the place of names, most frequent first (Table 3); moments are joined by their id.

    Example: `python benchmarks/study.py replacements tvr_val_release.jsonl imprecise.jsonl --kind tvr`
    """

    states = (read_annotations(path, kind, durations) for path in (before, after))
    found = replaced(caption_changes(*states))[:top]
    for one in found:
        print(f"{one.word:>16}  {one.count:>8,}  {one.gender}")


if __name__ == "__main__":
    try:
        study()
    except MoviolaError as error:
        sys.exit(f"error: {error}")
