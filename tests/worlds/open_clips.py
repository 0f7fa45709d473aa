"""Checkpoints in open_clip's format: one of each architecture that is published in it, tiny and random."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

import random_checkpoints
from towers_by_formula import Array, Formulas

CLIP_PIXELS = {
    "mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711],
    "interpolation": "bicubic", "resize_mode": "shortest",
}  # fmt: skip
SIGLIP_PIXELS = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}

VISION = {"image_size": 32, "layers": 2, "width": 24, "head_width": 8, "patch_size": 8}
TEXTS = {"context_length": 12, "vocab_size": 420, "width": 32, "heads": 4, "layers": 2}
SIGLIP_TEXTS = TEXTS | {
    "no_causal_mask": True, "proj_bias": True, "pool_type": "last", "norm_kwargs": {"eps": 1e-6},
    "hf_tokenizer_name": "timm/ViT-B-16-SigLIP", "tokenizer_kwargs": {"clean": "canonicalize"},
}  # fmt: skip
TIMM = {"width": 48, "layers": 2, "inner": 40, "patch": 8, "class_token": False}
XLMR = {"width": 128, "layers": 2, "inner": 80, "vocab": 420, "positions": 24}

Frame = Callable[[Formulas, Array], Array]
Text = Callable[[Formulas, list[int]], Array]


@dataclass(frozen=True)
class Kind:
    """A checkpoint, and its formulas: of the feature of a normalised picture, and of token ids."""

    config: Mapping[str, Any]
    frame: Frame
    text: Text
    frame_gelu: str = "exact"
    text_gelu: str = "exact"
    frame_eps: float = 1e-5
    text_eps: float = 1e-5
    sizes: Mapping[str, Any] = field(default_factory=dict)

    def make(self, folder: Path) -> Path:
        """Write it into an existing folder, which is returned."""
        return random_checkpoints.open_clip(folder, self.config, **self.sizes)

    def frames(self, folder: Path, images: NDArray[np.uint8]) -> Array:
        """Features of frames by the formulas."""
        formulas = Formulas(
            load_file(folder / "open_clip_model.safetensors"), self.frame_eps, self.frame_gelu
        )
        pixels = self.config["preprocess_cfg"]
        normalised = (images / 255 - np.array(pixels["mean"])) / np.array(pixels["std"])
        return np.array([self.frame(formulas, picture) for picture in normalised])

    def texts(self, folder: Path, rows: list[list[int]]) -> Array:
        """Features of token ids by the formulas."""
        formulas = Formulas(load_file(folder / "open_clip_model.safetensors"), self.text_eps, self.text_gelu)
        return np.array([self.text(formulas, ids) for ids in rows])


def _config(
    vision: Mapping[str, Any], texts: Mapping[str, Any], pixels: Mapping[str, Any], dim: int = 16, **more: Any
) -> dict[str, Any]:
    return {
        "model_cfg": {"embed_dim": dim, "vision_cfg": dict(vision), "text_cfg": dict(texts), **more},
        "preprocess_cfg": dict(pixels),
    }


def _timm(name: str, **more: Any) -> dict[str, Any]:
    return {"image_size": 32, "timm_model_name": name, "timm_model_pretrained": False, **more}


def _clip_text(prefix: str = "", *, causal: bool = True) -> Text:
    """CLIP's: the state of the token of the highest id."""
    return lambda formulas, ids: formulas.clip_text(ids, 4, int(np.argmax(ids)), prefix=prefix, causal=causal)


def _siglip_text(formulas: Formulas, ids: list[int]) -> Array:
    return formulas.clip_text(ids, 4, -1, prefix="text.", causal=False)


def _mean_text(formulas: Formulas, ids: list[int]) -> Array:
    mean = formulas.bert_states("text.transformer.", ids, 2, 2).mean(0)
    return formulas.linear("text.proj.2", formulas.gelu(formulas.linear("text.proj.0", mean)))


def _first_text(first_place: int) -> Text:
    return lambda formulas, ids: formulas.linear(
        "text.proj", formulas.bert_states("text.transformer.", ids, 2, first_place)[0]
    )


def _clip_frame(heads: int) -> Frame:
    return lambda formulas, picture: formulas.clip_frame(picture, heads)


