"""A running mean of weights, which is judged and kept in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["RunningMean"]


class RunningMean:
    """The exponential moving average of a model's weights, one step after the other.

    The first steps count less than ``decay`` says, so that the weights of the start are soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay, self.steps = decay, 0
        self.weights = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def add(self, model: nn.Module) -> None:
        """Add the weights after a step; what is no float is taken over."""
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        self.steps += 1
        for name, value in model.state_dict().items():
            mean = self.weights[name]
            if value.is_floating_point():
                mean.lerp_(value, 1 - decay)
            else:
                mean.copy_(value)

    @contextmanager
    def within(self, model: nn.Module) -> Iterator[None]:
        """The mean in the model, which then has its own weights again."""
        own = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(self.weights)
        try:
            yield
        finally:
            model.load_state_dict(own)

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes, for a file."""
        return {"weights": self.weights, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """What :meth:`state_dict` returned."""
        weights: Mapping[str, Tensor] = state["weights"]
        self.weights, self.steps = {name: value.clone() for name, value in weights.items()}, state["steps"]
