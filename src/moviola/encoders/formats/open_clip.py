"""Checkpoints in open_clip's format: ``open_clip_config.json`` and ``open_clip_model.safetensors``.

CLIP's own towers, those of timm for pictures (CLIP, SigLIP, PE-Core), those of transformers for texts (XLM-R,
RoBERTa, BERT): what ``model_cfg`` names is looked up in :data:`TIMM_TOWERS`, :data:`HF_TEXTS` and tables
beside them. A setting that none of them knows is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from moviola.encoders.checkpoints import (
    OPEN_CLIP_CONFIG,
    OPEN_CLIP_WEIGHTS,
    Checkpoint,
    looks_like_hub_id,
    read_json,
)
from moviola.encoders.formats import open_clip_names as names
from moviola.encoders.formats.description import Description
from moviola.encoders.names import Names, Part
from moviola.encoders.pictures import FrameParts
from moviola.encoders.sections import Section
from moviola.encoders.text_parts import Linear, TextParts
from moviola.encoders.token_files import TOKENIZER_FILES, has_tokenizer
from moviola.encoders.tokens import CLEANINGS, Tokenize, TokenRules, ruled_tokenizer
from moviola.encoders.towers import WORDS
from moviola.encoders.weights import Weights
from moviola.errors import DataError, InvalidValue, MissingModel

__all__ = ["HF_TEXTS", "TIMM_TOWERS", "check", "describe", "missing_tokenizer"]

CLIP_TOKENIZER = "openai/clip-vit-base-patch32"
"""Where the tokenizer of those lies that name none."""

_MEAN, _STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_RESAMPLE = {"bilinear": 2, "bicubic": 3}
# Of training, or of how weights are first fetched.
_VISION_OF_TRAINING = (
    "patch_dropout",
    "timm_model_pretrained",
    "timm_drop",
    "timm_drop_path",
    "output_tokens",
)
_TEXT_OF_TRAINING = ("hf_model_pretrained", "output_tokens", "embed_cls", "pad_id")
_MANY_TOKENS = 100_000

_WIDE = 192
"""Of PE-Core-T, whose frames take four fifths of the time in 8 bits; those of PE-Core-S two thirds."""


@dataclass(frozen=True)
class TimmTower:
    """An architecture of timm's.

    Attributes:
        parts: but for the projection.
        pool: as ``timm_pool`` names it.
        epsilon: of its norms.
        activation: one of ``towers.ACTIVATIONS``.
    """

    parts: FrameParts
    pool: str
    epsilon: float
    activation: str = "gelu"


_SIGLIP = FrameParts(class_token=False, norm_before=False, pool="query", projection="none")
_CLIP = FrameParts(class_token=True, norm_before=True, pool="class", projection="plain")
_PE = FrameParts(
    class_token=True, norm_before=True, pool="query", projection="none", rotary=True, pool_heads=8
)

TIMM_TOWERS: dict[str, TimmTower] = {
    r"vit_(?P<size>[a-z0-9]+)_patch\d+_siglip(_\d+)?": TimmTower(_SIGLIP, "map", 1e-6),
    r"naflexvit_(?P<size>[a-z0-9]+)_patch\d+_siglip": TimmTower(
        replace(_SIGLIP, varied=True), "map", 1e-6, "gelu_pytorch_tanh"
    ),
    r"vit_pe_core_(?P<size>[a-z]+)_patch\d+(_\d+)?": TimmTower(_PE, "map", 1e-5),
    r"vit_(?P<size>[a-z0-9]+)_patch\d+_clip(_\d+)?": TimmTower(_CLIP, "token", 1e-5),
    r"vit_(?P<size>[a-z0-9]+)_patch\d+_clip_quickgelu(_\d+)?": TimmTower(_CLIP, "token", 1e-5, "quick_gelu"),
}
"""By patterns of ``timm_model_name``; the size names the number of heads, tensors have everything else."""

TIMM_HEADS = {
    "tiny": 3, "small": 6, "medium": 8, "base": 12, "large": 16, "so400m": 16, "huge": 16, "giantopt": 16,
}  # fmt: skip

NOT_BUILT = {
    r"naflexvit_": "of frames of varied sides those of SigLIP 2 are; take ViT-B-16-SigLIP2-naflex",
    r"fastvit_|vit_base_mci": "its convolutions are MobileCLIP's, whose published weights are for research "
    "only; take PE-Core-T or PE-Core-S, as small and under Apache-2.0",
}
"""Why towers are missing, by the beginnings of their names."""

HF_TEXTS: dict[str, Mapping[str, Any]] = {
    "xlm-roberta": {"model_type": "xlm-roberta", "layer_norm_eps": 1e-5, "pad_token_id": 1},
    "roberta": {"model_type": "roberta", "layer_norm_eps": 1e-5, "pad_token_id": 1},
    "bert": {"model_type": "bert", "layer_norm_eps": 1e-12, "pad_token_id": 0},
}
"""Settings of transformers' towers of texts that no tensor shows, by the beginning of ``hf_model_name``."""

