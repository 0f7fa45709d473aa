"""Where a model runs and in which precision, chosen sensibly and settable; and how texts become batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moviola.devices import available_device, require_device_name
from moviola.errors import InvalidValue, MissingDependency

if TYPE_CHECKING:
    import torch

__all__ = ["FEW_TEXTS", "DeviceChoice", "batches", "check_texts", "load_pretrained"]

FEW_TEXTS = 16
"""Up to this many texts are encoded by the NumPy towers."""

PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


class DeviceChoice:
    """A device and a precision, either named or ``"auto"``; resolved when asked for, which needs torch.

    auto: cuda before mps before cpu; bf16 on a GPU that has it, else fp16; fp32 on the CPU, where encoders of
    frames may take 8 bits for their own part (:attr:`is_free`).

    Attributes:
        is_resident: whether this process is going to encode text after text, and may take longer to begin.

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
        import torch

        bf16 = self.device.startswith("cuda") and torch.cuda.is_bf16_supported()
        return "bf16" if bf16 else "fp16"

    @property
    def is_free(self) -> bool:
        """Whether nobody named a precision."""
        return self._precision == "auto"

    @property
    def dtype(self) -> torch.dtype:
        """The torch type of :attr:`precision`."""
        import torch

        dtype: torch.dtype = getattr(torch, PRECISIONS[self.precision])
        return dtype

    @property
    def batch_size(self) -> int:
        """Frames or texts that go through the model at once."""
        return self._batch_size or (16 if self.device == "cpu" else 256)


def load_pretrained(loader: Callable[..., Any], folder: object, choice: DeviceChoice) -> Any:
    """A transformers model in inference mode on its device; pickled weights are read as weights only.

    ``loader`` is a class's ``from_pretrained``, which prefers safetensors.
    """
    from transformers.utils import logging

    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model = loader(folder, dtype=choice.dtype, local_files_only=True)
    except ImportError as error:
        raise MissingDependency(f"{folder}: loading it needs another package: {error}") from error
    finally:
        if bars:
            logging.enable_progress_bar()
    for part in model.modules():
        if hasattr(part, "loss_type"):
            # Nothing is trained here; whoever traces the model looks at all that it has, and would be warned.
            part.loss_function = None
    return model.to(choice.device).eval()


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
