"""Which measure, and which judgement, can be trusted? Figures as PNG and SVG, numbers as CSV.

    python benchmarks/study.py agreement a.json b.json c.json test.json --out figures
    python benchmarks/study.py self-agreement a.json b.json test.json -m "AxIoU@10" --trials 1000
    python benchmarks/study.py cases run.json test.json --query 12 --out figures
    python benchmarks/study.py --help

A command for each study of measures in the AxIoU paper, and for those of TVR-Ranking of its queries and
annotations; cases as all papers show them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from measure_studies import reports
from measure_studies.cases import MEASURE, case_study
from measure_studies.judged_pairs import caption_changes, read_judged, relevance_by_similarity
from measure_studies.judged_pairs import replacements as replaced
from measure_studies.judgements import rating_study, relevance_study
from measure_studies.reports import STUDY_MEASURES, Study, read_runs
from measuring import saying_errors
from moviola.errors import InvalidValue
from moviola.study.datasets.building.annotation_files import read_ratings
from moviola.study.datasets.readers import read_annotations
from moviola.study.measures import Qrels, Run, read_qrels, read_run

study = typer.Typer(no_args_is_help=True, help=(__doc__ or "").splitlines()[0])

Runs = Annotated[list[Path], typer.Argument(metavar="RUN RUN … QRELS", help="Runs, then the judgements.")]
Judged = Annotated[Path, typer.Argument(help="A judged pair file (val or test).")]
Measures = Annotated[list[str], typer.Option("--measure", "-m", help="Such as 'AxIoU@10'; repeat.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the figure and the numbers.")]
Seed = Annotated[int, typer.Option(help="Seed of the draws.")]
Datasets = Annotated[int, typer.Option(min=1, help="Noisy data sets per level.")]
ALL, NOISES, FOLDER = list(STUDY_MEASURES), [0.05, 0.1, 0.2], Path("study")


def _input(paths: list[Path]) -> tuple[dict[str, Run], Qrels]:
    if len(paths) < 3:
        raise InvalidValue(f"{len(paths)} files: give at least two runs and, last, the judgements")
    return read_runs(paths[:-1]), read_qrels(paths[-1])


def _show(made: Study, out: Path) -> None:
    """Write the numbers and the figure, print the numbers, and say where they are."""
    files = [str(path) for path in made.write(out)]
    print(*made.header, sep="\t")
    for row in made.rows:
        print(*(f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row), sep="\t")
    print(f"written: {', '.join(files)}", file=sys.stderr)


def _of_runs(report: Callable[..., Study]) -> Callable[..., None]:
    """The command of a study that takes runs and measures alone."""

    def command(paths: Runs, measure: Measures = ALL, out: Out = FOLDER) -> None:
        _show(report(*_input(paths), measure), out)

    return command


study.command("effectiveness", help="How good is each system by each measure?")(
    _of_runs(reports.effectiveness)
)
study.command("agreement", help="Do two measures rank the systems alike? τ-b.")(_of_runs(reports.agreement))
study.command("tied", help="On how many queries do all systems score the same?")(_of_runs(reports.tied))


@study.command("self-agreement")
def self_agreement(
    paths: Runs, measure: Measures = ALL,
    size: Annotated[list[int] | None, typer.Option(help="Queries per subset; repeat. Default: ten.")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Pairs of subsets per size.")] = 5000,
    disjoint: Annotated[bool, typer.Option("--disjoint", help="The two subsets share no query.")] = False,
    seed: Seed = 0, out: Out = FOLDER,
) -> None:  # fmt: skip
    """Does a measure rank the systems alike on two random subsets of the queries?"""
    runs, qrels = _input(paths)
    made = reports.self_agreement(
        runs, qrels, measure, sizes=size, trials=trials, disjoint=disjoint, seed=seed
    )
    _show(made, out)


@study.command("noise")
def noise(
    paths: Runs, measure: Measures = ALL,
    model: Annotated[str, typer.Option(help="literal (as printed) or paper_fit (computed).")] = "paper_fit",
    datasets: Datasets = 100, seed: Seed = 0, out: Out = FOLDER,
) -> None:  # fmt: skip
    """How far do noisy labels move a measure? Root mean squared error by noise level, mean over systems."""
    _show(reports.label_noise(*_input(paths), measure, model=model, datasets=datasets, seed=seed), out)


@study.command("labels")
def labels(qrels: Path, datasets: Datasets = 20, seed: Seed = 0, out: Out = FOLDER) -> None:
    """How far are noisy labels from the true ones? Mean IoU by noise level, for both models of noise."""
    _show(reports.label_iou(read_qrels(qrels), datasets=datasets, seed=seed), out)


@study.command("selection")
def selection(
    validation: Annotated[Path, typer.Argument(help="Folder with qrels.json and one run per model, *.json.")],
    test: Annotated[Path, typer.Argument(help="The same for the test split; runs of the same names.")],
    measure: Measures = ALL, out: Out = FOLDER,
) -> None:  # fmt: skip
    """How good is the model that a measure picks on validation data? Z-scores on test data."""
    _show(reports.model_selection(validation, test, measure), out)


@study.command("bias")
def bias(
    iou: Annotated[float, typer.Option(min=0, max=1, help="True IoU of the one moment.")] = 0.5,
    noise: Annotated[list[float], typer.Option(help="Deviation γ of the IoU seen; repeat.")] = NOISES,
    out: Out = FOLDER,
) -> None:  # fmt: skip
    """Bias, variance and error of AxIoU@1 and R@1,θ for one moment whose IoU is seen with noise."""
    _show(reports.bias(iou, noise), out)


@study.command("cases")
def cases(
    run: Path, qrels: Path,
    query: Annotated[list[str] | None, typer.Option("--query", "-q", help="Ids. By default three.")] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="Its depth and overlap count.")] = MEASURE,
    out: Out = FOLDER,
) -> None:  # fmt: skip
    """What was found for a query beside what is true, as the papers show their examples."""
    _show(case_study(read_run(run), read_qrels(qrels), query or (), measure=measure), out)


@study.command("relevance")
def relevance(
    judged: Judged,
    queries: Annotated[int, typer.Option(min=1, help="Queries to show, drawn at random.")] = 10,
    seed: Seed = 0, out: Out = FOLDER,
) -> None:  # fmt: skip
    """Does relevance follow query-caption similarity? By value and by rank (TVR-Ranking, Figure 4)."""
    _show(relevance_study(read_judged(judged), queries=queries, seed=seed), out)


@study.command("ratings")
def ratings(
    raw: Annotated[Path, typer.Argument(help="CSV with pair_id, worker, relevance.")], out: Out = FOLDER
) -> None:
    """How far apart are the ratings of a pair, and what levels result? (TVR-Ranking, Figure 5)."""
    _show(rating_study(read_ratings(raw)), out)


@study.command("similarity")
def similarity(
    path: Judged, bins: Annotated[int, typer.Option(min=1, help="Bins of similarity.")] = 10
) -> None:
    """How relevance follows query-caption similarity (Figure 4), and relevant moments a query (Table 4)."""
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
    """The words that took the place of names, most frequent first (Table 3), of moments with one id."""
    states = (read_annotations(path, kind, durations) for path in (before, after))
    for one in replaced(caption_changes(*states))[:top]:
        print(f"{one.word:>16}  {one.count:>8,}  {one.gender}")


if __name__ == "__main__":
    with saying_errors():
        study()
