"""A Chinese-CLIP, tiny and random, with its vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import random_checkpoints

__all__ = ["VOCABULARY", "make"]

_SIGNS = "一只红色的机器人捡起钥匙在房间里打开门蓝球"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(_SIGNS), "key", "##s", ",", "!"]


def make(folder: Path) -> Path:
    """Write it into an existing folder, which is returned."""
    vision = {
        "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3,
        "image_size": 32, "patch_size": 8,
    }  # fmt: skip
    texts = {
        "vocab_size": len(VOCABULARY), "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 64,
    }  # fmt: skip
    random_checkpoints.chinese_clip(folder, vision, texts, 16)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    pixels: dict[str, Any] = {"size": {"height": 32, "width": 32}, "do_center_crop": False, "resample": 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(pixels))
    return folder
