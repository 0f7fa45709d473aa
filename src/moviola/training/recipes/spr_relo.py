"""SPR_ReLo: ReLoCLNet as a refiner, in the paper's two sizes (SPR, section 3.3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from moviola.models.reloclnet import SPR_LARGE, SPR_SMALL, ReLoCLNetConfig
from moviola.training.data import Sizes
from moviola.training.recipes.refining import WindowRecipe

__all__ = ["SPR_RELO", "SPR_RELO_LARGE"]


@dataclass(frozen=True)
class SprReloRecipe(WindowRecipe):
    """With subtitles where there are any.

    Attributes:
        preset: the model's settings.
    """

    preset: ReLoCLNetConfig

    architecture = "reloclnet"

    @property
    def config(self) -> Mapping[str, Any]:
        """Differences of the preset from the architecture's defaults."""
        default = asdict(ReLoCLNetConfig())
        return {name: value for name, value in asdict(self.preset).items() if value != default[name]}

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        return sizes.settings()


SPR_RELO = SprReloRecipe("strong-weak", SPR_SMALL)
SPR_RELO_LARGE = SprReloRecipe("strong-weak", SPR_LARGE)
