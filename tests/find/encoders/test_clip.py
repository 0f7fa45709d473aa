"""One contract for every frame-and-text encoder: the numbers are those of transformers itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from among_others import require_the_same_alone
from moviola.compiled.module import least_cosine
from moviola.encoders import load_encoder
from moviola.encoders.checkpoints import Checkpoint
from moviola.encoders.clip import CURVE_OPTIONS
from moviola.encoders.tokens import siglip_tokenizer
from moviola.encoders.towers import ACTIVATIONS
from moviola.errors import DataError, InvalidValue, MissingModel
from moviola.retrieval import CurveRefiner
from moviola.types import FrameSize

TEXTS = [
    "a red robot picks up the key",
    "Blue BALL, in the room!",
    "zebra",
    "",
    "a box " * 30,
    "漢字 ünïcode",
]


def reference_text(folder: Path, texts: list[str]) -> NDArray[np.float32]:
    """Text features by transformers' own tokenizer and model, one text at a time."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    longest = model.config.text_config.max_position_embeddings
    siglip = model.config.model_type == "siglip"
    rows = []
    for text in texts:
        ids = tokenizer(
            text,
            padding="max_length" if siglip else False,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
            return_attention_mask=False,
        )["input_ids"]
        with torch.inference_mode():
            rows.append(model.get_text_features(input_ids=ids).pooler_output[0].numpy())
    return np.stack(rows)


