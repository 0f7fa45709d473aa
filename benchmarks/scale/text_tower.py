"""A text encoder of any size, with random weights: what a text costs does not depend on them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.checkpoints import DEMO_FOLDER

__all__ = ["random_text_tower"]

_LAYERS, _HEAD = 12, 64


def random_text_tower(folder: Path, width: int) -> Path:
    """Write a CLIP checkpoint with a text tower of 12 layers of ``width``, and the demo's tokenizer.

    512 is the size of ViT-B/32's text tower, 768 that of ViT-L/14's.

    Returns:
        the folder.
    """
    from safetensors.numpy import save_file

    for file in DEMO_FOLDER.iterdir():
        if file.suffix != ".safetensors":
            shutil.copy(file, folder)
    config = json.loads((folder / "config.json").read_text())
    text = config["text_config"]
    text |= {
        "hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": _LAYERS,
        "num_attention_heads": width // _HEAD,
    }  # fmt: skip
    config["projection_dim"] = width
    (folder / "config.json").write_text(json.dumps(config))
    save_file(
        _weights(text["vocab_size"], text["max_position_embeddings"], width), folder / "model.safetensors"
    )
    return folder


def _weights(vocabulary: int, positions: int, width: int) -> dict[str, NDArray[np.float32]]:
    draw = np.random.default_rng(0)

    def weights(*shape: int) -> NDArray[np.float32]:
        return draw.standard_normal(shape, dtype=np.float32) * np.float32(0.02)

    state = {
        "text_model.embeddings.token_embedding.weight": weights(vocabulary, width),
        "text_model.embeddings.position_embedding.weight": weights(positions, width),
        "text_model.final_layer_norm.weight": weights(width),
        "text_model.final_layer_norm.bias": weights(width),
        "text_projection.weight": weights(width, width),
    }
    sizes = {f"self_attn.{part}_proj": (width, width) for part in ("q", "k", "v", "out")}
    sizes |= {"mlp.fc1": (4 * width, width), "mlp.fc2": (width, 4 * width)}
    for layer in range(_LAYERS):
        prefix = f"text_model.encoder.layers.{layer}"
        for name, size in sizes.items():
            state[f"{prefix}.{name}.weight"] = weights(*size)
            state[f"{prefix}.{name}.bias"] = weights(size[0])
        for name in ("layer_norm1", "layer_norm2"):
            for part in ("weight", "bias"):
                state[f"{prefix}.{name}.{part}"] = weights(width)
    return state
