"""Studies of measures (the AxIoU paper, section 6 and appendices B and C).

Each study is a function from numbers to numbers; :mod:`measure_studies.figures` draws them. Randomness is
seeded.

Label noise: the paper prints a generator (start ~ N(s*, β²), length ~ Exp(mean e* - s*), five raters, medians
of start and end; β² in 1..4) and the mean IoU between original and drawn labels. Taken literally the
generator gives an IoU of about .57, far below all that is printed. The printed rows come out, to ±.003, with
β = level and length = L + Exp(1 s), the medians of start and length taken apart and end = start + length, and
with the rows of Charades-STA and ActivityNet exchanged. ``literal`` is the former, ``paper_fit`` the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from moviola.errors import InvalidValue
from moviola.study.measures.evaluation import evaluate
from moviola.study.measures.qrels_and_run import Floats, Integers, Qrels, Run
from moviola.temporal import overlap

__all__ = [
    "NOISE", "SelfAgreement", "agreement", "all_tied", "bias_variance", "label_iou", "label_noise",
    "model_selection", "noisy", "per_query_values", "self_agreement", "tau_b",
]  # fmt: skip

LEVELS = (1, 2, 3, 4)
RATERS = 5
CHUNK = 2**21
"""Numbers drawn at once, to bound memory."""


def per_query_values(runs: Mapping[str, Run], qrels: Qrels, measures: Sequence[str]) -> dict[str, Floats]:
    """By measure a (systems, queries) float64 array: what most studies start from.

    The queries are those that every one of the measures counts.

    Raises:
        InvalidValue: fewer than two systems, no measure, or one of all queries together.
    """
    if len(runs) < 2:
        raise InvalidValue(f"{len(runs)} system(s): a study of measures compares at least two runs")
    evaluations = [evaluate(run, qrels, measures) for run in runs.values()]
    values = {
        name: np.stack([results.by_query(name) for results in evaluations])
        for name in evaluations[0].measures
    }
    counted = ~np.isnan(np.concatenate(list(values.values()))).any(axis=0)
    return {name: column[:, counted] for name, column in values.items()}


def tau_b(first: Floats, second: Floats) -> Floats:
    """Kendall's τ-b between two rankings of systems, over the last axis.

    Args:
        first: (..., systems) scores.
        second: (..., systems) scores; the leading axes broadcast.

    Returns:
        (...) float64 in [-1, 1]; NaN where one of the two ties all systems.
    """
    i, j = np.triu_indices(first.shape[-1], 1)
    a, b = np.sign(first[..., i] - first[..., j]), np.sign(second[..., i] - second[..., j])
    pairs = np.sqrt((a != 0).sum(axis=-1) * (b != 0).sum(axis=-1))
    tau: Floats = np.divide((a * b).sum(axis=-1), pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)
    return tau


def agreement(scores: Floats) -> Floats:
    """How alike two measures rank systems (section 6.2).

    Args:
        scores: (measures, systems) mean scores.

    Returns:
        (measures, measures) τ-b, symmetric; NaN for a measure that ties all systems.
    """
    return tau_b(scores[:, None, :], scores[None, :, :])


@dataclass(frozen=True, eq=False)
class SelfAgreement:
    """τ-b of a measure with itself on two query subsets: over trials, by subset size.

    Attributes:
        sizes: (sizes,) int64 queries per subset.
        mean: (sizes,) float64.
        variance: (sizes,) float64.
        undefined: (sizes,) int64 trials left out because a subset tied all systems.
    """

    sizes: Integers
    mean: Floats
    variance: Floats
    undefined: Integers


def self_agreement(
    values: Floats, sizes: Sequence[int], *, trials: int = 5000, disjoint: bool = False, seed: int = 0
) -> SelfAgreement:
    """Does a measure rank the systems alike on two random subsets of the queries? (section 6.3)

    Args:
        values: (systems, queries) per-query values of one measure.
        sizes: queries per subset, 1 to queries (disjoint: half of them).
        trials: pairs of subsets per size.
        disjoint: the two subsets share no query; else they are drawn independently.
        seed: of the draws.

    Raises:
        InvalidValue: a size is out of range, or there is no trial.
    """
    queries = values.shape[1]
    most = queries // 2 if disjoint else queries
    for size in sizes:
        if not 1 <= size <= most:
            raise InvalidValue(f"subset size {size}: must be between 1 and {most}")
    if trials < 1:
        raise InvalidValue(f"trials {trials}: at least 1 is needed")
    random = np.random.default_rng(seed)
    rows = []
    for size in sizes:
        draws = [_subset_taus(values, size, count, disjoint, random) for count in _chunks(trials, queries)]
        taus = np.concatenate(draws)
        known = taus[~np.isnan(taus)]
        mean, variance = (float(known.mean()), float(known.var())) if len(known) else (np.nan, np.nan)
        rows.append((mean, variance, trials - len(known)))
    mean, variance, undefined = np.array(rows).T
    return SelfAgreement(np.array(sizes, np.int64), mean, variance, undefined.astype(np.int64))


def _subset_taus(values: Floats, size: int, trials: int, disjoint: bool, random: Generator) -> Floats:
    queries = values.shape[1]

    def drawn() -> Integers:
        return random.random((trials, queries)).argsort(axis=1)

    first = drawn()
    second = first[:, size : 2 * size] if disjoint else drawn()[:, :size]
    one, other = (values[:, subset].mean(axis=2).T for subset in (first[:, :size], second))
    return tau_b(one, other)


def _chunks(trials: int, width: int) -> Iterator[int]:
    step = max(1, CHUNK // max(1, width))
    return (min(step, trials - done) for done in range(0, trials, step))


def all_tied(values: Floats) -> float:
    """Share of queries on which all systems score exactly the same, of (systems, queries) values (appendix
    B).
    """
    return float((values == values[0]).all(axis=0).mean()) if values.shape[1] else 0.0


def _literal(start: Floats, end: Floats, level: float, random: Generator) -> tuple[Floats, Floats]:
    size = (RATERS, len(start))
    starts = random.normal(start, np.sqrt(level), size)
    ends = starts + random.exponential(end - start, size)
    return np.median(starts, axis=0), np.median(ends, axis=0)


def _paper_fit(start: Floats, end: Floats, level: float, random: Generator) -> tuple[Floats, Floats]:
    size = (RATERS, len(start))
    drawn = np.median(random.normal(start, level, size), axis=0)
    length = np.median(end - start + random.exponential(1.0, size), axis=0)
    return drawn, drawn + length


NOISE: dict[str, Callable[[Floats, Floats, float, Generator], tuple[Floats, Floats]]] = {
    "literal": _literal,
    "paper_fit": _paper_fit,
}
"""Models of label noise by name; see the head of this module."""


def noisy(
    start: Floats, end: Floats, level: float, random: Generator, model: str = "paper_fit"
) -> tuple[Floats, Floats]:
    """Labels as five noisy raters would have agreed on them (section 6.4).

    Args:
        start: (moments,) seconds.
        end: (moments,) seconds, after the start.
        level: noise level, > 0; the paper uses 1 to 4.
        random: source of the draws.
        model: a key of :data:`NOISE`.

    Returns:
        Start and end, (moments,) float64 seconds; a start may be negative.

    Raises:
        InvalidValue: no such model, or the level is not positive.
    """
    if model not in NOISE:
        raise InvalidValue(f"noise model {model!r}: unknown; choose {', '.join(NOISE)}")
    if not level > 0:
        raise InvalidValue(f"noise level {level}: must be positive")
    return NOISE[model](start, end, level, random)


def label_iou(
    start: Floats, end: Floats, level: float, *, model: str = "paper_fit", seed: int = 0, datasets: int = 1
) -> float:
    """Mean IoU between labels and their noisy form over ``datasets`` draws; arguments as in :func:`noisy`."""
    random = np.random.default_rng(seed)
    means = [overlap(start, end, *noisy(start, end, level, random, model)).mean() for _ in range(datasets)]
    return float(np.mean(means))


def label_noise(
    runs: Mapping[str, Run],
    qrels: Qrels,
    measures: Sequence[str],
    *,
    levels: Sequence[float] = LEVELS,
    datasets: int = 100,
    model: str = "paper_fit",
    seed: int = 0,
) -> Floats:
    """How far noise in the labels moves a measure (section 6.4).

    Returns:
        (measures, levels) float64: root mean squared error between the score on the labels given and on
        ``datasets`` noisy ones, averaged over systems.
    """
    random = np.random.default_rng(seed)
    true = {name: list(evaluate(run, qrels, measures).measures.values()) for name, run in runs.items()}
    deviations = np.zeros((len(measures), len(levels)))
    for column, level in enumerate(levels):
        squared = np.zeros((len(runs), len(measures)))
        for _ in range(datasets):
            start, end = noisy(qrels.start, qrels.end, level, random, model)
            drawn = replace(qrels, start=start, end=end)
            for row, (name, run) in enumerate(runs.items()):
                scores = list(evaluate(run, drawn, measures).measures.values())
                squared[row] += (np.array(scores) - true[name]) ** 2
        deviations[:, column] = np.sqrt(squared / datasets).mean(axis=0)
    return deviations


def model_selection(validation: Floats, test: Floats) -> tuple[Integers, Floats]:
    """How good is the model that a validation measure picks? (section 6.6)

    Args:
        validation: (validation measures, models) scores.
        test: (test measures, models) scores.

    Returns:
        The model that each validation measure picks, (validation measures,) int64, the first of equals; and
        (validation measures, test measures) Z-scores of the picked models among all that were picked; 0
        where a test measure sees no difference.
    """
    if validation.shape[1] != test.shape[1]:
        raise InvalidValue(
            f"{validation.shape[1]} models in validation, {test.shape[1]} in test; give the same"
        )
    picked = validation.argmax(axis=1)
    scores = test[:, picked].T
    spread = scores.std(axis=0)
    centred = scores - scores.mean(axis=0)
    z: Floats = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 1e-12)
    return picked, z


def bias_variance(
    overlaps: Floats, noise: float, iou: float = 0.5
) -> dict[str, tuple[Floats, Floats, Floats]]:
    """Bias, variance and mean squared error at rank 1 when the IoU is seen with noise (appendix C, figure
    10).

    The seen IoU is N(iou, noise²). AxIoU@1 is unbiased with variance noise²; R@1,θ is Bernoulli with
    P(seen >= θ), while the truth is 1 if iou >= θ, else 0.

    Args:
        overlaps: (n,) thresholds θ.
        noise: standard deviation γ, > 0.
        iou: the true IoU r in [0, 1].

    Returns:
        ``{"AxIoU@1": (squared bias, variance, error), "R@1": …}``, each (n,) float64.
    """
    from scipy.special import ndtr

    if not noise > 0:
        raise InvalidValue(f"noise {noise}: must be positive")
    seen = ndtr((iou - overlaps) / noise)
    squared = (seen - (iou >= overlaps)) ** 2
    variance = seen * (1 - seen)
    flat = np.full_like(overlaps, noise**2)
    return {"AxIoU@1": (np.zeros_like(overlaps), flat, flat), "R@1": (squared, variance, squared + variance)}
