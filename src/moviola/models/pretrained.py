"""Trained models as folders: saving, loading, and taking over released PyTorch checkpoints.

A folder holds ``config.json`` (architecture, settings, the version that wrote it, and what else the caller
wants to keep), ``model.safetensors`` (the weights) and ``README.md`` (the model card). Loading reads numbers
and text only: no pickle, so a folder from elsewhere cannot run code.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, overload

import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from moviola.errors import DataError, InvalidValue, NotFound

__all__ = [
    "ARCHITECTURES",
    "RELEASES",
    "Architecture",
    "Description",
    "Release",
    "build",
    "convert_checkpoint",
    "from_pretrained",
    "read_description",
    "revision_of",
    "save_pretrained",
]

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
_SHOWN = 5
"""How many keys an error lists."""

State = Mapping[str, Tensor]
Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Architecture:
    """Where a model lives; it is imported when it is used."""

    module: str
    config: str
    model: str

    def classes(self) -> tuple[type[Any], type[nn.Module]]:
        """The config class and the model class."""
        module = import_module(self.module)
        return getattr(module, self.config), getattr(module, self.model)


ARCHITECTURES: dict[str, Architecture] = {
    "spr-stage1": Architecture("moviola.models.spr", "SegmentRetrieverConfig", "SegmentRetriever"),
    "spr-clip": Architecture("moviola.models.spr", "SprClipConfig", "SprClip"),
    "reloclnet": Architecture("moviola.models.reloclnet", "ReLoCLNetConfig", "ReLoCLNet"),
    "xml": Architecture("moviola.models.xml", "XMLConfig", "XML"),
    "conquer": Architecture("moviola.models.conquer", "ConquerConfig", "Conquer"),
    "prem": Architecture("moviola.models.prem", "PremConfig", "Prem"),
    "reel": Architecture("moviola.models.reel", "ReelConfig", "Reel"),
}
"""Every model that can be saved and loaded, by the name that its ``config.json`` bears."""


@dataclass(frozen=True)
class Description:
    """What ``config.json`` says.

    Attributes:
        architecture: a key of :data:`ARCHITECTURES`.
        config: the model's settings, field by field.
        version: the version of moviola that wrote the folder.
        extra: what the caller of :func:`save_pretrained` wanted to keep, for instance which features the
            model was trained on.
    """

    architecture: str
    config: dict[str, Any]
    version: str
    extra: dict[str, Any]


def build(architecture: str, config: Mapping[str, Any]) -> nn.Module:
    """A new model with random weights from its architecture's name and its settings, field by field.

    Fields that are left out have their defaults.

    Raises:
        InvalidValue: the architecture or a field is unknown, or a value is not what its field may hold.
    """
    config_class, model_class = _classes(architecture)
    unknown = sorted(set(config) - {known.name for known in fields(config_class)})
    if unknown:
        raise InvalidValue(
            f"{architecture}: no setting is called {unknown[0]!r}; there are "
            f"{', '.join(known.name for known in fields(config_class))}"
        )
    try:
        settings = TypeAdapter(config_class).validate_python(dict(config))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidValue(
            f"{architecture}: {name or 'config'}: {first['msg']}; correct the setting"
        ) from error
    return model_class(settings)


def save_pretrained(
    model: nn.Module, folder: str | Path, *, card: str, extra: Mapping[str, Any] | None = None
) -> None:
    """Writes a model to a folder, which is made if need be; other files in it stay.

    Whenever the process is stopped, the folder holds the old model, the new one, or none (loading then says
    which file is missing), never weights of one with the settings of the other.

    Args:
        model: an instance of a class in :data:`ARCHITECTURES`.
        folder: where to.
        card: the model card in Markdown: what it is for, how it was trained, what it scores.
        extra: further facts to keep in ``config.json``; JSON values.

    Raises:
        InvalidValue: the model's class is not registered, the card is empty, or ``extra`` is no JSON.
    """
    folder = Path(folder)
    name = _name_of(model)
    if not card.strip():
        raise InvalidValue(
            f"{folder}: the model card is empty; say what the model is for and how it was made"
        )
    content = {
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
    pending = {
        CARD: card.rstrip().encode() + b"\n",
        CONFIG: settings,
        WEIGHTS: save(weights, metadata={"format": "pt"}),
    }
    for file, data in pending.items():
        _write_beside(folder / file, data)
    if not (folder / CONFIG).is_file() or (folder / CONFIG).read_bytes() != settings:
        (folder / WEIGHTS).unlink(missing_ok=True)
    for file in pending:
        _beside(folder / file).replace(folder / file)


@overload
def from_pretrained(folder: str | Path, device: torch.device | str = "cpu") -> nn.Module: ...


@overload
def from_pretrained(
    folder: str | Path, device: torch.device | str = "cpu", *, kind: type[Model]
) -> Model: ...


def from_pretrained(
    folder: str | Path, device: torch.device | str = "cpu", *, kind: type[nn.Module] = nn.Module
) -> nn.Module:
    """Loads a model that :func:`save_pretrained` wrote, in evaluation mode.

    Args:
        folder: where from.
        device: where to put the weights.
        kind: the class that the caller can use.

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
    path = _existing(folder, WEIGHTS)
    try:
        state = load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: cannot be read as safetensors ({error}); get the file again") from error
    _fill(model, state, path)
    return model.to(device).eval()


