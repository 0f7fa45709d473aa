"""Encoders of frames and texts with random weights, in the formats in which others are published.

What a time, a size or a format costs needs no trained weights. Sizes are arguments: tests take small ones,
``published_models`` those of the published models.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from moviola.encoders.checkpoints import DEMO_FOLDER

__all__ = ["Maker", "chinese_clip", "open_clip", "pe_core", "with_tokenizer"]

Tensors = dict[str, NDArray[np.float32]]
Config = Mapping[str, Any]


_DIFFERENT = 1_000_003
"""Values of a tensor that are drawn; prime, so that no row of it is another."""


class Maker:
    """Random tensors, by a seed."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)
        self.tensors: Tensors = {}

    def random(self, *shape: int, scale: float = 0.3) -> NDArray[np.float32]:
        """Normal values; of a large tensor the first ones come again."""
        count = min(int(np.prod(shape)), _DIFFERENT)
        values = self._generator.standard_normal(count, np.float32) * np.float32(scale)
        return np.resize(values, shape)

    def table(self, name: str, *shape: int) -> None:
        """A learned table or vector."""
        self.tensors[name] = self.random(*shape)

    def matrix(self, name: str, *shape: int) -> None:
        """A matrix that keeps the length of what it multiplies, about."""
        fan_in = int(np.prod(shape[1:]))
        self.tensors[name] = self.random(*shape, scale=1.5 / fan_in**0.5)

    def linear(self, name: str, out: int, inner: int, *, bias: bool = True) -> None:
        """A linear layer."""
        self.matrix(f"{name}.weight", out, inner)
        if bias:
            self.table(f"{name}.bias", out)

    def norm(self, name: str, width: int) -> None:
        """A norm."""
        self.tensors[f"{name}.weight"] = 1 + self.random(width)
        self.table(f"{name}.bias", width)

    def clip_layers(self, prefix: str, count: int, width: int, inner: int) -> None:
        """CLIP's own layers."""
        for number in range(count):
            at = f"{prefix}transformer.resblocks.{number}"
            self.norm(f"{at}.ln_1", width)
            self.matrix(f"{at}.attn.in_proj_weight", 3 * width, width)
            self.table(f"{at}.attn.in_proj_bias", 3 * width)
            self.linear(f"{at}.attn.out_proj", width, width)
            self.norm(f"{at}.ln_2", width)
            self.linear(f"{at}.mlp.c_fc", inner, width)
            self.linear(f"{at}.mlp.c_proj", width, inner)

    def clip_frames(self, given: Config, dim: int) -> None:
        """CLIP's own tower of pictures."""
        width, patch = given["width"], given["patch_size"]
        self.matrix("visual.conv1.weight", width, 3, patch, patch)
        self.table("visual.class_embedding", width)
        self.table("visual.positional_embedding", _patches(given, patch) + 1, width)
        if not given.get("no_ln_pre"):
            self.norm("visual.ln_pre", width)
        self.clip_layers("visual.", given["layers"], width, int(width * given.get("mlp_ratio", 4)))
        self.norm("visual.ln_post", width)
        self.tensors["visual.proj"] = self.random(width, dim, scale=width**-0.5)

    def clip_texts(self, given: Config, dim: int, prefix: str) -> None:
        """CLIP's own tower of texts."""
        width = given["width"]
        self.table(f"{prefix}token_embedding.weight", given["vocab_size"], width)
        self.table(f"{prefix}positional_embedding", given["context_length"], width)
        self.clip_layers(prefix, given["layers"], width, int(width * given.get("mlp_ratio", 4)))
        self.norm(f"{prefix}ln_final", width)
        if given.get("proj_type") == "none":
            return
        if given.get("proj_bias"):
            self.linear(f"{prefix}text_projection", dim, width)
        else:
            self.tensors[f"{prefix}text_projection"] = self.random(width, dim, scale=width**-0.5)

    def timm_frames(self, given: Config, sizes: Config, dim: int) -> None:
        """A tower of timm's; ``sizes`` are those that its name implies."""
        at, width, patch, inner = "visual.trunk", sizes["width"], sizes["patch"], sizes["inner"]
        leads = sizes["class_token"]
        self.matrix(f"{at}.patch_embed.proj.weight", width, 3, patch, patch)
        if not leads:
            self.table(f"{at}.patch_embed.proj.bias", width)
        self.table(f"{at}.pos_embed", 1, _patches(given, patch) + leads, width)
        if leads:
            self.table(f"{at}.cls_token", 1, 1, width)
            self.norm(f"{at}.norm_pre", width)
        for number in range(sizes["layers"]):
            layer = f"{at}.blocks.{number}"
            self.norm(f"{layer}.norm1", width)
            self.linear(f"{layer}.attn.qkv", 3 * width, width)
            self.linear(f"{layer}.attn.proj", width, width)
            self.norm(f"{layer}.norm2", width)
            self.linear(f"{layer}.mlp.fc1", inner, width)
            self.linear(f"{layer}.mlp.fc2", width, inner)
        self.norm(f"{at}.norm", width)
        if given.get("timm_pool") == "map":
            pool = f"{at}.attn_pool"
            self.table(f"{pool}.latent", 1, 1, width)
            for name, out in (("q", width), ("kv", 2 * width), ("proj", width)):
                self.linear(f"{pool}.{name}", out, width)
            self.norm(f"{pool}.norm", width)
            self.linear(f"{pool}.mlp.fc1", inner, width)
            self.linear(f"{pool}.mlp.fc2", width, inner)
        if given.get("timm_proj") is None:
            self.linear(f"{at}.head", dim, width, bias=sizes.get("head_bias", True))
        elif given["timm_proj"] == "linear":
            self.linear("visual.head.proj", dim, width, bias=False)

    def bert(self, prefix: str, sizes: Config) -> None:
        """A tower of texts of transformers' (BERT, RoBERTa, XLM-R)."""
        width, inner = sizes["width"], sizes["inner"]
        for name, rows in (("word", sizes["vocab"]), ("position", sizes["positions"]), ("token_type", 2)):
            self.table(f"{prefix}embeddings.{name}_embeddings.weight", rows, width)
        self.norm(f"{prefix}embeddings.LayerNorm", width)
        for number in range(sizes["layers"]):
            at = f"{prefix}encoder.layer.{number}"
            for part in ("query", "key", "value"):
                self.linear(f"{at}.attention.self.{part}", width, width)
            self.linear(f"{at}.attention.output.dense", width, width)
            self.norm(f"{at}.attention.output.LayerNorm", width)
            self.linear(f"{at}.intermediate.dense", inner, width)
            self.linear(f"{at}.output.dense", width, inner)
            self.norm(f"{at}.output.LayerNorm", width)


