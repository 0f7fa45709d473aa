"""Checkpoints of transformers, opened by transformers."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from moviola.errors import DataError, MissingDependency

__all__ = ["PRECISIONS", "load_pretrained"]

PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""Types of numbers by the names of :class:`moviola.encoders.device_choice.DeviceChoice`."""


def load_pretrained(module: str, name: str, folder: Path, device: str, precision: str) -> Any:
    """A transformers model in inference mode; pickled weights are read as weights only.

    Args:
        module, name: of the class; its ``from_pretrained`` prefers safetensors.
        folder: of the checkpoint.
        device: where to put it.
        precision: a key of :data:`PRECISIONS`.

    Raises:
        MissingDependency: it needs another package.
        DataError: the weights or settings are damaged, or a pickle that holds more than weights.
    """
    try:
        from transformers.utils import logging
    except ImportError as error:
        raise MissingDependency(f"{folder}: needs transformers; pip install 'moviola[train]'") from error
    bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        loader = getattr(importlib.import_module(module), name).from_pretrained
        model = loader(folder, dtype=PRECISIONS[precision], local_files_only=True)
    except ImportError as error:
        raise MissingDependency(f"{folder}: loading it needs another package: {error}") from error
    except Exception as error:  # transformers and its readers raise nearly anything
        reason = " ".join(str(error).split())
        raise DataError(
            f"{folder}: cannot be loaded ({type(error).__name__}: {reason:.300}); take a checkpoint with "
            "safetensors, or fetch it again"
        ) from error
    finally:
        if bars:
            logging.enable_progress_bar()
    return model.to(device).eval()
