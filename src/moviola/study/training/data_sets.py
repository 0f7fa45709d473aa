"""Settings of the papers for data sets other than TVR; those for TVR are in the recipes.

The limits on a moment's length belong to a data set, in seconds: 3 to 22.5 s are TVR's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from moviola.study.models.checks import require_known

__all__ = ["DATA_SETS", "DataSet", "clips_of_moments", "settings_of_data_set"]

Tables = Mapping[str, Mapping[str, Any]]

_ANY_LENGTH = 128
"""Clips of a moment where a data set has no limit: as many as the longest video of these models has."""


@dataclass(frozen=True)
class DataSet:
    """Differences of a data set from TVR, by recipe: tables of settings, and shortest and longest moment in
    seconds where the recipe has such limits.
    """

    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    settings: Mapping[str, Tables] = field(default_factory=dict)


_CORPUS = ("xml", "reloclnet", "conquer", "prem", "prem-apart", "prem-given")
"""Recipes that rank a corpus; they alone limit moments by seconds."""

DATA_SETS: dict[str, DataSet] = {
    "tvr": DataSet(),
    "charades": DataSet(dict.fromkeys(_CORPUS, (3.0, 24.0)), {"xml": {"model": {"max_clips": 20}}}),
    "didemo": DataSet(
        {
            **dict.fromkeys(("xml", "reloclnet"), (5.0, 10.0)),
            **dict.fromkeys(("conquer", "prem", "prem-apart", "prem-given"), (4.5, 10.5)),
        },
        {
            "xml": {"model": {"max_clips": 12}},
            **{
                name: {"model": {"max_clips": 20, "subtitle_size": 0}, "sampling": {"negatives": 2}}
                for name in ("prem", "prem-given")
            },
        },
    ),
    "activitynet": DataSet(dict.fromkeys(_CORPUS, (0.0, inf))),
}
"""Data sets by name. XML on Charades-STA and DiDeMo is Maeoki et al.'s (appendix A), PREM on DiDeMo its own
paper's (section 4.2); ReLoCLNet and CONQUER have the limits of their kind. No paper here limits ActivityNet's
moments, which last from a second to a whole video."""


def settings_of_data_set(name: str, recipe: str, clip_seconds: float) -> dict[str, dict[str, Any]]:
    """Tables of settings for :func:`moviola.study.training.settings.read_settings`.

    Args:
        name: a key of :data:`DATA_SETS`.
        recipe: the model's.
        clip_seconds: length of a clip of the features.

    Raises:
        InvalidValue: no such data set.
    """
    require_known("data set", name, DATA_SETS)
    chosen = DATA_SETS[name]
    tables = {table: dict(values) for table, values in chosen.settings.get(recipe, {}).items()}
    if recipe in chosen.spans:
        limits = clips_of_moments(*chosen.spans[recipe], clip_seconds)
        tables["model"] = {**limits, **tables.get("model", {})}
    return tables


def clips_of_moments(shortest: float, longest: float, clip_seconds: float) -> dict[str, int]:
    """Smallest distance of a moment's last clip from its first, and the first that is too large.

    Lengths of moments are in seconds; the longest may be infinite.
    """
    first = max(0, round(shortest / clip_seconds) - 1)
    stop = _ANY_LENGTH if longest == inf else max(first + 1, round(longest / clip_seconds))
    return {"shortest_span": first, "longest_span": stop}
