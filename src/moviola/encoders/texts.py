"""The three ways of a text through its tower: NumPy, compiled, or torch, and the choice among them.

A few texts go through NumPy (:mod:`moviola.encoders.towers`), which starts at once: the first query of a
process takes a third of a second less than compiled, further ones three times as long
(``benchmarks/runtimes.md``). A resident process compiles from the first text on, as all do for many texts.
Where torch computes (a GPU, half precision, a checkpoint without a graph), many texts go through torch. All
ways agree to rounding (2e-5), and an encoder never switches for few texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import Compiled, Source, cache_folder
from moviola.encoders.checkpoints import Checkpoint
from moviola.encoders.device_choice import DeviceChoice, OnDevice
from moviola.encoders.tokens import Tokenize
from moviola.encoders.weights import Weights
from moviola.errors import InvalidValue
from moviola.threads import compute_threads, few_threads, one_blas_thread

__all__ = ["FEW_TEXTS", "CheckpointEncoder", "check_texts"]

Floats = NDArray[np.float32]
Tower = Callable[[NDArray[np.int64], NDArray[np.bool_]], Floats]
"""(token ids (b, n), which of them are real (b, n)) -> states (b, n, d)."""

FEW_TEXTS = 16
"""Up to this many texts are encoded by the NumPy towers."""


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list. Raises InvalidValue: a single string, or something that is no string."""
    if isinstance(texts, str):
        raise InvalidValue(f"texts {texts!r}: give a list of strings, for instance [{texts!r}]")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidValue(f"texts[{position}]: {type(text).__name__} {text!r} is no string")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(
                f"texts[{position}] {text!r:.200}: not Unicode text ({error.reason}); correct it"
            ) from error
    return list(texts)


def _batches(
    rows: list[list[int]], size: int
) -> Iterator[tuple[list[int], NDArray[np.int64], NDArray[np.bool_]]]:
    """Token rows, at most ``size`` of similar length together (none is over twice as long): the places of b
    rows, their ids (b, n), filled up with zeros, and which of these are real (b, n).
    """
    by_length = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    while by_length:
        longest = 2 * len(rows[by_length[0]])
        chosen = [place for place in by_length[:size] if len(rows[place]) <= longest]
        by_length = by_length[len(chosen) :]
        lengths = np.array([len(rows[place]) for place in chosen])
        present = np.arange(lengths[-1]) < lengths[:, None]
        ids = np.zeros(present.shape, dtype=np.int64)
        ids[present] = np.concatenate([rows[place] for place in chosen])
        yield chosen, ids, present


class CheckpointEncoder(OnDevice):
    """An encoder of a checkpoint, whose texts go one of three ways through its tower. Libraries record its
    ``id``; its ``revision`` changes whenever the weights or settings change.
    """

    _inputs: int
    """What the compiled tower and torch's take: ids (1), and which of them are real (2)."""

    def __init__(self, checkpoint: Checkpoint, choice: DeviceChoice) -> None:
        self._checkpoint, self._choice = checkpoint, choice
        self.id, self.revision = checkpoint.id, checkpoint.revision

    def _read_weights(self) -> Weights | None:
        """The weights; None where only torch can use them."""
        raise NotImplementedError

    @cached_property
    def _tokenize(self) -> Tokenize:
        raise NotImplementedError

    def _network_states(self, weights: Weights, ids: NDArray[np.int64], present: NDArray[np.bool_]) -> Floats:
        """The tower in NumPy."""
        raise NotImplementedError

    def _graph(self) -> Any:
        raise NotImplementedError

    def _by_torch(self) -> Callable[..., Any]:
        """The tower in torch, from tensors to one, on the device and in the precision that were chosen."""
        raise NotImplementedError

    @property
    def _has_numpy(self) -> bool:
        return self._weights is not None

    @property
    def _is_compiled(self) -> bool:
        """Whether graphs compute: on the CPU, for known weights and layers."""
        return self._choice.is_compiled and self._weights is not None

    @cached_property
    def _weights(self) -> Weights | None:
        return self._read_weights()

    def _own_weights(self) -> Weights:
        """The weights, opened again, so that a graph's are not kept in memory."""
        weights = self._read_weights()
        assert weights is not None
        return weights

    def _states(
        self, texts: list[str]
    ) -> Iterator[tuple[list[int], NDArray[np.int64], NDArray[np.bool_], Floats]]:
        """Behind what :func:`_batches` gives, the states (b, n, d) of the tokens of texts."""
        rows = self._tokenize(texts) if texts else []
        few = len(rows) <= FEW_TEXTS and self._has_numpy
        encode = self._few if few else self._many
        for chosen, ids, present in _batches(rows, FEW_TEXTS if few else self._choice.batch_size):
            yield chosen, ids, present, encode(ids, present)

    @cached_property
    def _few(self) -> Tower:
        if self._choice.is_resident and self._is_compiled:
            return self._compiled(few_threads())
        assert self._weights is not None
        return one_blas_thread()(partial(self._network_states, self._weights))

    @cached_property
    def _many(self) -> Tower:
        if self._is_compiled:
            return self._compiled(compute_threads())
        tower = self._by_torch()
        from moviola.encoders.by_torch.modules import run

        return lambda ids, present: run(tower, self.device, *(ids, present)[: self._inputs])[0]

    def _compiled(self, threads: int) -> Tower:
        source = Source(f"{self.id} texts", self.revision, self._graph, threads)
        compiled = Compiled(cache_folder(), source)
        return lambda ids, present: compiled(*(ids, present)[: self._inputs])[0]
