"""The recipes by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from moviola.errors import InvalidValue

if TYPE_CHECKING:
    from moviola.models.pretrained import Description
    from moviola.training.recipes import Recipe

__all__ = ["RECIPES", "recipe", "recipe_of"]

RECIPES: dict[str, str] = {
    "spr-stage1": "moviola.training.segments:SPR_STAGE1",
    "spr-clip": "moviola.training.refiners:SPR_CLIP",
    "spr-relo": "moviola.training.refiners:SPR_RELO",
    "spr-relo-large": "moviola.training.refiners:SPR_RELO_LARGE",
    "reel": "moviola.training.reels:REEL",
    "xml": "moviola.training.rankers:XML_RECIPE",
    "reloclnet": "moviola.training.rankers:RELOCLNET",
    "conquer": "moviola.training.rankers:CONQUER",
    "prem": "moviola.training.rankers:PREM",
}
"""Module and attribute of each recipe, imported when it is asked for."""


def recipe(name: str) -> Recipe:
    """A recipe by its name.

    Raises:
        InvalidValue: there is none of that name.
    """
    if name not in RECIPES:
        raise InvalidValue(f"model {name!r}: unknown; there are {', '.join(RECIPES)}")
    module, attribute = RECIPES[name].split(":")
    return cast("Recipe", getattr(import_module(module), attribute))


_OF_RELEASE = {"spr-stage3": "spr-relo"}
"""Releases that answer otherwise than as their architecture's own recipe does."""


def recipe_of(about: Description) -> str:
    """The name of the recipe by which a saved model answers.

    A trained model's folder says it; a converted one is of a release; else it is the architecture's.
    """
    return str(
        about.extra.get("recipe") or _OF_RELEASE.get(str(about.extra.get("release")), about.architecture)
    )