KINDS: dict[str, Kind] = {
    "laion": Kind(_config(VISION, TEXTS, CLIP_PIXELS), _clip_frame(3), _clip_text()),
    "openai": Kind(
        _config(VISION, TEXTS, CLIP_PIXELS, quick_gelu=True), _clip_frame(3), _clip_text(),
        frame_gelu="quick", text_gelu="quick",
    ),
    "dfn-h14": Kind(
        _config(
            VISION | {"width": 40, "head_width": 20, "image_size": [30, 30]}, TEXTS,
            CLIP_PIXELS | {"resize_mode": "squash"}, quick_gelu=True,
        ),
        _clip_frame(2), _clip_text(), frame_gelu="quick", text_gelu="quick",
    ),
    "worldwide": Kind(
        _config(
            VISION, TEXTS | {"pool_type": "eos", "eos_id": 7, "hf_tokenizer_name": "facebook/xlm-v-base"},
            CLIP_PIXELS,
        ),
        _clip_frame(3),
        lambda formulas, ids: formulas.clip_text(ids, 4, ids.index(7), prefix="", causal=True),
    ),
    "siglip": Kind(
        _config(
            _timm("vit_tiny_patch16_siglip_224", timm_pool="map", timm_proj="none"), SIGLIP_TEXTS,
            SIGLIP_PIXELS, 48, custom_text=True, init_logit_bias=-10,
        ),
        lambda formulas, picture: formulas.timm_frame(picture, 3), _siglip_text,
        frame_eps=1e-6, text_eps=1e-6, sizes={"timm": TIMM},
    ),
    "siglip2": Kind(
        _config(
            _timm("vit_base_patch16_siglip_256", timm_pool="map", timm_proj="linear"),
            SIGLIP_TEXTS | {"act_kwargs": {"approximate": "tanh"}}, SIGLIP_PIXELS, custom_text=True,
            init_logit_bias=-10,
        ),
        lambda formulas, picture: formulas.timm_frame(picture, 12), _siglip_text,
        text_gelu="tanh", frame_eps=1e-6, text_eps=1e-6, sizes={"timm": TIMM},
    ),
    "siglip-so400m": Kind(
        _config(
            _timm("vit_so400m_patch16_siglip_256", timm_pool="map", timm_proj="none"),
            SIGLIP_TEXTS | {"proj_type": "none", "proj_bias": False, "width": 48}, SIGLIP_PIXELS, 48,
            custom_text=True, init_logit_bias=-10,
        ),
        lambda formulas, picture: formulas.timm_frame(picture, 16), _siglip_text,
        frame_eps=1e-6, text_eps=1e-6, sizes={"timm": TIMM},
    ),
    "pe-core": Kind(
        _config(
            _timm("vit_pe_core_tiny_patch16_384", timm_pool="map", timm_proj=None), TEXTS,
            SIGLIP_PIXELS | {"interpolation": "bilinear"}, custom_text=True,
        ),
        lambda formulas, picture: formulas.timm_frame(picture, 3, pool_heads=8, rotary=True),
        _clip_text("text."),
        sizes={"timm": TIMM | {"class_token": True, "head_bias": False}},
    ),
    "mobileclip2-l14": Kind(
        _config(
            _timm("vit_tiny_patch14_clip_224", timm_pool="token", timm_proj=None, timm_drop_path=0.1),
            TEXTS | {"no_causal_mask": True}, CLIP_PIXELS, custom_text=True,
        ),
        lambda formulas, picture: formulas.timm_frame(picture, 3), _clip_text("text.", causal=False),
        sizes={"timm": TIMM | {"class_token": True}},
    ),
    "xlm-roberta": Kind(
        _config(
            VISION,
            {
                "context_length": 12, "hf_model_name": "xlm-roberta-base",
                "hf_tokenizer_name": "xlm-roberta-base", "proj": "mlp", "pooler_type": "mean_pooler",
            },
            CLIP_PIXELS, custom_text=True,
        ),
        _clip_frame(3), _mean_text, sizes={"hf": XLMR},
    ),
    "xlm-roberta-first": Kind(
        _config(
            VISION,
            {
                "context_length": 12, "hf_model_name": "FacebookAI/xlm-roberta-large",
                "hf_proj_type": "linear", "hf_pooler_type": "cls_pooler",
            },
            CLIP_PIXELS,
        ),
        _clip_frame(3), _first_text(2), sizes={"hf": XLMR},
    ),
    "roberta": Kind(
        _config(
            VISION,
            {"context_length": 12, "hf_model_name": "roberta-base", "hf_tokenizer_name": "roberta-base"},
            CLIP_PIXELS, quick_gelu=True,
        ),
        _clip_frame(3), _mean_text, frame_gelu="quick", sizes={"hf": XLMR},
    ),
    "bert": Kind(
        _config(
            VISION,
            {
                "context_length": 12, "hf_model_name": "bert-base-uncased", "hf_proj_type": "linear",
                "hf_pooler_type": "cls_last_hidden_state_pooler",
            },
            CLIP_PIXELS,
        ),
        _clip_frame(3), _first_text(0), text_eps=1e-12, sizes={"hf": XLMR},
    ),
    "timm-quickgelu": Kind(
        _config(
            _timm("vit_tiny_patch14_clip_quickgelu_224", timm_pool="token", timm_proj=None), TEXTS,
            CLIP_PIXELS, custom_text=True, quick_gelu=True,
        ),
        lambda formulas, picture: formulas.timm_frame(picture, 3), _clip_text("text."),
        frame_gelu="quick", text_gelu="quick", sizes={"timm": TIMM | {"class_token": True}},
    ),
}  # fmt: skip