def read_description(folder: str | Path) -> Description:
    """What the ``config.json`` of a model's folder says; neither the model nor its weights are loaded.

    Raises:
        NotFound: the folder or the file is missing.
        DataError: the file is no JSON object, or a field is missing or of the wrong type.
    """
    path = _existing(Path(folder), CONFIG)
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path}: is no JSON ({error}); get the file again") from error
    wanted = {"architecture": str, "config": dict, "moviola_version": str, "extra": dict}
    for name, kind in wanted.items():
        if not isinstance(content, dict) or not isinstance(content.get(name), kind):
            raise DataError(f"{path}: field {name!r} is missing or no {kind.__name__}; save the model again")
    return Description(*(content[name] for name in wanted))


# --- Released checkpoints ---


def _size(key: str, axis: int = 0) -> Callable[[State], object]:
    """The size of a tensor along an axis; 0 where the model has no such tensor."""
    return lambda state: state[key].shape[axis] if key in state else 0


def _count(pattern: str) -> Callable[[State], object]:
    """How many different numbers stand at the group of ``pattern`` in the keys."""
    return lambda state: len({found[1] for key in state if (found := re.match(pattern, key))})


@dataclass(frozen=True)
class Release:
    """A published line of checkpoints.

    Attributes:
        architecture: the model that it becomes.
        telling: keys that its state dict has, whatever the sizes.
        sizes: settings that follow from the shapes of tensors.
        settings: what the published numbers assume and shapes don't tell.
    """

    architecture: str
    telling: tuple[str, ...]
    sizes: dict[str, Callable[[State], object]]
    settings: dict[str, object] = field(default_factory=dict)


_TWO_STREAMS: dict[str, Callable[[State], object]] = {
    "visual_size": _size("video_input_proj.LayerNorm.weight"),
    "subtitle_size": _size("sub_input_proj.LayerNorm.weight"),
    "query_size": _size("query_input_proj.LayerNorm.weight"),
    "hidden_size": _size("video_input_proj.net.1.weight"),
}
_RELOCLNET = _TWO_STREAMS | {
    "longest_video": _size("ctx_pos_embed.position_embeddings.weight"),
    "longest_query": _size("query_pos_embed.position_embeddings.weight"),
}
_XML = _TWO_STREAMS | {
    "max_clips": _size("ctx_pos_embed.position_embeddings.weight"),
    "max_tokens": _size("query_pos_embed.position_embeddings.weight"),
    "kernel": _size("merged_st_predictor.weight", 2),
}
_VIDEO = "encoder.videoEncoder"
_HEAD = "moment_localization_head.begin_score_modeling.clip_score_predictor"

