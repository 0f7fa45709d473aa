"""EfficientNet-Lite, ImageNet classifiers made for small machines.

The networks of Tan and Le 2019 (*EfficientNet: rethinking model scaling for convolutional neural networks*)
without squeeze-and-excitation and with ReLU6 in place of swish, with a stem and a head that are not scaled.
Weights come as Python packages, trained in TensorFlow: padding is TensorFlow's "same", which for a stride of
2 puts the odd pixel behind.
"""

from __future__ import annotations

import math
from pathlib import Path
from pickle import UnpicklingError
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from moviola.errors import DataError

__all__ = ["EfficientNetLite", "read_weights"]


class Stage(NamedTuple):
    """Blocks of one resolution: how many, what the first one does, and channels going out."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    channels: int


STAGES = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)
"""EfficientNet-B0 (Tan and Le 2019, Table 1)."""

STEM, HEAD = 32, 1280


class SameConv(nn.Conv2d):
    """A convolution without bias whose output has ceil(side / stride) pixels a side, TensorFlow's "same"."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(b, inputs, h, w) to (b, outputs, ceil(h / stride), ceil(w / stride))."""
        missing = [self._missing(side, dim) for dim, side in enumerate(x.shape[-2:])]
        (top, bottom), (left, right) = ((total // 2, total - total // 2) for total in missing)
        return super().forward(F.pad(x, (left, right, top, bottom)))

    def _missing(self, side: int, dim: int) -> int:
        """Pixels that have to be added to a side."""
        kernel, stride = self.kernel_size[dim], self.stride[dim]
        return max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)


class Block(nn.Module):
    """An inverted bottleneck (Sandler et al. 2018, MobileNetV2): expand, filter each channel, project."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand_conv = SameConv(inputs, inner, 1) if expansion > 1 else nn.Identity()
        self.bn0 = _norm(inner) if expansion > 1 else nn.Identity()
        self.depthwise_conv = SameConv(inner, inner, kernel, stride, groups=inner)
        self.bn1 = _norm(inner)
        self.project_conv = SameConv(inner, outputs, 1)
        self.bn2 = _norm(outputs)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """(b, inputs, h, w) to (b, outputs, ceil(h / stride), ceil(w / stride))."""
        expanded = x if isinstance(self.expand_conv, nn.Identity) else F.relu6(self.bn0(self.expand_conv(x)))
        filtered = F.relu6(self.bn1(self.depthwise_conv(expanded)))
        projected: Tensor = self.bn2(self.project_conv(filtered))
        return x + projected if self.residual else projected


class EfficientNetLite(nn.Module):
    """A classifier of pictures into the 1,000 classes of ImageNet (ILSVRC 2012), for inference.

    Args:
        width, depth: factors of channels and of blocks of EfficientNet-B0.
    """

    def __init__(self, width: float, depth: float) -> None:
        super().__init__()
        self.conv_stem = SameConv(3, STEM, 3, 2)
        self.bn0 = _norm(STEM)
        blocks, channels = [], STEM
        for place, stage in enumerate(STAGES):
            ends = place in (0, len(STAGES) - 1)
            repeats = stage.repeats if ends else math.ceil(stage.repeats * depth)
            outputs = _scaled(stage.channels, width)
            for repeat in range(repeats):
                stride = stage.stride if repeat == 0 else 1
                blocks.append(Block(channels, outputs, stage.kernel, stride, stage.expansion))
                channels = outputs
        self.blocks = nn.Sequential(*blocks)
        self.conv_head = SameConv(channels, HEAD, 1)
        self.bn1 = _norm(HEAD)
        self.fc = nn.Linear(HEAD, 1000)

    def features(self, pixels: Tensor) -> Tensor:
        """What is seen where: the layer before the pooling.

        Args:
            pixels: (b, 3, h, w), ``(value - 127) / 128`` of RGB values 0–255.

        Returns:
            (b, 1280, ceil(h / 32), ceil(w / 32)), 0 to 6.
        """
        x = F.relu6(self.bn0(self.conv_stem(pixels)))
        return F.relu6(self.bn1(self.conv_head(self.blocks(x))))

    def pooled(self, pixels: Tensor) -> Tensor:
        """What is seen anywhere, (b, 1280), 0 to 6: the layer before the classes; ``pixels`` as above."""
        return self.features(pixels).mean((2, 3))

    def forward(self, pixels: Tensor) -> Tensor:
        """Logits of the classes, (b, 1000); ``pixels`` as of :meth:`features`."""
        logits: Tensor = self.fc(self.pooled(pixels))
        return logits


def read_weights(path: Path, width: float, depth: float) -> EfficientNetLite:
    """A network with the weights of a package, in inference mode; nothing in the file is executed.

    Args:
        path: the package's ``.pth``.
        width, depth: of the network that the weights belong to.

    Raises:
        DataError: the file cannot be read, or holds the weights of something else.
    """
    network = EfficientNetLite(width, depth)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        network.load_state_dict({name.replace("._", ".").lstrip("_"): value for name, value in state.items()})
    except (OSError, EOFError, RuntimeError, AttributeError, ValueError, UnpicklingError) as error:
        raise DataError(f"{path}: no weights of this network ({error}); install its package again") from error
    return network.eval().requires_grad_(False)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)


def _scaled(channels: int, width: float) -> int:
    """Channels times a factor, as a multiple of 8 that is not below 90 % of it."""
    wanted = channels * width
    rounded = max(8, int(wanted + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * wanted else rounded
