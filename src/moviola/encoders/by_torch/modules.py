"""The networks as torch modules with NumPy's inputs; checkpoints of transformers, opened by transformers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from moviola.errors import DataError, MissingDependency

__all__ = ["PRECISIONS", "ClassifiedFrames", "ClipFrames", "load_pretrained", "run"]

PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""Types of numbers by the names of :class:`moviola.encoders.device_choice.DeviceChoice`."""


class ClipFrames(nn.Module):
    """Features (n, d) of frames (n, h, w, 3) uint8 by a CLIP or SigLIP of transformers; ``scale`` and
    ``shift``, (3,) float32, normalise a pixel's channels.
    """

    def __init__(self, model: Any, scale: NDArray[np.float32], shift: NDArray[np.float32]) -> None:
        super().__init__()
        self.model = model
        self.scale: Tensor
        self.shift: Tensor
        self.register_buffer("scale", torch.from_numpy(scale).view(1, 3, 1, 1))
        self.register_buffer("shift", torch.from_numpy(shift).view(1, 3, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Frames to features, in the model's precision."""
        pixels = images.permute(0, 3, 1, 2).float() * self.scale + self.shift
        output = self.model.get_image_features(pixel_values=pixels.to(self.model.dtype))
        features: Tensor = getattr(output, "pooler_output", output)
        return features


class ClassifiedFrames(nn.Module):
    """The layer before the classes (n, 1280) for frames (n, h, w, 3) uint8, and class probabilities."""

    def __init__(self, network: Any, temperature: float) -> None:
        super().__init__()
        self.network, self.temperature = network, temperature

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Frames to both, the probabilities (n, 1000)."""
        pixels = (images.permute(0, 3, 1, 2).float() - 127) / 128
        pooled, logits = self.network(pixels)
        return pooled, torch.softmax(logits.float() / self.temperature, 1)


def run(module: Callable[..., Any], device: str, *inputs: NDArray[Any]) -> tuple[NDArray[np.float32], ...]:
    """Results of a module on a device for arrays: one float32 array per output."""
    with torch.inference_mode():
        given = module(*(torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in inputs))
        outputs = given if isinstance(given, tuple) else (given,)
        return tuple(output.float().cpu().numpy() for output in outputs)


def load_pretrained(module: str, name: str, folder: Path, device: str, precision: str) -> Any:
    """A transformers model in inference mode, of a class ``name`` in a ``module``; pickles are read as
    weights only.

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
