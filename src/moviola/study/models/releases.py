"""Released PyTorch checkpoints of the papers, taken over into folders of models."""

from __future__ import annotations

import pickle
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from moviola.errors import DataError, NotFound
from moviola.retrieval.saved.description import require_new
from moviola.study.models.checks import require_known
from moviola.study.models.pretrained import SHOWN, State, build, fill, save_pretrained

__all__ = ["RELEASES", "Release", "convert_checkpoint"]


def _size(key: str, axis: int = 0) -> Callable[[State], object]:
    """The size of a tensor along an axis; 0 where the model has no such tensor."""
    return lambda state: state[key].shape[axis] if key in state else 0


def _count(pattern: str) -> Callable[[State], object]:
    """Number of different numbers at the group of ``pattern`` in the keys."""
    return lambda state: len({match[1] for key in state if (match := re.match(pattern, key))})


@dataclass(frozen=True)
class Release:
    """A published line of checkpoints.

    Attributes:
        architecture: the model that it becomes.
        marker_keys: keys that its state dict has, whatever the sizes.
        sizes: settings that follow from the shapes of tensors.
        settings: values of the published model that shapes do not show.
    """

    architecture: str
    marker_keys: tuple[str, ...]
    sizes: dict[str, Callable[[State], object]]
    settings: dict[str, object] = field(default_factory=dict)


_TWO_STREAMS: dict[str, Callable[[State], object]] = {
    "visual_size": _size("video_input_proj.LayerNorm.weight"),
    "subtitle_size": _size("sub_input_proj.LayerNorm.weight"),
    "query_size": _size("query_input_proj.LayerNorm.weight"),
    "hidden_size": _size("video_input_proj.net.1.weight"),
    "max_clips": _size("ctx_pos_embed.position_embeddings.weight"),
    "max_tokens": _size("query_pos_embed.position_embeddings.weight"),
}
_AS_PUBLISHED: dict[str, object] = {"reference_padding": True, "mask_silent": False}
_VIDEO = "encoder.videoEncoder"
_HEAD = "moment_localization_head.begin_score_modeling.clip_score_predictor"

RELEASES: dict[str, Release] = {
    "spr-stage1": Release(
        "spr-stage1",
        ("temp_proj.weight", "qfeat_proj.weight"),
        {
            "hidden_size": _size("temp_proj.weight"),
            "max_clips": _size("frame_position_embeddings.weight"),
            "layers": _count(r"seq_transf\.resblocks\.(\d+)\."),
            "feed_forward_size": _size("seq_transf.resblocks.0.mlp.c_fc.bias"),
        },
    ),
    "reloclnet-tvr-ranking": Release(
        "reloclnet",
        ("video_encoder3.self.query.weight", "query_encoder1.self.query.weight"),
        _TWO_STREAMS,
        {**_AS_PUBLISHED, "labels": "tvr_ranking", "shortest_span": 2, "longest_span": 16},
    ),
    "spr-stage3": Release(
        "reloclnet",
        ("video_encoder3.self.query.weight", "query_encoder1.self.query.weight"),
        _TWO_STREAMS,
        {
            **_AS_PUBLISHED,
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
        _TWO_STREAMS | {"kernel": _size("merged_st_predictor.weight", 2)},
        {**_AS_PUBLISHED, "release_end": True},
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
        _AS_PUBLISHED,
    ),
}
"""Released checkpoints that can be converted. The two lines of ReLoCLNet differ in labels and decoding."""


def convert_checkpoint(path: str | Path, release: str, folder: str | Path, **config: object) -> nn.Module:
    """Turns a released PyTorch checkpoint into a folder that :func:`from_pretrained` loads.

    The file holds a state dict, or a dict that holds one (under ``model``, ``state_dict`` or the like), with
    or without the prefix that parallel training leaves. Sizes are read from the tensors' shapes. What shapes
    do not show (heads, decoding, padding) has the published value, so that published numbers come out; give
    another value by name if the checkpoint was trained with one (CONQUER's general and disjoint similarity
    look the same: ``similarity="disjoint"``).

    Nothing that the file says is executed: it is read as numbers and plain containers. Settings objects that
    some releases keep beside the weights are skipped over.

    Args:
        release: a key of :data:`RELEASES`.
        config: settings that override.

    Returns:
        The model, in evaluation mode.

    Raises:
        NotFound: there is no such file.
        InvalidValue: the release or a setting is unknown, or the folder has a model or a README.md.
        DataError: the file is no checkpoint, would need code to be read, or holds another model.
    """
    path = Path(path)
    require_known("release", release, RELEASES)
    require_new(Path(folder))
    known = RELEASES[release]
    state = _find_state(_read_numbers(path), known, path)
    settings = {name: read(state) for name, read in known.sizes.items()} | known.settings | config
    model = build(known.architecture, settings)
    fill(model, state, path)
    card = (
        f"# {type(model).__name__}, converted\n\nWeights of `{path.name}`, a checkpoint of the line "
        f"`{release}`, taken over unchanged by `convert_checkpoint`. The authors' licence applies.\n"
    )
    save_pretrained(model, folder, card=card, extra={"converted_from": path.name, "release": release})
    return model.eval()


class _Skipped:
    """Takes whatever a pickle gives an object that is not looked at, and keeps nothing."""

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
    RuntimeError, OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, AssertionError,
)  # fmt: skip


def _read_numbers(path: Path) -> object:
    """Content of a PyTorch file, read without executing any of it."""
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
        raise DataError(f"{path}: is no PyTorch checkpoint; get the file again") from error


_WRAPPERS = ("model", "state_dict", "model_state_dict", "model_state", "module", "net", "weights")
_PREFIX = re.compile(r"^(?:(?:module|model|_orig_mod)\.)+")


def _find_state(content: object, release: Release, path: Path) -> dict[str, Tensor]:
    """The state dict in a checkpoint: the first that has the release's marker keys."""
    for candidate in _mappings(content):
        state = {
            _PREFIX.sub("", key): value
            for key, value in candidate.items()
            if isinstance(key, str) and isinstance(value, Tensor)
        }
        if all(key in state for key in release.marker_keys):
            return state
    seen = [str(key) for candidate in _mappings(content) for key in candidate][:SHOWN]
    raise DataError(
        f"{path}: holds no weights of {release.architecture} (no {release.marker_keys[0]!r}; it has "
        f"{', '.join(seen) or 'nothing'} …); name the release that it belongs to: {', '.join(RELEASES)}"
    )


def _mappings(content: object) -> Iterator[Mapping[Any, object]]:
    """A checkpoint's dict and the dicts in it that may be a state dict."""
    if isinstance(content, Mapping):
        yield content
        for key in _WRAPPERS:
            yield from _mappings(content.get(key))
