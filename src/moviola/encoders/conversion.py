"""Encoders that were published as pickles, converted once into a folder of plain numbers and settings.

A pickle can run code when it is opened; torch reads these as weights alone, and refuses others.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.devices import require_torch
from moviola.encoders.checkpoints import OPEN_CLIP_CONFIG, OPEN_CLIP_WEIGHTS, Checkpoint
from moviola.encoders.formats import open_clip_format
from moviola.errors import DataError, InvalidValue
from moviola.files.writing import draft_folder_of, write_json

__all__ = ["convert_pickle"]

Tensors = dict[str, NDArray[Any]]

_BESIDE = ("tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "moviola.json", "README.md")
"""Files of a checkpoint that go with its weights."""

_PE_HEAD = 64
"""Numbers of a head of PE-Core T, S, B and L, in both towers."""


def convert_pickle(path: Path, folder: Path) -> Path:
    """Convert a pickle into a new folder in open_clip's format, which is returned.

    Args:
        path: ``open_clip_pytorch_model.bin`` with its ``open_clip_config.json`` beside it; or the ``.pt`` of
            a PE-Core, whose settings its tensors show.
        folder: not there yet.

    Raises:
        MissingDependency: torch is not installed.
        InvalidValue: the folder is there; no settings lie beside the pickle; or an architecture that is not
            known.
        DataError: the pickle cannot be read, or holds more than weights.
    """
    if folder.exists():
        raise InvalidValue(f"{folder}: is there already; name a folder that is not")
    if not path.is_file():
        raise InvalidValue(f"{path}: no such file; name the pickle of a checkpoint")
    beside = path.parent / OPEN_CLIP_CONFIG
    if beside.is_file():
        open_clip_format().check(Checkpoint(str(path.parent), path.parent, ""))
    require_torch(f"{path}: a pickle")
    from moviola.encoders.by_torch.pickles import read_pickle

    tensors = read_pickle(path)
    if "visual.attn_pool.probe" in tensors:
        config, tensors = _pe_core(path, tensors)
    elif not beside.is_file():
        raise InvalidValue(
            f"{path}: no {OPEN_CLIP_CONFIG} lies beside it, and its tensors are no PE-Core's; fetch that "
            "file, too"
        )
    else:
        config = None
    from safetensors.numpy import save_file

    with draft_folder_of(folder) as draft:
        save_file(tensors, draft / OPEN_CLIP_WEIGHTS)
        if config is None:
            shutil.copy(beside, draft)
        else:
            write_json(draft / OPEN_CLIP_CONFIG, config)
        for pattern in _BESIDE:
            for other in path.parent.glob(pattern):
                shutil.copy(other, draft)
        open_clip_format().describe(Checkpoint(str(folder), draft, ""))
    return folder


_PE_RENAMED = (
    (r"visual\.conv1\.", "visual.trunk.patch_embed.proj."),
    (r"visual\.ln_pre\.", "visual.trunk.norm_pre."),
    (r"visual\.ln_post\.", "visual.trunk.norm."),
    (r"visual\.transformer\.resblocks\.(\d+)\.ln_([12])\.", r"visual.trunk.blocks.\1.norm\2."),
    (r"visual\.transformer\.resblocks\.(\d+)\.attn\.in_proj_", r"visual.trunk.blocks.\1.attn.qkv."),
    (r"visual\.transformer\.resblocks\.(\d+)\.attn\.out_proj\.", r"visual.trunk.blocks.\1.attn.proj."),
    (r"visual\.transformer\.resblocks\.(\d+)\.mlp\.c_fc\.", r"visual.trunk.blocks.\1.mlp.fc1."),
    (r"visual\.transformer\.resblocks\.(\d+)\.mlp\.c_proj\.", r"visual.trunk.blocks.\1.mlp.fc2."),
    (r"visual\.attn_pool\.probe$", "visual.trunk.attn_pool.latent"),
    (r"visual\.attn_pool\.attn\.out_proj\.", "visual.trunk.attn_pool.proj."),
    (r"visual\.attn_pool\.layernorm\.", "visual.trunk.attn_pool.norm."),
    (r"visual\.attn_pool\.mlp\.c_fc\.", "visual.trunk.attn_pool.mlp.fc1."),
    (r"visual\.attn_pool\.mlp\.c_proj\.", "visual.trunk.attn_pool.mlp.fc2."),
    (r"(?=token_embedding|positional_embedding|transformer\.|ln_final|text_projection)", "text."),
)


def _pe_core(path: Path, tensors: Tensors) -> tuple[dict[str, Any], Tensors]:
    """The settings of a PE-Core, and its tensors by the names of open_clip's format."""
    shapes = {name: value.shape for name, value in tensors.items()}
    try:
        width, _, patch, _ = shapes["visual.conv1.weight"]
        places, dim = shapes["visual.positional_embedding"][0], shapes["visual.proj"][1]
        vocabulary, text_width = shapes["token_embedding.weight"]
        longest = shapes["positional_embedding"][0]
        joint = (tensors.pop(f"visual.attn_pool.attn.in_proj_{kind}") for kind in ("weight", "bias"))
        pool = [np.split(each, 3) for each in joint]
        moved = {
            "visual.trunk.cls_token": tensors.pop("visual.class_embedding").reshape(1, 1, -1),
            "visual.trunk.pos_embed": tensors.pop("visual.positional_embedding")[None],
            "visual.trunk.head.weight": np.ascontiguousarray(tensors.pop("visual.proj").T),
        }
    except (KeyError, ValueError) as error:
        raise DataError(
            f"{path}: not a whole PE-Core with a class token ({error}); fetch it again"
        ) from error
    for kind, (q, k, v) in zip(("weight", "bias"), pool, strict=True):
        moved[f"visual.trunk.attn_pool.q.{kind}"] = q
        moved[f"visual.trunk.attn_pool.kv.{kind}"] = np.concatenate([k, v])
    sizes = {3: "tiny", 6: "small", 12: "base", 16: "large"}
    heads, side = width // _PE_HEAD, math.isqrt(places - 1)
    if heads not in sizes or width % _PE_HEAD or side * side != places - 1:
        raise InvalidValue(
            f"{path}: a PE-Core of width {width} with {places} places is none of T, S, B and L; take one "
            "of these"
        )
    for name, value in tensors.items():
        moved[_renamed(name)] = value
    pixels_a_side = side * patch
    vision = {
        "image_size": pixels_a_side,
        "timm_model_name": f"vit_pe_core_{sizes[heads]}_patch{patch}_{pixels_a_side}",
        "timm_pool": "map", "timm_proj": None,
    }  # fmt: skip
    texts = {
        "context_length": longest, "vocab_size": vocabulary, "width": text_width,
        "heads": text_width // _PE_HEAD, "layers": _layers(shapes),
    }  # fmt: skip
    model = {"embed_dim": dim, "custom_text": True, "vision_cfg": vision, "text_cfg": texts}
    pixels = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bilinear", "resize_mode": "squash"}
    return {"model_cfg": model, "preprocess_cfg": pixels}, moved


def _layers(shapes: Mapping[str, Any]) -> int:
    found = (re.match(r"transformer\.resblocks\.(\d+)\.", name) for name in shapes)
    return 1 + max((int(each[1]) for each in found if each), default=-1)


def _renamed(name: str) -> str:
    for pattern, new in _PE_RENAMED:
        if re.match(pattern, name):
            return re.sub(pattern, new, name, count=1)
    return name
