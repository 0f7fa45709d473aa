"""The networks of encoders as graphs, straight from a checkpoint's safetensors.

Architectures: CLIP (Radford et al. 2021), SigLIP and SigLIP 2 (Zhai et al. 2023; Tschannen et al. 2025), BERT
(Devlin et al. 2019), RoBERTa and XLM-R (Conneau et al. 2020), EfficientNet-Lite. The tests hold each to the
implementation of its authors, or of transformers, row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import operators as ops
from moviola.encoders.efficientnet import BLOCKS, PIXELS, Block
from moviola.encoders.weights import Weights

__all__ = [
    "classified_frames", "clip_frames", "clip_texts", "sentence_states", "siglip_frames", "siglip_texts",
]  # fmt: skip

Floats = NDArray[np.float32]
Config = Mapping[str, Any]


def clip_frames(weights: Weights, config: Config, scale: Floats, shift: Floats) -> Any:
    """CLIP's features (n, d) of frames (n, h, w, 3) uint8.

    Args:
        weights: of the checkpoint.
        config: its ``vision_config``, complete.
        scale, shift: (3,), which normalise a pixel's channels.
    """
    frames, x = _patches(weights, config, scale, shift)
    first = ops.repeated(weights.array("vision_model.embeddings.class_embedding")[None], x)
    x = ops.total(
        ops.concatenated([first, x]), weights.array("vision_model.embeddings.position_embedding.weight")
    )
    # The name is misspelt in every checkpoint.
    x = _norm(weights, "vision_model.pre_layrnorm", x, config)
    x = _layers(weights, "vision_model", x, config, causal=False)
    x = _norm(weights, "vision_model.post_layernorm", ops.row(x, 0), config)
    return ops.graph_of([frames], [ops.linear(x, weights.array("visual_projection.weight"))])


def siglip_frames(weights: Weights, config: Config, scale: Floats, shift: Floats) -> Any:
    """SigLIP's features (n, d) of frames; arguments as in :func:`clip_frames`."""
    frames, x = _patches(weights, config, scale, shift)
    x = ops.total(x, weights.array("vision_model.embeddings.position_embedding.weight"))
    x = _layers(weights, "vision_model", x, config, causal=False)
    x = _norm(weights, "vision_model.post_layernorm", x, config)
    # One learned query attends to all patches.
    head = "vision_model.head"
    probe = ops.repeated(weights.array(f"{head}.probe")[0], x)
    # These three stay in 32 bits where others are quantised: only matrices of two axes are.
    three = zip(
        (probe, x, x),
        np.split(weights.array(f"{head}.attention.in_proj_weight")[None], 3, axis=1),
        np.split(weights.array(f"{head}.attention.in_proj_bias"), 3),
        strict=True,
    )
    seen = ops.attention(*(ops.linear(*each) for each in three), heads=config["num_attention_heads"])
    x = ops.row(_linear(weights, f"{head}.attention.out_proj", seen), 0)
    inner = _mlp(weights, f"{head}.mlp", _norm(weights, f"{head}.layernorm", x, config), config)
    return ops.graph_of([frames], [ops.total(x, inner)])


def clip_texts(weights: Weights, config: Config) -> Any:
    """CLIP's states (b, n, d) of token ids (b, n) int64 in the common space; those after the end are unused.

    Args:
        weights: of the checkpoint.
        config: its ``text_config``, complete.
    """
    ids, x = _text_tower(weights, config, causal=True)
    return ops.graph_of([ids], [ops.linear(x, weights.array("text_projection.weight"))])


def siglip_texts(weights: Weights, config: Config) -> Any:
    """SigLIP's states (b, n, d) of token ids (b, n) int64; padding is attended to. Arguments as before."""
    ids, x = _text_tower(weights, config, causal=False)
    return ops.graph_of([ids], [_linear(weights, "text_model.head", x)])


def sentence_states(weights: Weights, config: Config) -> Any:
    """Last states (b, n, d) of token ids (b, n) int64, of which some are real, (b, n) boolean.

    Args:
        weights: of a BERT, a RoBERTa or an XLM-R.
        config: of the checkpoint, complete.
    """
    ids, present = ops.parameter([None, None], np.int64), ops.parameter([None, None], bool)
    x = ops.looked_up(weights.array("embeddings.word_embeddings.weight"), ids)
    x = ops.total(x, weights.array("embeddings.token_type_embeddings.weight")[:1])
    places = weights.array("embeddings.position_embeddings.weight")
    if config["model_type"] == "bert":
        x = ops.total(x, ops.looked_up(places, ops.whole_numbers_below(ids)))
    else:
        # Positions are counted from behind the padding's own id, which padding has.
        pad = config["pad_token_id"]
        real = ops.differs(ids, pad)
        x = ops.total(
            x, ops.looked_up(places, ops.total(ops.product(ops.counted_up(real), real), np.int64(pad)))
        )
    x = _norm(weights, "embeddings.LayerNorm", x, config)
    for number in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{number}"
        parts = (_linear(weights, f"{at}.attention.self.{part}", x) for part in ("query", "key", "value"))
        seen = ops.attention(*parts, heads=config["num_attention_heads"], present=present)
        seen = _linear(weights, f"{at}.attention.output.dense", seen)
        x = _norm(weights, f"{at}.attention.output.LayerNorm", ops.total(x, seen), config)
        inner = ops.ACTIVATIONS[config["hidden_act"]](_linear(weights, f"{at}.intermediate.dense", x))
        x = _norm(
            weights,
            f"{at}.output.LayerNorm",
            ops.total(x, _linear(weights, f"{at}.output.dense", inner)),
            config,
        )
    return ops.graph_of([ids, present], [x])


