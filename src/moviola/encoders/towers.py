"""The transformers of encoders: CLIP, SigLIP and SigLIP 2, BERT, RoBERTa and XLM-R.

They are computed here in NumPy, in float32, straight from the checkpoint's safetensors: opening a compiled
graph takes longer than encoding one query. Frames, and texts in bulk, go through graphs of the same layers
(:mod:`moviola.encoders.graphs`). The tests hold both to transformers' own implementation, row by row, and to
states of a text that are equal to the bit whatever else is in its batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.token_rows import SHARED_ROWS, TokenRows
from moviola.encoders.weights import Weights
from moviola.threads import blas_kernels

__all__ = ["ACTIVATIONS", "TOKENS", "WORDS", "Network", "same_in_all_places"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

# Number of table entries of the error function between two whole numbers, up to where it is 1.
_PER_ONE, _FLAT_FROM = 2048, 6


@cache
def _erf_values() -> NDArray[np.float64]:
    return np.array([math.erf(place / _PER_ONE) for place in range(_PER_ONE * _FLAT_FROM + 2)])


def _erf(x: Floats) -> NDArray[np.float64]:
    """The error function to 3e-8, half of float32's resolution below 1: importing SciPy takes .15 s.
    Interpolated between values at steps h, which is off by h^2 / 8 max |erf''|.
    """
    place = np.fmin(np.abs(x) * np.float32(_PER_ONE), _PER_ONE * _FLAT_FROM)
    below = place.astype(np.intp)
    values = _erf_values()
    low = values[below]
    return np.copysign(low + (values[below + 1] - low) * (place - below), x)


def _gelu(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + _erf(x * np.float32(math.sqrt(0.5)))), dtype=np.float32)


def _gelu_tanh(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), np.float32)


def _quick_gelu(x: Floats) -> Floats:
    # exp(88) is nearly the largest float32; beyond, 0 comes out all the same, with a warning.
    return np.asarray(x / (1 + np.exp(np.minimum(-1.702 * x, 88))), dtype=np.float32)


ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "gelu": _gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "quick_gelu": _quick_gelu,
    "relu": lambda x: np.maximum(x, 0),
}
"""Activations by the name that a checkpoint's ``hidden_act`` gives."""


TOKENS = "text_model.embeddings.token_embedding.weight"
"""Name of CLIP's and SigLIP's table of tokens."""

WORDS = "embeddings.word_embeddings.weight"
"""Name of a sentence encoder's table of tokens."""

# OpenBLAS' kernels for AVX-512. They multiply few rows in half the time if the weight is on the left; others
# take up to a fifth longer then.
_WIDE_KERNELS = {"SkylakeX", "Cooperlake", "SapphireRapids"}

_SAME: dict[tuple[int, ...], bool] = {}


def same_in_all_places(weight: Floats, block: int) -> bool:
    """Whether this BLAS gives a row the same product with a weight (out, in) in every place of a block of
    ``block`` rows, to the bit; found out once for each shape.
    """
    shape = (*weight.shape, block)
    if shape not in _SAME:
        row = np.cos(np.arange(weight.shape[1], dtype=np.float32))
        (products,) = _products(weight, np.tile(row, (block, 1)), block)
        _SAME[shape] = bool(np.all(products == products[:1]))
    return _SAME[shape]


def _products(weight: Floats, rows: Floats, block: int) -> Floats:
    """Rows (n, in) by a weight (out, in), as many at a time as a block has: (n / block, block, out)."""
    blocks = rows.reshape(-1, block, rows.shape[1])
    if blas_kernels() & _WIDE_KERNELS:
        # Sums along rows depend on how these lie in memory.
        return np.ascontiguousarray(np.matmul(weight, blocks.transpose(0, 2, 1)).transpose(0, 2, 1))
    return np.asarray(np.matmul(blocks, weight.T))


