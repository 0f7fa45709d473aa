"""Another machine's rounding, as a plugin: ``PYTHONPATH=tests/worlds pytest -p other_rounding …``.

Each result of torch's that sums (products of matrices, means, norms, softmax) is moved by up to three parts
in ten million. The shift depends on the operation and the shapes of its inputs alone, as the choice of a
kernel does: the same computation gives the same bits again, another batch size gives others. What real
kernels compute exactly stays exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

LARGEST = 3e-7
"""Relative shift; float32 has 1.2e-7 between neighbours."""

SUMS = {
    "_log_softmax", "_scaled_dot_product_attention_math", "_scaled_dot_product_flash_attention_for_cpu",
    "_softmax", "addmm", "addmv", "baddbmm", "bmm", "convolution", "cumsum", "dot", "linalg_vector_norm",
    "logsumexp", "mean", "mm", "mv", "native_batch_norm", "native_layer_norm", "sum", "var",
}  # fmt: skip


class OtherRounding(TorchDispatchMode):
    """Shifts what sums, below autograd."""

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name not in SUMS or "out" in func._overloadname:
            return result
        shapes = [tuple(value.shape) for value in args if isinstance(value, torch.Tensor)]
        seed = crc32(f"{name}{shapes}".encode())
        return tree_map(lambda value: shifted(value, seed), result)


def shifted(value: Any, seed: int) -> Any:
    """The tensor with other last bits; other types, and multiples of 1/4096, which sums keep, as they are."""
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float32 or not value.numel():
        return value
    noise = 2 * torch.rand(value.shape, generator=torch.Generator().manual_seed(seed)) - 1
    exact = (value * 4096) == (value * 4096).round()
    return torch.where(exact, value, value * (1 + LARGEST * noise))


def _without_modes(trace: Callable[..., Any]) -> Callable[..., Any]:
    """torch's tracer, which no mode of Python may watch."""

    def traced(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return trace(*args, **kwargs)

    return traced


torch.jit.trace = _without_modes(torch.jit.trace)  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def other_rounding() -> Iterator[None]:
    with OtherRounding():
        yield