def classified_frames(weights: Weights, temperature: float) -> Any:
    """EfficientNet-Lite's layer before the classes (n, 1280), and these as probabilities (n, 1000).

    Args:
        weights: see :mod:`moviola.encoders.efficientnet`.
        temperature: divides the logits.
    """
    frames = ops.parameter([None, PIXELS, PIXELS, 3], np.uint8)
    middle, half = np.float32(-127), np.float32(1 / 128)
    x = ops.product(ops.total(ops.numbers(ops.channels_first(frames)), middle), half)
    x = ops.relu6(_filtered(weights, "stem", x, stride=2))
    for number, block in enumerate(BLOCKS):
        x = _block(weights, f"blocks.{number}", x, block)
    pooled = ops.mean_of_pixels(ops.relu6(_filtered(weights, "head", x)))
    logits = _linear(weights, "classes", pooled)
    return ops.graph_of([frames], [pooled, ops.shares(ops.product(logits, np.float32(1 / temperature)))])


def _block(weights: Weights, at: str, x: ops.Node, block: Block) -> ops.Node:
    """An inverted bottleneck: expand, filter each channel, project."""
    inner = ops.relu6(_filtered(weights, f"{at}.expand", x)) if block.expands else x
    groups = weights.shape(f"{at}.depthwise.weight")[0]
    inner = ops.relu6(_filtered(weights, f"{at}.depthwise", inner, stride=block.stride, groups=groups))
    projected = _filtered(weights, f"{at}.project", inner)
    return ops.total(x, projected) if block.residual else projected


def _filtered(weights: Weights, name: str, x: ops.Node, *, stride: int = 1, groups: int = 1) -> ops.Node:
    weight, bias = (weights.array(f"{name}.{part}") for part in ("weight", "bias"))
    return ops.convolution(x, weight, bias, stride=stride, same=True, groups=groups)


def _patches(weights: Weights, config: Config, scale: Floats, shift: Floats) -> tuple[ops.Node, ops.Node]:
    """The parameter of frames, and their patches (n, patches, d)."""
    size, patch = config["image_size"], config["patch_size"]
    frames = ops.parameter([None, size, size, 3], np.uint8)
    pixels = ops.product(ops.numbers(ops.channels_first(frames)), scale.reshape(1, 3, 1, 1))
    at = "vision_model.embeddings.patch_embedding"
    bias = weights.array(f"{at}.bias") if f"{at}.bias" in weights else None
    x = ops.convolution(
        ops.total(pixels, shift.reshape(1, 3, 1, 1)),
        weights.array(f"{at}.weight"), bias, stride=patch, same=False,
    )  # fmt: skip
    return frames, ops.patches_in_rows(x)


def _text_tower(weights: Weights, config: Config, *, causal: bool) -> tuple[ops.Node, ops.Node]:
    """The parameter of token ids, and the states of the text transformer that CLIP and SigLIP share."""
    ids = ops.parameter([None, None], np.int64)
    x = ops.looked_up(weights.array("text_model.embeddings.token_embedding.weight"), ids)
    places = weights.array("text_model.embeddings.position_embedding.weight")
    x = ops.total(x, ops.looked_up(places, ops.whole_numbers_below(ids)))
    x = _layers(weights, "text_model", x, config, causal=causal)
    return ids, _norm(weights, "text_model.final_layer_norm", x, config)


def _layers(weights: Weights, tower: str, x: ops.Node, config: Config, *, causal: bool) -> ops.Node:
    """The pre-norm layers of one of the towers."""
    for number in range(config["num_hidden_layers"]):
        at = f"{tower}.encoder.layers.{number}"
        normed = _norm(weights, f"{at}.layer_norm1", x, config)
        parts = (_linear(weights, f"{at}.self_attn.{part}_proj", normed) for part in "qkv")
        seen = ops.attention(*parts, heads=config["num_attention_heads"], causal=causal)
        x = ops.total(x, _linear(weights, f"{at}.self_attn.out_proj", seen))
        x = ops.total(x, _mlp(weights, f"{at}.mlp", _norm(weights, f"{at}.layer_norm2", x, config), config))
    return x


def _mlp(weights: Weights, name: str, x: ops.Node, config: Config) -> ops.Node:
    inner = ops.ACTIVATIONS[config["hidden_act"]](_linear(weights, f"{name}.fc1", x))
    return _linear(weights, f"{name}.fc2", inner)


def _linear(weights: Weights, name: str, x: ops.Node) -> ops.Node:
    return ops.linear(x, weights.array(f"{name}.weight"), weights.array(f"{name}.bias"))


def _norm(weights: Weights, name: str, x: ops.Node, config: Config) -> ops.Node:
    weight, bias = weights.array(f"{name}.weight"), weights.array(f"{name}.bias")
    return ops.layer_norm(x, weight, bias, config["layer_norm_eps"])
