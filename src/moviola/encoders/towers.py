"""Text towers in NumPy, for a few texts at a time.

Opening a compiled graph takes longer than encoding one query. So a handful of texts is encoded here, in
float32, straight from the checkpoint's safetensors; many texts, and all frames, go through graphs
(:mod:`moviola.encoders.graphs`). The tests hold both to the same numbers for every architecture below.

Architectures: CLIP (Radford et al. 2021: causal, the state at the end-of-text token), SigLIP (Zhai et al.
2023: bidirectional over the padded text, the state at the last position), BERT (Devlin et al. 2019) and
XLM-R (Conneau et al. 2020): post-norm, all states, for pooling by :mod:`moviola.encoders.sentences`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.weights import Weights
from moviola.threads import one_blas_thread

__all__ = [
    "ACTIVATIONS", "Ends", "Tower", "bert_states", "clip_ends", "clip_tokens", "siglip_ends", "siglip_tokens",
]  # fmt: skip

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

Tower = Callable[[Weights, Mapping[str, Any], Ints], Floats]
"""(weights, text configuration, token ids (b, n)) -> features of the tokens (b, n, d)."""

Ends = Callable[[Mapping[str, Any], Ints], Ints]
"""(text configuration, token ids (b, n)) -> (b,) int64, the token whose feature is that of the text."""


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


@one_blas_thread()
def clip_tokens(weights: Weights, config: Mapping[str, Any], ids: Ints) -> Floats:
    """CLIP's states of all tokens in the common space, (b, n, d); those after the end token mean nothing."""
    states = _pre_norm_tower(weights, config, ids, causal=True)
    return states @ weights.array("text_projection.weight").T


def clip_ends(config: Mapping[str, Any], ids: Ints) -> Ints:
    """CLIP's end-of-text token: the first in each row of ``ids`` (b, n), (b,) int64."""
    # Checkpoints written before the configuration named the right token say 2; theirs is the highest id.
    end = config["eos_token_id"]
    ends: Ints = ids.argmax(1) if end == 2 else (ids == end).argmax(1)
    return ends


@one_blas_thread()
def siglip_tokens(weights: Weights, config: Mapping[str, Any], ids: Ints) -> Floats:
    """SigLIP's states of all positions in the common space, (b, n, d); padding is attended to, and counts."""
    return _linear(weights, "text_model.head", _pre_norm_tower(weights, config, ids, causal=False))


def siglip_ends(config: Mapping[str, Any], ids: Ints) -> Ints:
    """The last position of each row of ``ids`` (b, n), which are padded to the full length, (b,) int64."""
    return np.full(len(ids), ids.shape[1] - 1, dtype=np.int64)


@one_blas_thread()
def bert_states(weights: Weights, config: Mapping[str, Any], ids: Ints, present: NDArray[np.bool_]) -> Floats:
    """The last states of a BERT, RoBERTa or XLM-R, (b, n, d); ``present`` (b, n) is False at padding."""
    eps = config["layer_norm_eps"]
    x = weights.rows("embeddings.word_embeddings.weight", ids)
    x = x + weights.array("embeddings.token_type_embeddings.weight")[0]
    x = x + weights.rows("embeddings.position_embeddings.weight", _positions(config, ids))
    x = _layer_norm(weights, "embeddings.LayerNorm", x, eps)
    mask = np.where(present, np.float32(0), np.float32(-1e9))[:, None, None, :]
    act = ACTIVATIONS[config["hidden_act"]]
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}"
        names = [
            f"{at}.attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")
        ]
        attended = _attention(weights, names, x, config["num_attention_heads"], mask)
        x = _layer_norm(weights, f"{at}.attention.output.LayerNorm", x + attended, eps)
        inner = act(_linear(weights, f"{at}.intermediate.dense", x))
        x = _layer_norm(
            weights, f"{at}.output.LayerNorm", x + _linear(weights, f"{at}.output.dense", inner), eps
        )
    return x


def _positions(config: Mapping[str, Any], ids: Ints) -> Ints:
    """Rows of the table of positions for ids (b, n)."""
    if config["model_type"] == "bert":
        return np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    # RoBERTa counts from behind the padding's own id, and padding has that.
    real = ids != config["pad_token_id"]
    counted: Ints = real.cumsum(1) * real + config["pad_token_id"]
    return counted


def _pre_norm_tower(weights: Weights, config: Mapping[str, Any], ids: Ints, *, causal: bool) -> Floats:
    """The text transformer that CLIP and SigLIP share, with its final layer norm, (b, n, d)."""
    n = ids.shape[1]
    eps = config["layer_norm_eps"]
    x = weights.rows("text_model.embeddings.token_embedding.weight", ids)
    x = x + weights.array("text_model.embeddings.position_embedding.weight")[:n]
    mask = np.triu(np.full((n, n), -1e9, dtype=np.float32), 1) if causal else np.zeros((n, n), np.float32)
    act = ACTIVATIONS[config["hidden_act"]]
    for layer in range(config["num_hidden_layers"]):
        at = f"text_model.encoder.layers.{layer}"
        names = [f"{at}.self_attn.{part}" for part in ("q_proj", "k_proj", "v_proj", "out_proj")]
        normed = _layer_norm(weights, f"{at}.layer_norm1", x, eps)
        x = x + _attention(weights, names, normed, config["num_attention_heads"], mask)
        inner = act(_linear(weights, f"{at}.mlp.fc1", _layer_norm(weights, f"{at}.layer_norm2", x, eps)))
        x = x + _linear(weights, f"{at}.mlp.fc2", inner)
    return _layer_norm(weights, "text_model.final_layer_norm", x, eps)


def _linear(weights: Weights, name: str, x: Floats) -> Floats:
    # One product for all texts: NumPy would multiply each by itself, and read the weights as often.
    rows = x.reshape(-1, x.shape[-1]) @ weights.array(f"{name}.weight").T + weights.array(f"{name}.bias")
    return rows.reshape(*x.shape[:-1], -1)


def _layer_norm(weights: Weights, name: str, x: Floats, eps: float) -> Floats:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(eps))
    return np.asarray(scaled * weights.array(f"{name}.weight") + weights.array(f"{name}.bias"), np.float32)


def _attention(weights: Weights, names: list[str], x: Floats, heads: int, mask: Floats) -> Floats:
    """Multi-head self-attention of x (b, n, d); ``names`` are the query, key, value and output layers."""
    b, n, d = x.shape
    q, k, v = (
        _linear(weights, name, x).reshape(b, n, heads, d // heads).transpose(0, 2, 1, 3) for name in names[:3]
    )
    logits = q @ k.transpose(0, 1, 3, 2) * np.float32((d // heads) ** -0.5) + mask
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return _linear(weights, names[3], (shares @ v).transpose(0, 2, 1, 3).reshape(b, n, d))
