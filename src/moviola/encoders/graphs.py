"""The networks of encoders as graphs, straight from a checkpoint's safetensors: the transformers of
:mod:`moviola.encoders.towers`, and EfficientNet-Lite, which the tests hold to its authors' implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import operators as ops
from moviola.encoders.efficientnet import BLOCKS, PIXELS, Block
from moviola.encoders.towers import WORDS, Network, Texts
from moviola.encoders.weights import Weights

__all__ = ["classified_frames", "clip_frames", "sentence_states", "siglip_frames", "text_states"]

Floats = NDArray[np.float32]
Config = Mapping[str, Any]


class _Graph(Network):
    """A network on nodes of a graph; its activation is one of ``operators.ACTIVATIONS``."""

    def rows(self, name: str, places: ops.Node) -> ops.Node:
        return ops.gather(self.weights.array(name), places)

    def numbered(self, ids: ops.Node) -> ops.Node:
        return ops.arange(ids)

    def counted(self, ids: ops.Node, padding: int) -> ops.Node:
        real = ops.not_equal(ids, padding)
        return ops.add(ops.multiply(ops.cumsum(real), real), np.int64(padding))

    def linear(self, name: str, x: ops.Node) -> ops.Node:
        return ops.linear(x, self.weights.array(f"{name}.weight"), self.weights.array(f"{name}.bias"))

    def projected(self, name: str, x: ops.Node) -> ops.Node:
        return ops.linear(x, self.weights.array(f"{name}.weight"))

    def norm(self, name: str, x: ops.Node) -> ops.Node:
        weight, bias = self.weights.array(f"{name}.weight"), self.weights.array(f"{name}.bias")
        return ops.layer_norm(x, weight, bias, self.config["layer_norm_eps"])

    def activated(self, x: ops.Node) -> ops.Node:
        return ops.ACTIVATIONS[self.config["hidden_act"]](x)

    def attended(self, q: Any, k: Any, v: Any, *, causal: bool, present: Any = None) -> ops.Node:
        heads = self.config["num_attention_heads"]
        return ops.attention(q, k, v, heads=heads, causal=causal, present=present)


def clip_frames(weights: Weights, config: Config, scale: Floats, shift: Floats) -> Any:
    """CLIP's features (n, d) of frames (n, h, w, 3) uint8, by its complete ``vision_config``; ``scale`` and
    ``shift``, (3,), normalise a pixel's channels.
    """
    net = _Graph(weights, config)
    frames, x = _patches(weights, config, scale, shift)
    first = ops.broadcast(weights.array("vision_model.embeddings.class_embedding")[None], x)
    places = weights.array("vision_model.embeddings.position_embedding.weight")
    x = ops.add(ops.concatenate([first, x]), places)
    # The name is misspelt in every checkpoint.
    x = net.layers("vision_model", net.norm("vision_model.pre_layrnorm", x), causal=False)
    x = net.projected("visual_projection", net.norm("vision_model.post_layernorm", ops.row(x, 0)))
    return ops.graph_of([frames], [x])


def siglip_frames(weights: Weights, config: Config, scale: Floats, shift: Floats) -> Any:
    """SigLIP's features (n, d) of frames; arguments as in :func:`clip_frames`."""
    net = _Graph(weights, config)
    frames, x = _patches(weights, config, scale, shift)
    x = ops.add(x, weights.array("vision_model.embeddings.position_embedding.weight"))
    x = net.norm("vision_model.post_layernorm", net.layers("vision_model", x, causal=False))
    # One learned query attends to all patches.
    head = "vision_model.head"
    probe = ops.broadcast(weights.array(f"{head}.probe")[0], x)
    # These three stay in 32 bits where others are quantised: only matrices of two axes are.
    three = zip(
        (probe, x, x),
        np.split(weights.array(f"{head}.attention.in_proj_weight")[None], 3, axis=1),
        np.split(weights.array(f"{head}.attention.in_proj_bias"), 3),
        strict=True,
    )
    seen = net.attended(*(ops.linear(*each) for each in three), causal=False)
    x = ops.row(net.linear(f"{head}.attention.out_proj", seen), 0)
    return ops.graph_of([frames], [x + net.perceptron(f"{head}.mlp", net.norm(f"{head}.layernorm", x))])


