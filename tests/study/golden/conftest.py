"""The stored numbers of a module's release, which its ``NAME`` names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor


@pytest.fixture(scope="module")
def fixture(golden: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings, tolerances and small values."""
    found: dict[str, Any] = json.loads((golden / f"{request.module.NAME}.json").read_text())
    return found


@pytest.fixture(scope="module")
def arrays(golden: Path, request: pytest.FixtureRequest) -> dict[str, Tensor]:
    """Weights, inputs and outputs of a model."""
    with np.load(golden / f"{request.module.NAME}.npz", allow_pickle=False) as stored:
        return {name: torch.from_numpy(stored[name]) for name in stored}
