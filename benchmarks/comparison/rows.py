"""The rows of tables: models and their names, and the measures of jobs that are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from comparison.findings import Findings
from comparison.plan import CONQUERS, LONGER
from comparison.table import Row, Table
from moviola.training.validation import MEASURES

__all__ = ["ALL", "BASELINES", "NAMES", "REFINERS", "ROWS", "cells", "finished", "more_steps", "table_of"]

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
    "conquer": "CONQUER",
    "conquer-general": "CONQUER, general",
    "conquer-disjoint": "CONQUER, disjoint",
    "conquer-exclusive": "CONQUER, exclusive",
}
ROWS = ("spr-stage1", *BASELINES, *REFINERS)


def cells(values: Mapping[str, float], names: Iterable[str]) -> Row:
    """Measures by name, as they are printed."""
    return tuple(f"{values[name]:.4f}" for name in names)


def finished(found: Findings, models: Iterable[str], top: int | None = None) -> Iterator[tuple[str, str]]:
    """Label and job of the main rows that are done."""
    for model in models:
        name = f"{model}-n{top or found.preset.top}"
        if found.done(name):
            yield NAMES[model], name


def more_steps(found: Findings, models: Iterable[str]) -> dict[str, str]:
    """Job by label, of the models that are trained with more steps too."""
    return {
        f"{NAMES[model]}, {times} times the steps": f"{model}-longer"
        for model, times in LONGER.items()
        if model in models
    }


def table_of(
    found: Findings, title: str, rows: Mapping[str, str], names: Sequence[str], text: str = ""
) -> Table:
    """One row per job that is done: measures of NDCG and recall by name."""
    own = [(label, *cells(found.test(job), names)) for label, job in rows.items() if found.done(job)]
    return Table(title, ("model", *names), own, text)
