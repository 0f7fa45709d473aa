"""EfficientNet-Lite1, a small classifier of pictures into the 1,000 classes of ImageNet.

The network of Tan and Le 2019 (*EfficientNet: rethinking model scaling for convolutional neural networks*)
without squeeze-and-excitation, with ReLU6 in place of swish, and a stem and a head that are not scaled.
Padding is TensorFlow's "same", which for a stride of 2 puts the odd pixel behind.

The package carries its weights (``conse_network/``, by ``scripts/make_packaged_models.py``) in half
precision, the norms folded into the convolutions before them. Layers are called ``stem``,
``blocks.N.expand``, ``.depthwise``, ``.project``, ``head``, ``classes``, each with ``.weight`` and ``.bias``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["BLOCKS", "PIXELS", "Block"]

PIXELS = 240
"""Side of its square training pictures in pixels."""

_DEPTH = 1.1
"""Factor of the number of blocks of EfficientNet-B0."""


# Blocks of one resolution: their number, the first one's stride, the expansion, and the output channels;
# EfficientNet-B0 (Tan and Le 2019, Table 1).
_STAGES = (
    (1, 1, 1, 16),
    (2, 2, 6, 24),
    (2, 2, 6, 40),
    (3, 2, 6, 80),
    (3, 1, 6, 112),
    (4, 2, 6, 192),
    (1, 1, 6, 320),
)


class Block(NamedTuple):
    """An inverted bottleneck (Sandler et al. 2018, MobileNetV2): expand, filter each channel by a stride,
    project, and perhaps add the input.
    """

    expands: bool
    stride: int
    residual: bool


def _blocks() -> list[Block]:
    blocks, given = [], 0
    for place, (repeats, first_stride, expansion, channels) in enumerate(_STAGES):
        ends = place in (0, len(_STAGES) - 1)
        for repeat in range(repeats if ends else math.ceil(repeats * _DEPTH)):
            stride = first_stride if repeat == 0 else 1
            blocks.append(Block(expansion > 1, stride, stride == 1 and given == channels))
            given = channels
    return blocks


BLOCKS = tuple(_blocks())
"""In the order in which a picture passes through them."""
