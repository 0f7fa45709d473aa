"""A second encoder, of the demo's sizes and other weights: what differs in nothing but its numbers is the
easiest to mistake for the first.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from moviola.encoders.checkpoints import DEMO_FOLDER

__all__ = ["write_other_encoder"]


def write_other_encoder(folder: Path, seed: int = 0) -> Path:
    """Write a checkpoint: the demo's, with noise on the weights of its tower of pictures."""
    shutil.copytree(DEMO_FOLDER, folder)
    weights, draw = load_file(folder / "model.safetensors"), np.random.default_rng(seed)
    for name in sorted(weights):
        if "vision" in name or "visual" in name:
            noise = draw.normal(0, 0.02, weights[name].shape)
            weights[name] = (weights[name] + noise).astype(weights[name].dtype)
    save_file(weights, folder / "model.safetensors")
    about = json.loads((folder / "moviola.json").read_text())
    about.pop("revision", None)  # another one than the demo's
    (folder / "moviola.json").write_text(json.dumps(about))
    return folder
