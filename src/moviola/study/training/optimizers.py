"""Optimisers and learning-rate schedules.

BertAdam is what the papers' XML and ReLoCLNet baselines train with (TVR-Ranking, appendix C); SPR and the
others use AdamW. The same schedules, functions of the progress through training, serve both: BertAdam asks
for its factor itself, the others are driven by a ``LambdaLR``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from moviola.errors import InvalidValue
from moviola.study.models.checks import require_known

__all__ = [
    "OPTIMIZERS", "SCHEDULES", "BertAdam", "OptimizerConfig", "constant", "cosine", "linear",
    "make_optimizer", "parameter_groups",
]  # fmt: skip

NORMALISATIONS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.modules.batchnorm._NormBase)


def constant(progress: float, warmup: float) -> float:
    """Up to 1 in a straight line while ``progress < warmup``, 1 from there on."""
    return progress / warmup if progress < warmup else 1.0


def linear(progress: float, warmup: float) -> float:
    """Up to 1 while ``progress < warmup``, then down to 0 at progress 1, both in a straight line."""
    return progress / warmup if progress < warmup else max(0.0, (1 - progress) / (1 - warmup))


def cosine(progress: float, warmup: float) -> float:
    """Up to 1 in a straight line while ``progress < warmup``, then half a cosine down to 0 at progress 1."""
    if progress < warmup:
        return progress / warmup
    return (1 + math.cos(math.pi * min(1.0, (progress - warmup) / (1 - warmup)))) / 2


Schedule = Callable[[float, float], float]
SCHEDULES: dict[str, Schedule] = {"constant": constant, "linear": linear, "cosine": cosine}
"""Factor of the learning rate in [0, 1], of progress (steps done / steps in all, >= 0) and the part of
training in [0, 1) that warms up."""


Groups = list[dict[str, Any]]


@dataclass(frozen=True)
class OptimizerConfig:
    """Options of an optimiser; the defaults are those of the XML and ReLoCLNet baselines.

    Attributes:
        name: a name in :data:`OPTIMIZERS`.
        lr: peak learning rate, > 0.
        betas, eps, weight_decay: those of the optimiser: in [0, 1), > 0 and >= 0; biases and normalisations
            never decay.
        warmup, schedule: part of training in [0, 1) that warms up, and a name in :data:`SCHEDULES`.
        clip_norm: largest norm of gradients, > 0: of each tensor for ``bert_adam``, of all together for the
            others; ``math.inf`` clips nothing.
        slow: parameters that learn at a rate of their own: name (or end of it, after a dot) to factor.
    """

    name: str = "bert_adam"
    lr: float = 1e-4
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    weight_decay: float = 0.01
    warmup: float = 0.01
    schedule: str = "linear"
    clip_norm: float = 1.0
    slow: Mapping[str, float] = field(default_factory=dict)


class BertAdam(Optimizer):
    """Adam as BERT was trained with it: no bias correction, and its own schedule.

    The update of a tensor is m / (sqrt(v) + eps) + weight_decay * p, times the rate of the moment; m and v
    are the moving averages of its gradient. Each tensor's gradient is clipped on its own before, not all
    together. The rate is ``lr * schedule(steps done / total_steps, warmup)``, so that with a warm-up the
    first step has rate 0 and moves nothing but m and v. Steps are counted for a whole group, and the count
    is saved with it.

    Args:
        params: groups of parameters, which may override any of the options.
        config: the options; :func:`make_optimizer` refuses those out of their range. ``name`` and ``slow``
            are not read here.
        total_steps: steps in all; later ones have rate 0 (or ``lr``, if the schedule is constant).
    """

    def __init__(self, params: Groups, config: OptimizerConfig, total_steps: int) -> None:
        names = ("lr", "betas", "eps", "weight_decay", "clip_norm", "warmup", "schedule")
        options = {name: getattr(config, name) for name in names}
        super().__init__(params, {**options, "total_steps": total_steps, "steps": 0})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if parameters:
                self._update(parameters, group)
            group["steps"] += 1

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter]["first_moment"] = torch.zeros_like(parameter)
                self.state[parameter]["second_moment"] = torch.zeros_like(parameter)
        first = [self.state[parameter]["first_moment"] for parameter in parameters]
        second = [self.state[parameter]["second_moment"] for parameter in parameters]
        gradients = _clipped([p.grad for p in parameters if p.grad is not None], group["clip_norm"])
        beta1, beta2 = group["betas"]
        torch._foreach_lerp_(first, gradients, 1 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
        progress = group["steps"] / group["total_steps"]
        rate = float(group["lr"] * SCHEDULES[group["schedule"]](progress, group["warmup"]))
        if rate == 0:
            return
        scale = torch._foreach_sqrt(second)
        torch._foreach_add_(scale, group["eps"])
        torch._foreach_mul_(parameters, 1 - rate * group["weight_decay"])
        torch._foreach_addcdiv_(parameters, first, scale, -rate)


def _clipped(gradients: list[Tensor], norm: float) -> tuple[Tensor, ...] | list[Tensor]:
    """Gradients whose own norms are at most ``norm``; those given stay as they are."""
    if math.isinf(norm):
        return gradients
    factors = torch._foreach_norm(gradients)
    torch._foreach_add_(factors, 1e-6)
    torch._foreach_reciprocal_(factors)
    torch._foreach_mul_(factors, norm)
    torch._foreach_clamp_max_(factors, 1.0)
    return torch._foreach_mul(gradients, factors)


def _adamw(groups: Groups, config: OptimizerConfig, total_steps: int) -> Optimizer:
    """AdamW that clips the gradients of all groups together before each of its steps."""
    optimizer = AdamW(groups, config.lr, config.betas, config.eps)

    def clip(this: Optimizer, args: object, kwargs: object) -> None:
        own = [parameter for group in this.param_groups for parameter in group["params"]]
        clip_grad_norm_(own, config.clip_norm)

    if math.isfinite(config.clip_norm):
        optimizer.register_step_pre_hook(clip)
    return optimizer


OPTIMIZERS: dict[str, Callable[[Groups, OptimizerConfig, int], Optimizer]] = {
    "bert_adam": BertAdam,
    "adamw": _adamw,
}


def parameter_groups(
    model: nn.Module, weight_decay: float, *, lr: float = 1.0, slow: Mapping[str, float] | None = None
) -> Groups:
    """Trainable parameters in groups of one weight decay and one learning rate each, for any optimiser.

    Parameters of a normalisation layer (by the layer's type) and biases do not decay. Shared ones are in one
    group, once; frozen ones in none.

    Args:
        weight_decay, lr: decay of the others, and learning rate of all.
        slow: factor of the learning rate, by a parameter's name or the end of it after a dot.

    Returns:
        Groups ``{"params", "weight_decay", "lr"}``, none empty.

    Raises:
        InvalidValue: a name in ``slow`` fits no trainable parameter.
    """
    slow = slow or {}
    groups: dict[tuple[float, float], list[Tensor]] = {}
    seen: set[Tensor] = set()
    fitting: set[str] = set()
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter in seen or not parameter.requires_grad:
                continue
            seen.add(parameter)
            matches = [end for end in slow if f".{path}.{name}".endswith(f".{end}")]
            fitting.update(matches)
            rate = lr * math.prod(slow[end] for end in matches)
            decays = not isinstance(module, NORMALISATIONS) and not name.endswith("bias")
            groups.setdefault((weight_decay if decays else 0.0, rate), []).append(parameter)
    for end in slow:
        if end not in fitting:
            raise InvalidValue(
                f"slow {end!r}: {type(model).__name__} has no such trainable parameter; "
                "give a name out of model.named_parameters(), or the end of one"
            )
    return [
        {"params": parameters, "weight_decay": decay, "lr": rate}
        for (decay, rate), parameters in groups.items()
    ]


def make_optimizer(
    model: nn.Module, config: OptimizerConfig, total_steps: int
) -> tuple[Optimizer, LambdaLR | None]:
    """An optimiser for a model on its training device, and the schedule to step after each of its steps.

    Returns:
        The optimiser and its schedule; None where the optimiser carries its own or the rate never changes.

    Raises:
        InvalidValue: an unknown optimiser or schedule, or a number out of its range.
    """
    require_known("optimizer", config.name, OPTIMIZERS)
    _check(config, total_steps)
    groups = parameter_groups(model, config.weight_decay, lr=config.lr, slow=config.slow)
    optimizer = OPTIMIZERS[config.name](groups, config, total_steps)
    steady = config.schedule == "constant" and config.warmup == 0
    if isinstance(optimizer, BertAdam) or steady:
        return optimizer, None
    factor = SCHEDULES[config.schedule]
    return optimizer, LambdaLR(optimizer, lambda step: factor(step / total_steps, config.warmup))


def _check(config: OptimizerConfig, total_steps: int) -> None:
    if not 0 < config.lr < math.inf:
        raise InvalidValue(f"lr={config.lr}: must be above 0")
    if not all(0 <= beta < 1 for beta in config.betas):
        raise InvalidValue(f"betas={config.betas}: both must be in [0, 1)")
    if not 0 < config.eps < math.inf:
        raise InvalidValue(f"eps={config.eps}: must be above 0, or a gradient of 0 divides by 0")
    if not 0 <= config.weight_decay < math.inf:
        raise InvalidValue(f"weight_decay={config.weight_decay}: must not be negative")
    if not config.clip_norm > 0:
        raise InvalidValue(f"clip_norm={config.clip_norm}: must be above 0; math.inf clips nothing")
    require_known("schedule", config.schedule, SCHEDULES)
    if not 0 <= config.warmup < 1:
        raise InvalidValue(f"warmup={config.warmup}: the part of training that warms up is in [0, 1)")
    if total_steps < 1:
        raise InvalidValue(f"total_steps={total_steps}: there must be at least 1 step")
