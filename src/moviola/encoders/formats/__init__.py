"""Formats of checkpoints of frames and texts, by the file that says what a checkpoint is.

Each is a table of architectures, read from the checkpoint's own settings; what it finds is a
:class:`Description`, by which :class:`moviola.encoders.ClipEncoder` computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from moviola.encoders.checkpoints import OPEN_CLIP_CONFIG, OPEN_CLIP_WEIGHTS, Checkpoint
from moviola.encoders.formats import transformers
from moviola.encoders.formats.description import Description

__all__ = ["TRANSFORMERS", "Description", "Format", "described", "formats_of", "open_clip_format"]


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


TRANSFORMERS = Format(
    ("model.safetensors", "model-*.safetensors", "model.safetensors.index.json"),
    transformers.family_of,
    transformers.describe,
    lambda _: "",
)
"""``config.json``, ``model.safetensors``, ``preprocessor_config.json``."""


@cache
def open_clip_format() -> Format:
    """``open_clip_config.json``, ``open_clip_model.safetensors``, whole or in parts."""
    # Most processes meet none, and a cold search waits for every import.
    from moviola.encoders.formats import open_clip

    stem = OPEN_CLIP_WEIGHTS.removesuffix(".safetensors")
    weights = (OPEN_CLIP_WEIGHTS, f"{stem}-*.safetensors", f"{OPEN_CLIP_WEIGHTS}.index.json")
    return Format(weights, open_clip.check, open_clip.describe, open_clip.missing_tokenizer)


def formats_of(checkpoint: Checkpoint) -> list[Format]:
    """The formats that a checkpoint has, the one that is read first.

    A folder of the hub often has both; its ``config.json`` may speak of the pictures' tower alone. One whose
    weights are no pickle comes before others, else transformers' does.
    """
    if not (checkpoint.folder / OPEN_CLIP_CONFIG).is_file():
        return [TRANSFORMERS]
    other, kind = open_clip_format(), checkpoint.json("config.json").get("model_type")
    if not isinstance(kind, str) or kind not in transformers.FAMILIES:
        return [other]
    here = [any(any(checkpoint.folder.glob(one)) for one in form.weights) for form in (TRANSFORMERS, other)]
    return [other, TRANSFORMERS] if here == [False, True] else [TRANSFORMERS, other]


def described(checkpoint: Checkpoint) -> Description:
    """What a checkpoint is.

    Raises:
        InvalidValue: an architecture or a setting that moviola does not compute.
        DataError: settings or weights that cannot be read, or contradict each other.
        MissingModel: weights that are a pickle.
    """
    return formats_of(checkpoint)[0].describe(checkpoint)
