"""Trained models as folders: saving and loading.

A folder holds ``config.json`` (:class:`moviola.retrieval.saved.description.Description`),
``model.safetensors`` (the weights), ``README.md`` (the model card) and, for models that a library searches
with, ``graphs/`` (:mod:`moviola.study.models.graphs`). Loading reads numbers, text and graphs only: no
pickle, so a folder from elsewhere cannot run code.

Examples:
    >>> from pathlib import Path
    >>> from moviola.study.models.pretrained import build, from_pretrained, save_pretrained
    >>> model = build("xml", {"visual_size": 8, "query_size": 8, "subtitle_size": 0, "hidden_size": 16})
    >>> save_pretrained(model, Path("xml"), card="An XML that has learned nothing.")
    >>> type(from_pretrained("xml")).__name__
    'XML'
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar, get_type_hints, overload

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from moviola.errors import DataError, InvalidValue
from moviola.files.writing import draft_of
from moviola.retrieval.saved.description import (
    CARD,
    CONFIG,
    FORMAT,
    WEIGHTS,
    existing,
    read_description,
    read_weights,
)
from moviola.study.models.checks import require_known, require_sizes, validated
from moviola.study.models.graphs import write_graphs

__all__ = ["ARCHITECTURES", "build", "classes_of", "from_pretrained", "save_pretrained"]

SHOWN = 5
"""Number of keys that an error lists."""

State = Mapping[str, Tensor]
Model = TypeVar("Model", bound=nn.Module)


ARCHITECTURES: dict[str, str] = {
    "spr-stage1": "moviola.study.models.spr:SegmentRetriever",
    "spr-clip": "moviola.study.models.spr:SprClip",
    "reloclnet": "moviola.study.models.reloclnet:ReLoCLNet",
    "xml": "moviola.study.models.xml:XML",
    "conquer": "moviola.study.models.conquer.model:Conquer",
    "prem": "moviola.study.models.prem.model:Prem",
    "prem-apart": "moviola.study.models.prem.apart:PremApart",
    "reel": "moviola.study.models.reel:Reel",
    "reel-stage1": "moviola.study.models.reel:ReelStage1",
}
"""Module and class, imported on first use, of every model that can be saved and loaded, by the name that its
``config.json`` bears."""


def classes_of(architecture: str) -> tuple[type[Any], type[nn.Module]]:
    """Class of the settings, and of the model."""
    model = resolve_name(ARCHITECTURES[architecture])
    return get_type_hints(model.__init__)["config"], model


def build(architecture: str, config: Mapping[str, Any]) -> nn.Module:
    """A new model with random weights from its architecture's name and settings; defaults fill the others.

    Raises:
        InvalidValue: the architecture or a field is unknown, or a value is not what its field may hold.
    """
    require_known("architecture", architecture, ARCHITECTURES)
    config_class, model_class = classes_of(architecture)
    known = [field.name for field in fields(config_class)]
    for name in sorted(set(config) - set(known)):
        raise InvalidValue(f"{architecture}: unknown setting {name!r}; choose {', '.join(known)}")
    settings = validated(config_class, config, architecture)
    require_sizes(settings)
    return model_class(settings)


def save_pretrained(
    model: nn.Module, folder: str | Path, *, card: str, extra: Mapping[str, Any] | None = None
) -> None:
    """Writes a model to a folder, which is made if need be; other files in it stay.

    Whenever the process is stopped, the folder holds the old model, the new one, or none (loading then says
    which file is missing), never weights of one with the settings of the other.

    Args:
        model: an instance of a class in :data:`ARCHITECTURES`.
        card: the model card in Markdown.
        extra: further facts to keep in ``config.json``; JSON values.

    Raises:
        InvalidValue: the model's class is not registered, the card is empty, ``extra`` is no JSON, or the
            folder cannot be written.
    """
    folder = Path(folder)
    name = _name_of(model)
    if not card.strip():
        raise InvalidValue(
            f"{folder}: the model card is empty; say what the model is for and how it was made"
        )
    content = {
        "format": FORMAT,
        "architecture": name,
        "config": asdict(model.config),  # type: ignore[call-overload]  # every registered model has one
        "moviola_version": version("moviola"),
        "extra": dict(extra or {}),
    }
    try:
        settings = (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"{folder}: config or extra cannot be written as JSON ({error})") from error
    weights = {key: tensor.detach().cpu().clone() for key, tensor in model.state_dict().items()}
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as written:  # which replaces the last one first
        for file, data in (
            (WEIGHTS, save(weights, metadata={"format": "pt"})),
            (CONFIG, settings),
            (CARD, card.rstrip().encode() + b"\n"),
        ):
            written.enter_context(draft_of(folder / file)).write_bytes(data)
        if not (folder / CONFIG).is_file() or (folder / CONFIG).read_bytes() != settings:
            (folder / WEIGHTS).unlink(missing_ok=True)
    write_graphs(copy.deepcopy(model).cpu().eval(), folder)


@overload
def from_pretrained(folder: str | Path, device: torch.device | str = "cpu") -> nn.Module: ...


@overload
def from_pretrained(
    folder: str | Path, device: torch.device | str = "cpu", *, kind: type[Model]
) -> Model: ...


def from_pretrained(
    folder: str | Path, device: torch.device | str = "cpu", *, kind: type[nn.Module] = nn.Module
) -> nn.Module:
    """Loads a model of class ``kind`` that :func:`save_pretrained` wrote, in evaluation mode.

    Raises:
        NotFound: the folder or one of its files is missing.
        DataError: a file is malformed, the architecture or a setting is unknown, or the weights are not those
            of this architecture with these settings.
        InvalidValue: the folder holds a model of another class than ``kind``.
    """
    folder = Path(folder)
    described = read_description(folder)
    try:
        model = build(described.architecture, described.config)
    except InvalidValue as error:
        raise DataError(f"{folder / CONFIG}: {error}") from error
    if not isinstance(model, kind):
        raise InvalidValue(
            f"{folder}: holds a model of architecture {described.architecture!r} "
            f"({type(model).__name__}), not a {kind.__name__}; give the folder of such a model"
        )
    path = existing(folder, WEIGHTS)
    fill(model, read_weights(path, load_file), path)
    return model.to(device).eval()


def fill(model: nn.Module, state: State, path: Path) -> None:
    """Loads weights that must be exactly the model's; the error lists what differs."""
    wanted = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    given = {key: tuple(tensor.shape) for key, tensor in state.items()}
    differing = [
        f"{key} is {given.get(key, 'missing')} instead of {wanted.get(key, 'nothing')}"
        for key in sorted(wanted.keys() | given.keys())
        if wanted.get(key) != given.get(key)
    ]
    if differing:
        more = f" and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
        raise DataError(
            f"{path}: the weights don't fit {type(model).__name__} with this config: "
            f"{'; '.join(differing[:SHOWN])}{more}; give the settings that the weights were trained with"
        )
    model.load_state_dict(dict(state))


def _name_of(model: nn.Module) -> str:
    """The architecture's name, from the class alone, so that no other model is imported."""
    own = f"{type(model).__module__}:{type(model).__name__}"
    for name, place in ARCHITECTURES.items():
        if place == own:
            return name
    raise InvalidValue(
        f"{type(model).__name__} is no registered model; add it to {__name__}.ARCHITECTURES or save one of "
        f"{', '.join(ARCHITECTURES)}"
    )
