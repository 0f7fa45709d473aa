"""BertAdam equal to the reference after every step (golden ``optimizer_bertadam``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from moviola.study.training.optimizers import SCHEDULES, BertAdam, OptimizerConfig


def rates_of(optimizer: BertAdam) -> list[float]:
    """Rates that the next step will use, one per group."""
    return [
        group["lr"] * SCHEDULES[group["schedule"]](group["steps"] / group["total_steps"], group["warmup"])
        for group in optimizer.param_groups
    ]


def test_every_step_equals_the_reference(golden: Path) -> None:
    case: dict[str, Any] = json.loads((golden / "optimizer_bertadam.json").read_text())
    config, tolerance = case["config"], case["tolerance"]
    with np.load(golden / "optimizer_bertadam.npz", allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    names = list(config["weight_decay"])
    parameters = {name: torch.nn.Parameter(torch.from_numpy(arrays[f"in/{name}"])) for name in names}
    optimizer = BertAdam(
        [{"params": [parameters[name]], "weight_decay": config["weight_decay"][name]} for name in names],
        OptimizerConfig(
            lr=config["lr"],
            warmup=config["warmup"],
            schedule=config["schedule"].removeprefix("warmup_"),
            betas=(config["b1"], config["b2"]),
            eps=config["e"],
            clip_norm=config["max_grad_norm"],
        ),
        config["t_total"],
    )
    for step in range(config["steps"]):
        for name in names:
            parameters[name].grad = torch.from_numpy(arrays[f"in/grad_{name}"][step])
        np.testing.assert_allclose(
            rates_of(optimizer), [arrays["out/learning_rate"][step]] * len(names), **tolerance
        )
        optimizer.step()
        for name in names:
            np.testing.assert_allclose(
                parameters[name].detach().numpy(), arrays[f"out/{name}"][step], **tolerance
            )
            for moment in ("first_moment", "second_moment"):
                if f"out/{name}_{moment}" in arrays:
                    np.testing.assert_allclose(
                        optimizer.state[parameters[name]][moment].numpy(),
                        arrays[f"out/{name}_{moment}"][step],
                        **tolerance,
                    )