RELEASES: dict[str, Release] = {
    "spr-stage1": Release(
        "spr-stage1",
        ("temp_proj.weight", "qfeat_proj.weight"),
        {
            "dim": _size("temp_proj.weight"),
            "positions": _size("frame_position_embeddings.weight"),
            "layers": _count(r"seq_transf\.resblocks\.(\d+)\."),
            "mlp_ratio": lambda state: (
                len(state["seq_transf.resblocks.0.mlp.c_fc.bias"]) // len(state["temp_proj.bias"])
            ),
        },
    ),
    "reloclnet-tvr-ranking": Release(
        "reloclnet",
        ("video_encoder3.self.query.weight", "query_encoder1.self.query.weight"),
        _RELOCLNET,
        {"reference_padding": True, "labels": "tvr_ranking", "shortest_span": 2, "longest_span": 16},
    ),
    "spr-stage3": Release(
        "reloclnet",
        ("video_encoder3.self.query.weight", "query_encoder1.self.query.weight"),
        _RELOCLNET,
        {
            "reference_padding": True,
            "labels": "spr",
            "shortest_span": 1,
            "longest_span": 16,
            "span_weight": 0.02,
            "weigh_by_similarity": False,
            "sum_positives": False,
        },
    ),
    "xml": Release(
        "xml",
        ("video_encoder2.self.query.weight", "modular_vector_mapping.weight"),
        _XML,
        {"reference_padding": True, "release_end": True},
    ),
    "conquer": Release(
        "conquer",
        ("query_weight.text_pooling.clusters",),
        {
            "visual_size": _size(f"{_VIDEO}.img_linear.LayerNorm.weight"),
            "subtitle_size": _size(f"{_VIDEO}.text_linear.LayerNorm.weight"),
            "query_size": _size("encoder.queryEncoder.linear.LayerNorm.weight"),
            "hidden_size": _size(f"{_VIDEO}.img_linear.net.1.weight"),
            "feed_forward_size": _size(f"{_VIDEO}.transformer.encoder.layer.0.intermediate.dense.weight"),
            "layers": _count(rf"{re.escape(_VIDEO)}\.transformer\.encoder\.layer\.(\d+)\."),
            "max_clips": _size(f"{_VIDEO}.transformer.embeddings.position_embeddings.weight"),
            "max_tokens": _size("encoder.queryEncoder.transformer.embeddings.position_embeddings.weight"),
            "clusters": _size("query_weight.text_pooling.clusters", 1),
            "clip_score_size": _size(f"{_HEAD}.0.weight"),
            "kernel": _size(f"{_HEAD}.0.weight", 2),
            "video_score_size": lambda state: (
                len(state.get("video_scoring_head.video_score_predictor.0.weight", ())) or 128
            ),
            "similarity": lambda state: (
                "exclusive" if "video_scoring_head.video_score_predictor.0.weight" in state else "general"
            ),
        },
        {"reference_padding": True},
    ),
}
"""Released checkpoints that can be converted. The two lines of ReLoCLNet differ in labels and decoding."""


def convert_checkpoint(path: str | Path, release: str, folder: str | Path, **config: object) -> nn.Module:
    """Turns a released PyTorch checkpoint into a folder that :func:`from_pretrained` loads.

    The file holds a state dict, or a dict that holds one (under ``model``, ``state_dict`` or the like), with
    or without the prefix that parallel training leaves. Sizes are read from the tensors' shapes. What shapes
    don't tell has the published value: heads, decoding, and padding as the release has it, so that published
    numbers come out; give another value by name if the checkpoint was trained otherwise (CONQUER's general
    and disjoint similarity cannot be told apart: ``similarity="disjoint"``).

    Nothing that the file says is executed: it is read as numbers and plain containers. The settings objects
    that some releases keep beside the weights are skipped over.

    Args:
        path: the checkpoint.
        release: a key of :data:`RELEASES`.
        folder: where to write the model.
        config: settings that override.

    Returns:
        The model, in evaluation mode.

    Raises:
        NotFound: there is no such file.
        InvalidValue: the release or a setting is unknown.
        DataError: the file is no checkpoint, would need code to be read, or holds another model.
    """
    path = Path(path)
    if release not in RELEASES:
        raise InvalidValue(f"release {release!r} is not known; give one of {', '.join(RELEASES)}")
    known = RELEASES[release]
    state = _find_state(_read_numbers(path), known, path)
    settings = {name: read(state) for name, read in known.sizes.items()} | known.settings | config
    model = build(known.architecture, settings)
    _fill(model, state, path)
    card = (
        f"# {type(model).__name__}, converted\n\nWeights of `{path.name}`, a checkpoint of the line "
        f"`{release}`, taken over unchanged by `convert_checkpoint`. The authors' licence applies.\n"
    )
    save_pretrained(model, folder, card=card, extra={"converted_from": path.name, "release": release})
    return model.eval()


class _Skipped:
    """Stands for an object that is not looked at; takes whatever a pickle gives it and keeps nothing."""

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, _: object) -> None: ...


class _SkippedMapping:
    """The same for a kind of dict: it is read as a plain one."""

    def __new__(cls, *_: object) -> Any:
        return OrderedDict()


# Found beside the weights in releases. The real classes are never imported.
_STAND_INS: list[tuple[type[object], str]] = [
    (_SkippedMapping, "easydict.EasyDict"),
    (_Skipped, "argparse.Namespace"),
    (_Skipped, "numpy.core.multiarray.scalar"),
    (_Skipped, "numpy._core.multiarray.scalar"),
    (_Skipped, "numpy.dtype"),
]


