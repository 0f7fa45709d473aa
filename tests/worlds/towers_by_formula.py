"""The towers of encoders from their formulas, in plain NumPy and float64: what the graphs are held to.

Nothing here is shared with the package. Each function follows the text that it cites, over the tensors of a
checkpoint by the checkpoint's own names; attention is computed head by head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

Array = NDArray[np.float64]
Tensors = Mapping[str, NDArray[Any]]

GELUS: dict[str, Callable[[Array], Array]] = {
    "exact": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,  # Hendrycks and Gimpel 2016
    "tanh": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "quick": lambda x: x / (1 + np.exp(-1.702 * x)),
}


class Formulas:
    """Layers over the tensors of a checkpoint.

    Args:
        tensors: of the checkpoint.
        eps: of its norms.
        gelu: one of GELUS.
    """

    def __init__(self, tensors: Tensors, eps: float, gelu: str) -> None:
        self.tensors = {name: np.asarray(value, np.float64) for name, value in tensors.items()}
        self.eps, self.gelu = eps, GELUS[gelu]

    def __getitem__(self, name: str) -> Array:
        return self.tensors[name]

    def norm(self, name: str, x: Array) -> Array:
        """Ba et al. 2016."""
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        made: Array = (x - mean) / np.sqrt(variance + self.eps) * self[f"{name}.weight"]
        return made + self[f"{name}.bias"]

    def linear(self, name: str, x: Array) -> Array:
        made: Array = x @ self[f"{name}.weight"].T
        return made + self.tensors.get(f"{name}.bias", np.zeros(1))

    def attention(self, q: Array, k: Array, v: Array, heads: int, seen: Array | None = None) -> Array:
        """Vaswani et al. 2017, of one text or picture: (m, d), (n, d), (n, d); ``seen`` (m, n)."""
        size = q.shape[1] // heads
        outputs = []
        for head in range(heads):
            own = slice(head * size, (head + 1) * size)
            logits = q[:, own] @ k[:, own].T / np.sqrt(size)
            if seen is not None:
                logits = np.where(seen, logits, -np.inf)
            shares = np.exp(logits - logits.max(1, keepdims=True))
            outputs.append(shares / shares.sum(1, keepdims=True) @ v[:, own])
        return np.concatenate(outputs, 1)

    def joint(self, name: str, x: Array) -> tuple[Array, Array, Array]:
        """Queries, keys and values from one matrix."""
        q, k, v = np.split(x @ self[f"{name}weight"].T + self[f"{name}bias"], 3, axis=1)
        return q, k, v

    def clip_layers(self, at: str, x: Array, heads: int, seen: Array | None = None) -> Array:
        """Pre-norm layers by CLIP's names (Radford et al. 2021)."""
        number = 0
        while f"{at}transformer.resblocks.{number}.ln_1.weight" in self.tensors:
            layer = f"{at}transformer.resblocks.{number}"
            parts = self.joint(f"{layer}.attn.in_proj_", self.norm(f"{layer}.ln_1", x))
            x = x + self.linear(f"{layer}.attn.out_proj", self.attention(*parts, heads, seen))
            inner = self.gelu(self.linear(f"{layer}.mlp.c_fc", self.norm(f"{layer}.ln_2", x)))
            x = x + self.linear(f"{layer}.mlp.c_proj", inner)
            number += 1
        return x

    def timm_layers(self, x: Array, heads: int, turn: Callable[[Array], Array] | None = None) -> Array:
        """The same layers by timm's names."""
        number = 0
        while f"visual.trunk.blocks.{number}.norm1.weight" in self.tensors:
            layer = f"visual.trunk.blocks.{number}"
            q, k, v = self.joint(f"{layer}.attn.qkv.", self.norm(f"{layer}.norm1", x))
            if turn:
                q, k = turn(q), turn(k)
            x = x + self.linear(f"{layer}.attn.proj", self.attention(q, k, v, heads))
            inner = self.gelu(self.linear(f"{layer}.mlp.fc1", self.norm(f"{layer}.norm2", x)))
            x = x + self.linear(f"{layer}.mlp.fc2", inner)
            number += 1
        return x

    def patches(self, name: str, picture: Array) -> Array:
        """(patches, d) of a normalised picture (h, w, 3), row by row."""
        weight = self[f"{name}.weight"]
        size = weight.shape[2]
        rows, columns = picture.shape[0] // size, picture.shape[1] // size
        made = [
            np.einsum("hwc,dchw->d", picture[r * size : (r + 1) * size, c * size : (c + 1) * size], weight)
            for r in range(rows)
            for c in range(columns)
        ]
        return np.array(made) + self.tensors.get(f"{name}.bias", np.zeros(1))

    def clip_frame(self, picture: Array, heads: int) -> Array:
        """CLIP's feature of a normalised picture."""
        x = np.concatenate([self["visual.class_embedding"][None], self.patches("visual.conv1", picture)])
        x = x + self["visual.positional_embedding"]
        if "visual.ln_pre.weight" in self.tensors:
            x = self.norm("visual.ln_pre", x)
        x = self.clip_layers("visual.", x, heads)
        return self.norm("visual.ln_post", x[0]) @ self["visual.proj"]

    def timm_frame(self, picture: Array, heads: int, *, pool_heads: int = 0, rotary: bool = False) -> Array:
        """The feature of a tower of timm's: CLIP's, SigLIP's (Zhai et al. 2023), or PE-Core's (Bolya et al.
        2025).
        """
        trunk = "visual.trunk"
        x = self.patches(f"{trunk}.patch_embed.proj", picture)
        side = int(np.sqrt(len(x)))
        if f"{trunk}.cls_token" in self.tensors:
            x = np.concatenate([self[f"{trunk}.cls_token"][0], x])
        x = x + self[f"{trunk}.pos_embed"][0]
        if f"{trunk}.norm_pre.weight" in self.tensors:
            x = self.norm(f"{trunk}.norm_pre", x)
        x = self.timm_layers(x, heads, (lambda rows: rotated(rows, heads, side)) if rotary else None)
        x = self.norm(f"{trunk}.norm", x)
        if f"{trunk}.attn_pool.latent" in self.tensors:
            pool = f"{trunk}.attn_pool"
            q = self.linear(f"{pool}.q", self[f"{pool}.latent"][0])
            k, v = np.split(self.linear(f"{pool}.kv", x), 2, axis=1)
            pooled = self.linear(f"{pool}.proj", self.attention(q, k, v, pool_heads or heads))[0]
            inner = self.gelu(self.linear(f"{pool}.mlp.fc1", self.norm(f"{pool}.norm", pooled)))
            x = pooled + self.linear(f"{pool}.mlp.fc2", inner)
        else:
            x = x[0]
        for head in (f"{trunk}.head", "visual.head.proj"):
            x = self.linear(head, x) if f"{head}.weight" in self.tensors else x
        return x

    def clip_text(self, ids: list[int], heads: int, place: int, *, prefix: str, causal: bool) -> Array:
        """The feature of a text whose state is at a place."""
        x = self[f"{prefix}token_embedding.weight"][ids] + self[f"{prefix}positional_embedding"][: len(ids)]
        seen = np.tri(len(ids), dtype=bool) if causal else None
        x = self.norm(f"{prefix}ln_final", self.clip_layers(prefix, x, heads, seen))[place]
        if f"{prefix}text_projection.weight" in self.tensors:
            return self.linear(f"{prefix}text_projection", x)
        projection = self.tensors.get(f"{prefix}text_projection")
        return x if projection is None else np.asarray(x @ projection)

    def bert_states(self, prefix: str, ids: list[int], heads: int, first_place: int) -> Array:
        """Last states of a BERT (Devlin et al. 2019); a RoBERTa's places begin behind padding's own."""
        table = f"{prefix}embeddings"
        real = np.array(ids) != first_place - 1  # the padding's own place, which only RoBERTas have
        places = np.where(real, real.cumsum() + first_place - 1, first_place - 1)
        x = self[f"{table}.word_embeddings.weight"][ids] + self[f"{table}.position_embeddings.weight"][places]
        x = self.norm(f"{table}.LayerNorm", x + self[f"{table}.token_type_embeddings.weight"][0])
        number = 0
        while f"{prefix}encoder.layer.{number}.output.dense.weight" in self.tensors:
            at = f"{prefix}encoder.layer.{number}"
            q, k, v = (self.linear(f"{at}.attention.self.{part}", x) for part in ("query", "key", "value"))
            seen = self.linear(f"{at}.attention.output.dense", self.attention(q, k, v, heads))
            x = self.norm(f"{at}.attention.output.LayerNorm", x + seen)
            inner = self.gelu(self.linear(f"{at}.intermediate.dense", x))
            x = self.norm(f"{at}.output.LayerNorm", x + self.linear(f"{at}.output.dense", inner))
            number += 1
        return x


def rotated(rows: Array, heads: int, side: int) -> Array:
    """Rotary positions in two axes (Su et al. 2021; Bolya et al. 2025): (1 + side², d), class token first.

    Neighbouring numbers of a head are a point in the plane, turned by an angle: the first half of them by the
    patch's column, the second by its row, counted from 1.
    """
    out = rows.copy()
    size = rows.shape[1] // heads
    half = size // 2
    for patch in range(side * side):
        row, column = patch // side + 1, patch % side + 1
        for head in range(heads):
            for pair in range(half):
                place, number = (column, pair) if pair < half // 2 else (row, pair - half // 2)
                angle = place / 10_000 ** (2 * number / half)
                at = head * size + 2 * pair
                point = complex(rows[patch + 1, at], rows[patch + 1, at + 1]) * np.exp(1j * angle)
                out[patch + 1, at], out[patch + 1, at + 1] = point.real, point.imag
    return out


def cosines(one: NDArray[Any], other: NDArray[Any]) -> Array:
    """Of rows."""
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return np.asarray((one * other).sum(1) / lengths, np.float64)