def reference_frames(folder: Path, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Frame features by transformers' model, normalised by the formula in the processor's documentation."""
    from transformers import AutoModel

    given = json.loads((folder / "preprocessor_config.json").read_text())
    mean, std = np.array(given["image_mean"]), np.array(given["image_std"])
    pixels = torch.from_numpy(((images / 255 - mean) / std).transpose(0, 3, 1, 2)).float()
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        features: NDArray[np.float32] = model.get_image_features(pixel_values=pixels).pooler_output.numpy()
    return features


def random_frames(n: int, size: FrameSize) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (n, size.height, size.width, 3), dtype=np.uint8)


def test_text_features_are_those_of_transformers(checkpoint: Path) -> None:
    encoder = load_encoder(str(checkpoint), device="cpu")
    got = encoder.encode_text(TEXTS)
    assert got.dtype == np.float32
    assert got.shape == (len(TEXTS), encoder.dim)
    np.testing.assert_allclose(got, reference_text(checkpoint, TEXTS), atol=2e-5)


def test_frame_features_are_those_of_transformers(checkpoint: Path) -> None:
    encoder = load_encoder(str(checkpoint), device="cpu")
    images = random_frames(7, encoder.frame_size)
    got = encoder.encode_frames(images)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, reference_frames(checkpoint, images), atol=2e-5)


def test_constants_come_from_the_checkpoint(make_clip: Callable[..., Path]) -> None:
    """Other means shift the features exactly as a shift of the pixels does."""
    folder = make_clip()
    encoder = load_encoder(str(folder), device="cpu")
    assert encoder.frame_size == FrameSize(32, 32, "crop", 40, "bicubic")
    images = np.full((1, 32, 32, 3), 100, np.uint8)
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    settings["image_mean"] = [mean + 50 / 255 for mean in settings["image_mean"]]
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    moved = load_encoder(str(folder), device="cpu")
    np.testing.assert_allclose(moved.encode_frames(images + 50), encoder.encode_frames(images), atol=1e-5)
    assert not np.allclose(moved.encode_frames(images), encoder.encode_frames(images), atol=1e-3)
    assert moved.revision != encoder.revision


def test_siglip_stretches(make_siglip: Callable[..., Path]) -> None:
    assert load_encoder(str(make_siglip())).frame_size == FrameSize(32, 32, "stretch", 0, "bilinear")


def test_settings_of_a_processor_file_are_read(make_clip: Callable[..., Path]) -> None:
    """Newer checkpoints keep the same settings inside processor_config.json."""
    folder = make_clip()
    before = load_encoder(str(folder)).frame_size
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": settings}))
    assert load_encoder(str(folder)).frame_size == before


def test_towers_of_an_older_configuration_are_read(make_clip: Callable[..., Path]) -> None:
    """Files of 2022 keep them under ``…_config_dict``, which counts for transformers, too."""
    folder = make_clip()
    config = json.loads((folder / "config.json").read_text())
    before = load_encoder(str(folder), device="cpu").encode_text(TEXTS)
    for kept in ({}, {"text_config": {"num_attention_heads": 2}, "vision_config": None}):
        towers = {f"{name}_dict": config[name] for name in ("text_config", "vision_config")}
        rest = {name: value for name, value in config.items() if f"{name}_dict" not in towers}
        (folder / "config.json").write_text(json.dumps({**rest, **kept, **towers}))
        np.testing.assert_array_equal(load_encoder(str(folder), device="cpu").encode_text(TEXTS), before)
    np.testing.assert_allclose(reference_text(folder, TEXTS), before, atol=2e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resample": 0}, "resample 0"),
        ({"do_center_crop": False}, "no fixed size"),
        ({"crop_size": 24}, "config.json is for 32 pixels"),
        ({"crop_size": {"shortest_edge": 32}}, "no fixed size"),
        ({"size": {"shortest_edge": "32"}}, "no fixed size"),
        ({"size": {"height": 32}}, "no fixed size"),
    ],
)
def test_settings_that_cannot_be_met_are_refused(
    make_clip: Callable[..., Path], change: dict[str, Any], message: str
) -> None:
    folder = make_clip()
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps({**settings, **change}))
    with pytest.raises(DataError, match=message):
        load_encoder(str(folder))


def test_a_checkpoint_states_its_calibration(make_clip: Callable[..., Path]) -> None:
    folder = make_clip()
    chosen = load_encoder(str(folder)).match
    (folder / "moviola.json").write_text('{"match": {"slope": 20, "line": 0.3}}')
    stated = load_encoder(str(folder)).match
    assert (stated.slope, stated.line) == (20.0, 0.3) and stated != chosen
    for wrong in ('{"slope": 0, "line": 0.3}', '{"slope": 20}', '{"slope": 20, "line": NaN}', '"x"', "[]"):
        (folder / "moviola.json").write_text(f'{{"match": {wrong}}}')
        with pytest.raises(DataError, match=r"moviola\.json: match is .*; give two numbers"):
            _ = load_encoder(str(folder)).match


def test_a_checkpoint_states_how_its_curves_are_read(make_clip: Callable[..., Path]) -> None:
    folder = make_clip()
    (folder / "moviola.json").write_text('{"curve": {"level": 0.8, "before": 6}}')
    assert load_encoder(str(folder)).curve == {"level": 0.8, "before": 6}
    assert set(CURVE_OPTIONS) == {field.name for field in fields(CurveRefiner)}
    for wrong in ('{"levle": 0.8}', '{"level": "high"}', '{"level": NaN}', '"x"', "null"):
        (folder / "moviola.json").write_text(f'{{"curve": {wrong}}}')
        with pytest.raises(DataError, match=r"moviola\.json: curve is .*; give numbers for some of context"):
            load_encoder(str(folder))


@pytest.mark.parametrize(
    ("kind", "message"), [("siglip3", "it knows clip, siglip"), ("llama", "it knows clip, siglip")]
)
def test_other_models_are_refused(make_clip: Callable[..., Path], kind: str, message: str) -> None:
    folder = make_clip()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": kind}))
    with pytest.raises(InvalidValue, match=message):
        load_encoder(str(folder))


def test_damaged_files_are_named(make_clip: Callable[..., Path]) -> None:
    folder = make_clip()
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(DataError, match=r"model\.safetensors: not a readable safetensors file"):
        load_encoder(str(folder)).encode_text(["a"])
    (folder / "model.safetensors").write_bytes(weights)
    for damaged in ("{", "{}", ""):
        (folder / "tokenizer.json").write_text(damaged)
        with pytest.raises(DataError, match=r"tokenizer\.json: not a readable tokenizer"):
            load_encoder(str(folder)).encode_text(["a"])
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").write_text('{"image_processor": null}')
    with pytest.raises(DataError, match=r"config\.json is for 32 pixels"):
        load_encoder(str(folder))
    (folder / "config.json").write_text('{"model_type": "clip", "text_config": "x"}')
    with pytest.raises(DataError, match=r"text_config in config\.json is no object"):
        load_encoder(str(folder))
    (folder / "config.json").write_text("{")
    with pytest.raises(DataError, match=r"config\.json: not valid JSON"):
        load_encoder(str(folder))


@pytest.mark.parametrize("family", ["clip", "siglip"])
def test_tensors_of_another_shape_are_named(
    family: str, make_clip: Callable[..., Path], make_siglip: Callable[..., Path]
) -> None:
    """They broke the runtime's graph, or a product, in the middle of the first search."""
    from safetensors.torch import load_file, save_file

    folder = {"clip": make_clip, "siglip": make_siglip}[family]()
    state = load_file(folder / "model.safetensors")
    for name in ("vision_model.post_layernorm.bias", "text_model.encoder.layers.1.mlp.fc2.weight"):
        save_file(state | {name: torch.zeros(5)}, folder / "model.safetensors")
        with pytest.raises(DataError, match=rf"model\.safetensors: '{name}' gives a tensor of shape \[5\]"):
            load_encoder(str(folder)).encode_text(["a"])


def test_weights_of_a_type_that_is_not_read_are_named(make_clip: Callable[..., Path]) -> None:
    """Quantised checkpoints keep their matrices as 8-bit numbers."""
    from safetensors.torch import load_file, save_file

    folder = make_clip()
    name = "text_model.encoder.layers.0.mlp.fc1.weight"
    state = load_file(folder / "model.safetensors")
    save_file(state | {name: state[name].to(torch.float8_e4m3fn)}, folder / "model.safetensors")
    with pytest.raises(DataError, match=rf"holds no '{name}' of type F64, F32, F16, BF16"):
        load_encoder(str(folder)).encode_text(["a"])


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations_of_large_numbers_warn_of_nothing(name: str) -> None:
    large = np.array([-1e4, -60, 60, 1e4], np.float32)
    np.testing.assert_allclose(ACTIVATIONS[name](large), [0, 0, 60, 1e4], atol=1e-30)


def test_wide_towers_are_quantised_unless_a_precision_is_named(make_clip: Callable[..., Path]) -> None:
    """On the CPU, for frames; features stay near those in full precision."""
    folder = make_clip(width=512)
    images = random_frames(3, FrameSize(32, 32, "stretch"))
    eight, full = load_encoder(str(folder)), load_encoder(str(folder), precision="fp32")
    assert (eight.device, eight.precision, full.precision) == ("cpu", "int8", "fp32")
    small, exact = eight.encode_frames(images), full.encode_frames(images)
    assert least_cosine([small], [exact]) > 0.999
    assert not np.array_equal(small, exact)
    np.testing.assert_allclose(exact, reference_frames(folder, images), atol=2e-5)
    # Each row has its own scale, so other frames of a batch do not matter.
    np.testing.assert_array_equal(eight.encode_frames(images[1:2]), small[1:2])
    np.testing.assert_array_equal(eight.encode_text(TEXTS), full.encode_text(TEXTS))
    assert eight.revision == full.revision


def test_pickled_weights_are_read(make_clip: Callable[..., Path]) -> None:
    """A checkpoint that only has pytorch_model.bin gives the same features, text included."""
    from safetensors.torch import load_file

    folder = make_clip()
    images = random_frames(2, FrameSize(32, 32, "stretch"))
    before = load_encoder(str(folder), device="cpu")
    frames, texts = before.encode_frames(images), before.encode_text(TEXTS)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    after = load_encoder(str(folder), device="cpu")
    np.testing.assert_allclose(after.encode_frames(images), frames, atol=1e-6)
    np.testing.assert_allclose(after.encode_text(TEXTS), texts, atol=2e-5)
    require_the_same_alone(lambda: load_encoder(str(folder), device="cpu"))
    assert after.dim == before.dim
    assert after.revision != before.revision


def test_revision_is_stable_and_follows_the_weights(make_clip: Callable[..., Path]) -> None:
    folder = make_clip()
    first = load_encoder(str(folder)).revision
    assert load_encoder(str(folder)).revision == first
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert load_encoder(str(folder)).revision != first


def test_siglip_text_is_made_canonical(make_siglip: Callable[..., Path]) -> None:
    """SigLIP (1): lower case, no punctuation, one space between words; then the end token and padding."""
    folder = make_siglip()
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings |= {"tokenizer_class": "SiglipTokenizer", "do_lower_case": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenize = siglip_tokenizer(Checkpoint("x", folder, ""), {"max_position_embeddings": 12})
    plain, decorated, long = tokenize(["a red ball", "  A Red,  ball! ", "box " * 40])
    assert plain == decorated
    assert [len(plain), len(long)] == [12, 12]
    assert plain[-1] == 0
    assert long[-1] == 1


def test_missing_models_say_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(MissingModel, match=r"`moviola models pull nobody/nothing`.*'conse-lite1'"):
        load_encoder("nobody/nothing")
    with pytest.raises(MissingModel, match="holds no config"):
        load_encoder(str(tmp_path))
    for name in ("/nowhere/at/all", "\u202e", "a--b", "-a", "org/model.git", "a" * 97):
        with pytest.raises(MissingModel, match="no such folder"):
            load_encoder(name)
    (tmp_path / "config.json").write_text('{"model_type": "clip"}')
    with pytest.raises(MissingModel, match="holds no weights"):
        load_encoder(str(tmp_path))
