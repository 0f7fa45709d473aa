"""Checkpoints as strangers make them: what does not fit is named, with its file."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from moviola.encoders import load_encoder, load_sentence_encoder
from moviola.encoders.formats.open_clip import HF_TEXTS, TIMM_TOWERS
from moviola.encoders.formats.transformers import FAMILIES
from moviola.errors import DataError, InvalidValue, MoviolaError

WRONG: dict[str, tuple[Any, ...]] = {
    "hidden_size": (0, -1, 1.5, "x", [], {}, True, float("nan")),
    "num_hidden_layers": (0, 1, 1.5, "x", []),
    "num_attention_heads": (0, -1, 5, 1.5, "x", True),
    "layer_norm_eps": (0, -1, 10**12, "x", [], {}, float("nan")),
    "hidden_act": ([], {}, 3),
}
"""By settings of both towers; of two layers one is not computed in silence, and 5 heads share no width."""
OF_TEXTS: dict[str, tuple[Any, ...]] = {
    "max_position_embeddings": (0, 1, -1, 1.5, "x", [], True, 10**12),
    "vocab_size": (0, -1, "x", [], 10**12),
    "eos_token_id": ([], -1, "x", True),
}
PIXELS: dict[str, tuple[Any, ...]] = {
    "image_mean": (0.5, [0.5], ["x"] * 3, [float("nan")] * 3),
    "image_std": ([0, 1, 1], [-1, 1, 1], "x"),
    "rescale_factor": (0, "x", []),
    "resample": ([], "x", -1),
    "do_normalize": ("x", 3),
}


@pytest.fixture(params=["clip", "siglip", "naflex"])
def folder(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    make_clip: Callable[..., Path],
    make_siglip: Callable[..., Path],
    naflex: Path,
) -> Path:
    if request.param != "naflex":
        return {"clip": make_clip, "siglip": make_siglip}[request.param]()
    for path in naflex.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def frames(encoder: Any) -> NDArray[np.uint8]:
    size = encoder.frame_size
    return np.full((1, *size.sides(160, 90), 3), 100, np.uint8)


def used(folder: Path) -> None:
    encoder = load_encoder(str(folder), device="cpu")
    encoder.encode_text(["a red ball"])
    assert encoder.match
    if (folder / "frames").exists():
        encoder.encode_frames(frames(encoder))


@contextmanager
def changed(path: Path, change: Callable[[Any], Any]) -> Iterator[None]:
    """A file of settings while inside."""
    before = path.read_text()
    path.write_text(json.dumps(change(json.loads(before))))
    try:
        yield
    finally:
        path.write_text(before)


def test_settings_that_are_none_are_named(folder: Path) -> None:
    """They ended as a KeyError or a division by zero in the middle of a search; and one layer less than there
    are would give other features in silence.
    """
    for tower, of_tower in (("text_config", WRONG | OF_TEXTS), ("vision_config", WRONG)):
        for key, wrongs in of_tower.items():
            for wrong in wrongs:

                def lie(given: Any, tower: str = tower, key: str = key, wrong: Any = wrong) -> Any:
                    return {**given, tower: {**given[tower], key: wrong}}

                with changed(folder / "config.json", lie):
                    with pytest.raises((DataError, InvalidValue)) as caught:
                        used(folder)
                    named = key in str(caught.value) or ".safetensors: " in str(caught.value)
                    assert named and str(folder) in str(caught.value), (tower, key, wrong, caught.value)
    with (
        changed(folder / "config.json", lambda given: {**given, "projection_dim": "x"}),
        pytest.raises(DataError, match=r"config\.json: projection_dim is 'x'; give a whole number"),
    ):
        used(folder)
    for key, wrongs in PIXELS.items():
        for wrong in wrongs:
            with changed(
                folder / "preprocessor_config.json", lambda given, key=key, wrong=wrong: given | {key: wrong}
            ):
                with pytest.raises(DataError, match=key) as caught:
                    used(folder)
                assert str(folder) in str(caught.value)


# ---- of every format ---------------------------------------------------------------------------------------

OF_ANOTHER_KIND = ("☃", [], {}, -1, float("nan"))
STRANGE = (*OF_ANOTHER_KIND, 0, 1.5, True, 1, 10**12, [1], {"a": 1})
TOKENS = ("tokenizer.json", "vocab.json", "special_tokens_map.json")
INNER = re.compile(r"mlp\.(c_fc|fc1)\.weight|intermediate\.dense\.weight")
"""Matrices that all towers have."""


def test_every_format_is_among_them(every_checkpoint: Mapping[str, Path]) -> None:
    """What a table of the product names, and no checkpoint here is, would be tried by nobody."""
    types, towers, texts = set(), set[str](), set[str]()
    for folder in every_checkpoint.values():
        config = read_settings(folder / "config.json")
        types.add(config.get("model_type"))
        model = read_settings(folder / "open_clip_config.json").get("model_cfg", {})
        towers.add(model.get("vision_cfg", {}).get("timm_model_name", ""))
        texts.add(model.get("text_cfg", {}).get("hf_model_name", "").rsplit("/")[-1])
    assert types - {None} == FAMILIES.keys()
    untried = [one for one in TIMM_TOWERS if not any(re.fullmatch(one, name) for name in towers)]
    untried += [
        kind
        for kind in HF_TEXTS
        if kind not in {next(filter(name.startswith, HF_TEXTS), "") for name in texts}
    ]
    assert not untried


def read_settings(path: Path) -> Any:
    return json.loads(path.read_text()) if path.is_file() else {}


def places_in(settings: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Where in an object something stands, in depth, and what."""
    inside = settings.items() if isinstance(settings, dict) else enumerate(settings)
    for key, value in inside:
        yield (*above, key), value
        if isinstance(value, dict | list):
            yield from places_in(value, (*above, key))


