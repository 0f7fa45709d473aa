"""The rows of tables: models and their names, and the measures of jobs that are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from comparison.findings import Findings
from comparison.plan import CONQUERS, seed_mark
from comparison.table import Row, Table
from moviola.study.training.validation import MEASURES

__all__ = [
    "ALL", "BASELINES", "NAMES", "REFINERS", "ROWS", "cells", "finished", "main", "more_steps", "seed_names",
    "spread", "table_of", "table_of_seeds", "with_seeds",
]  # fmt: skip

REFINERS = ("spr-clip", "spr-relo", "spr-relo-large", "reel")
BASELINES = ("xml", "reloclnet", *(f"conquer-{kind}" for kind in CONQUERS), "prem")
ALL = tuple(map(str, MEASURES))
NAMES = {
    "spr-stage1": "SP: trained stage 1, coarse",
    "reel-stage1": "Reel's own stage 1, coarse",
    "spr-clip": "SPR_CLIP",
    "spr-relo": "SPR_ReLo-S",
    "spr-relo-large": "SPR_ReLo-L",
    "reel": "Reel (ours)",
    "xml": "XML",
    "reloclnet": "ReLoCLNet",
    "prem": "PREM",
    "prem-apart": "PREM, streams apart",
    "prem-given": "PREM† (videos of stage 1)",
    "conquer": "CONQUER",
    "conquer-general": "CONQUER, general",
    "conquer-disjoint": "CONQUER, disjoint",
    "conquer-exclusive": "CONQUER, exclusive",
}
ROWS = ("spr-stage1", *BASELINES, *REFINERS)


def cells(values: Mapping[str, float], names: Iterable[str]) -> Row:
    """Measures by name, as they are printed."""
    return tuple(f"{values[name]:.4f}" for name in names)


def main(found: Findings, models: Iterable[str], top: int | None = None) -> dict[str, str]:
    """Job by label, of the main rows of some models."""
    return {NAMES[model]: f"{model}-n{top or found.preset.top}" for model in models}


def finished(found: Findings, models: Iterable[str], top: int | None = None) -> Iterator[tuple[str, str]]:
    """Label and job of the main rows that are done."""
    return ((label, job) for label, job in main(found, models, top).items() if found.done(job))


def more_steps(found: Findings, models: Iterable[str], *, fifth: bool = False) -> dict[str, str]:
    """Job by label, of the models that are trained with more steps too, on all films or on a fifth."""
    rows, kind = (found.preset.fifth_longer, "fifth-") if fifth else (found.preset.longer, "")
    return {
        f"{NAMES[model]}, {'a fifth, ' if fifth else ''}{times} times the steps": f"{model}-{kind}longer"
        for model, times in rows.items()
        if model in models
    }


def table_of(
    found: Findings, title: str, rows: Mapping[str, str], names: Sequence[str], text: str = ""
) -> Table:
    """One row per job that is done: measures of NDCG and recall by name."""
    own = [(label, *cells(found.test(job), names)) for label, job in rows.items() if found.done(job)]
    return Table(title, ("model", *names), own, text)


def table_of_seeds(
    found: Findings, title: str, rows: Mapping[str, str], names: Sequence[str], text: str = ""
) -> Table:
    """:func:`table_of`, each row with all its seeds that are done."""
    own = [
        (label, str(len(jobs)), *spread([found.test(name) for name in jobs], names))
        for label, job in rows.items()
        if (jobs := with_seeds(found, job))
    ]
    return Table(title, ("model", "seeds", *names), own, text)


def with_seeds(found: Findings, job: str) -> list[str]:
    """A job and the same with further seeds, those that are done."""
    return [name for name in seed_names(found, job) if found.done(name)]


def seed_names(found: Findings, job: str) -> list[str]:
    """Names of a job with each seed, done or not."""
    return [f"{job}{seed_mark(seed)}" for seed in found.preset.seeds]


def spread(values: Sequence[Mapping[str, float]], names: Iterable[str]) -> Row:
    """Mean and standard deviation of measures by name; one seed has no deviation."""
    columns = (np.array([own[name] for own in values]) for name in names)
    return tuple(
        f"{own.mean():.4f}" + (f" ± {own.std(ddof=1):.4f}" if len(own) > 1 else "") for own in columns
    )