_HF_HEAD = 64
"""Numbers of a head of each of them, of all sizes."""

_HF_POOLS = {"mean_pooler": "mean", "cls_pooler": "first", "cls_last_hidden_state_pooler": "first"}
_HF_PROJECTIONS = {
    "mlp": (Linear("text_projection.0", activation="gelu"), Linear("text_projection.2")),
    "linear": (Linear("text_projection"),),
    "none": (),
}
_POOLS = {"argmax": "end", "eos": "end", "last": "last", "first": "first"}
_PROJECTS = {"linear": True, "none": False}
_TIMM_LAYER, _HF_LAYER = r"visual\.trunk\.blocks\.(\d+)\.", r"text\.transformer\.encoder\.layer\.(\d+)\."
_ACTIVATIONS = {"none": "gelu", "tanh": "gelu_pytorch_tanh"}


@dataclass(frozen=True)
class Pictures:
    """The tower of pictures, as far as the settings say; ``settings`` are by transformers' names."""

    parts: FrameParts
    settings: dict[str, Any]
    names: Mapping[str, Part]


@dataclass(frozen=True)
class Texts:
    """The tower of texts, and how a text becomes tokens."""

    parts: TextParts
    settings: dict[str, Any]
    names: Names
    rules: TokenRules


@dataclass(frozen=True)
class Settings:
    """What an ``open_clip_config.json`` says."""

    pictures: Pictures
    texts: Texts
    preprocessor: dict[str, Any]
    dim: int
    sigmoid: bool


def check(checkpoint: Checkpoint) -> Settings:
    """Read the settings. Raises DataError, InvalidValue: broken, or of an architecture that is not built."""
    path = checkpoint.folder / OPEN_CLIP_CONFIG
    top = Section(path, "", read_json(path))
    model, pixels = top.section("model_cfg"), top.section("preprocess_cfg")
    if "vision_cfg" not in model or "text_cfg" not in model:
        raise DataError(
            f"{path}: model_cfg has no vision_cfg and text_cfg, so it is no encoder of frames and texts; "
            "fetch the "
            "checkpoint again"
        )
    dim, quick = model.whole("embed_dim", 512), model.flag("quick_gelu")
    sigmoid, custom = "init_logit_bias" in model, model.flag("custom_text")
    pictures = _pictures(model.section("vision_cfg"), dim, "quick_gelu" if quick else "gelu")
    texts = _texts(model.section("text_cfg"), "quick_gelu" if quick else "gelu", custom)
    model.done("init_logit_bias", "init_logit_scale", "nonscalar_logit_scale", "cast_dtype")
    return Settings(pictures, texts, _preprocessor(pixels, pictures.settings["image_size"]), dim, sigmoid)


