"""SPR_CLIP: a refiner of pictures alone, with one vector per query (SPR, section 3.3.2)."""

from __future__ import annotations

from typing import Any

from moviola.models.spr import SegmentRetriever
from moviola.training.data import Sizes
from moviola.training.recipes.refining import WindowRecipe

__all__ = ["SPR_CLIP"]


class SprClipRecipe(WindowRecipe):
    """Starts from the towers of its stage 1."""

    architecture = "spr-clip"

    def sized(self, sizes: Sizes) -> dict[str, Any]:
        """The size of the features (errors as of :meth:`Sizes.of_one_space`), and the length of a clip."""
        return {"hidden_size": sizes.of_one_space(self.architecture), "clip_seconds": sizes.clip_seconds}

    def start_from(self, model: Any, stage1: SegmentRetriever) -> None:
        """Copy the towers (SPR, section 3.3.2)."""
        model.start_from(stage1)


SPR_CLIP = SprClipRecipe("standard")
