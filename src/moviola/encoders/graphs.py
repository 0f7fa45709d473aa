"""The networks of encoders as graphs, straight from a checkpoint's safetensors: the transformers of
:mod:`moviola.encoders.towers` and :mod:`moviola.encoders.pictures`, and EfficientNet-Lite, which the tests
hold to its authors' implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import operators as ops
from moviola.encoders.efficientnet import BLOCKS, PIXELS, Block
from moviola.encoders.pictures import FrameNetwork, FrameParts, frame_features
from moviola.encoders.text_parts import TextParts
from moviola.encoders.towers import WORDS
from moviola.encoders.weights import Weights

__all__ = ["classified_frames", "frames_graph", "sentence_states", "texts_graph"]

Floats = NDArray[np.float32]
Config = Mapping[str, Any]


class _Graph(FrameNetwork):
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

    def activated(self, x: ops.Node, name: str = "") -> ops.Node:
        return ops.ACTIVATIONS[name or self.config["hidden_act"]](x)

    def attended(
        self, q: Any, k: Any, v: Any, *, causal: bool, present: Any = None, heads: int = 0
    ) -> ops.Node:
        heads = heads or self.config["num_attention_heads"]
        return ops.attention(q, k, v, heads=heads, causal=causal, present=present)

    def rotated(self, x: ops.Node) -> ops.Node:
        cosines, sines, swapped = self.turns
        return ops.add(ops.multiply(x, cosines), ops.multiply(ops.columns(x, swapped), sines))

    def learned(self, name: str, x: ops.Node) -> ops.Node:
        rows = self.weights.array(name)
        return ops.broadcast(rows.reshape(-1, rows.shape[-1]), x)

    def joined(self, first: ops.Node, x: ops.Node) -> ops.Node:
        return ops.concatenate([first, x])

    def placed(self, name: str, x: ops.Node) -> ops.Node:
        return ops.add(x, self.weights.array(name))

    def first(self, x: ops.Node) -> ops.Node:
        return ops.row(x, 0)

    def exact(self, name: str, x: ops.Node) -> ops.Node:
        # Only matrices of two axes are quantised.
        return ops.linear(x, self.weights.array(f"{name}.weight")[None], self.weights.array(f"{name}.bias"))


def frames_graph(weights: Weights, config: Config, parts: FrameParts, scale: Floats, shift: Floats) -> Any:
    """Features (n, d) of frames (n, h, w, 3) uint8, by the complete settings of the tower of pictures;
    ``scale`` and ``shift``, (3,), normalise a pixel's channels. Where frames vary, their places (patches,
    width) are a second input.
    """
    frames, x = _patches(weights, config, scale, shift)
    if not parts.varied:
        return ops.graph_of([frames], [frame_features(_Graph(weights, config), parts, x)])
    places = ops.parameter([None, config["hidden_size"]], np.float32)
    return ops.graph_of([frames, places], [frame_features(_VariedGraph(weights, config, places), parts, x)])


def texts_graph(weights: Weights, config: Config, parts: TextParts) -> Any:
    """What :meth:`TextParts.rows` gives (b, n, d) for token ids (b, n) int64, by the complete settings of the
    tower of texts; of a BERT with further inputs, as :func:`sentence_states`.
    """
    ids = ops.parameter([None, None], np.int64)
    if not parts.masked:
        return ops.graph_of([ids], [parts.rows(_Graph(weights, config), ids)])
    present = ops.parameter([None, None], bool)
    words = ops.parameter([None, None, weights.shape(WORDS)[1]], np.float32)
    states = parts.rows(_SentenceGraph(weights, config, words), ids, present)
    return ops.graph_of([ids, present, words], [states])


class _VariedGraph(_Graph):
    """A tower of pictures that is given the places of their patches."""

    def __init__(self, weights: Weights, config: Config, places: ops.Node) -> None:
        super().__init__(weights, config)
        self._places = places

    def placed(self, name: str, x: ops.Node) -> ops.Node:
        return ops.add(x, self._places)


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
    size, patch = config.get("image_size"), config["patch_size"]  # None where frames vary
    frames = ops.parameter([None, size, size, 3], np.uint8)
    pixels = ops.multiply(ops.to_float32(ops.channels_first(frames)), scale.reshape(1, 3, 1, 1))
    at = "vision_model.embeddings.patch_embedding"
    bias = weights.array(f"{at}.bias") if f"{at}.bias" in weights else None
    x = ops.convolution(
        ops.add(pixels, shift.reshape(1, 3, 1, 1)),
        weights.array(f"{at}.weight"), bias, stride=patch, same=False,
    )  # fmt: skip
    return frames, ops.flatten_pixels(x)