def text_states(weights: Weights, config: Config, texts: Texts) -> Any:
    """States (b, n, d) of token ids (b, n) int64 by one of CLIP's or SigLIP's text towers."""
    ids = ops.parameter([None, None], np.int64)
    return ops.graph_of([ids], [texts(_Graph(weights, config), ids)])


class _SentenceGraph(_Graph):
    """A sentence encoder that is given the rows of its table of tokens: that of a model of many languages is
    nine tenths of it, and would lie in memory as part of the graph.
    """

    def __init__(self, weights: Weights, config: Config, words: ops.Node) -> None:
        super().__init__(weights, config)
        self._words = words

    def words(self, ids: ops.Node) -> ops.Node:
        return self._words


def sentence_states(weights: Weights, config: Config) -> Any:
    """Last states (b, n, d) of a BERT, a RoBERTa or an XLM-R, of token ids (b, n) int64, of which some are
    real, (b, n) boolean, and their rows of the table of tokens (b, n, d); the ``config`` is complete.
    """
    ids, present = ops.parameter([None, None], np.int64), ops.parameter([None, None], bool)
    words = ops.parameter([None, None, weights.shape(WORDS)[1]], np.float32)
    states = _SentenceGraph(weights, config, words).sentence_states(ids, present)
    return ops.graph_of([ids, present, words], [states])


def classified_frames(weights: Weights, temperature: float) -> Any:
    """EfficientNet-Lite's layer before the classes (n, 1280), and these as probabilities (n, 1000), of logits
    divided by the temperature; weights are those of :mod:`moviola.encoders.efficientnet`.
    """
    frames = ops.parameter([None, PIXELS, PIXELS, 3], np.uint8)
    middle, half = np.float32(-127), np.float32(1 / 128)
    x = ops.multiply(ops.add(ops.to_float32(ops.channels_first(frames)), middle), half)
    x = ops.relu6(_filtered(weights, "stem", x, stride=2))
    for number, block in enumerate(BLOCKS):
        x = _block(weights, f"blocks.{number}", x, block)
    pooled = ops.mean_pixels(ops.relu6(_filtered(weights, "head", x)))
    logits = _Graph(weights, {}).linear("classes", pooled)
    return ops.graph_of([frames], [pooled, ops.softmax(ops.multiply(logits, np.float32(1 / temperature)))])


def _block(weights: Weights, at: str, x: ops.Node, block: Block) -> ops.Node:
    inner = ops.relu6(_filtered(weights, f"{at}.expand", x)) if block.expands else x
    groups = weights.shape(f"{at}.depthwise.weight")[0]
    inner = ops.relu6(_filtered(weights, f"{at}.depthwise", inner, stride=block.stride, groups=groups))
    projected = _filtered(weights, f"{at}.project", inner)
    return ops.add(x, projected) if block.residual else projected


def _filtered(weights: Weights, name: str, x: ops.Node, *, stride: int = 1, groups: int = 1) -> ops.Node:
    weight, bias = (weights.array(f"{name}.{part}") for part in ("weight", "bias"))
    return ops.convolution(x, weight, bias, stride=stride, same=True, groups=groups)


def _patches(weights: Weights, config: Config, scale: Floats, shift: Floats) -> tuple[ops.Node, ops.Node]:
    """The parameter of frames, and their patches (n, patches, d)."""
    size, patch = config["image_size"], config["patch_size"]
    frames = ops.parameter([None, size, size, 3], np.uint8)
    pixels = ops.multiply(ops.to_float32(ops.channels_first(frames)), scale.reshape(1, 3, 1, 1))
    at = "vision_model.embeddings.patch_embedding"
    bias = weights.array(f"{at}.bias") if f"{at}.bias" in weights else None
    x = ops.convolution(
        ops.add(pixels, shift.reshape(1, 3, 1, 1)),
        weights.array(f"{at}.weight"), bias, stride=patch, same=False,
    )  # fmt: skip
    return frames, ops.flatten_pixels(x)
