"""Checkpoints in transformers' format: ``config.json``, ``model.safetensors``, ``preprocessor_config.json``.

What differs from checkpoint to checkpoint is read from its own files, what differs from family to family is
in :data:`FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from moviola.encoders.checkpoints import Checkpoint
from moviola.encoders.formats.description import Description
from moviola.encoders.names import Names, Part, filters, piece
from moviola.encoders.pictures import FrameParts
from moviola.encoders.sections import Section, tower_settings
from moviola.encoders.text_parts import Linear, TextParts
from moviola.encoders.tokens import Tokenize, bert_tokenizer, clip_tokenizer, siglip_tokenizer
from moviola.encoders.towers import ACTIVATIONS
from moviola.encoders.weights import Weights
from moviola.errors import DataError, InvalidValue, MissingModel

__all__ = ["FAMILIES", "Family", "describe", "family_of"]


@dataclass(frozen=True)
class Family:
    """Common properties of all checkpoints of one ``model_type``, with the defaults of transformers'
    settings, which a checkpoint's files may leave out.
    """

    module: str
    model_class: str
    tokenizer: Callable[[Checkpoint, dict[str, Any]], Tokenize]
    texts: TextParts
    frames: FrameParts
    projection: str
    text_defaults: Mapping[str, Any]
    vision_defaults: Mapping[str, Any]
    preprocessor_defaults: Mapping[str, Any]
    sigmoid: bool = False
    text_kind: str = ""
    languages: tuple[str, ...] = ()
    names: Names = field(default_factory=Names)


_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
_CLIP_PIXELS = {
    "size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224},
    "do_center_crop": True, "resample": 3, "rescale_factor": 1 / 255,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}  # fmt: skip
_CLIP_FRAMES = FrameParts(class_token=True, norm_before=True, pool="class", projection="plain")
_CLIP_VISION = _BASE | {
    "image_size": 224, "patch_size": 32, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5,
}  # fmt: skip
_HEAD = "vision_model.head.attention"
_PATCHES = "vision_model.embeddings.patch_embedding"
_SIGLIP_VISION = _BASE | {"patch_size": 16, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6}
_SIGLIP_PIXELS = {
    "do_center_crop": False, "rescale_factor": 1 / 255,
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
}  # fmt: skip
_SIGLIP_NAMES = {
    f"{_HEAD}.{part}_proj.{{kind}}": Part(f"{_HEAD}.in_proj_{{kind}}", piece(number, 3))
    for number, part in enumerate("qkv")
}
_SIGLIP = Family(
    module="transformers.models.siglip.modeling_siglip",
    model_class="SiglipModel",
    tokenizer=siglip_tokenizer,
    texts=TextParts(pool="last", projection=(Linear("text_model.head", bias=True),)),
    frames=FrameParts(class_token=False, norm_before=False, pool="query", projection="none"),
    projection="text_model.head",
    text_defaults=_BASE | {
        "max_position_embeddings": 64, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6,
    },
    vision_defaults=_SIGLIP_VISION | {"image_size": 224},
    preprocessor_defaults=_SIGLIP_PIXELS | {"size": {"height": 224, "width": 224}, "resample": 3},
    sigmoid=True,
    names=Names(_SIGLIP_NAMES),
)  # fmt: skip

FAMILIES: dict[str, Family] = {
    "clip": Family(
        module="transformers.models.clip.modeling_clip",
        model_class="CLIPModel",
        tokenizer=clip_tokenizer,
        texts=TextParts(pool="end", projection=(Linear("text_projection"),), causal=True),
        frames=_CLIP_FRAMES,
        projection="text_projection",
        text_defaults=_BASE | {
            "hidden_size": 512, "num_attention_heads": 8, "max_position_embeddings": 77,
            "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "eos_token_id": 49407,
        },
        vision_defaults=_CLIP_VISION,
        preprocessor_defaults=_CLIP_PIXELS,
    ),
    "siglip": _SIGLIP,
    "siglip2": replace(
        _SIGLIP,
        module="transformers.models.siglip2.modeling_siglip2",
        model_class="Siglip2Model",
        frames=replace(_SIGLIP.frames, varied=True),
        vision_defaults=_SIGLIP_VISION | {"num_patches": 256},
        preprocessor_defaults=_SIGLIP_PIXELS | {"patch_size": 16, "max_num_patches": 256, "resample": 2},
        names=Names({
            **_SIGLIP_NAMES, f"{_PATCHES}.weight": Part(f"{_PATCHES}.weight", filters),
        }),
    ),
    "chinese_clip": Family(
        module="transformers.models.chinese_clip.modeling_chinese_clip",
        model_class="ChineseCLIPModel",
        tokenizer=bert_tokenizer,
        texts=TextParts(pool="first", projection=(Linear("text_projection"),), masked=True),
        frames=_CLIP_FRAMES,
        projection="text_projection",
        text_defaults=_BASE | {
            "max_position_embeddings": 512, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0,
            "context_length": 52,  # with which all were trained
        },
        vision_defaults=_CLIP_VISION,
        preprocessor_defaults=_CLIP_PIXELS,
        text_kind="bert",
        languages=("zh",),
        names=Names({}, {own: f"text_model.{own}" for own in ("embeddings.", "encoder.layer.")}),
    ),
}  # fmt: skip
"""Families by ``model_type``: SigLIP 2's of fixed resolution are of type ``siglip``, its NaFlex ones, whose
pictures keep their aspect ratio, of type ``siglip2``.
"""

_WIDE = 512
"""Frames of narrower towers gain less by 8 bits; libraries were begun by this number."""

# SigLIP has 32,000 tokens for English, 250,000 or more for many languages.
_MANY_TOKENS = 100_000


def family_of(checkpoint: Checkpoint) -> Family:
    """The family of a checkpoint by its ``model_type``. Raises InvalidValue: none of :data:`FAMILIES`."""
    kind = checkpoint.json("config.json").get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise InvalidValue(
            f"{checkpoint.id}: model type {kind!r} is no frame-and-text encoder that moviola knows; "
            f"it knows {', '.join(FAMILIES)}, and open_clip's format"
        )
    return FAMILIES[kind]


def describe(checkpoint: Checkpoint) -> Description:
    """What a checkpoint is. Raises InvalidValue, DataError: of another kind, or contradictory; MissingModel:
    without weights that it could be computed from.
    """
    config, family = checkpoint.json("config.json"), family_of(checkpoint)
    weights = partial(Weights.of, checkpoint.folder, names=family.names)
    if family.frames.varied and weights() is None:
        raise MissingModel(
            f"{checkpoint.folder}: holds no model.safetensors, and frames of varied sides are computed from "
            "that alone, not from a pickle (pytorch_model.bin); fetch the model with its safetensors"
        )
    text = _settings(checkpoint, "text_config", family.text_defaults)
    if family.text_kind:
        text["model_type"] = family.text_kind
    if text.get("eos_token_id") == 2:  # written before the configuration named the right one
        text["eos_token_id"] = None
    frames = _settings(checkpoint, "vision_config", family.vision_defaults)
    if family.frames.varied:  # others of another activation are computed by transformers
        Section(checkpoint.folder / "config.json", "vision_config", frames).one_of(
            "hidden_act", ACTIVATIONS, ""
        )
    own = Section(checkpoint.folder / "config.json", "", config)
    size = own.whole("projection_dim", text.get("projection_size") or text["hidden_size"])
    few = text.get("vocab_size", 0) < _MANY_TOKENS
    return Description(
        frames=family.frames,
        texts=family.texts,
        frame_settings=frames,
        text_settings=text,
        preprocessor=_preprocessor(checkpoint, family.preprocessor_defaults),
        weights=weights,
        tokenizer=lambda: family.tokenizer(checkpoint, text),
        longest=text.get("context_length") or text["max_position_embeddings"],
        dim=size,
        wide=_WIDE,
        sigmoid=family.sigmoid,
        languages=family.languages or (("en",) if few else ()),
        by_transformers=(family.module, family.model_class, family.projection),
    )


def _settings(checkpoint: Checkpoint, name: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The complete settings of a tower."""
    return tower_settings(checkpoint.folder / "config.json", name, _tower(checkpoint, name), defaults)


