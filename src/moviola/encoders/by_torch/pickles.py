"""Weights that torch has pickled, read as weights alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from moviola.errors import DataError

__all__ = ["read_pickle"]


def read_pickle(path: Path) -> dict[str, NDArray[Any]]:
    """Float tensors by their names, half precision widened; a ``state_dict`` around them and the prefix
    ``module.`` of training on several GPUs are taken off.

    Raises:
        DataError: the file cannot be read, or holds more than weights.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # its readers raise nearly anything
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path}: no pickle of weights alone ({reason:.200}); fetch it again, or take a checkpoint with "
            "safetensors"
        ) from error
    state = content.get("state_dict", content) if isinstance(content, dict) else None
    if not isinstance(state, dict) or not any(isinstance(value, Tensor) for value in state.values()):
        raise DataError(f"{path}: holds no tensors by name; take the file of a checkpoint's weights")
    return {
        str(name).removeprefix("module."): np.ascontiguousarray(value.float().numpy())
        for name, value in state.items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
