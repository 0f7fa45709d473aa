"""Pickles become folders that need no torch, and say the same."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from typer.testing import CliRunner

import random_checkpoints
from moviola.cli import all_commands
from moviola.encoders import convert_pickle, load_encoder
from moviola.errors import DataError, InvalidValue, MissingModel
from open_clips import KINDS
from towers_by_formula import Formulas, cosines, rotated

TEXTS = ["a red robot", "zebra", ""]
VISION = {"image_size": 48, "patch_size": 16, "width": 192, "layers": 2}
SIZES = {"width": 128, "layers": 2, "vocab_size": 760, "context_length": 16}


def pe_core_frame(formulas: Formulas, picture: Any) -> Any:
    """By its authors' names: class token, places, rotary layers, and a query of 8 heads over all."""
    x = np.concatenate([formulas["visual.class_embedding"][None], formulas.patches("visual.conv1", picture)])
    x = formulas.norm("visual.ln_pre", x + formulas["visual.positional_embedding"])
    for number in range(2):
        at = f"visual.transformer.resblocks.{number}"
        q, k, v = formulas.joint(f"{at}.attn.in_proj_", formulas.norm(f"{at}.ln_1", x))
        seen = formulas.attention(rotated(q, 3, 3), rotated(k, 3, 3), v, 3)
        x = x + formulas.linear(f"{at}.attn.out_proj", seen)
        inner = formulas.gelu(formulas.linear(f"{at}.mlp.c_fc", formulas.norm(f"{at}.ln_2", x)))
        x = x + formulas.linear(f"{at}.mlp.c_proj", inner)
    x, pool = formulas.norm("visual.ln_post", x), "visual.attn_pool"
    weights, biases = (np.split(formulas[f"{pool}.attn.in_proj_{kind}"], 3) for kind in ("weight", "bias"))
    q, k, v = (
        rows @ weight.T + bias
        for rows, weight, bias in zip((formulas[f"{pool}.probe"][0], x, x), weights, biases, strict=True)
    )
    pooled = formulas.linear(f"{pool}.attn.out_proj", formulas.attention(q, k, v, 8))
    inner = formulas.gelu(formulas.linear(f"{pool}.mlp.c_fc", formulas.norm(f"{pool}.layernorm", pooled)))
    return ((pooled + formulas.linear(f"{pool}.mlp.c_proj", inner)) @ formulas["visual.proj"])[0]


def test_a_pe_core_of_its_authors(tmp_path: Path) -> None:
    """Sizes come from its tensors, for it has no settings; features are those of the formulas."""
    path = tmp_path / "PE-Core-T16-48.pt"
    tensors = random_checkpoints.pe_core(path, VISION, SIZES, 64)
    done = CliRunner().invoke(all_commands(), ["models", "unpickle", str(path), str(tmp_path / "made")])
    assert done.exit_code == 0, done.output
    with pytest.raises(MissingModel, match=r"unpickle .*PE-Core-T16-48\.pt NEW_FOLDER"):
        load_encoder(str(tmp_path))
    random_checkpoints.with_tokenizer(tmp_path / "made")
    encoder: Any = load_encoder(str(tmp_path / "made"), device="cpu", precision="fp32")
    assert (encoder.frame_size.height, encoder.frame_size.fit, encoder.dim) == (48, "stretch", 64)
    images = np.random.default_rng(0).integers(0, 256, (2, 48, 48, 3), dtype=np.uint8)
    formulas = Formulas(tensors, 1e-5, "exact")
    frames = np.array([pe_core_frame(formulas, picture / 127.5 - 1) for picture in images])
    assert cosines(encoder.encode_frames(images), frames).min() > 0.99999
    texts = [
        formulas.clip_text(ids, 2, int(np.argmax(ids)), prefix="", causal=True)
        for ids in encoder._tokenize(TEXTS)
    ]
    assert cosines(encoder.encode_text(TEXTS), np.array(texts)).min() > 0.99999


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_pickle_of_open_clip(wrapped: bool, tmp_path: Path, write_tokenizer: Callable[..., None]) -> None:
    folder, kind = tmp_path / "old", KINDS["laion"]
    folder.mkdir()
    write_tokenizer(folder, kind.config)
    wanted = load_encoder(str(kind.make(folder)), device="cpu").encode_text(TEXTS)
    weights = folder / "open_clip_model.safetensors"
    state = {
        f"{'module.' * wrapped}{name}": torch.tensor(value) for name, value in load_file(weights).items()
    }
    torch.save(
        {"epoch": 3, "state_dict": state} if wrapped else state, folder / "open_clip_pytorch_model.bin"
    )
    weights.unlink()
    made = convert_pickle(folder / "open_clip_pytorch_model.bin", tmp_path / "new")
    np.testing.assert_array_equal(load_encoder(str(made), device="cpu").encode_text(TEXTS), wanted)


def test_what_cannot_be_converted_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    """A pickle that would run code does not."""
    made, path = tmp_path / "made", tmp_path / "x.pt"
    with pytest.raises(InvalidValue, match=r"x\.pt: no such file"):
        convert_pickle(path, made)
    path.write_bytes(pickle.dumps({"a": Path}))
    with pytest.raises(DataError, match=r"x\.pt: no pickle of weights alone"):
        convert_pickle(path, made)
    torch.save([1, 2], path)
    with pytest.raises(DataError, match=r"x\.pt: holds no tensors by name"):
        convert_pickle(path, made)
    torch.save({"a": torch.zeros(2)}, path)
    with pytest.raises(InvalidValue, match=r"no open_clip_config\.json lies beside it"):
        convert_pickle(path, made)
    random_checkpoints.pe_core(path, VISION | {"width": 200}, SIZES, 64)
    with pytest.raises(InvalidValue, match="width 200 with 10 places is none of T, S, B and L"):
        convert_pickle(path, made)
    tensors = random_checkpoints.pe_core(path, VISION, SIZES, 64)
    tensors.pop("visual.class_embedding")
    torch.save({name: torch.tensor(value) for name, value in tensors.items()}, path)
    with pytest.raises(DataError, match="not a whole PE-Core with a class token"):
        convert_pickle(path, made)
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": {}}))
    with pytest.raises(DataError, match="no vision_cfg and text_cfg"):
        convert_pickle(path, made)
    assert not made.exists()
    made.mkdir()
    with pytest.raises(InvalidValue, match="is there already"):
        convert_pickle(path, made)
