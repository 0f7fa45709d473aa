"""EfficientNet-Lite as a torch module; see :mod:`moviola.encoders.efficientnet`."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from moviola.encoders.efficientnet import BLOCKS
from moviola.encoders.weights import Weights

__all__ = ["EfficientNetLite"]


class EfficientNetLite(nn.Module):
    """A classifier of pictures into the 1,000 classes of ImageNet (ILSVRC 2012), for inference."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        # torch takes no dots in names.
        given = {name.replace(".", "/"): torch.tensor(weights.array(name)) for name in weights.names}
        self.weights = nn.ParameterDict(given)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """The layer before the classes, pooled over the picture, (b, 1280), 0 to 6, and logits (b, 1000).

        Args:
            pixels: (b, 3, h, w), ``(value - 127) / 128`` of RGB values 0–255, in any precision.
        """
        x = F.relu6(self._filtered("stem", pixels.to(self.weights["classes/weight"].dtype), 2))
        for number, block in enumerate(BLOCKS):
            at = f"blocks/{number}"
            inner = F.relu6(self._filtered(f"{at}/expand", x)) if block.expands else x
            inner = F.relu6(self._filtered(f"{at}/depthwise", inner, block.stride))
            projected = self._filtered(f"{at}/project", inner)
            x = x + projected if block.residual else projected
        pooled = F.relu6(self._filtered("head", x)).mean((2, 3))
        return pooled, F.linear(pooled, self.weights["classes/weight"], self.weights["classes/bias"])

    def _filtered(self, name: str, x: Tensor, stride: int = 1) -> Tensor:
        """A convolution to ceil(side / stride) pixels a side, TensorFlow's "same"."""
        weight, bias = self.weights[f"{name}/weight"], self.weights[f"{name}/bias"]
        padding = []
        for side in x.shape[:1:-1]:  # as torch counts, from the last axis on
            missing = max((math.ceil(side / stride) - 1) * stride + weight.shape[-1] - side, 0)
            padding += [missing // 2, missing - missing // 2]
        return F.conv2d(F.pad(x, padding), weight, bias, stride, groups=x.shape[1] // weight.shape[1])
