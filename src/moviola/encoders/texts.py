"""The three ways of a text through its tower: NumPy, compiled, or torch, and the choice among them.

A few texts go through NumPy (:mod:`moviola.encoders.towers`), which starts at once: the first query of a
process takes a third of a second less than with the compiled tower, further ones take three times as long
(``benchmarks/runtimes.md``). A resident process uses the compiled tower from the first text on, as all do for
many texts at once. Where torch computes (a GPU, half precision, a checkpoint without a graph), many texts go
through torch. All ways agree to rounding (2e-5), and an encoder never switches for few texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import Compiled, Source, cache_folder
from moviola.encoders.device_choice import DeviceChoice
from moviola.errors import InvalidValue
from moviola.threads import compute_threads, few_threads

if TYPE_CHECKING:
    from torch import nn

__all__ = ["FEW_TEXTS", "TextTower", "check_texts"]

Floats = NDArray[np.float32]
Tower = Callable[[NDArray[np.int64], NDArray[np.bool_]], Floats]
"""(token ids (b, n), which of them are real (b, n)) -> states (b, n, d)."""

FEW_TEXTS = 16
"""Up to this many texts are encoded by the NumPy towers."""


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list.

    Raises:
        InvalidValue: one string in place of a list, or something that is no string.
    """
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
    """Token rows of any lengths, ``size`` of similar length together.

    Yields:
        The places of b rows, their ids (b, n), filled up with zeros, and which of these are real (b, n).
    """
    by_length = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    for start in range(0, len(rows), size):
        chosen = by_length[start : start + size]
        ids = np.zeros((len(chosen), max(len(rows[place]) for place in chosen)), dtype=np.int64)
        present = np.zeros(ids.shape, dtype=bool)
        for line, place in enumerate(chosen):
            ids[line, : len(rows[place])] = rows[place]
            present[line, : len(rows[place])] = True
        yield chosen, ids, present


class TextTower:
    """States of the tokens of texts.

    Args:
        choice: device and precision for many texts.
        by_numpy: the tower in NumPy; None: it does not know this architecture.
        source: what to compile, for a number of threads; None: torch computes.
        build: the tower as a torch module, where ``choice`` says.
        masked: whether the two take, besides ids, which of them are real.
    """

    def __init__(
        self,
        choice: DeviceChoice,
        by_numpy: Tower | None,
        source: Callable[[int], Source] | None,
        build: Callable[[], nn.Module],
        *,
        masked: bool,
    ) -> None:
        self._choice = choice
        self._by_numpy, self._source, self._build = by_numpy, source, build
        self._inputs = 2 if masked else 1

    def states(
        self, rows: list[list[int]]
    ) -> Iterator[tuple[list[int], NDArray[np.int64], NDArray[np.bool_], Floats]]:
        """States of texts, those of similar length together.

        Args:
            rows: token ids of each text.

        Yields:
            The places of b texts, their ids (b, n), which of these are real (b, n), their states (b, n, d).
        """
        few = len(rows) <= FEW_TEXTS and self._by_numpy is not None
        encode = self._few if few else self._many
        for chosen, ids, present in _batches(rows, FEW_TEXTS if few else self._choice.batch_size):
            yield chosen, ids, present, encode(ids, present)

    @cached_property
    def _few(self) -> Tower:
        if self._choice.is_resident and self._source is not None:
            return self._compiled(self._source(few_threads()))
        assert self._by_numpy is not None
        return self._by_numpy

    @cached_property
    def _many(self) -> Tower:
        if self._source is not None:
            return self._compiled(self._source(compute_threads()))
        module = self._build()
        from moviola.encoders.by_torch.modules import run

        module = module.to(self._choice.device)
        return lambda ids, present: run(module, self._choice.device, *(ids, present)[: self._inputs])[0]

    def _compiled(self, source: Source) -> Tower:
        compiled = Compiled(cache_folder(), source)
        return lambda ids, present: compiled(*(ids, present)[: self._inputs])[0]
