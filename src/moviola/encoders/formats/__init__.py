"""Formats of checkpoints of frames and texts, by the file that says what a checkpoint is.

Each is a table of architectures, read from the checkpoint's own settings; what it finds is a
:class:`Description`, by which :class:`moviola.encoders.ClipEncoder` computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from moviola.encoders.checkpoints import Checkpoint
from moviola.encoders.formats import open_clip, transformers
from moviola.encoders.formats.description import Description

__all__ = ["FORMATS", "Description", "Format", "described", "format_of"]


@dataclass(frozen=True)
class Format:
    """A format of checkpoints.

    Attributes:
        weights: patterns of the files of weights that are read without torch.
        check: raises InvalidValue or DataError for a checkpoint that cannot run here, by its settings alone.
        describe: reads a checkpoint.
        tokenizer: hub id of the tokenizer that a checkpoint needs besides its own files; empty for none.
    """

    weights: tuple[str, ...]
    check: Callable[[Checkpoint], object]
    describe: Callable[[Checkpoint], Description]
    tokenizer: Callable[[Checkpoint], str]


FORMATS = {
    "config.json": Format(
        ("model.safetensors", "model-*.safetensors", "model.safetensors.index.json"),
        transformers.family_of,
        transformers.describe,
        lambda _: "",
    ),
    open_clip.CONFIG: Format(
        (open_clip.WEIGHTS,), open_clip.check, open_clip.describe, open_clip.missing_tokenizer
    ),
}
"""By the file of settings."""


def format_of(checkpoint: Checkpoint) -> Format:
    """The format of a checkpoint; of one that has two, transformers', if its weights are there.

    A folder of the hub often has both, and a ``config.json`` that speaks of the pictures' tower alone.
    """
    plain, other = FORMATS["config.json"], FORMATS[open_clip.CONFIG]
    if not (checkpoint.folder / open_clip.CONFIG).is_file():
        return plain
    known = checkpoint.json("config.json").get("model_type") in transformers.FAMILIES
    here = any(any(checkpoint.folder.glob(pattern)) for pattern in plain.weights)
    return plain if known and (here or not (checkpoint.folder / open_clip.WEIGHTS).is_file()) else other


def described(checkpoint: Checkpoint) -> Description:
    """What a checkpoint is.

    Raises:
        InvalidValue: an architecture or a setting that moviola does not compute.
        DataError: settings or weights that cannot be read, or contradict each other.
    """
    return format_of(checkpoint).describe(checkpoint)
