"""Models with random weights: what costs a time, or finds nothing, needs no others."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from moviola.encoders.checkpoints import DEMO_FOLDER
from moviola.features import VideoFeatures
from moviola.retrieval import Refiner, refiner_of
from moviola.study.models.pretrained import build
from moviola.study.models.running import TorchRunner
from moviola.study.training.data import Sizes
from moviola.study.training.recipes import recipe
from moviola.study.training.settings import read_settings

__all__ = ["random_clip", "random_refiner", "text_tower"]


def random_clip(folder: Path, **text: int) -> Path:
    """The demo encoder's architecture and tokenizer with random weights, in a new folder, which is returned.

    Args:
        folder: for the checkpoint.
        text: settings of the text tower that are different.
    """
    from transformers import CLIPConfig, CLIPModel

    shutil.copytree(DEMO_FOLDER, folder)
    config = CLIPConfig.from_pretrained(DEMO_FOLDER)
    for name, value in text.items():
        setattr(config.text_config, name, value)
    config.projection_dim = text.get("hidden_size", config.projection_dim)
    torch.manual_seed(0)
    CLIPModel(config).save_pretrained(folder)
    return folder


def text_tower(width: int, layers: int = 12) -> dict[str, int]:
    """Settings of a text tower: 512 is the width of ViT-B/32's, 768 that of ViT-L/14's."""
    return {
        "hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers,
        "num_attention_heads": width // 64,
    }  # fmt: skip


def random_refiner(name: str, features: VideoFeatures, overrides: Sequence[str] = ()) -> Refiner:
    """A refiner with random weights, for pictures alone and queries in their space.

    Args:
        name: of its recipe.
        features: what it will read.
        overrides: settings, as on the command line.
    """
    how, dim = recipe(name), features.visual.dim
    sizes = Sizes(dim, 0, dim, features.clip_seconds, int(features.counts.max()))
    settings = read_settings(how, overrides=overrides)
    torch.manual_seed(0)
    model = build(how.architecture, {**how.sized(sizes), **settings.model}).eval()
    return refiner_of(how.architecture, TorchRunner(model), name)
