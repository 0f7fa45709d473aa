"""The towers of pictures on torch's tensors, straight from a checkpoint's safetensors: for GPUs, and for half
precision, of formats that transformers does not open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from moviola.encoders.by_torch.modules import PRECISIONS
from moviola.encoders.pictures import FrameNetwork, FrameParts, frame_features, scaled_places
from moviola.encoders.weights import Weights

__all__ = ["frames_tower"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "relu": F.relu,
}
"""By the names of :data:`moviola.encoders.towers.ACTIVATIONS`."""


class _TorchNetwork(FrameNetwork):
    def __init__(self, weights: Weights, config: Mapping[str, Any], device: str, precision: str) -> None:
        super().__init__(weights, config)
        self._device, self._type = device, PRECISIONS[precision]
        self._tensors: dict[str, Tensor] = {}
        self._varied: tuple[int, int] | None = None

    def tensor(self, name: str) -> Tensor:
        """A tensor of the checkpoint, on the device; each is moved once."""
        if name not in self._tensors:
            self._tensors[name] = torch.tensor(self.weights.array(name)).to(self._device, self._type)
        return self._tensors[name]

    def linear(self, name: str, x: Any) -> Any:
        return F.linear(x, self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias"))

    def exact(self, name: str, x: Any) -> Any:
        return self.linear(name, x)

    def projected(self, name: str, x: Any) -> Any:
        return F.linear(x, self.tensor(f"{name}.weight"))

    def norm(self, name: str, x: Any) -> Any:
        weight, bias = self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias")
        return F.layer_norm(x, weight.shape, weight, bias, self.config["layer_norm_eps"])

    def activated(self, x: Any, name: str = "") -> Any:
        return ACTIVATIONS[name or self.config["hidden_act"]](x)

    def rotated(self, x: Any) -> Any:
        cosines, sines, swapped = self.turns
        return x * torch.tensor(cosines).to(x) + x[..., swapped] * torch.tensor(sines).to(x)

    def attended(self, q: Any, k: Any, v: Any, *, causal: bool, present: Any = None, heads: int = 0) -> Any:
        heads = heads or self.config["num_attention_heads"]
        split = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (q, k, v))
        return F.scaled_dot_product_attention(*split).transpose(1, 2).flatten(2)

    def learned(self, name: str, x: Any) -> Any:
        rows = self.tensor(name)
        return rows.reshape(1, -1, rows.shape[-1]).expand(len(x), -1, -1)

    def joined(self, first: Any, x: Any) -> Any:
        return torch.cat([first, x], 1)

    def placed(self, name: str, x: Any) -> Any:
        if self._varied is None:
            return x + self.tensor(name)
        return x + torch.tensor(scaled_places(self.weights.array(name), *self._varied)).to(x)

    def first(self, x: Any) -> Any:
        return x[:, 0]

    def patches(self, pixels: Tensor, *, varied: bool) -> Tensor:
        """Patches (n, patches, d) of normalised pixels (n, 3, h, w), whose places are scaled to them where
        they are ``varied``.
        """
        at = "vision_model.embeddings.patch_embedding"
        bias = self.tensor(f"{at}.bias") if f"{at}.bias" in self.weights else None
        x = F.conv2d(pixels, self.tensor(f"{at}.weight"), bias, stride=self.config["patch_size"])
        self._varied = (x.shape[2], x.shape[3]) if varied else None
        return x.flatten(2).transpose(1, 2)


def frames_tower(
    weights: Weights, config: Mapping[str, Any], parts: FrameParts, device: str, precision: str
) -> Callable[[Tensor], Tensor]:
    """From normalised pixels (n, 3, h, w) float32 on the device to features (n, d), in the precision."""
    net = _TorchNetwork(weights, config, device, precision)

    def features(pixels: Tensor) -> Tensor:
        patches = net.patches(pixels.to(PRECISIONS[precision]), varied=parts.varied)
        found: Tensor = frame_features(net, parts, patches)
        return found

    return features