def open_clip(
    folder: Path, config: Config, *, timm: Config | None = None, hf: Config | None = None, seed: int = 0
) -> Path:
    """A checkpoint in open_clip's format, in an existing folder, which is returned.

    Args:
        folder: for ``open_clip_config.json``, ``open_clip_model.safetensors`` and, unless it has one, the
            demo's tokenizer.
        config: what the first holds.
        timm: width, layers, inner, patch and whether there is a class token, of a tower that timm names.
        hf: width, layers, inner, vocab and positions, of a tower of texts that transformers names.
        seed: of the weights.
    """
    model, made = config["model_cfg"], Maker(seed)
    vision, texts, dim = model["vision_cfg"], model["text_cfg"], model["embed_dim"]
    if timm:
        made.timm_frames(vision, timm, dim)
    else:
        made.clip_frames(vision, dim)
    if hf:
        made.bert("text.transformer.", hf)
        if texts.get("hf_proj_type", "mlp") == "mlp":
            middle = (hf["width"] + dim) // 2
            made.linear("text.proj.0", middle, hf["width"], bias=False)
            made.linear("text.proj.2", dim, middle, bias=False)
        else:
            made.linear("text.proj", dim, hf["width"], bias=False)
    else:
        made.clip_texts(texts, dim, "text." if model.get("custom_text") else "")
    made.tensors["logit_scale"] = np.array(np.log(100), np.float32)
    if "init_logit_bias" in model:
        made.tensors["logit_bias"] = np.array(-10, np.float32)
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    save_file(made.tensors, folder / "open_clip_model.safetensors")
    with_tokenizer(folder)
    return folder


def pe_core(path: Path, vision: Config, texts: Config, dim: int, seed: int = 0) -> Tensors:
    """Tensors of a PE-Core as its authors name them; ``path`` gets them as torch's pickle.

    Args:
        path: of the ``.pt``.
        vision: width, layers, patch_size and image_size.
        texts: width, layers, vocab_size and context_length.
        dim: length of a feature vector.
        seed: of the weights.
    """
    import torch

    made, width = Maker(seed), vision["width"]
    made.clip_frames(vision, dim)
    pool = "visual.attn_pool"
    made.table(f"{pool}.probe", 1, 1, width)
    made.matrix(f"{pool}.attn.in_proj_weight", 3 * width, width)
    made.table(f"{pool}.attn.in_proj_bias", 3 * width)
    made.linear(f"{pool}.attn.out_proj", width, width)
    made.norm(f"{pool}.layernorm", width)
    made.linear(f"{pool}.mlp.c_fc", 4 * width, width)
    made.linear(f"{pool}.mlp.c_proj", width, 4 * width)
    made.clip_texts(texts, dim, "")
    made.tensors["logit_scale"] = np.array(np.log(100), np.float32)
    torch.save({name: torch.tensor(value) for name, value in made.tensors.items()}, path)
    return made.tensors


def chinese_clip(folder: Path, vision: Config, texts: Config, dim: int, seed: int = 0) -> Path:
    """A Chinese-CLIP in transformers' format, but for its vocabulary, in an existing folder.

    Args:
        folder: for ``config.json`` and ``model.safetensors``.
        vision, texts: ``vision_config`` and ``text_config``.
        dim: length of a feature vector.
        seed: of the weights.
    """
    import torch
    from transformers import ChineseCLIPConfig, ChineseCLIPModel

    torch.manual_seed(seed)
    config = ChineseCLIPConfig(text_config=dict(texts), vision_config=dict(vision), projection_dim=dim)
    ChineseCLIPModel(config).save_pretrained(folder)
    return folder


def _patches(given: Config, patch: int) -> int:
    side = given["image_size"]
    return int(((side[0] if isinstance(side, list) else side) // patch) ** 2)


def with_tokenizer(folder: Path) -> None:
    """The demo's tokenizer, unless the folder has one."""
    if not (folder / "tokenizer.json").is_file():
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(DEMO_FOLDER / name, folder)
