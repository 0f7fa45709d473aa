"""Choice of device, precision and batch size; texts as batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from moviola.devices import available_device, best_half_precision, require_device_name
from moviola.errors import InvalidValue

__all__ = ["FEW_TEXTS", "PRECISIONS", "DeviceChoice", "batches", "check_texts"]

FEW_TEXTS = 16
"""Up to this many texts are encoded by the NumPy towers."""

PRECISIONS = ("fp32", "fp16", "bf16")
"""Precisions that may be named."""


class DeviceChoice:
    """A device and a precision, named or ``"auto"``; resolved on first use.

    auto: cuda before mps before cpu; bf16 on a GPU that has it, else fp16; fp32 on the CPU, where encoders of
    frames may take 8 bits for their own part (:attr:`is_free`).

    Attributes:
        is_resident: this process will encode many texts one after another, and may start more slowly.

    Raises:
        InvalidValue: no such precision; a batch size below 1; or, when resolved, a device that is not there.
    """

    def __init__(self, device: str, precision: str, batch_size: int | None, resident: bool = False) -> None:
        if precision not in {"auto", *PRECISIONS}:
            raise InvalidValue(f"precision {precision!r}: choose auto, {', '.join(PRECISIONS)}")
        require_device_name(device)
        if batch_size is not None and batch_size < 1:
            raise InvalidValue(f"batch size {batch_size}: must be at least 1")
        self._device = device
        self._precision = precision
        self._batch_size = batch_size
        self.is_resident = resident

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled runtime computes: on the CPU in fp32."""
        return self.device == "cpu" and self.precision == "fp32"

    @property
    def device(self) -> str:
        """``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``."""
        self._device = available_device(self._device)
        return self._device

    @property
    def precision(self) -> str:
        """``"fp32"``, ``"fp16"`` or ``"bf16"``."""
        if self._precision != "auto":
            return self._precision
        if self.device == "cpu":
            return "fp32"
        return best_half_precision(self.device)

    @property
    def is_free(self) -> bool:
        """Whether no precision was named."""
        return self._precision == "auto"

    @property
    def batch_size(self) -> int:
        """Frames or texts per batch."""
        return self._batch_size or (16 if self.device == "cpu" else 256)


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


def batches(
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
