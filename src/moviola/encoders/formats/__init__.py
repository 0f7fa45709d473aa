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

__all__ = ["FORMATS", "Description", "Format", "described", "formats_of"]


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


def formats_of(checkpoint: Checkpoint) -> list[Format]:
    """The formats that a checkpoint has, the one that is read first.

    A folder of the hub often has both; its ``config.json`` may speak of the pictures' tower alone. One whose
    weights are no pickle comes before others, else transformers' does.
    """
    plain, other = FORMATS["config.json"], FORMATS[open_clip.CONFIG]
    if not (checkpoint.folder / open_clip.CONFIG).is_file():
        return [plain]
    kind = checkpoint.json("config.json").get("model_type")
    if not isinstance(kind, str) or kind not in transformers.FAMILIES:
        return [other]
    here = [any(any(checkpoint.folder.glob(one)) for one in form.weights) for form in (plain, other)]
    return [other, plain] if here == [False, True] else [plain, other]


def described(checkpoint: Checkpoint) -> Description:
    """What a checkpoint is.

    Raises:
        InvalidValue: an architecture or a setting that moviola does not compute.
        DataError: settings or weights that cannot be read, or contradict each other.
        MissingModel: weights that are a pickle.
    """
    return formats_of(checkpoint)[0].describe(checkpoint)
