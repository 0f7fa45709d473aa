"""Checks that a saved model fits the features: encoder, sizes, clips."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moviola.errors import EncoderMismatch
from moviola.features import SourceFacts
from moviola.retrieval.saved.description import Description
from moviola.study.training.data import Sizes
from moviola.study.training.recipe import OF_FEATURES, Recipe

__all__ = ["require_same_encoder", "require_same_sizes", "sampling_of"]


def sampling_of(about: Description, facts: SourceFacts) -> dict[str, Any]:
    """How a model's batches were made; what its folder does not say of segments is as in the features."""
    settings = about.extra.get("settings") or {}
    return {"segment_clips": facts.segment_clips, **(settings.get("sampling") or {})}


def require_same_encoder(folder: Path, about: Description, facts: SourceFacts) -> None:
    """Raise :class:`EncoderMismatch` if the model in a folder was trained on another encoder's features."""
    ours = facts.encoder, facts.encoder_revision
    theirs = about.extra.get("encoder", ours[0]), about.extra.get("encoder_revision", ours[1])
    if theirs != ours:
        raise EncoderMismatch(
            f"{folder}: trained on features of {theirs[0]} (revision {theirs[1]}), but these are of "
            f"{ours[0]} (revision {ours[1]}); give features of the same encoder, or train a new model"
        )
    if about.extra.get("unit", facts.unit) != facts.unit:
        kinds = {True: "rows of length 1", False: "raw rows"}
        raise EncoderMismatch(
            f"{folder}: trained on {kinds[not facts.unit]}, but these features are read as "
            f"{kinds[facts.unit]}; write them again, as for training (--raw)"
        )


def require_same_sizes(folder: Path, about: Description, recipe: Recipe, facts: SourceFacts) -> None:
    """Raise :class:`EncoderMismatch` if the model is for features of other sizes, or other clips."""
    sizes = Sizes(facts.visual_dim, facts.subtitle_dim, facts.query_dim, facts.clip_seconds, longest=1)
    ours = {"clip_seconds": facts.clip_seconds, **recipe.sized(sizes)}
    theirs = {"clip_seconds": about.extra.get("clip_seconds", ours["clip_seconds"]), **about.config}
    for stream in recipe.optional_streams:
        if theirs.get(stream) == 0:  # it reads the other stream alone, whatever else there is
            ours[stream] = 0
    for name in OF_FEATURES:
        if name in ours and theirs.get(name, ours[name]) != ours[name]:
            raise EncoderMismatch(
                f"{folder}: a model with {name} {theirs[name]}, but these features ask for {ours[name]}; "
                "give those that it was trained on"
            )
