"""Schedules, BertAdam and the making of optimisers."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from moviola.errors import InvalidValue
from moviola.study.training.optimizers import (
    OPTIMIZERS,
    SCHEDULES,
    BertAdam,
    OptimizerConfig,
    make_optimizer,
    parameter_groups,
)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.attention = nn.MultiheadAttention(4, 2)
        self.logit_scale = nn.Parameter(torch.tensor(1.0))
        self.frozen = nn.Parameter(torch.ones(2, 2), requires_grad=False)
        self.shared = self.inner[1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inner(x) * self.logit_scale
        return out


@pytest.mark.parametrize("name", SCHEDULES)
@given(progress=st.floats(0, 2), warmup=st.floats(0, 0.9))
def test_schedules_stay_between_0_and_1_and_peak_after_the_warmup(
    name: str, progress: float, warmup: float
) -> None:
    factor = SCHEDULES[name](progress, warmup)
    assert 0 <= factor <= 1
    assert SCHEDULES[name](warmup, warmup) == 1
    if progress < warmup:
        assert factor == progress / warmup


@pytest.mark.parametrize(
    ("name", "halfway", "end"), [("constant", 1, 1), ("linear", 0.5, 0), ("cosine", 0.5, 0)]
)
def test_schedules_end_where_they_should(name: str, halfway: float, end: float) -> None:
    assert SCHEDULES[name](0.6, 0.2) == pytest.approx(halfway)
    assert SCHEDULES[name](1.0, 0.2) == pytest.approx(end)
    assert SCHEDULES[name](1.5, 0.2) == pytest.approx(end)


def test_cosine_is_slow_at_both_ends() -> None:
    assert SCHEDULES["cosine"](0.25, 0) == pytest.approx((1 + math.sqrt(0.5)) / 2)


def test_groups_part_by_decay_and_rate() -> None:
    model = Small()
    groups = parameter_groups(model, 0.1, lr=2.0, slow={"logit_scale": 0.01})
    by_key = {(group["weight_decay"], group["lr"]): set(group["params"]) for group in groups}
    assert by_key == {
        (0.1, 2.0): {
            model.inner[1].weight,
            model.attention.in_proj_weight,
            model.attention.out_proj.weight,
        },
        (0.0, 2.0): {
            *model.inner[0].parameters(),
            *model.inner[2].parameters(),
            model.inner[1].bias,
            model.attention.in_proj_bias,
            model.attention.out_proj.bias,
        },
        (0.1, 2.0 * 0.01): {model.logit_scale},
    }
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    assert sum(len(group["params"]) for group in groups) == len(trainable)


def test_slow_takes_whole_parts_of_names_only() -> None:
    with pytest.raises(InvalidValue, match="'scale'"):
        parameter_groups(Small(), 0.1, slow={"scale": 0.5})
    (rest, slow) = parameter_groups(nn.Sequential(nn.Linear(2, 2)), 0.0, slow={"0.bias": 0.5})
    assert (rest["lr"], slow["lr"]) == (1.0, 0.5)


def test_first_step_of_a_warmup_moves_only_moments() -> None:
    parameter = nn.Parameter(torch.tensor([3.0, 4.0]))
    optimizer = BertAdam([{"params": [parameter]}], OptimizerConfig(lr=0.1, warmup=0.5), 10)
    parameter.grad = torch.tensor([30.0, 40.0])
    optimizer.step()
    assert parameter.tolist() == [3.0, 4.0]
    # Clipped to norm 1, but the gradient that was given is left as it was.
    torch.testing.assert_close(optimizer.state[parameter]["first_moment"], torch.tensor([0.06, 0.08]))
    assert parameter.grad.tolist() == [30.0, 40.0]


def test_each_tensor_is_clipped_alone_and_decay_joins_the_update() -> None:
    small, large = nn.Parameter(torch.tensor([1.0])), nn.Parameter(torch.tensor([1.0]))
    options = OptimizerConfig(lr=0.1, schedule="constant", warmup=0, eps=1.0, weight_decay=0.5)
    optimizer = BertAdam([{"params": [small, large]}], options, 10)
    small.grad, large.grad = torch.tensor([0.5]), torch.tensor([100.0])
    optimizer.step()
    for parameter, gradient in ((small, 0.5), (large, 1.0)):
        update = 0.1 * gradient / (math.sqrt(0.001) * gradient + 1) + 0.5
        assert parameter.item() == pytest.approx(1 - 0.1 * update, rel=1e-5)


def test_a_parameter_without_gradient_stays() -> None:
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    options = OptimizerConfig(lr=0.1, schedule="constant", warmup=0)
    optimizer = BertAdam([{"params": [used, unused]}], options, 2)
    used.grad = torch.ones(2)
    optimizer.step()
    assert unused.tolist() == [1.0, 1.0] and used.tolist() != [1.0, 1.0]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_from_a_saved_state(name: str) -> None:
    torch.manual_seed(0)
    data = torch.randn(8, 8, 3)

    def train(model: nn.Module, parts: list[range], config: OptimizerConfig) -> nn.Module:
        saved: tuple[dict[str, object], dict[str, object] | None] | None = None
        for part in parts:
            optimizer, schedule = make_optimizer(model, config, len(data))
            if saved is not None:
                optimizer.load_state_dict(saved[0])
                if schedule is not None and saved[1] is not None:
                    schedule.load_state_dict(saved[1])
            for step in part:
                optimizer.zero_grad()
                model(data[step]).square().mean().backward()
                optimizer.step()
                if schedule is not None:
                    schedule.step()
            saved = copy.deepcopy((optimizer.state_dict(), schedule and schedule.state_dict()))
        return model

    start = Small()
    config = OptimizerConfig(name, lr=0.05, warmup=0.25, slow={"logit_scale": 0.5})
    whole = train(copy.deepcopy(start), [range(8)], config)
    parted = train(copy.deepcopy(start), [range(3), range(3, 8)], config)
    for (key, one), other in zip(whole.state_dict().items(), parted.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, msg=key)
    assert not torch.equal(whole.get_parameter("inner.1.weight"), start.get_parameter("inner.1.weight"))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_lowers_a_loss(name: str) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer, schedule = make_optimizer(model, OptimizerConfig(name, lr=0.1), 100)
    inputs = torch.randn(32, 4)
    target = inputs @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])
    losses = []
    for _ in range(100):
        loss = (model(inputs) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 50


def test_adam_clips_all_gradients_together_and_follows_the_schedule() -> None:
    model = nn.Linear(2, 1)
    config = OptimizerConfig("adamw", lr=0.1, schedule="cosine", warmup=0.0, clip_norm=1.0)
    optimizer, schedule = make_optimizer(model, config, 4)
    assert schedule is not None
    model.weight.grad, model.bias.grad = torch.tensor([[3.0, 0.0]]), torch.tensor([4.0])
    optimizer.step()
    assert model.weight.grad[0, 0].item() == pytest.approx(0.6, rel=1e-4)
    assert model.bias.grad.item() == pytest.approx(0.8, rel=1e-4)
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(4):
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1 * (1 + math.cos(math.pi * step / 4)) / 2 for step in range(5)])


def test_a_steady_rate_needs_no_schedule() -> None:
    config = OptimizerConfig("adamw", schedule="constant", warmup=0.0)
    assert make_optimizer(nn.Linear(2, 1), config, 10)[1] is None


@pytest.mark.parametrize(
    ("config", "steps", "message"),
    [
        (OptimizerConfig("sgd"), 5, "sgd"),
        (OptimizerConfig(schedule="steps"), 5, "steps"),
        (OptimizerConfig(lr=0.0), 5, "lr=0.0"),
        (OptimizerConfig(eps=0.0), 5, "eps=0.0"),
        (OptimizerConfig(betas=(0.9, 1.0)), 5, "betas"),
        (OptimizerConfig(weight_decay=-1.0), 5, "weight_decay=-1.0"),
        (OptimizerConfig(warmup=1.0), 5, "warmup=1.0"),
        (OptimizerConfig(clip_norm=0.0), 5, "clip_norm=0.0"),
        (OptimizerConfig(), 0, "total_steps=0"),
        (OptimizerConfig(slow={"nothing": 0.1}), 5, "nothing"),
    ],
)
def test_wrong_options_are_named(config: OptimizerConfig, steps: int, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make_optimizer(nn.Linear(2, 1), config, steps)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_option_reaches_the_optimizer(name: str) -> None:
    config = OptimizerConfig(
        name, betas=(0.5, 0.6), eps=0.25, weight_decay=0.125, warmup=0.75, schedule="cosine", clip_norm=2.0
    )
    (weights, biases) = make_optimizer(nn.Linear(2, 1), config, 8)[0].param_groups
    wanted: dict[str, object] = {"betas": (0.5, 0.6), "eps": 0.25}
    if name == "bert_adam":  # the others clip and follow the schedule from outside
        wanted |= {"warmup": 0.75, "schedule": "cosine", "clip_norm": 2.0, "total_steps": 8}
    for group, decay in ((weights, 0.125), (biases, 0.0)):
        options = wanted | {"weight_decay": decay}
        assert {option: group[option] for option in options} == options