class Network:
    """Transformers of a checkpoint, by the complete settings of its text or vision part. Operators come
    first; a subclass has them for values of another kind, which have the axes (b, n, …) instead of rows.

    Attributes:
        tokens: where the tokens of the texts lie; None for values of another kind.
    """

    def __init__(self, weights: Weights, config: Mapping[str, Any], tokens: TokenRows | None = None) -> None:
        self.weights, self.config, self._tokens = weights, config, tokens

    @property
    def tokens(self) -> TokenRows:
        assert self._tokens is not None
        return self._tokens

    def rows(self, name: str, places: Any) -> Floats:
        """Rows (…, d) of a table (v, d) by their numbers."""
        return self.weights.rows(name, places)

    def words(self, ids: Any) -> Any:
        """Rows (…, d) of a sentence encoder's table of tokens."""
        return self.rows(WORDS, ids)

    def numbered(self, ids: Ints) -> Ints:
        """0 to n - 1 for the n tokens of each text."""
        places = np.zeros_like(ids)
        for own in self.tokens.views(places):
            own[...] = np.arange(own.shape[1])
        return places

    def counted(self, ids: Ints, padding: int) -> Ints:
        """Numbers of a text's tokens from behind the padding's own on, which padding has."""
        places = np.full_like(ids, padding)
        for given, own in zip(self.tokens.views(ids), self.tokens.views(places), strict=True):
            own += (given != padding).cumsum(1) * (given != padding)
        return places

    def linear(self, name: str, x: Floats) -> Floats:
        """x (…, in) by a weight (out, in), and a bias."""
        products = self.projected(name, x)
        products += self.weights.array(f"{name}.bias")
        return products

    def projected(self, name: str, x: Floats) -> Floats:
        """:meth:`linear` without a bias."""
        weight = self.weights.array(f"{name}.weight")
        products = np.empty((len(x), len(weight)), np.float32)
        for block, rows in self.tokens.blocks:
            by_itself = block == SHARED_ROWS and not same_in_all_places(weight, block)
            own = _products(weight, x[rows], 1 if by_itself else block)
            products[rows] = own.reshape(-1, len(weight))
        return products

    def norm(self, name: str, x: Floats) -> Floats:
        """Layer norm of rows (…, d)."""
        weight, bias = self.weights.array(f"{name}.weight"), self.weights.array(f"{name}.bias")
        centred, eps = x - x.mean(-1, keepdims=True), np.float32(self.config["layer_norm_eps"])
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
        return np.asarray(scaled * weight + bias, np.float32)

    def activated(self, x: Any, name: str = "") -> Any:
        """One of :data:`ACTIVATIONS`; by default that of the settings."""
        return ACTIVATIONS[name or self.config["hidden_act"]](x)

    def attended(self, q: Any, k: Any, v: Any, *, causal: bool, present: Any = None, heads: int = 0) -> Any:
        """Attention by several heads, each (…, d), among the tokens of a text; ``present`` (b, n) is False at
        padding, which nobody sees.
        """
        assert not heads  # texts have as many as their settings say
        seen = np.zeros_like(q)
        for *own, out in zip(*map(self.tokens.views, (q, k, v, seen)), strict=True):
            out[...] = self._among_themselves(*own, causal=causal)
        return seen

    def _among_themselves(self, q: Floats, k: Floats, v: Floats, *, causal: bool) -> Floats:
        """Attention in texts of equal length, all (b, n, d)."""
        b, n, d = q.shape
        heads = self.config["num_attention_heads"]
        q, k, v = (part.reshape(b, n, heads, d // heads).transpose(0, 2, 1, 3) for part in (q, k, v))
        logits = q @ k.transpose(0, 1, 3, 2) * np.float32((d // heads) ** -0.5)
        if causal:
            logits += np.triu(np.full((n, n), -1e9, dtype=np.float32), 1)
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return np.asarray((shares @ v).transpose(0, 2, 1, 3).reshape(b, n, d))

    def rotated(self, x: Any) -> Any:
        """Queries or keys (b, n, d), each head's pairs of numbers turned by the angles of their places."""
        raise NotImplementedError  # texts have learned places

    def layers(self, tower: str, x: Any, *, causal: bool, rotary: bool = False) -> Any:
        """States (…, d) after the pre-norm layers of one of CLIP's or SigLIP's towers."""
        for number in range(self.config["num_hidden_layers"]):
            at = f"{tower}.encoder.layers.{number}"
            normed = self.norm(f"{at}.layer_norm1", x)
            q, k, v = (self.linear(f"{at}.self_attn.{part}_proj", normed) for part in "qkv")
            q, k = (self.rotated(q), self.rotated(k)) if rotary else (q, k)
            x = x + self.linear(f"{at}.self_attn.out_proj", self.attended(q, k, v, causal=causal))
            x = x + self.perceptron(f"{at}.mlp", self.norm(f"{at}.layer_norm2", x))
        return x

    def perceptron(self, name: str, x: Any) -> Any:
        """Two linear layers, and the activation between them."""
        return self.linear(f"{name}.fc2", self.activated(self.linear(f"{name}.fc1", x)))

    def text_states(self, ids: Any, *, causal: bool) -> Any:
        """States (…, d) of CLIP's and SigLIP's text tower, with its final norm."""
        places = self.rows("text_model.embeddings.position_embedding.weight", self.numbered(ids))
        x = self.rows(TOKENS, ids) + places
        return self.norm("text_model.final_layer_norm", self.layers("text_model", x, causal=causal))

    def sentence_states(self, ids: Any, present: Any = None) -> Any:
        """The last states (…, d) of a BERT (Devlin et al. 2019), RoBERTa or XLM-R (Conneau et al. 2020),
        which are post-norm; ``present`` (b, n) is False at padding.
        """
        config = self.config
        plain = config["model_type"] == "bert"
        places = self.numbered(ids) if plain else self.counted(ids, config["pad_token_id"])
        x = self.words(ids)
        x = x + self.rows("embeddings.token_type_embeddings.weight", 0)
        x = self.norm("embeddings.LayerNorm", x + self.rows("embeddings.position_embeddings.weight", places))
        for number in range(config["num_hidden_layers"]):
            at = f"encoder.layer.{number}"
            parts = (self.linear(f"{at}.attention.self.{part}", x) for part in ("query", "key", "value"))
            seen = self.linear(
                f"{at}.attention.output.dense", self.attended(*parts, causal=False, present=present)
            )
            x = self.norm(f"{at}.attention.output.LayerNorm", x + seen)
            inner = self.activated(self.linear(f"{at}.intermediate.dense", x))
            x = self.norm(f"{at}.output.LayerNorm", x + self.linear(f"{at}.output.dense", inner))
        return x
