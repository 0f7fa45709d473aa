"""The networks as torch modules with NumPy's inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["ClassifiedFrames", "ClipFrames", "run"]


class ClipFrames(nn.Module):
    """Features (n, d) of frames (n, h, w, 3) uint8.

    Args:
        model: a CLIP or SigLIP of transformers.
        scale, shift: (3,) float32, which normalise a pixel's channels.
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
        pooled = self.network.pooled(pixels.to(self.network.fc.weight.dtype))
        return pooled, torch.softmax(self.network.fc(pooled).float() / self.temperature, 1)


def run(module: Callable[..., Any], device: str, *inputs: NDArray[Any]) -> tuple[NDArray[np.float32], ...]:
    """Results of a module on a device for arrays: one float32 array per output."""
    with torch.inference_mode():
        given = module(*(torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in inputs))
        outputs = given if isinstance(given, tuple) else (given,)
        return tuple(output.float().cpu().numpy() for output in outputs)
