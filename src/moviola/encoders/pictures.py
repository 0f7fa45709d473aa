"""The towers of pictures: Vision Transformers (Dosovitskiy et al. 2021), from patches to features.

One definition for all kinds of values: a graph's nodes, torch's tensors, and shapes. CLIP has a class token
and norms before and after its layers (Radford et al. 2021), SigLIP a learned query that attends to all
patches (Zhai et al. 2023), PE-Core both, and rotary positions (Bolya et al. 2025; Su et al. 2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.towers import Network

__all__ = ["FrameNetwork", "FrameParts", "Turns", "frame_features", "scaled_places"]

Floats = NDArray[np.float32]
Turns = tuple[Floats, Floats, list[int]]
"""Cosines and signed sines (n, d) of the angles of n places, and which column each is turned with."""

_ROTARY_BASE = 10_000


@dataclass(frozen=True)
class FrameParts:
    """A tower of pictures.

    Attributes:
        class_token: whether a learned token comes before the patches.
        norm_before: whether a norm comes before the layers.
        rotary: whether queries and keys are turned by their patch's place in the picture, too.
        pool: the class token's state, or what a learned query gathers of all.
        pool_heads: of that query; 0: as the layers have.
        projection: whether a linear layer leads into the common space: none, or without or with a bias.
        varied: whether pictures differ in their number of patches, to which a square table of places is
            scaled; its settings have ``num_patches`` of the table instead of an ``image_size``.
    """

    class_token: bool
    norm_before: bool
    pool: Literal["class", "query"]
    projection: Literal["none", "plain", "biased"]
    rotary: bool = False
    pool_heads: int = 0
    varied: bool = False


def scaled_places(table: Floats, rows: int, columns: int) -> Floats:
    """A square table of places (s * s, d), row by row, for a picture of other patches, (rows * columns, d):
    scaled along each side by a triangle as wide as the step, or as one place of the table where that is wider
    (bilinear, without aliases).
    """
    side = math.isqrt(len(table))
    square = table.reshape(side, side, -1).astype(np.float64)
    down, across = (_triangles(side, count) for count in (rows, columns))
    made = np.einsum("rs,sqd,cq->rcd", down, square, across, optimize=True)
    return np.ascontiguousarray(made.reshape(rows * columns, -1), np.float32)


def _triangles(old: int, new: int) -> NDArray[np.float64]:
    """Weights (new, old) of old places in new ones."""
    step = old / new
    centres = (np.arange(new) + 0.5) * step
    distances = np.abs(np.arange(old) + 0.5 - centres[:, None]) / max(step, 1.0)
    weights = np.maximum(1 - distances, 0)
    return np.asarray(weights / weights.sum(1, keepdims=True))


class FrameNetwork(Network):
    """A network whose values have the axes (b, n, …), with what pictures need; its settings have an
    ``image_size`` and a ``patch_size`` in pixels.
    """

    def learned(self, name: str, x: Any) -> Any:
        """Rows (b, k, d) that are the same for each of the b pictures of x."""
        raise NotImplementedError

    def joined(self, first: Any, x: Any) -> Any:
        """Rows (b, k + n, d), one behind the other."""
        raise NotImplementedError

    def placed(self, name: str, x: Any) -> Any:
        """x (b, n, d) plus a table (n, d)."""
        raise NotImplementedError

    def first(self, x: Any) -> Any:
        """The first row (b, d) of x (b, n, d)."""
        raise NotImplementedError

    def exact(self, name: str, x: Any) -> Any:
        """:meth:`linear`, in 32 bits where others are computed in 8."""
        raise NotImplementedError

    @cached_property
    def turns(self) -> Turns:
        """Turns of a class token and the patches of a square picture, row by row.

        The first half of a head's numbers turns with the patch's column, the second with its row, counted
        from 1; the class token is at 0. Pairs of neighbours turn by place * 10000^(-2 i / h), i from 0 on,
        for h numbers a half.
        """
        heads, width = self.config["num_attention_heads"], self.config["hidden_size"]
        half = width // heads // 2
        side = self.config["image_size"] // self.config["patch_size"]
        rate = np.repeat(_ROTARY_BASE ** (-np.arange(0, half, 2) / half), 2)
        row, column = np.divmod(np.arange(side * side), side)
        angles = np.concatenate([np.outer(column + 1, rate), np.outer(row + 1, rate)], 1)
        angles = np.tile(np.concatenate([np.zeros_like(angles[:1]), angles]), heads)
        signs = np.where(np.arange(width) % 2, 1, -1)
        swapped = (np.arange(width) ^ 1).tolist()
        return np.cos(angles).astype(np.float32), (signs * np.sin(angles)).astype(np.float32), swapped


def frame_features(net: FrameNetwork, parts: FrameParts, x: Any) -> Any:
    """Features (b, d) of pictures, from their patches (b, n, width)."""
    tower = "vision_model"
    if parts.class_token:
        x = net.joined(net.learned(f"{tower}.embeddings.class_embedding", x), x)
    x = net.placed(f"{tower}.embeddings.position_embedding.weight", x)
    if parts.norm_before:
        x = net.norm(f"{tower}.pre_layrnorm", x)  # misspelt in transformers
    x = net.layers(tower, x, causal=False, rotary=parts.rotary)
    if parts.pool == "class":
        x = net.norm(f"{tower}.post_layernorm", net.first(x))
    else:
        x = _gathered(net, net.norm(f"{tower}.post_layernorm", x), parts.pool_heads)
    if parts.projection == "none":
        return x
    return (net.linear if parts.projection == "biased" else net.projected)("visual_projection", x)


def _gathered(net: FrameNetwork, x: Any, heads: int) -> Any:
    """What one learned query gathers of all rows (b, n, d), (b, d)."""
    head = "vision_model.head"
    query = net.exact(f"{head}.attention.q_proj", net.learned(f"{head}.probe", x))
    key, value = (net.exact(f"{head}.attention.{part}_proj", x) for part in "kv")
    seen = net.attended(query, key, value, causal=False, heads=heads)
    x = net.first(net.linear(f"{head}.attention.out_proj", seen))
    return x + net.perceptron(f"{head}.mlp", net.norm(f"{head}.layernorm", x))
