"""Network layers as graphs of the runtime's own operators, without torch, by NumPy's and torch's names.

A :data:`Node` is a value in the graph; weights are float32 arrays in torch's layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.compiled.runtime import graph_of, operators

__all__ = [
    "ACTIVATIONS", "Node", "add", "arange", "attention", "broadcast", "channels_first", "columns",
    "concatenate", "convolution", "cumsum", "flatten_pixels", "gather", "graph_of", "layer_norm", "linear",
    "mean_pixels", "multiply", "not_equal", "parameter", "relu6", "row", "softmax", "to_float32",
]  # fmt: skip

Node = Any
"""An output of the runtime's; annotated so because the runtime has no types."""

Floats = NDArray[np.float32]
Shape = Sequence[int | None]


def parameter(shape: Shape, kind: type) -> Node:
    """An input of the graph.

    Args:
        shape: None: an axis of any length.
    """
    return operators().parameter([-1 if side is None else side for side in shape], kind)


def to_float32(x: Node) -> Node:
    """Values as float32."""
    return operators().convert(x, "f32")


def add(x: Node, y: Node | Floats) -> Node:
    """x + y."""
    return operators().add(x, _node(y))


def multiply(x: Node, y: Node | Floats) -> Node:
    """x * y."""
    return operators().multiply(x, _node(y))


def linear(x: Node, weight: Floats, bias: Floats | None = None) -> Node:
    """x (..., in) by a weight (out, in)."""
    made = operators().matmul(x, _node(weight), False, True)
    return made if bias is None else add(made, bias)


def layer_norm(x: Node, weight: Floats, bias: Floats, eps: float) -> Node:
    """Rows of x (..., d) with mean 0 and variance 1, scaled and shifted."""
    whole = operators().mvn(x, _whole([-1]), True, eps, "inside_sqrt")
    return add(multiply(whole, weight), bias)


def convolution(
    x: Node, weight: Floats, bias: Floats | None, *, stride: int, same: bool, groups: int = 1
) -> Node:
    """x (b, in, h, w) by a weight (out, in / groups, k, k).

    Args:
        same: pad as TensorFlow's "same", which puts the odd pixel behind; False: no padding.
    """
    settings = ([stride, stride], [0, 0], [0, 0], [1, 1], "same_upper" if same else "valid")
    if groups == 1:
        made = operators().convolution(x, _node(weight), *settings)
    else:
        grouped = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
        made = operators().group_convolution(x, _node(grouped), *settings)
    return made if bias is None else add(made, bias.reshape(1, -1, 1, 1))


def channels_first(x: Node) -> Node:
    """(b, h, w, c) to (b, c, h, w)."""
    return operators().transpose(x, _whole([0, 3, 1, 2]))


def flatten_pixels(x: Node) -> Node:
    """(b, d, h, w) to (b, h * w, d)."""
    ops = operators()
    return ops.transpose(ops.reshape(x, _whole([0, 0, -1]), True), _whole([0, 2, 1]))


def mean_pixels(x: Node) -> Node:
    """(b, d, h, w) to (b, d)."""
    return operators().reduce_mean(x, _whole([2, 3]), False)


def relu6(x: Node) -> Node:
    """Values between 0 and 6."""
    return operators().clamp(x, 0.0, 6.0)


def softmax(x: Node) -> Node:
    """Shares of rows: exp, divided by its sum."""
    return operators().softmax(x, -1)


def gather(table: Floats, ids: Node) -> Node:
    """Rows (b, n, d) of a table (v, d) by their numbers (b, n)."""
    ops = operators()
    return ops.gather(_node(table), ids, _whole(0))


def arange(ids: Node) -> Node:
    """0 to n - 1 (n,) for ids (b, n)."""
    ops = operators()
    length = ops.gather(ops.shape_of(ids), _whole(1), _whole(0))
    return ops.range(_whole(0), length, _whole(1), "i64")


def not_equal(ids: Node, number: int) -> Node:
    """1 where ids are another number, else 0, int64."""
    ops = operators()
    return ops.convert(ops.not_equal(ids, _whole(number)), "i64")


def cumsum(flags: Node) -> Node:
    """Cumulative number of (b, n) flags, 0 or 1, up to each place."""
    return operators().cum_sum(flags, _whole(1))


def row(x: Node, place: int) -> Node:
    """(b, d) of (b, n, d): one of the rows."""
    return operators().gather(x, _whole(place), _whole(1))


def columns(x: Node, places: Sequence[int]) -> Node:
    """x (..., d) with its columns in another order."""
    return operators().gather(x, _whole(places), _whole(-1))


def broadcast(x: Floats, like: Node) -> Node:
    """Rows (n, d) for each of the b first axes of ``like`` (b, ...), (b, n, d)."""
    ops = operators()
    count = ops.gather(ops.shape_of(like), _whole([0]), _whole(0))
    return ops.broadcast(_node(x[None]), ops.concat([count, _whole(list(x.shape))], 0))


def concatenate(parts: Sequence[Node]) -> Node:
    """Rows (b, n, d) one after the other."""
    return operators().concat(list(parts), 1)


def split_heads(x: Node, heads: int) -> Node:
    """(b, n, heads * e) to (b, heads, n, e)."""
    ops = operators()
    return ops.transpose(ops.reshape(x, _whole([0, 0, heads, -1]), True), _whole([0, 2, 1, 3]))


def attention(
    query: Node, key: Node, value: Node, *, heads: int, causal: bool = False, present: Node | None = None
) -> Node:
    """Attention by several heads, (b, n, d).

    Args:
        query, key, value: (b, n, d), (b, m, d), (b, m, d).
        heads: that share the d numbers.
        causal: nothing is seen of what comes later.
        present: (b, m) boolean, what may be seen.
    """
    ops = operators()
    parts = [split_heads(part, heads) for part in (query, key, value)]
    if present is not None:
        parts.append(ops.unsqueeze(ops.unsqueeze(present, _whole(1)), _whole(1)))
    seen = ops.scaled_dot_product_attention(*parts, causal=causal)
    return ops.reshape(ops.transpose(seen, _whole([0, 2, 1, 3])), _whole([0, 0, -1]), True)


ACTIVATIONS: dict[str, Callable[[Node], Node]] = {
    "gelu": lambda x: operators().gelu(x, "erf"),
    "gelu_new": lambda x: operators().gelu(x, "tanh"),
    "gelu_pytorch_tanh": lambda x: operators().gelu(x, "tanh"),
    "quick_gelu": lambda x: multiply(x, operators().sigmoid(multiply(x, np.float32(1.702)))),
    "relu": lambda x: operators().relu(x),
}
"""Activations by the name that a checkpoint's ``hidden_act`` gives."""


def _node(x: Any) -> Node:
    return operators().constant(x) if isinstance(x, np.ndarray | np.generic) else x


def _whole(values: int | Sequence[int]) -> Node:
    return operators().constant(np.array(values, np.int64))
