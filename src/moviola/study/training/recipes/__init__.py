"""Recipes, one file per paper: its parts, its batches, and its paper's settings."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from moviola.study.models.checks import require_known

if TYPE_CHECKING:
    from moviola.retrieval.saved.description import Description
    from moviola.study.training.recipe import Recipe

__all__ = ["RECIPES", "recipe", "recipe_of"]

RECIPES: dict[str, str] = {
    "spr-stage1": "moviola.study.training.recipes.spr:SPR_STAGE1",
    "spr-clip": "moviola.study.training.recipes.spr:SPR_CLIP",
    "spr-relo": "moviola.study.training.recipes.spr:SPR_RELO",
    "spr-relo-large": "moviola.study.training.recipes.spr:SPR_RELO_LARGE",
    "reel-stage1": "moviola.study.training.recipes.reel:REEL_STAGE1",
    "reel": "moviola.study.training.recipes.reel:REEL",
    "xml": "moviola.study.training.recipes.xml:XML_RECIPE",
    "reloclnet": "moviola.study.training.recipes.reloclnet:RELOCLNET",
    "conquer": "moviola.study.training.recipes.conquer:CONQUER",
    "prem": "moviola.study.training.recipes.prem:PREM",
    "prem-apart": "moviola.study.training.recipes.prem:PREM_APART",
    "prem-given": "moviola.study.training.recipes.prem:PREM_GIVEN",
}
"""Module and attribute of each recipe, imported on first use."""

_OF_RELEASE = {"spr-stage3": "spr-relo"}
"""Recipes of releases that answer in another way than their architecture's own recipe."""


def recipe(name: str) -> Recipe:
    """A recipe by its name.

    Raises:
        InvalidValue: no recipe of that name.
    """
    require_known("model", name, RECIPES)
    return cast("Recipe", resolve_name(RECIPES[name]))


def recipe_of(about: Description) -> str:
    """The name of a saved model's recipe.

    It is in a trained model's folder; for a converted one it follows from the release; else from the
    architecture.
    """
    return str(
        about.extra.get("recipe") or _OF_RELEASE.get(str(about.extra.get("release")), about.architecture)
    )
