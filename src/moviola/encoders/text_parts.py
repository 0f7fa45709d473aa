"""The parts of text towers: layers, which of their states stands for the text, and the way into the common
space. A format names them (:mod:`moviola.encoders.formats`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.towers import ACTIVATIONS, Network
from moviola.encoders.weights import Weights

__all__ = ["Linear", "TextParts"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

Ends = Callable[[Mapping[str, Any], Ints], Ints]
"""(settings of the text tower, token ids (b, n)) -> (b,) int64, the token whose state is that of the text."""


def _ends(config: Mapping[str, Any], ids: Ints) -> Ints:
    """The end-of-text token: the first in each row; that of the highest id where the settings name none."""
    # Checkpoints written before transformers' configuration named the right token say 2; theirs, too, is the
    # highest id.
    end = config["eos_token_id"]
    ends: Ints = ids.argmax(1) if end is None else (ids == end).argmax(1)
    return ends


POOLS: dict[str, Ends | None] = {
    "end": _ends,
    "last": lambda _, ids: np.full(len(ids), ids.shape[1] - 1, dtype=np.int64),
    "first": lambda _, ids: np.zeros(len(ids), dtype=np.int64),
    "mean": None,
}
"""Vector of a text: the state of its end token (CLIP), of its last place, padding too (SigLIP), of its
first token (BERT), or the mean of the states of its tokens.
"""


@dataclass(frozen=True)
class Linear:
    """A linear layer behind the states, and what follows it: one of ``towers.ACTIVATIONS``, or nothing."""

    name: str
    bias: bool = False
    activation: str = ""


@dataclass(frozen=True)
class TextParts:
    """A text tower.

    Attributes:
        pool: one of :data:`POOLS`.
        projection: layers into the common space.
        causal: a token sees nothing of what comes later.
        masked: the layers are a BERT's, which do not see padding; else they are a CLIP's or SigLIP's.
    """

    pool: str
    projection: tuple[Linear, ...]
    causal: bool = False
    masked: bool = False

    def rows(self, net: Network, ids: Any, present: Any = None) -> Any:
        """States (…, d) of all tokens, in the common space unless the text's vector is their mean."""
        if self.masked:
            states = net.sentence_states(ids, present)
        else:
            states = net.text_states(ids, causal=self.causal)
        return self.projected(net, states) if POOLS[self.pool] else states

    def projected(self, net: Network, x: Any) -> Any:
        """States in the common space."""
        for layer in self.projection:
            x = net.linear(layer.name, x) if layer.bias else net.projected(layer.name, x)
            x = net.activated(x, layer.activation) if layer.activation else x
        return x

    def vectors(
        self, weights: Weights | None, config: Mapping[str, Any], states: Floats, ids: Ints, present: Flags
    ) -> Floats:
        """Vectors (b, d) of texts, from what :meth:`rows` gives for their tokens (b, n)."""
        if ends := POOLS[self.pool]:
            return np.asarray(states[np.arange(len(states)), ends(config, ids)])
        mean = np.einsum("bnd,bn->bd", states, present / present.sum(1, keepdims=True))
        return self._projected_apart(weights, mean)

    def tokens(
        self, weights: Weights | None, config: Mapping[str, Any], states: Floats, ids: Ints, present: Flags
    ) -> list[Floats]:
        """Of each text, its tokens (n, d) in the common space; the last row is its vector."""
        vectors = self.vectors(weights, config, states, ids, present)[:, None]
        if self.pool == "mean":
            each = [
                self._projected_apart(weights, own[real]) for own, real in zip(states, present, strict=True)
            ]
        elif self.pool == "first":
            each = [own[real][1:] for own, real in zip(states, present, strict=True)]
        else:
            ends = POOLS[self.pool]
            assert ends is not None
            each = [own[:end] for own, end in zip(states, ends(config, ids), strict=True)]
        return [np.concatenate([own, vector]) for own, vector in zip(each, vectors, strict=True)]

    def _projected_apart(self, weights: Weights | None, x: Floats) -> Floats:
        """Rows (n, d), each multiplied by itself: the last bits depend on how many are together."""
        assert weights is not None  # torch knows no such tower
        for layer in self.projection:
            x = np.matmul(x[:, None].astype(np.float32), weights.array(f"{layer.name}.weight").T)[:, 0]
            x = x + weights.array(f"{layer.name}.bias") if layer.bias else x
            x = ACTIVATIONS[layer.activation](x) if layer.activation else x
        return x
