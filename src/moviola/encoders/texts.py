"""The three ways of a text through its tower: NumPy, compiled, or torch.

Where weights and layers are known, texts go through NumPy (:mod:`moviola.encoders.towers`), which starts at
once: the first query of a process takes a third of a second less than compiled, further ones three times as
long (``benchmarks/runtimes.md``). An encoder for texts in bulk, or for one query after the other
(``resident``), compiles the tower. torch has the checkpoints of unknown weights or layers. The ways agree to
rounding (2e-5); an encoder has one of them, for any number of texts.

A text's states are the same to the bit whatever else is in its batch. NumPy multiplies each text as if it
were alone (:mod:`moviola.encoders.token_rows`). The compiled runtime adds up each row in the same order in
batches of any size, on any number of threads; since padding counts, a text is padded to a length of its own,
not to that of the longest. torch computes one text at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.checkpoints import Checkpoint
from moviola.encoders.device_choice import DeviceChoice, OnDevice
from moviola.encoders.token_rows import rounded_up
from moviola.encoders.tokens import Tokenize
from moviola.encoders.towers import TOKENS, WORDS
from moviola.encoders.weights import Weights
from moviola.errors import DataError, InvalidValue
from moviola.threads import ONE, compute_threads, few_threads, one_blas_thread

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from moviola.compiled import Compiled

__all__ = ["FEW_TEXTS", "CheckpointEncoder", "check_texts"]

Floats = NDArray[np.float32]
Tower = Callable[[NDArray[np.int64], NDArray[np.bool_]], Floats]
"""(token ids (b, n), which of them are real (b, n)) -> states (b, n, d)."""

FEW_TEXTS = 16
"""Up to this many texts are encoded on one thread, or compiled, on a few."""

# Tokens that go through the NumPy towers together: more no longer fit into the CPU's cache.
_TOKENS_AT_ONCE = 128
# Batches of each thread that are computed ahead of who takes them.
_AHEAD = 4


class Batch(NamedTuple):
    """Texts that are computed together, those of fewer tokens first: their places, their token ids, padded to
    one length (b, n), and which of them are real (b, n).
    """

    places: list[int]
    ids: NDArray[np.int64]
    present: NDArray[np.bool_]


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
    rows: list[list[int]], padded: Callable[[int], int], size: Callable[[int], int]
) -> Iterator[Batch]:
    """Token rows in batches: those of n tokens are padded with zeros to ``padded(n)``, and at most
    ``size(padded(n))`` of them are together.
    """
    by_length: dict[int, list[int]] = {}
    for place in sorted(range(len(rows)), key=lambda place: len(rows[place])):
        by_length.setdefault(padded(len(rows[place])), []).append(place)
    for length, places in by_length.items():
        for begin in range(0, len(places), size(length)):
            chosen = places[begin : begin + size(length)]
            present = np.arange(length) < np.array([[len(rows[place])] for place in chosen])
            ids = np.zeros(present.shape, dtype=np.int64)
            ids[present] = np.concatenate([rows[place] for place in chosen])
            yield Batch(chosen, ids, present)


class CheckpointEncoder(OnDevice):
    """An encoder of a checkpoint, whose texts go one of three ways through its tower. Libraries record its
    ``id``; its ``revision`` changes whenever the weights or settings change.
    """

    _inputs: int
    """What the towers take: ids (1), and which of them are real (2)."""

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
    def _longest(self) -> int:
        """Most tokens of a text."""
        raise NotImplementedError

    @property
    def _has_numpy(self) -> bool:
        return self._weights is not None

    @property
    def _is_compiled(self) -> bool:
        """Whether graphs compute frames: on the CPU, for known weights and layers."""
        return self._choice.is_compiled and self._weights is not None

    @cached_property
    def _weights(self) -> Weights | None:
        return self._read_weights()

    def _finite(self, features: Floats) -> Floats:
        """The features. Raises DataError: some are infinite or NaN; with the tensor that is the reason."""
        if np.isfinite(features).all():
            return features
        if self._weights is not None and (name := self._weights.not_finite()):
            raise DataError(
                f"{self._weights.source}: {name!r} holds infinite numbers or NaN; fetch it again, or "
                "take another checkpoint"
            )
        raise DataError(
            f"{self._checkpoint.folder}: its features are infinite or NaN, computed in "
            f"{self._choice.precision}; choose --precision fp32, or take another checkpoint"
        )

    def _own_weights(self) -> Weights:
        """The weights, opened again, so that a graph's are not kept in memory."""
        weights = self._read_weights()
        assert weights is not None
        return weights

    def _states(self, texts: list[str]) -> Iterator[tuple[Batch, Floats]]:
        """Batches of texts, with the states (b, n, d) of their tokens."""
        rows = self._tokenize(texts) if texts else []
        self._require_known(rows)
        threads = ONE if len(rows) <= FEW_TEXTS else compute_threads()
        if not self._has_numpy:
            return _one_by_one(self._torch, _batches(rows, lambda tokens: tokens, lambda _: 1))
        if self._choice.is_resident:
            tower = self._compiled(few_threads() if threads == ONE else threads)
            return _one_by_one(tower, _batches(rows, self._padded, lambda _: self._choice.batch_size))
        batches = _batches(rows, self._padded, lambda tokens: max(1, _TOKENS_AT_ONCE // tokens))
        if threads == ONE:
            return _in_passes(self._numpy, batches)
        return self._side_by_side(batches, threads)

    def _require_known(self, rows: list[list[int]]) -> None:
        """Refuse tokens that the tower's table does not have."""
        highest = max(map(max, filter(None, rows)), default=0)
        for name in (TOKENS, WORDS):
            weights = self._weights
            if weights is not None and name in weights and highest >= (known := weights.shape(name)[0]):
                raise DataError(
                    f"{self._checkpoint.folder}: its tokenizer gives the token {highest}, but "
                    f"{weights.own_name(name)!r} has {known} rows; take both from one checkpoint"
                )

    def _side_by_side(self, batches: Iterator[Batch], threads: int) -> Iterator[tuple[Batch, Floats]]:
        """Batches on several threads, which are not far ahead of who takes them: states are large."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            while some := list(islice(batches, _AHEAD * threads)):
                yield from zip(some, _side_by_side(self._numpy, some, pool), strict=True)

    def _padded(self, tokens: int) -> int:
        """The length to which a text is padded, whatever the others have."""
        return min(rounded_up(tokens), self._longest)

    @cached_property
    def _numpy(self) -> Tower:
        assert self._weights is not None
        return one_blas_thread()(partial(self._silent_states, self._weights))

    def _silent_states(self, weights: Weights, ids: NDArray[np.int64], present: NDArray[np.bool_]) -> Floats:
        # A number that is not finite is an error in the end, not a warning on the way.
        with np.errstate(invalid="ignore", over="ignore"):
            return self._network_states(weights, ids, present)

    @cached_property
    def _torch(self) -> Tower:
        tower = self._by_torch()
        from moviola.encoders.by_torch.modules import run

        return lambda ids, present: run(tower, self.device, *(ids, present)[: self._inputs])[0]

    @property
    def _tower_name(self) -> tuple[str, str]:
        """Name and revision of what is compiled."""
        return self.id, self.revision

    @cached_property
    def _planned(self) -> dict[int, Compiled]:
        return {}

    def _compiled(self, threads: int) -> Tower:
        from moviola.compiled import Compiled, Source, cache_folder

        if threads not in self._planned:
            name, revision = self._tower_name
            source = Source(f"{name} texts", revision, self._graph, threads)
            self._planned[threads] = Compiled(cache_folder(), source)
        graph = self._planned[threads]
        return lambda ids, present: graph(*self._graph_inputs(ids, present))[0]

    def _graph_inputs(self, ids: NDArray[np.int64], present: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
        """What the compiled tower takes."""
        return (ids, present)[: self._inputs]


def _one_by_one(tower: Tower, batches: Iterator[Batch]) -> Iterator[tuple[Batch, Floats]]:
    return ((batch, tower(batch.ids, batch.present)) for batch in batches)


def _in_passes(tower: Tower, batches: Iterator[Batch]) -> Iterator[tuple[Batch, Floats]]:
    """Several batches that go through the tower together: what takes longest is to fetch its weights."""
    waiting: list[Batch] = []
    for batch in batches:
        if waiting and sum(one.ids.size for one in waiting) + batch.ids.size > _TOKENS_AT_ONCE:
            yield from _passed(tower, waiting)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield from _passed(tower, waiting)


def _passed(tower: Tower, batches: Sequence[Batch]) -> Iterator[tuple[Batch, Floats]]:
    ends = np.cumsum([len(batch.places) for batch in batches])
    ids = np.zeros((ends[-1], max(batch.ids.shape[1] for batch in batches)), np.int64)
    present = np.zeros(ids.shape, np.bool_)
    for batch, own, real in zip(batches, np.split(ids, ends[:-1]), np.split(present, ends[:-1]), strict=True):
        tokens = batch.ids.shape[1]
        own[:, :tokens], real[:, :tokens] = batch.ids, batch.present
    for batch, states in zip(batches, np.split(tower(ids, present), ends[:-1]), strict=True):
        yield batch, np.ascontiguousarray(states[:, : batch.ids.shape[1]])


@one_blas_thread()
def _side_by_side(tower: Tower, batches: Sequence[Batch], pool: ThreadPoolExecutor) -> list[Floats]:
    return list(pool.map(lambda batch: tower(batch.ids, batch.present), batches))
