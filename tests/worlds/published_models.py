"""The encoders of ``moviola.encoders.published`` with random weights: their settings, sizes and work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import random_checkpoints
from random_checkpoints import Maker

__all__ = ["MODELS", "Model"]

_PIXELS: dict[str, Any] = {"resize_mode": "squash", "mean": [0.5] * 3, "std": [0.5] * 3}
_CLIP_TEXTS = {"context_length": 77, "vocab_size": 49408, "width": 512, "heads": 8, "layers": 12}
_SIGLIP_TEXTS = {
    "context_length": 64, "vocab_size": 256000, "width": 768, "heads": 12, "layers": 12,
    "no_causal_mask": True, "proj_bias": True, "pool_type": "last", "norm_kwargs": {"eps": 1e-6},
}  # fmt: skip
_SIGLIP = {"width": 768, "layers": 12, "inner": 3072, "patch": 16, "class_token": False}


# Of a tower of pictures: tables, and what is multiplied with one row alone.
_ONCE = ("pos", "token", "latent", "pool.", ".head", "visual.proj")


class _Sizes(Maker):
    """Tensors that take no memory."""

    def random(self, *shape: int, scale: float = 1) -> NDArray[np.float32]:
        return np.broadcast_to(np.float32(scale), shape)


@dataclass(frozen=True)
class Model:
    """A published encoder's settings in open_clip's format, and the sizes that others' names imply."""

    dim: int
    vision: Mapping[str, Any]
    texts: Mapping[str, Any]
    more: Mapping[str, Any] = field(default_factory=dict)
    timm: Mapping[str, Any] | None = None
    hf: Mapping[str, Any] | None = None
    chinese: bool = False

    @property
    def config(self) -> dict[str, Any]:
        """What an ``open_clip_config.json`` says."""
        model = {
            "embed_dim": self.dim,
            "vision_cfg": dict(self.vision),
            "text_cfg": dict(self.texts),
            **self.more,
        }
        return {"model_cfg": model, "preprocess_cfg": _PIXELS}

    def make(self, folder: Path) -> Path:
        """Write it with random weights into an existing folder, which is returned."""
        if not self.chinese:
            return random_checkpoints.open_clip(folder, self.config, timm=self.timm, hf=self.hf)
        vision = {"hidden_size": self.vision["width"], "patch_size": self.vision["patch_size"]}
        random_checkpoints.chinese_clip(folder, vision, {}, self.dim)
        signs = [chr(0x4E00 + place) for place in range(21_000)]
        (folder / "vocab.txt").write_text(
            "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs]) + "\n"
        )
        pixels = {"size": {"height": 224, "width": 224}, "do_center_crop": False}
        (folder / "preprocessor_config.json").write_text(json.dumps(pixels))
        return folder

    @property
    def parameters(self) -> int:
        """How many numbers both towers have."""
        made = _Sizes()
        self._pictures(made)
        if self.hf:
            made.bert("text.transformer.", self.hf)
            made.linear("text.proj.0", (self.hf["width"] + self.dim) // 2, self.hf["width"], bias=False)
            made.linear("text.proj.2", self.dim, (self.hf["width"] + self.dim) // 2, bias=False)
        else:
            made.clip_texts(self.texts, self.dim, "text.")
        return sum(value.size for value in made.tensors.values())

    @property
    def work(self) -> float:
        """Multiplications of a frame, in thousand millions: of each matrix as often as there are tokens, and
        of attention.
        """
        made = _Sizes()
        self._pictures(made)
        patch = self.timm["patch"] if self.timm else self.vision["patch_size"]
        width = self.timm["width"] if self.timm else self.vision["width"]
        layers = self.timm["layers"] if self.timm else self.vision["layers"]
        tokens = (self.vision["image_size"] // patch) ** 2 + (not self.timm or self.timm["class_token"])
        matrices = sum(
            value.size for name, value in made.tensors.items()
            if value.ndim > 1 and not any(part in name for part in _ONCE)
        )  # fmt: skip
        pool = 2 * width**2 * tokens if self.vision.get("timm_pool") == "map" else 0
        return float(matrices * tokens + layers * 2 * tokens**2 * width + pool) / 1e9

    def _pictures(self, made: Maker) -> None:
        if self.timm:
            made.timm_frames(self.vision, self.timm, self.dim)
        else:
            made.clip_frames(self.vision, self.dim)


def _clip(
    pixels: int, patch: int, width: int, layers: int, texts: Mapping[str, Any] = MappingProxyType({})
) -> Model:
    """The tower of texts is as wide as the common space in all of them."""
    dim = texts.get("width", 512)
    vision = {
        "image_size": pixels, "patch_size": patch, "width": width, "layers": layers,
        "head_width": 80 if width == 1280 else 64,
    }  # fmt: skip
    return Model(dim, vision, {**_CLIP_TEXTS, **texts})


def _timm(
    name: str, pixels: int, sizes: Mapping[str, Any], texts: Mapping[str, Any], dim: int, **more: Any
) -> Model:
    vision = {
        "image_size": pixels,
        "timm_model_name": name,
        "timm_pool": "map",
        "timm_proj": more.pop("proj", None),
    }
    return Model(dim, vision, texts, {"custom_text": True, **more}, timm=sizes)


def _pe(size: str, pixels: int, width: int, *, patch: int = 16) -> Model:
    """Widths of 768 and more have a large tower of texts."""
    layers, texts = 24 if width > 768 else 12, 1024 if width >= 768 else 512
    sizes = {
        "width": width, "layers": layers, "inner": 4 * width, "patch": patch, "class_token": True,
        "head_bias": False,
    }  # fmt: skip
    large = texts == 1024
    own = {"context_length": 32, "width": texts, "heads": texts // 64, "layers": 24 if large else 12}
    return _timm(f"vit_pe_core_{size}_patch{patch}_{pixels}", pixels, sizes, {**_CLIP_TEXTS, **own}, texts)


_L, _H = {"width": 768, "heads": 12}, {"width": 1024, "heads": 16, "layers": 24}

MODELS: dict[str, Model] = {
    "laion/CLIP-ViT-B-32-laion2B-s34B-b79K": _clip(224, 32, 768, 12),
    "laion/CLIP-ViT-B-16-DataComp.XL-s13B-b90K": _clip(224, 16, 768, 12),
    "laion/CLIP-ViT-L-14-DataComp.XL-s13B-b90K": _clip(224, 14, 1024, 24, _L),
    "laion/CLIP-ViT-H-14-laion2B-s32B-b79K": _clip(224, 14, 1280, 32, _H),
    "apple/DFN5B-CLIP-ViT-H-14-378": _clip(378, 14, 1280, 32, _H),
    "timm/PE-Core-T-16-384": _pe("tiny", 384, 192),
    "timm/PE-Core-S-16-384": _pe("small", 384, 384),
    "timm/PE-Core-B-16": _pe("base", 224, 768),
    "timm/PE-Core-L-14-336": _pe("large", 336, 1024, patch=14),
    "google/siglip2-base-patch16-224": _timm(
        "vit_base_patch16_siglip_224", 224, _SIGLIP, _SIGLIP_TEXTS, 768, proj="none", init_logit_bias=-10
    ),
    "timm/ViT-B-16-SigLIP-i18n-256": _timm(
        "vit_base_patch16_siglip_256", 256, _SIGLIP, _SIGLIP_TEXTS | {"vocab_size": 250000}, 768, proj="none",
        init_logit_bias=-10,
    ),
    "laion/CLIP-ViT-B-32-xlm-roberta-base-laion5B-s13B-b90k": Model(
        512, _clip(224, 32, 768, 12).vision,
        texts={"hf_model_name": "xlm-roberta-base", "hf_proj_type": "mlp"}, more={"custom_text": True},
        hf={"width": 768, "layers": 12, "inner": 3072, "vocab": 250002, "positions": 514},
    ),
    "OFA-Sys/chinese-clip-vit-base-patch16": Model(
        512, _clip(224, 16, 768, 12).vision, {},
        hf={"width": 768, "layers": 12, "inner": 3072, "vocab": 21128, "positions": 512}, chinese=True,
    ),
}  # fmt: skip
"""By hub id. SigLIP 2, which transformers opens, is here in open_clip's format: its towers are the same."""
