"""Whole studies of measures: from runs and judgements to a table and a figure (the AxIoU paper).

What each number means stands in :mod:`measure_studies.statistics`. matplotlib is needed for the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from measure_studies import figures, statistics
from moviola.errors import InvalidValue
from moviola.files.writing import write_csv
from moviola.study.measures.input_formats import read_qrels, read_run
from moviola.study.measures.measure_names import Measure
from moviola.study.measures.qrels_and_run import Qrels, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "STUDY_MEASURES", "Study", "agreement", "bias", "effectiveness", "label_iou", "label_noise",
    "model_selection", "read_runs", "self_agreement", "tied",
]  # fmt: skip

STUDY_MEASURES = (
    *(f"R@{k},IoU>{overlap}" for overlap in (0.3, 0.5, 0.7) for k in (1, 5, 10)),
    *(f"AxIoU@{k}" for k in (1, 5, 10)),
)
"""The measures that the paper studies."""

ORDER = "R@5,IoU>0.5"
"""The measure that systems are sorted by in the paper's figure 5."""


@dataclass(frozen=True, eq=False)
class Study:
    """The result of a study.

    Attributes:
        name: of its files.
        header: names of the columns.
        rows: the cells; None where a number is not defined.
        figure: the same as a figure.
    """

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    figure: Figure

    @classmethod
    def of(cls, name: str, header: str, rows: Sequence[Sequence[object]], figure: Figure) -> Study:
        """A study with NaN as "not defined"; ``header`` has blanks between the names."""
        cells = tuple(tuple(None if cell != cell else cell for cell in row) for row in rows)  # noqa: PLR0124
        return cls(name, tuple(header.split()), cells, figure)

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.csv, NAME.png and NAME.svg; returns their paths.

        Raises:
            InvalidValue: the folder cannot be written.
        """
        table = folder / f"{self.name}.csv"
        write_csv(table, self.header, self.rows)
        return [table, *figures.save(self.figure, folder / self.name)]


def read_runs(paths: Sequence[Path]) -> dict[str, Run]:
    """Runs by file name, or by path where two files have one name.

    Raises:
        NotFound, DataError: a file is missing or malformed.
    """
    names = [path.name for path in paths]
    return {path.name if names.count(path.name) == 1 else str(path): read_run(path) for path in paths}


def _canonical(measures: Sequence[str]) -> list[str]:
    return [str(Measure.parse(name)) for name in measures]


def effectiveness(runs: Mapping[str, Run], qrels: Qrels, measures: Sequence[str] = STUDY_MEASURES) -> Study:
    """Means of measures by system, the systems sorted by R@5,IoU>0.5, the lowest first (section 6.1).

    Arguments and errors as in :func:`agreement`.
    """
    names, systems = _canonical(measures), list(runs)
    means = {
        name: values.mean(axis=1)
        for name, values in statistics.per_query_values(runs, qrels, [*names, ORDER]).items()
    }
    order = np.argsort(means[ORDER], kind="stable").tolist()
    rows = [[systems[place], name, float(means[name][place])] for place in order for name in names]
    title = f"Effectiveness of {len(runs)} systems on {len(qrels.query_ids)} queries"
    curves = {name: means[name][order].tolist() for name in names}
    shown = [systems[place] for place in order]
    figure = figures.profiles(shown, curves, title, f"system, by {ORDER}", "mean over queries")
    return Study.of("effectiveness", "system measure value", rows, figure)


def agreement(runs: Mapping[str, Run], qrels: Qrels, measures: Sequence[str] = STUDY_MEASURES) -> Study:
    """Agreement of measures on the ranking of systems: Kendall's τ-b between all pairs (section 6.2).

    Args:
        runs: at least two, by name.
        qrels: the judgements.
        measures: names, such as ``AxIoU@10``.

    Raises:
        InvalidValue: fewer than two runs, or a measure that does not exist.
    """
    names = _canonical(measures)
    values = statistics.per_query_values(runs, qrels, names)
    tau = statistics.agreement(np.stack([values[name].mean(axis=1) for name in names]))
    rows = [[names[i], names[j], float(tau[i, j])] for i in range(len(names)) for j in range(len(names))]
    figure = figures.heatmap(names, tau, f"Agreement between measures, {len(runs)} systems")
    return Study.of("agreement", "first second tau_b", rows, figure)


def self_agreement(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measures: Sequence[str] = STUDY_MEASURES,
    *,
    sizes: Sequence[int] | None = None,
    trials: int = 5000,
    disjoint: bool = False,
    seed: int = 0,
) -> Study:
    """Self-agreement of measures on two random subsets of the queries (section 6.3).

    Args:
        runs: at least two, by name.
        qrels: what they are judged by.
        measures: names.
        sizes: queries per subset; ten sizes up to the most that is possible by default.
        trials: pairs of subsets per size.
        disjoint: the two subsets share no query.
        seed: of the draws.

    Raises:
        InvalidValue: as in :func:`agreement`, or an impossible size.
    """
    names = _canonical(measures)
    values = statistics.per_query_values(runs, qrels, names)
    most = values[names[0]].shape[1] // (2 if disjoint else 1)
    chosen = sizes or sorted({max(1, most * tenth // 10) for tenth in range(1, 11)})
    agreement = {
        name: statistics.self_agreement(values[name], chosen, trials=trials, disjoint=disjoint, seed=seed)
        for name in names
    }
    rows = [
        [name, *cells]
        for name, curve in agreement.items()
        for cells in zip(
            curve.sizes.tolist(), curve.mean.tolist(), curve.variance.tolist(), curve.undefined.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    title = f"Self-agreement, {len(runs)} systems, {trials} trials a size"
    figure = figures.self_agreement_curves(agreement, title)
    return Study.of("self-agreement", "measure size mean variance undefined", rows, figure)


def label_noise(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measures: Sequence[str] = STUDY_MEASURES,
    *,
    model: str = "paper_fit",
    datasets: int = 100,
    seed: int = 0,
) -> Study:
    """Error of measures under label noise: root mean squared error by level, mean over systems.

    Section 6.4.

    Args:
        runs: at least one, by name.
        qrels: the labels to disturb.
        measures: names.
        model: a key of :data:`measure_studies.statistics.NOISE`.
        datasets: noisy data sets per level.
        seed: of the draws.

    Raises:
        InvalidValue: a measure or a model that does not exist.
    """
    names, levels = _canonical(measures), list(statistics.LEVELS)
    error = statistics.label_noise(runs, qrels, names, datasets=datasets, model=model, seed=seed)
    rows = [[n, level, float(error[i, j])] for i, n in enumerate(names) for j, level in enumerate(levels)]
    curves = {name: error[i].tolist() for i, name in enumerate(names)}
    title = f"Error under label noise ({model}), {len(runs)} systems, {datasets} data sets"
    return Study.of(
        "noise", "measure level rmse", rows, figures.lines(levels, curves, title, "noise level", "mean RMSE")
    )


def label_iou(qrels: Qrels, *, datasets: int = 20, seed: int = 0) -> Study:
    """Similarity of noisy labels to the true ones: mean IoU by level, for both models of noise.

    Section 6.4, with what :mod:`measure_studies.statistics` says of it.

    Args:
        qrels: the labels to disturb.
        datasets: noisy data sets per level.
        seed: of the draws.
    """
    levels = list(statistics.LEVELS)
    curves = {
        model: [
            statistics.label_iou(qrels.start, qrels.end, level, model=model, seed=seed, datasets=datasets)
            for level in levels
        ]
        for model in statistics.NOISE
    }
    rows = [[m, level, iou] for m, curve in curves.items() for level, iou in zip(levels, curve, strict=True)]
    title = f"Noisy labels beside the true ones, {len(qrels)} moments"
    return Study.of(
        "labels", "model level iou", rows, figures.lines(levels, curves, title, "noise level", "mean IoU")
    )


def tied(runs: Mapping[str, Run], qrels: Qrels, measures: Sequence[str] = STUDY_MEASURES) -> Study:
    """On how many queries do all systems score the same? Arguments and errors as in :func:`agreement`."""
    values = statistics.per_query_values(runs, qrels, _canonical(measures))
    shares = {name: statistics.all_tied(scores) for name, scores in values.items()}
    figure = figures.bars(shares, f"Queries on which all {len(runs)} systems tie", "share of queries")
    return Study.of("tied", "measure share", list(shares.items()), figure)


def model_selection(validation: Path, test: Path, measures: Sequence[str] = STUDY_MEASURES) -> Study:
    """Quality of the models that measures select on validation data: Z-scores on test data (section 6.6).

    Args:
        validation: a folder with ``qrels.json`` and one run per model, ``*.json``.
        test: the same for the test split; runs of the same names.
        measures: names.

    Raises:
        InvalidValue: fewer than two models, a run is missing, or a measure does not exist.
        NotFound, DataError: a file is missing or malformed.
    """
    names = _canonical(measures)
    models = sorted(path.name for path in validation.glob("*.json") if path.name != "qrels.json")
    if len(models) < 2:
        raise InvalidValue(f"{validation}: at least two runs (*.json beside qrels.json) are needed")
    missing = [name for name in models if not (test / name).is_file()]
    if missing:
        raise InvalidValue(f"{test}: {missing[0]} is missing; give a run for each model of {validation}")
    scores = []
    for folder in (validation, test):
        runs = {name: read_run(folder / name) for name in models}
        values = statistics.per_query_values(runs, read_qrels(folder / "qrels.json"), names)
        scores.append(np.stack([values[name].mean(axis=1) for name in names]))
    picked, z = statistics.model_selection(*scores)
    rows = [
        [name, models[picked[i]], other, float(z[i, j])]
        for i, name in enumerate(names)
        for j, other in enumerate(names)
    ]
    title = f"Models picked by {len(names)} measures out of {len(models)}"
    curves, up = {name: z[i].tolist() for i, name in enumerate(names)}, "Z-score of the picked model"
    figure = figures.profiles(names, curves, title, "test measure", up, legend="picked by")
    return Study.of("selection", "picked_by model test_measure z", rows, figure)


def bias(iou: float = 0.5, noises: Sequence[float] = (0.05, 0.1, 0.2)) -> Study:
    """Bias, variance and error of AxIoU@1 and R@1,θ for one moment whose IoU is seen with noise (appendix C).

    Args:
        iou: true IoU of the moment, in [0, 1].
        noises: standard deviations γ of the IoU seen, > 0.
    """
    thetas = np.round(np.arange(0, 1.0001, 0.01), 2)
    rows = [
        [name, gamma, *cells]
        for gamma in noises
        for name, curves in statistics.bias_variance(thetas, gamma, iou).items()
        for cells in zip(thetas.tolist(), *(curve.tolist() for curve in curves), strict=True)
    ]
    header = "measure noise theta squared_bias variance mse"
    return Study.of("bias", header, rows, figures.bias_curves(thetas, list(noises), iou))