def _preprocessor(checkpoint: Checkpoint, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The complete settings of how a frame becomes numbers, of either file that may hold them."""
    file = "preprocessor_config.json"
    given = checkpoint.json(file)
    if not given:
        file = "processor_config.json"
        given = checkpoint.json(file).get("image_processor") or {}
    section = Section(checkpoint.folder / file, "", given)
    made = {**defaults, **{key: value for key, value in given.items() if value is not None}}
    made["image_mean"] = section.three("image_mean", defaults["image_mean"])
    made["image_std"] = section.three("image_std", defaults["image_std"], above_zero=True)
    made["rescale_factor"] = section.number("rescale_factor", defaults["rescale_factor"])
    for key in ("do_center_crop", "do_normalize", "do_rescale"):
        made[key] = section.flag(key, defaults.get(key, True))
    return made


def _tower(checkpoint: Checkpoint, name: str) -> dict[str, Any]:
    """The settings of a tower in ``config.json``; in files of 2022 those under ``…_dict`` are valid."""
    config = checkpoint.json("config.json")
    given = config.get(f"{name}_dict") or config.get(name) or {}
    if not isinstance(given, dict):
        raise DataError(
            f"{checkpoint.folder}: {name} in config.json is no object; fetch the checkpoint again"
        )
    return given