def with_another(settings: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A copy that has another value in one place."""
    copy = inside = json.loads(json.dumps(settings))
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return copy


def test_no_setting_of_any_format_makes_a_traceback_or_another_encoder(each: Path) -> None:
    """Each place of each file gets a strange value, another one each time: the file is named, or what stands
    there is not read. A value of another kind that gives other features would be a wrong index in silence.
    """

    def texts() -> NDArray[np.float32]:
        encoder = load_encoder(str(each), device="cpu")
        assert encoder.dim and encoder.match
        return encoder.encode_text(["a red ball"])

    wanted = texts()
    first = zlib.crc32(str(sorted(path.name for path in each.iterdir())).encode())
    for file in sorted(each.glob("*.json")):
        if file.name in TOKENS:
            continue
        settings = json.loads(file.read_text())
        for turn, (place, there) in enumerate(places_in(settings), first):
            value = STRANGE[turn % len(STRANGE)]
            with changed(file, partial(with_another, place=place, value=value)):
                try:
                    found = texts()
                except MoviolaError as error:
                    assert str(each) in str(error), (file.name, place, value, error)
                    continue
            assert np.isfinite(found).all(), (file.name, place, value)
            if value in OF_ANOTHER_KIND and not (value == {} and isinstance(there, dict)):
                message = f"{file.name} {place} {value}"
                np.testing.assert_allclose(found, wanted, atol=1e-4, err_msg=message)


def test_sizes_that_fit_no_tensor_or_no_machine_are_named(each: Path) -> None:
    """A length of features of 1 was a traceback where no projection says it, and ten to the twelfth patches
    are a loop without end.
    """

    def texts() -> NDArray[np.float32]:
        return load_encoder(str(each), device="cpu").encode_text(["a red ball"])

    wanted = texts()
    for name, key, value in (
        ("open_clip_config.json", "embed_dim", 1), ("open_clip_config.json", "embed_dim", 10**12),
        ("preprocessor_config.json", "max_num_patches", 10**12),
        ("preprocessor_config.json", "patch_size", 10**12),
    ):  # fmt: skip
        settings = read_settings(each / name)
        place = ("model_cfg", key) if key == "embed_dim" else (key,)
        if key not in settings.get("model_cfg", settings):
            continue
        with changed(each / name, partial(with_another, place=place, value=value)):
            try:
                np.testing.assert_allclose(texts(), wanted, atol=1e-4)
                assert key == "embed_dim", "frames of this size would never be cut"
            except (DataError, InvalidValue) as error:
                assert str(each) in str(error)


def test_weights_of_any_format_that_are_none_are_named(each: Path) -> None:
    """Cut short, of another length than it says, without a tensor, with one of another shape, or with NaN."""
    (file,) = each.glob("*.safetensors")
    whole, tensors = file.read_bytes(), load_file(file)
    names = sorted(name for name in tensors if INNER.search(name))
    assert len(names) >= 2
    damages: dict[str, Any] = {
        "cut": whole[: len(whole) // 2], "empty": b"", "header": b"\xff" * 8 + whole[8:],
        "no header": (8).to_bytes(8, "little") + b"[1, 2]  " + whole[64:],
    }  # fmt: skip
    for name in (names[0], names[-1]):
        value = tensors[name]
        damages |= {
            f"{name}: missing": {key: one for key, one in tensors.items() if key != name},
            f"{name}: turned": tensors | {name: np.ascontiguousarray(value.T[:, :-1])},
            f"{name}: NaN": tensors | {name: np.full_like(value, np.nan)},
        }
    for damage, content in damages.items():
        file.write_bytes(content) if isinstance(content, bytes) else save_file(content, file)
        with pytest.raises(MoviolaError) as caught:
            encoder = load_encoder(str(each), device="cpu")
            encoder.encode_text(["a red ball"])
            encoder.encode_frames(frames(encoder))
        assert str(file) in str(caught.value), (damage, caught.value)
        name = damage.rpartition(": ")[0]
        assert name in str(caught.value), (damage, caught.value)


def test_an_end_of_texts_that_is_none_is_named(make_clip: Callable[..., Path]) -> None:
    """All texts had the same features: the state of their first token, which has seen nothing of them."""
    folder = make_clip()
    for end in (0, 5, 10**12):
        with (
            changed(
                folder / "config.json",
                lambda given, end=end: {
                    **given,
                    "text_config": {**given["text_config"], "eos_token_id": end},
                },
            ),
            pytest.raises(DataError, match=rf"{folder}: texts end with the token {end} by its settings"),
        ):
            used(folder)


def test_settings_that_are_null_are_as_if_missing(folder: Path) -> None:
    for tower in ("text_config", "vision_config"):
        with changed(
            folder / "config.json",
            lambda given, tower=tower: {**given, tower: {**given[tower], "layer_norm_eps": None}},
        ):
            used(folder)


def test_numbers_that_are_none_are_named(folder: Path) -> None:
    """NaN was found where features are stored, as the fault of another package; a search gave an error of
    NumPy's, or nonsense. Tensors that nobody asks for do not matter.
    """
    file = folder / "model.safetensors"
    tensors = load_file(file)
    (folder / "frames").touch()
    save_file({**tensors, "position_ids": np.zeros(3, np.float32), "other": np.full(2, np.nan)}, file)
    used(folder)
    for name in (
        "text_model.encoder.layers.1.mlp.fc2.weight", "vision_model.post_layernorm.bias", "logit_scale",
    ):  # fmt: skip
        for value in (np.nan, np.inf):
            wrong = tensors[name].copy()
            wrong.reshape(-1)[-1] = value
            save_file({**tensors, name: wrong}, file)
            with pytest.raises(DataError, match=rf"model\.safetensors: '{name}' ") as caught:
                used(folder)
            assert "fetch it again" in str(caught.value)
    for wrong in (np.array(3e38, np.float32), np.zeros((2, 2), np.float32), np.zeros(0, np.float32)):
        save_file({**tensors, "logit_scale": wrong}, file)
        with pytest.raises(DataError, match=r"model\.safetensors: 'logit_scale' is .* where one number"):
            used(folder)


def test_weights_elsewhere_are_not_opened(naflex: Path, tmp_path: Path) -> None:
    """A list of parts may name any file, or a pipe, of this machine."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for path in naflex.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    part = folder / "model-first.safetensors"
    (folder / "model.safetensors").rename(part)
    (tmp_path / "model.safetensors").write_bytes(part.read_bytes())
    for name in ("../model.safetensors", str(tmp_path / "model.safetensors"), "."):
        index = folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": {"a": part.name, "b": name}}))
        with pytest.raises(DataError, match=r"index\.json: names .*, no file beside it"):
            used(folder)


def test_settings_of_sentence_encoders_that_are_none_are_named(make_bert: Callable[..., Path]) -> None:
    folder = make_bert()
    for key in ("num_hidden_layers", "num_attention_heads", "layer_norm_eps", "max_position_embeddings"):
        for wrong in (0, -1, "x", [], float("nan")):
            with (
                changed(folder / "config.json", lambda given, key=key, wrong=wrong: given | {key: wrong}),
                pytest.raises(DataError, match=rf"config\.json: {key} is .*; give a"),
            ):
                load_sentence_encoder(str(folder), device="cpu").encode_text(["a red ball"])
    file = folder / "model.safetensors"
    tensors = load_file(file)
    name = next(one for one in sorted(tensors) if one.endswith("encoder.layer.1.output.dense.weight"))
    save_file({**tensors, name: np.full_like(tensors[name], np.nan)}, file)
    with pytest.raises(DataError, match=r"layer\.1\.output\.dense\.weight' holds infinite numbers or NaN"):
        load_sentence_encoder(str(folder), device="cpu").encode_text(["a red ball"])


def test_towers_that_lead_into_other_spaces_are_named(make_clip: Callable[..., Path]) -> None:
    folder = make_clip()
    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "text_projection.weight": tensors["text_projection.weight"][:7].copy()}, file)
    with pytest.raises(DataError, match=r"features of texts have 7 numbers, those of frames 16"):
        used(folder)


def test_half_and_double_precision_are_read(folder: Path) -> None:
    file = folder / "model.safetensors"
    tensors = load_file(file)
    wanted = load_encoder(str(folder), device="cpu").encode_text(["a red ball"])
    for kind, most in ((np.float16, 2e-2), (np.float64, 1e-6)):
        save_file({name: value.astype(kind) for name, value in tensors.items()}, file)
        found = load_encoder(str(folder), device="cpu").encode_text(["a red ball"])
        np.testing.assert_allclose(found, wanted, atol=most)


def test_a_tokenizer_of_more_tokens_than_the_tower_is_named(make_clip: Callable[..., Path]) -> None:
    """A query then asked for a row that is not there."""
    folder = make_clip()
    file = folder / "model.safetensors"
    tensors = load_file(file)
    name = "text_model.embeddings.token_embedding.weight"
    save_file({**tensors, name: tensors[name][:40].copy()}, file)
    with (
        changed(
            folder / "config.json",
            lambda given: {**given, "text_config": {**given["text_config"], "vocab_size": 40}},
        ),
        pytest.raises(DataError, match=r"gives the token \d+, but 'text_model\..*' has 40 rows; take both"),
    ):
        used(folder)
