"""Where an encoder runs and in which precision: named, or the best that this machine has."""

from __future__ import annotations

from moviola.devices import available_device, best_half_precision, require_device_name
from moviola.errors import InvalidValue

__all__ = ["PRECISIONS", "DeviceChoice", "OnDevice"]

PRECISIONS = ("fp32", "fp16", "bf16")
"""Precisions that may be named."""


class DeviceChoice:
    """A device and a precision, named or ``"auto"``; resolved on first use.

    auto: cuda before mps before cpu; bf16 on a GPU that has it, else fp16; fp32 on the CPU, where encoders of
    frames may take 8 bits (:attr:`is_free`). ``resident``: this process will encode many texts one after
    another, and may start more slowly.

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


class OnDevice:
    """An encoder for which a device and a precision were chosen."""

    _choice: DeviceChoice

    @property
    def choice(self) -> DeviceChoice:
        """What was chosen."""
        return self._choice

    @property
    def device(self) -> str:
        """Device of frames and of many texts: ``"cpu"``, ``"cuda"``, ``"mps"``."""
        return self._choice.device

    @property
    def precision(self) -> str:
        """Precision: ``"fp32"``, ``"fp16"``, ``"bf16"``; features are always float32."""
        return self._choice.precision
