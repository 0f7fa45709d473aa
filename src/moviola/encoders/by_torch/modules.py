"""The networks as torch modules with NumPy's inputs; checkpoints of transformers, opened by transformers."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from moviola.encoders.efficientnet import BLOCKS
from moviola.encoders.weights import Weights
from moviola.errors import DataError, MissingDependency

__all__ = ["PRECISIONS", "ClassifiedFrames", "ClipFrames", "image_features", "load_pretrained", "run"]

PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""Types of numbers by the names of :class:`moviola.encoders.device_choice.DeviceChoice`."""


class ClipFrames(nn.Module):
    """Features (n, d) of frames (n, h, w, 3) uint8 by a ``tower``, which gives those of pixels (n, 3, h, w);
    ``scale`` and ``shift``, (3,) float32, normalise a pixel's channels.
    """

    def __init__(
        self, tower: Callable[[Tensor], Tensor], scale: NDArray[np.float32], shift: NDArray[np.float32]
    ) -> None:
        super().__init__()
        self.tower = tower
        self.scale: Tensor
        self.shift: Tensor
        self.register_buffer("scale", torch.from_numpy(scale).view(1, 3, 1, 1))
        self.register_buffer("shift", torch.from_numpy(shift).view(1, 3, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Frames to features, in the model's precision."""
        pixels = images.permute(0, 3, 1, 2).float() * self.scale + self.shift
        return self.tower(pixels)


def image_features(model: Any) -> Callable[[Tensor], Tensor]:
    """The tower of pictures of a model of transformers."""

    def features(pixels: Tensor) -> Tensor:
        output = model.get_image_features(pixel_values=pixels.to(model.dtype))
        found: Tensor = getattr(output, "pooler_output", output)
        return found

    return features


class ClassifiedFrames(nn.Module):
    """EfficientNet-Lite (:mod:`moviola.encoders.efficientnet`), for inference, in any precision."""

    def __init__(self, weights: Weights, temperature: float) -> None:
        super().__init__()
        # torch takes no dots in names.
        given = {name.replace(".", "/"): torch.tensor(weights.array(name)) for name in weights.names}
        self.weights, self.temperature = nn.ParameterDict(given), temperature

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The layer before the classes (n, 1280), pooled, 0 to 6, for frames (n, h, w, 3) uint8, and class
        probabilities (n, 1000).
        """
        pixels = (images.permute(0, 3, 1, 2).float() - 127) / 128
        x = F.relu6(self._filtered("stem", pixels.to(self.weights["classes/weight"].dtype), 2))
        for number, block in enumerate(BLOCKS):
            at = f"blocks/{number}"
            inner = F.relu6(self._filtered(f"{at}/expand", x)) if block.expands else x
            inner = F.relu6(self._filtered(f"{at}/depthwise", inner, block.stride))
            projected = self._filtered(f"{at}/project", inner)
            x = x + projected if block.residual else projected
        pooled = F.relu6(self._filtered("head", x)).mean((2, 3))
        logits = F.linear(pooled, self.weights["classes/weight"], self.weights["classes/bias"])
        return pooled, torch.softmax(logits.float() / self.temperature, 1)

    def _filtered(self, name: str, x: Tensor, stride: int = 1) -> Tensor:
        """A convolution to ceil(side / stride) pixels a side, TensorFlow's "same"."""
        weight, bias = self.weights[f"{name}/weight"], self.weights[f"{name}/bias"]
        padding = []
        for side in x.shape[:1:-1]:  # as torch counts, from the last axis on
            missing = max((math.ceil(side / stride) - 1) * stride + weight.shape[-1] - side, 0)
            padding += [missing // 2, missing - missing // 2]
        return F.conv2d(F.pad(x, padding), weight, bias, stride, groups=x.shape[1] // weight.shape[1])


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
        raise MissingDependency(f"{folder}: needs transformers", "train") from error
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
