"""EfficientNet-Lite as a torch module; see :mod:`moviola.encoders.efficientnet`."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from moviola.encoders.efficientnet import BLOCKS, Block
from moviola.encoders.weights import Weights

__all__ = ["EfficientNetLite"]


class SameConv(nn.Conv2d):
    """A convolution whose output has ceil(side / stride) pixels a side, TensorFlow's "same".

    Args:
        weights: hold the weights under ``name``.
    """

    def __init__(self, weights: Weights, name: str, stride: int = 1, *, depthwise: bool = False) -> None:
        weight = torch.tensor(weights.array(f"{name}.weight"))
        outputs, inputs, kernel, _ = weight.shape
        groups = outputs if depthwise else 1
        super().__init__(inputs * groups, outputs, kernel, stride, groups=groups)
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.tensor(weights.array(f"{name}.bias")))

    def forward(self, x: Tensor) -> Tensor:
        """(b, inputs, h, w) to (b, outputs, ceil(h / stride), ceil(w / stride))."""
        missing = [self._missing(side, dim) for dim, side in enumerate(x.shape[-2:])]
        (top, bottom), (left, right) = ((total // 2, total - total // 2) for total in missing)
        return super().forward(F.pad(x, (left, right, top, bottom)))

    def _missing(self, side: int, dim: int) -> int:
        """Pixels of padding on a side."""
        kernel, stride = self.kernel_size[dim], self.stride[dim]
        return max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)


class Bottleneck(nn.Module):
    """A block with its weights."""

    def __init__(self, weights: Weights, at: str, block: Block) -> None:
        super().__init__()
        self.expand = SameConv(weights, f"{at}.expand") if block.expands else None
        self.depthwise = SameConv(weights, f"{at}.depthwise", block.stride, depthwise=True)
        self.project = SameConv(weights, f"{at}.project")
        self.residual = block.residual

    def forward(self, x: Tensor) -> Tensor:
        """(b, inputs, h, w) to (b, outputs, ceil(h / stride), ceil(w / stride))."""
        inner = x if self.expand is None else F.relu6(self.expand(x))
        projected: Tensor = self.project(F.relu6(self.depthwise(inner)))
        return x + projected if self.residual else projected


class EfficientNetLite(nn.Module):
    """A classifier of pictures into the 1,000 classes of ImageNet (ILSVRC 2012), for inference."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.stem = SameConv(weights, "stem", 2)
        blocks = [Bottleneck(weights, f"blocks.{number}", block) for number, block in enumerate(BLOCKS)]
        self.blocks = nn.Sequential(*blocks)
        self.head = SameConv(weights, "head")
        classes, channels = weights.shape("classes.weight")
        self.fc = nn.Linear(channels, classes)
        self.fc.weight = nn.Parameter(torch.tensor(weights.array("classes.weight")))
        self.fc.bias = nn.Parameter(torch.tensor(weights.array("classes.bias")))

    def pooled(self, pixels: Tensor) -> Tensor:
        """The layer before the classes, pooled over the picture.

        Args:
            pixels: (b, 3, h, w), ``(value - 127) / 128`` of RGB values 0–255.

        Returns:
            (b, 1280), 0 to 6.
        """
        x = self.blocks(F.relu6(self.stem(pixels)))
        return F.relu6(self.head(x)).mean((2, 3))

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of the classes, (b, 1000); ``pixels`` as in :meth:`pooled`."""
        logits: Tensor = self.fc(self.pooled(pixels))
        return logits