# What torch.load raises, depending on where a file is damaged.
_UNREADABLE = (
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    AssertionError,
)


def _read_numbers(path: Path) -> object:
    """What a PyTorch file holds, read without executing any of it."""
    if not path.is_file():
        raise NotFound(f"{path}: there is no such checkpoint; give the file that was downloaded")
    try:
        with torch.serialization.safe_globals(list(_STAND_INS)):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        needed = re.search(r"GLOBAL (\S+)", str(error))
        raise DataError(
            f"{path}: reading it would execute code ({needed[1] if needed else 'unknown objects'}), which is "
            "refused; if you trust the file, load it with its own program and save model.state_dict() alone"
        ) from error
    except _UNREADABLE as error:
        raise DataError(f"{path}: is no PyTorch checkpoint ({error}); get the file again") from error


_WRAPPERS = ("model", "state_dict", "model_state_dict", "model_state", "module", "net", "weights")
_PREFIX = re.compile(r"^(?:(?:module|model|_orig_mod)\.)+")


def _find_state(content: object, release: Release, path: Path) -> dict[str, Tensor]:
    """The state dict in a checkpoint: the first that has the release's telling keys."""
    for candidate in _mappings(content):
        state = {
            _PREFIX.sub("", key): value
            for key, value in candidate.items()
            if isinstance(key, str) and isinstance(value, Tensor)
        }
        if all(key in state for key in release.telling):
            return state
    seen = [str(key) for candidate in _mappings(content) for key in candidate][:_SHOWN]
    raise DataError(
        f"{path}: holds no weights of {release.architecture} (no {release.telling[0]!r}; it has "
        f"{', '.join(seen) or 'nothing'} …); name the release that it belongs to: {', '.join(RELEASES)}"
    )


def _mappings(content: object) -> Iterator[Mapping[Any, object]]:
    """A checkpoint's dict and the dicts in it that may be a state dict."""
    if isinstance(content, Mapping):
        yield content
        for key in _WRAPPERS:
            yield from _mappings(content.get(key))


def _fill(model: nn.Module, state: State, path: Path) -> None:
    """Loads weights that must be exactly the model's; the error lists what differs."""
    wanted = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    given = {key: tuple(tensor.shape) for key, tensor in state.items()}
    differing = [
        f"{key} is {given.get(key, 'missing')} instead of {wanted.get(key, 'nothing')}"
        for key in sorted(wanted.keys() | given.keys())
        if wanted.get(key) != given.get(key)
    ]
    if differing:
        more = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        raise DataError(
            f"{path}: the weights don't fit {type(model).__name__} with this config: "
            f"{'; '.join(differing[:_SHOWN])}{more}; give the settings that the weights were trained with"
        )
    model.load_state_dict(dict(state))


def _classes(architecture: str) -> tuple[type[Any], type[nn.Module]]:
    if architecture not in ARCHITECTURES:
        raise InvalidValue(
            f"architecture {architecture!r} is not known; this version has {', '.join(ARCHITECTURES)}"
        )
    return ARCHITECTURES[architecture].classes()


def _name_of(model: nn.Module) -> str:
    """The architecture's name, from the class alone, so that no other model is imported."""
    for name, architecture in ARCHITECTURES.items():
        if (type(model).__module__, type(model).__name__) == (architecture.module, architecture.model):
            return name
    raise InvalidValue(
        f"{type(model).__name__} is no registered model; add it to {__name__}.ARCHITECTURES or save one of "
        f"{', '.join(ARCHITECTURES)}"
    )


def _existing(folder: Path, name: str) -> Path:
    if not folder.is_dir():
        raise NotFound(f"{folder}: there is no such folder; give one that save_pretrained wrote")
    if not (folder / name).is_file():
        raise NotFound(f"{folder}: {name} is missing; get the folder whole or save the model again")
    return folder / name


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def _write_beside(path: Path, data: bytes) -> None:
    with _beside(path).open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def revision_of(folder: Path) -> str:
    """16 hex digits that change with a model's weights and settings.

    Raises:
        NotFound: a file of the model is missing.
    """
    digest = hashlib.sha256()
    for name in ("config.json", "model.safetensors"):
        try:
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except FileNotFoundError as error:
            raise NotFound(f"{folder / name}: missing; get the model's folder whole") from error
    return digest.hexdigest()[:16]
