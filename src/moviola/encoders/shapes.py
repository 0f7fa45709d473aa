"""The shapes of a checkpoint's tensors, checked before any is used: the towers are run on shapes alone.

So what is checked is what is computed, and a tensor that is missing or does not fit is named by the
checkpoint's own name for it, not by a library in the middle of a search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Never

from moviola.encoders.pictures import FrameNetwork, FrameParts, frame_features
from moviola.encoders.text_parts import TextParts
from moviola.encoders.towers import ACTIVATIONS, WORDS
from moviola.encoders.weights import Weights
from moviola.errors import DataError

__all__ = ["check_frames_tower", "check_texts_tower"]


class Rows(NamedTuple):
    """A value: how many rows it has, None if any number, and their length."""

    rows: int | None
    width: int

    def __add__(self, other: Any) -> Rows:
        assert self.width == other.width  # each layer was held to what is expected
        return self


class _Shapes(FrameNetwork):
    def __init__(self, weights: Weights, config: Mapping[str, Any], longest: int) -> None:
        super().__init__(weights, config)
        self._longest = longest

    def _wrong(self, name: str, expected: tuple[Any, ...]) -> Never:
        found, said = (
            self.weights.shape(name),
            ", ".join("any" if side is None else str(side) for side in expected),
        )
        raise DataError(
            f"{self.weights.source}: {self.weights.own_name(name)!r} gives a tensor of shape {list(found)} "
            "where "
            f"[{said}] is due by the checkpoint's settings; fetch it again, or correct its settings"
        )

    def _expect(self, name: str, *expected: int | None) -> tuple[int, ...]:
        """The shape of a tensor, which has these sides; None: any."""
        found = self.weights.shape(name)
        fits = len(found) == len(expected) and all(
            wanted in (None, side) for side, wanted in zip(found, expected, strict=True)
        )
        return found if fits else self._wrong(name, expected)

    def table(self, name: str, rows: int) -> Rows:
        """A table as wide as the tower, of at least this number of rows."""
        found = self._expect(name, None, self.config["hidden_size"])
        if found[0] < rows:
            self._wrong(name, (f"{rows} or more", found[1]))
        return Rows(None, found[1])

    def rows(self, name: str, places: Any) -> Any:
        return self.table(name, places if isinstance(places, int) else 1)

    def words(self, ids: Any) -> Rows:
        return self.table(WORDS, ids)

    def numbered(self, ids: Any) -> Any:
        return self._longest

    def counted(self, ids: Any, padding: int) -> Any:
        return self._longest + padding + 1

    def projected(self, name: str, x: Any) -> Any:
        return Rows(x.rows, self._expect(f"{name}.weight", None, x.width)[0])

    def linear(self, name: str, x: Any) -> Any:
        made = self.projected(name, x)
        self._expect(f"{name}.bias", made.width)
        return made

    def exact(self, name: str, x: Any) -> Any:
        return self.linear(name, x)

    def norm(self, name: str, x: Any) -> Any:
        for kind in ("weight", "bias"):
            self._expect(f"{name}.{kind}", x.width)
        return x

    def activated(self, x: Any, name: str = "") -> Any:
        assert (name or self.config["hidden_act"]) in ACTIVATIONS
        return x

    def rotated(self, x: Any) -> Any:
        return x

    def layers(self, tower: str, x: Any, *, causal: bool, rotary: bool = False) -> Any:
        count = self.config["num_hidden_layers"]
        self._no_further(f"{tower}.encoder.layers.{count}.layer_norm1.weight", count)
        return super().layers(tower, x, causal=causal, rotary=rotary)

    def sentence_states(self, ids: Any, present: Any = None) -> Any:
        count = self.config["num_hidden_layers"]
        self._no_further(f"encoder.layer.{count}.output.dense.weight", count)
        return super().sentence_states(ids, present)

    def _no_further(self, name: str, count: int) -> None:
        """Refuse a layer that is there and not computed: features would be others in silence."""
        if name in self.weights:
            raise DataError(
                f"{self.weights.source}: {self.weights.own_name(name)!r} is of a layer that the checkpoint's "
                f"settings do not have, which say {count} layers; correct them, or fetch it again"
            )

    def attended(self, q: Any, k: Any, v: Any, *, causal: bool, present: Any = None, heads: int = 0) -> Any:
        heads = heads or self.config["num_attention_heads"]
        if q.width % heads or (q.width, v.width) != (k.width, k.width):
            raise DataError(
                f"{self.weights.source}: {q.width}, {k.width} and {v.width} numbers of queries, keys and "
                "values "
                f"for {heads} heads; correct the number of heads or the width in the checkpoint's settings"
            )
        return Rows(q.rows, v.width)

    def learned(self, name: str, x: Any) -> Any:
        shape = self.weights.shape(name)
        if shape[-1:] != (x.width,) or any(side != 1 for side in shape[:-1]):
            self._wrong(name, (x.width,))
        return Rows(1, x.width)

    def joined(self, first: Any, x: Any) -> Any:
        return Rows(first.rows + x.rows, x.width)

    def placed(self, name: str, x: Any) -> Any:
        self._expect(name, x.rows, x.width)
        return x

    def first(self, x: Any) -> Any:
        return x

    def patches(self) -> Rows:
        """Of a frame, by the convolution that makes them."""
        at, patch = "vision_model.embeddings.patch_embedding", self.config["patch_size"]
        self._expect(f"{at}.weight", self.config["hidden_size"], 3, patch, patch)
        if f"{at}.bias" in self.weights:
            self._expect(f"{at}.bias", self.config["hidden_size"])
        size, table = self.config.get("image_size"), self.config.get("num_patches", 0)
        return Rows((size // patch) ** 2 if size else table, self.config["hidden_size"])


def check_frames_tower(weights: Weights, config: Mapping[str, Any], parts: FrameParts) -> int:
    """Length of the features of pictures. Raises DataError: a tensor is missing or has another shape."""
    net = _Shapes(weights, config, 0)
    return int(frame_features(net, parts, net.patches()).width)


def check_texts_tower(weights: Weights, config: Mapping[str, Any], parts: TextParts, longest: int) -> int:
    """Length of the features of texts of up to ``longest`` tokens; errors as :func:`check_frames_tower`."""
    net = _Shapes(weights, config, longest)
    states = parts.rows(net, config.get("vocab_size", 1))
    return int((states if parts.pool != "mean" else parts.projected(net, states)).width)
