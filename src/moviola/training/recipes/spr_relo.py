"""SPR_ReLo: ReLoCLNet as a refiner, in the paper's two sizes (SPR, section 3.3.3)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from moviola.models.reloclnet import SPR_LARGE, SPR_SMALL, ReLoCLNetConfig
from moviola.training.data import Sizes
from moviola.training.recipes.refining import WindowRecipe

__all__ = ["SPR_RELO", "SPR_RELO_LARGE"]


class SprReloRecipe(WindowRecipe):
    """With subtitles where there are any."""

    architecture = "reloclnet"

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        return sizes.settings()


def _changed(preset: ReLoCLNetConfig) -> dict[str, Any]:
    """Differences of a preset from the architecture's defaults."""
    default = asdict(ReLoCLNetConfig())
    return {name: value for name, value in asdict(preset).items() if value != default[name]}


SPR_RELO = SprReloRecipe("strong-weak", _changed(SPR_SMALL))
SPR_RELO_LARGE = SprReloRecipe("strong-weak", _changed(SPR_LARGE))
