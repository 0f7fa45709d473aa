"""Choice of the computing device: a named one, or the best of this machine.

Only torch computes on GPUs; without it, the CPU is used.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

from moviola.errors import InvalidValue, MissingDependency

__all__ = ["available_device", "best_half_precision", "may_have_gpu", "require_device_name", "require_torch"]


def require_device_name(name: str) -> None:
    """Raise :class:`InvalidValue` unless a name is a possible device; torch is not imported."""
    if not re.fullmatch(r"auto|cpu|mps|cuda(:[0-9]+)?", str(name)):
        raise InvalidValue(f"device {name!r}: unknown; choose auto, cpu, cuda, cuda:N or mps")


def may_have_gpu() -> bool:
    """Whether a GPU is likely, so that importing torch is worth its seconds."""
    if not sys.platform.startswith("linux"):
        return True
    # Files of NVIDIA's driver, the same inside Windows, and AMD's.
    return any(Path("/dev", node).exists() for node in ("nvidiactl", "dxg", "kfd"))


def has_torch() -> bool:
    """Whether torch is installed; it is not imported."""
    return importlib.util.find_spec("torch") is not None


def require_torch(what: str) -> None:
    """Raise :class:`MissingDependency`, saying that ``what`` needs torch, unless it is installed."""
    if not has_torch():
        raise MissingDependency(f"{what}: needs torch", "train")


def best_half_precision(device: str) -> str:
    """``"bf16"`` or ``"fp16"``, for a GPU from :func:`available_device`."""
    import torch

    return "bf16" if device.startswith("cuda") and torch.cuda.is_bf16_supported() else "fp16"


def available_device(name: str) -> str:
    """``"cpu"``, ``"cuda"``, ``"cuda:1"`` or ``"mps"``; ``"auto"`` prefers cuda, then mps, then cpu.

    Raises:
        InvalidValue: no such device, or none on this machine.
        MissingDependency: another device than the CPU was named, and torch is not installed.
    """
    require_device_name(name)
    if name == "cpu" or (name == "auto" and not (may_have_gpu() and has_torch())):
        return "cpu"
    require_torch(f"device {name!r}")
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return next(kind for kind, usable in there.items() if usable)
    kind, _, number = name.partition(":")
    if not there[kind]:
        raise InvalidValue(f"device {name!r}: this machine has none; choose auto or cpu")
    if number and int(number) >= (count := torch.cuda.device_count()):
        raise InvalidValue(f"device {name!r}: this machine's last one is cuda:{count - 1}; choose it or auto")
    return name
