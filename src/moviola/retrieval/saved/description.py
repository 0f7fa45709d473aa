"""Description of a model in its folder, read without torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from moviola.errors import DataError, InvalidValue, NotFound

__all__ = [
    "CARD", "CONFIG", "FORMAT", "WEIGHTS", "Description", "existing", "read_description", "require_finite",
    "require_new", "revision_of",
]  # fmt: skip

FORMAT = 3
"""Of ``config.json``; see :data:`_HEARD_SILENCE` for the one before."""
_OLDEST = 2
_HEARD_SILENCE = ("xml", "reloclnet", "conquer", "prem")
"""Architectures whose models of format 2 learned with silent clips, and go on so (``mask_silent=False``)."""

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"

Weights = TypeVar("Weights")


@dataclass(frozen=True)
class Description:
    """Content of ``config.json``.

    Attributes:
        format: in which the folder was written, see :data:`FORMAT`.
        architecture: a key of :data:`ARCHITECTURES`.
        config: the model's settings, field by field, under today's names whatever the format.
        version: the version of moviola that wrote the folder.
        extra: further facts from what saved the model, for
            instance which features the model was trained on.
    """

    format: int
    architecture: str
    config: dict[str, Any]
    version: str
    extra: dict[str, Any]


def read_description(folder: str | Path) -> Description:
    """The ``config.json`` of a model's folder; neither the model nor its weights are loaded.

    Raises:
        NotFound: the folder or the file is missing.
        DataError: the file is no JSON object, a field is missing or of the wrong type, or the format is that
            of a later version.
    """
    path = existing(Path(folder), CONFIG)
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is no JSON ({error}); get the file again") from error
    wanted = {"architecture": str, "config": dict, "moviola_version": str, "extra": dict}
    for name, kind in wanted.items():
        if not isinstance(content, dict) or not isinstance(content.get(name), kind):
            raise DataError(f"{path}: field {name!r} is missing or no {kind.__name__}; save the model again")
    written_in = content.get("format")
    if not isinstance(written_in, int) or not _OLDEST <= written_in <= FORMAT:
        raise DataError(
            f"{path}: format {written_in!r}, but this version of moviola reads {_OLDEST} to {FORMAT}; update "
            "moviola, or get the model in a format that it reads"
        )
    if written_in == _OLDEST and content["architecture"] in _HEARD_SILENCE:
        content["config"] = {"mask_silent": False, **content["config"]}
    return Description(written_in, *(content[name] for name in wanted))


def require_finite(folder: Path) -> None:
    """Raise :class:`DataError` if the weights in a folder are unreadable or not finite."""
    from safetensors.numpy import load_file

    path = existing(folder, WEIGHTS)
    for name, array in read_weights(path, load_file).items():
        if not np.isfinite(array).all():
            raise DataError(f"{path}: weight {name} holds a number that is not finite; train the model again")


def read_weights(path: Path, load: Callable[[Path], Weights]) -> Weights:
    """The weights in a file, as ``load`` of safetensors gives them; raises :class:`DataError` if damaged."""
    from safetensors import SafetensorError

    try:
        return load(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: cannot be read as safetensors ({error}); get the file again") from error


def revision_of(folder: Path) -> str:
    """16 hex digits that change with a model's weights and settings.

    Raises:
        NotFound: a file of the model is missing.
    """
    digest = hashlib.sha256()
    for name in (CONFIG, WEIGHTS):
        try:
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except FileNotFoundError as error:
            raise NotFound(f"{folder / name}: missing; get the model's folder whole") from error
    return digest.hexdigest()[:16]


def require_new(folder: Path) -> None:
    """Refuse a folder that has a model, or a file of one's own with the name of one of a model's.

    Raises:
        InvalidValue: it does; the message names the file.
    """
    for name in (CONFIG, WEIGHTS, CARD):
        if (folder / name).exists():
            raise InvalidValue(f"{folder}: has a {name}, which would be written over; give a new folder")


def existing(folder: Path, name: str) -> Path:
    """The path of a file of a model's folder; raises :class:`NotFound` where it is missing."""
    if not folder.is_dir():
        raise NotFound(f"{folder}: there is no such folder; give one that `moviola train` wrote")
    if not (folder / name).is_file():
        raise NotFound(f"{folder}: {name} is missing; get the folder whole or save the model again")
    return folder / name
