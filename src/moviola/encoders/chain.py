"""What follows the transformer of a sentence encoder: how its states become one vector.

A checkpoint names its modules in ``modules.json`` (Reimers and Gurevych 2019): a transformer, a pooling of
its states (mean or first token), and then any of normalisation and dense layers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.checkpoints import Checkpoint
from moviola.encoders.weights import Weights
from moviola.errors import DataError, InvalidValue

__all__ = ["Chain", "read_chain"]

Floats = NDArray[np.float32]
Step = Callable[[Floats], Floats]

_ACTIVATIONS: dict[str, Step] = {"Identity": lambda rows: rows, "Tanh": np.tanh}
"""Of dense layers, by the name of torch's class."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Pooling and what follows: states become one vector of length ``dim``.

    Attributes:
        pooling: the mean of the states, or the first one.
        steps: on the pooled vectors (b, d), in this order; a row's result does not depend on the others.
        normalised: whether the last step makes the vectors of length 1.
        dim: numbers of a vector.
    """

    pooling: Literal["mean", "cls"]
    steps: tuple[Step, ...]
    normalised: bool
    dim: int

    def __call__(self, states: Floats, present: NDArray[np.bool_]) -> Floats:
        """States (b, n, d) and where they are real (b, n) -> vectors (b, dim)."""
        if self.pooling == "cls":
            pooled = states[:, 0]
        else:
            pooled = np.einsum("bnd,bn->bd", states, present / present.sum(1, keepdims=True))
        for step in self.steps:
            pooled = step(pooled)
        return np.asarray(pooled, dtype=np.float32)


def read_chain(checkpoint: Checkpoint) -> Chain:
    """What follows the transformer of a checkpoint.

    Raises:
        DataError: no ``modules.json``, a pooling without a dimension, or a dense layer of other sizes; when
            first called, a dense layer without its weights.
        InvalidValue: a module, a pooling or an activation that is not implemented.
    """
    path = checkpoint.folder / "modules.json"
    if not path.is_file():
        raise DataError(
            f"{checkpoint.folder}: no modules.json, so not a sentence encoder; use a checkpoint that has it"
        )
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
        folders = [str(module["path"]) for module in modules]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path}: no list of modules with type and path ({error!r:.200}); fetch it again"
        ) from error
    if kinds[:2] != ["Transformer", "Pooling"] or not set(kinds[2:]) <= {"Normalize", "Dense"}:
        raise InvalidValue(
            f"{checkpoint.id}: modules {', '.join(kinds)}; moviola runs Transformer, Pooling, and then "
            "Dense and Normalize; take a checkpoint made of these"
        )
    pooling, dim = _pooling(checkpoint, folders[1])
    steps: list[Step] = []
    for kind, folder in zip(kinds[2:], folders[2:], strict=True):
        if kind == "Normalize":
            steps.append(_normalised)
        else:
            step, dim = _dense(checkpoint, folder, dim)
            steps.append(step)
    return Chain(pooling, tuple(steps), kinds[-1] == "Normalize", dim)


def _normalised(pooled: Floats) -> Floats:
    lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
    return np.asarray(pooled / np.maximum(lengths, 1e-12), np.float32)


def _pooling(checkpoint: Checkpoint, folder: str) -> tuple[Literal["mean", "cls"], int]:
    """How states are pooled, and the length of the result."""
    settings = checkpoint.json(f"{folder}/config.json")
    modes = {
        key.removeprefix("pooling_mode_") for key, on in settings.items() if on is True and "mode" in key
    }
    named = settings.get("pooling_mode", [])  # one, or several
    modes |= {str(mode) for mode in (named if isinstance(named, list) else [named])}
    dim = settings.get("word_embedding_dimension", settings.get("embedding_dimension"))
    if not isinstance(dim, int):
        raise DataError(f"{checkpoint.folder / folder}: config.json states no dimension; fetch it again")
    if modes and modes <= {"mean", "mean_tokens"}:
        return "mean", dim
    if modes and modes <= {"cls", "cls_token"}:
        return "cls", dim
    raise InvalidValue(
        f"{checkpoint.id}: pooling {', '.join(sorted(modes)) or 'unknown'}; moviola runs mean or cls; "
        "take a checkpoint that uses one of them"
    )


def _dense(checkpoint: Checkpoint, folder: str, dim: int) -> tuple[Step, int]:
    """A dense layer on vectors of length ``dim``, and the length of its results."""
    settings: dict[str, Any] = checkpoint.json(f"{folder}/config.json")
    name = str(settings.get("activation_function", "")).rsplit(".", 1)[-1]
    if name not in _ACTIVATIONS:
        raise InvalidValue(
            f"{checkpoint.id}: dense layer with activation {name or 'unknown'}; moviola runs "
            f"{' and '.join(_ACTIVATIONS)}; take a checkpoint that uses one of them"
        )
    given, size = settings.get("in_features"), settings.get("out_features")
    if given != dim or not isinstance(size, int):
        raise DataError(
            f"{checkpoint.folder / folder}: config.json states a layer from {given} to {size} numbers "
            f"for vectors of {dim}; fetch the model again"
        )

    @cache
    def layer() -> tuple[Floats, Floats]:
        weights = Weights.of(checkpoint.folder / folder)
        if weights is None:
            raise DataError(f"{checkpoint.folder / folder}: no model.safetensors; fetch the model again")
        weight = weights.array("linear.weight")
        bias = weights.array("linear.bias") if "linear.bias" in weights else np.zeros(size, np.float32)
        return weight, bias

    def step(pooled: Floats) -> Floats:
        weight, bias = layer()
        # Each row by itself: the last bits of a product depend on how many are multiplied together.
        return _ACTIVATIONS[name](np.matmul(pooled[:, None], weight.T)[:, 0] + bias)

    return step, size