def describe(checkpoint: Checkpoint) -> Description:
    """What a checkpoint is. Raises DataError, InvalidValue, MissingModel: it lacks files."""
    said = check(checkpoint)
    own = Names({**said.pictures.names, **said.texts.names.parts}, said.texts.names.beginnings)
    opened = partial(_weights, checkpoint.folder, own)
    pictures, texts = _completed(said, opened())
    preprocessor = said.preprocessor
    if pictures.parts.varied:
        # No setting says how many patches there may be: as many as the square picture has that is named.
        patch, side = pictures.settings["patch_size"], pictures.settings.pop("image_size")
        preprocessor = {**preprocessor, "patch_size": patch, "max_num_patches": (side // patch) ** 2}
    return Description(
        frames=pictures.parts,
        texts=texts.parts,
        frame_settings=pictures.settings,
        text_settings=texts.settings,
        preprocessor=preprocessor,
        weights=opened,
        tokenizer=lambda: _tokenizer(checkpoint, texts),
        longest=texts.rules.longest,
        dim=said.dim,
        wide=_WIDE,
        sigmoid=said.sigmoid,
        languages=("en",) if texts.settings["vocab_size"] < _MANY_TOKENS and not texts.parts.masked else (),
    )


def missing_tokenizer(checkpoint: Checkpoint) -> str:
    """Hub id of the tokenizer, if a checkpoint has none itself."""
    rules = check(checkpoint).texts.rules
    return "" if has_tokenizer(checkpoint.folder) else rules.named or CLIP_TOKENIZER


def _weights(folder: Path, own: Names) -> Weights:
    stem = OPEN_CLIP_WEIGHTS.removesuffix(".safetensors")
    found = Weights.of(folder, names=own, stem=stem)
    if found is None:
        pickled = next((path.name for path in sorted(folder.glob("*.bin"))), None)
        raise MissingModel(
            f"{folder}: holds no {OPEN_CLIP_WEIGHTS}"
            + (
                f"; {pickled} is a pickle, which is not read here: convert it once with `moviola models "
                "unpickle "
                f"{folder / pickled} NEW_FOLDER`"
                if pickled
                else "; fetch the checkpoint again"
            )
        )
    # Of a model that was trained on several GPUs.
    of_several = any(name.startswith("module.") for name in found.names)
    return Weights.of(folder, "module.", own, stem=stem) or found if of_several else found


def _preprocessor(given: Section, side: int) -> dict[str, Any]:
    """``preprocess_cfg`` by transformers' names; frames are as large as the tower says."""
    square = {"height": side, "width": side}
    modes = {
        "shortest": {"size": {"shortest_edge": side}, "crop_size": square, "do_center_crop": True},
        "squash": {"size": square, "do_center_crop": False},
    }
    made = {
        "image_mean": given.three("mean", _MEAN),
        "image_std": given.three("std", _STD, above_zero=True),
        "resample": given.one_of("interpolation", _RESAMPLE, "bicubic"),
        "rescale_factor": 1 / 255,
        **given.one_of("resize_mode", modes, "shortest"),
    }
    if not all(one > 0 for one in made["image_std"]):
        raise given.wrong("std", made["image_std"], "three numbers above 0")
    return made


def _pictures(given: Section, dim: int, activation: str) -> Pictures:
    if timm := given.text("timm_model_name"):
        return _timm_tower(given, timm)
    side, patch = given.side("image_size", 224), given.side("patch_size", 16)
    width, head = given.whole("width", 768), given.whole("head_width", 64)
    settings = {
        "image_size": side, "patch_size": patch, "hidden_size": width,
        "num_hidden_layers": given.whole("layers", 12), "num_attention_heads": width // head,
        **_layers(given, activation),
    }  # fmt: skip
    if width % head:
        raise given.wrong("head_width", head, f"a divisor of width {width}")
    before = not given.flag("no_ln_pre")
    given.one_of("pool_type", {"tok": None}, "tok")
    given.one_of("pos_embed_type", {"learnable": None}, "learnable")
    given.flag("final_ln_after_pool")  # of one state, it is the same
    given.number("mlp_ratio", 4.0)  # tensors show it
    given.done(*_VISION_OF_TRAINING)
    parts = FrameParts(class_token=True, norm_before=before, pool="class", projection="plain")
    return Pictures(parts, settings, names.VISION)


def _layers(given: Section, activation: str) -> dict[str, Any]:
    """Settings of norms and activations."""
    norms, acts = given.section("norm_kwargs"), given.section("act_kwargs")
    epsilon = norms.epsilon("eps", 1e-5)
    approximate = acts.one_of("approximate", _ACTIVATIONS, "none")
    norms.done()
    acts.done()
    return {
        "layer_norm_eps": epsilon,
        "hidden_act": activation if activation == "quick_gelu" else approximate,
    }


def _timm_tower(given: Section, name: str) -> Pictures:
    tower, size = _named_tower(given, name)
    side = given.side("image_size", 224)
    given.one_of("timm_pool", {tower.pool: None}, tower.pool)
    projection = given.one_of("timm_proj", names.TIMM_PROJECTIONS, "")
    given.done(*_VISION_OF_TRAINING)
    settings = {
        "image_size": side, "num_attention_heads": TIMM_HEADS[size],
        "hidden_act": tower.activation, "layer_norm_eps": tower.epsilon,
    }  # fmt: skip
    parts = replace(tower.parts, projection="plain" if projection else "none")
    return Pictures(parts, settings, (names.VARIED if parts.varied else names.TIMM) | projection)


def _named_tower(given: Section, name: str) -> tuple[TimmTower, str]:
    for pattern, tower in TIMM_TOWERS.items():
        if (match := re.fullmatch(pattern, name)) and match["size"] in TIMM_HEADS:
            return tower, match["size"]
    for beginning, reason in NOT_BUILT.items():
        if re.match(beginning, name):
            raise InvalidValue(f"{given.path}: timm_model_name {name!r} is not built here: {reason}")
    raise InvalidValue(
        f"{given.path}: timm_model_name is {name!r:.80}, an architecture that moviola does not know; it "
        "knows "
        "vit_SIZE_patchN_siglip, naflexvit_SIZE_patchN_siglip, vit_SIZE_patchN_clip and "
        f"vit_pe_core_SIZE_patchN with SIZE one of "
        f"{', '.join(TIMM_HEADS)}; take a checkpoint of one of these"
    )


def _texts(given: Section, activation: str, custom: bool) -> Texts:
    named, model = given.text("hf_tokenizer_name"), given.text("hf_model_name")
    named = named or model
    keywords = given.section("tokenizer_kwargs")
    clean = keywords.one_of("clean", CLEANINGS, "whitespace" if named else "lower")
    keywords.done()
    rules = TokenRules(named=named, longest=given.whole("context_length", 77), clean=clean)
    return _hf_texts(given, model, rules) if model else _native_texts(given, activation, custom, rules)


def _native_texts(given: Section, activation: str, custom: bool, rules: TokenRules) -> Texts:
    pool, end = given.text("pool_type", "argmax"), given.whole("eos_id", 2)
    causal, projects = not given.flag("no_causal_mask"), given.one_of("proj_type", _PROJECTS, "linear")
    biased, width, heads = given.flag("proj_bias"), given.whole("width", 512), given.whole("heads", 8)
    settings = {
        "hidden_size": width, "num_attention_heads": heads, "num_hidden_layers": given.whole("layers", 12),
        "vocab_size": given.whole("vocab_size", 49408), "eos_token_id": end if pool == "eos" else None,
        **_layers(given, activation),
    }  # fmt: skip
    if width % heads:
        raise given.wrong("heads", heads, f"a divisor of width {width}")
    parts = TextParts(
        pool=given.known("pool_type", pool, _POOLS),
        projection=(Linear("text_projection", bias=biased),) if projects else (),
        causal=causal,
    )
    given.flag("final_ln_after_pool")  # of one state, it is the same
    given.number("mlp_ratio", 4.0)  # tensors show it
    given.done(*_TEXT_OF_TRAINING)
    # What comes behind a text is seen by towers that look ahead, and is the place that some read.
    rules = replace(rules, padded=not causal or parts.pool == "last")
    return Texts(parts, settings, names.native_texts("text." if custom else "", linear=biased), rules)


def _hf_texts(given: Section, model: str, rules: TokenRules) -> Texts:
    kind = next((kind for kind in HF_TEXTS if model.rsplit("/", 1)[-1].startswith(kind)), None)
    if kind is None:
        raise InvalidValue(
            f"{given.path}: hf_model_name is {model!r:.80}, a tower of texts that moviola does not know; "
            "it knows "
            f"{', '.join(HF_TEXTS)}; take a checkpoint of one of these"
        )
    pool = given.text("hf_pooler_type") or given.text("pooler_type") or "mean_pooler"
    projection = given.text("hf_proj_type") or given.text("proj") or "mlp"
    parts = TextParts(
        pool=given.known("hf_pooler_type", pool, _HF_POOLS),
        projection=given.known("hf_proj_type", projection, _HF_PROJECTIONS),
        masked=True,
    )
    given.done(*_TEXT_OF_TRAINING, "pooler_type", "proj", "width", "heads", "layers", "vocab_size")
    return Texts(parts, {**HF_TEXTS[kind], "hidden_act": "gelu"}, names.hf_texts(), rules)


def _completed(said: Settings, weights: Weights) -> tuple[Pictures, Texts]:
    """The towers with the sizes that the tensors show."""
    pictures, texts = said.pictures, said.texts
    if "patch_size" not in pictures.settings:
        width, _, patch = _sides(weights, "vision_model.embeddings.patch_embedding.weight", 4)[:3]
        sizes = {
            "hidden_size": width,
            "patch_size": patch,
            "num_hidden_layers": _layers_in(weights, _TIMM_LAYER),
        }
        if pictures.parts.varied:
            sizes["num_patches"] = _sides(weights, "vision_model.embeddings.position_embedding.weight", 2)[0]
        parts = pictures.parts
        if parts.projection != "none" and "visual_projection.bias" in weights:
            parts = replace(parts, projection="biased")
        pictures = replace(pictures, parts=parts, settings=pictures.settings | sizes)
    if texts.parts.masked:
        vocabulary, width = _sides(weights, WORDS, 2)
        sizes = {
            "vocab_size": vocabulary, "hidden_size": width, "num_attention_heads": max(1, width // _HF_HEAD),
            "num_hidden_layers": _layers_in(weights, _HF_LAYER),
        }  # fmt: skip
        texts = replace(texts, settings=texts.settings | sizes)
    return pictures, texts


def _sides(weights: Weights, name: str, count: int) -> tuple[int, ...]:
    shape = weights.shape(name)
    if len(shape) != count:
        raise DataError(
            f"{weights.source}: {weights.own_name(name)!r} has the shape {list(shape)}; {count} axes are "
            "due; "
            "fetch the checkpoint again"
        )
    return shape


def _layers_in(weights: Weights, pattern: str) -> int:
    """How many layers there are, by the names of tensors; those that are missing between are found later."""
    found = [int(match[1]) for name in weights.names if (match := re.match(pattern, name))]
    if not found:
        raise DataError(f"{weights.source}: holds no layers ({pattern}); fetch the checkpoint again")
    return max(found) + 1


def _tokenizer(checkpoint: Checkpoint, texts: Texts) -> Tokenize:
    """The checkpoint's own, or that of the repository that its settings name, where it is in the cache."""
    folder, named = checkpoint.folder, missing_tokenizer(checkpoint)
    if named:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(named, "tokenizer.json") if looks_like_hub_id(named) else None
        if not isinstance(found, str):
            whose = (
                f"{named!r} (hf_tokenizer_name in {OPEN_CLIP_CONFIG})" if texts.rules.named else f"{named!r}"
            )
            raise MissingModel(
                f"{folder}: holds no {TOKENIZER_FILES}; put those, and tokenizer_config.json, of {whose} "
                "there, or fetch the checkpoint with `moviola models pull`, which brings them"
            )
        folder = Path(found).parent
    where = Checkpoint(checkpoint.id, folder, checkpoint.revision)
    return ruled_tokenizer(where, texts.rules, texts.settings["vocab_size"])
