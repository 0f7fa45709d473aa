"""Gridhouse: a generated world of robots in houses, as films with exact times and graded relevance.

``simulate`` plays one take and ``Camera`` draws it; ``edited`` cuts a film of several, ``film_moments`` says
what is true of it, and ``frames`` draws it. ``build`` writes a whole data set, ``annotate`` its annotations
by another similarity. :mod:`moviola.study.datasets.gridhouse.vocabulary` defines relevance.

Examples:
    >>> from moviola.study.datasets import gridhouse
    >>> take = gridhouse.simulate(7, number=0, video_id="film")
    >>> first = take.moments[0]
    >>> gridhouse.relevance(first.slots, first.slots)
    4
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moviola.study.datasets.gridhouse.vocabulary import Slots, Thing, caption, imprecise, relevance

if TYPE_CHECKING:
    from moviola.study.datasets.gridhouse.dataset import GridhouseReport, annotate, build
    from moviola.study.datasets.gridhouse.edit import Edit, film_moments
    from moviola.study.datasets.gridhouse.editor import edited
    from moviola.study.datasets.gridhouse.episode import Episode, GridMoment, simulate
    from moviola.study.datasets.gridhouse.picture import Camera
    from moviola.study.datasets.gridhouse.projection import frames

__all__ = [
    "Camera", "Edit", "Episode", "GridMoment", "GridhouseReport", "Slots", "Thing", "annotate", "build",
    "caption", "edited", "film_moments", "frames", "imprecise", "relevance", "simulate",
]  # fmt: skip

# These need minigrid (the extra `demo`); they are imported on first use.
_LATE = {
    "Camera": "picture", "Edit": "edit", "Episode": "episode", "GridMoment": "episode",
    "GridhouseReport": "dataset", "annotate": "dataset", "build": "dataset", "edited": "editor",
    "film_moments": "edit", "frames": "projection", "simulate": "episode",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    import warnings

    from moviola.errors import MissingDependency

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # minigrid's own imports warn of gymnasium's registry
            module = importlib.import_module(f"{__name__}.{_LATE[name]}")
    except ModuleNotFoundError as error:
        if error.name not in ("minigrid", "gymnasium"):
            raise
        raise MissingDependency("gridhouse needs minigrid", "demo") from error
    return getattr(module, name)
