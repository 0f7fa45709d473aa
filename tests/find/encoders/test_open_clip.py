"""Checkpoints in open_clip's format give what the formulas give, and say what is wrong with them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import huggingface_hub.constants
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

import random_checkpoints
from moviola.compiled.module import least_cosine
from moviola.encoders import ClipEncoder, available_models, load_encoder, pull_model
from moviola.errors import DataError, InvalidValue, MissingModel, MoviolaError
from moviola.types import FrameSize
from open_clips import KINDS, SIGLIP_PIXELS, SIGLIP_TEXTS, Kind
from towers_by_formula import cosines

QUERIES = ["a red robot picks up the key", "Blue BALL, in the room!", "zebra", "", "a box " * 30]
CLOSE = 0.99999


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(scope="module")
def folder(
    kind: Kind, tmp_path_factory: pytest.TempPathFactory, write_tokenizer: Callable[..., None]
) -> Path:
    folder = tmp_path_factory.mktemp("open-clip")
    write_tokenizer(folder, kind.config)
    return kind.make(folder)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> ClipEncoder:
    encoder = load_encoder(str(folder), device="cpu", precision="fp32")
    assert isinstance(encoder, ClipEncoder)
    return encoder


def random_frames(n: int, size: FrameSize) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (n, size.height, size.width, 3), dtype=np.uint8)


def require_close(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    """Their cosines are near 1, and their lengths equal, which no cosine sees."""
    assert found.shape == wanted.shape
    assert cosines(found, wanted).min() > CLOSE
    lengths = np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-4)


def test_frames_are_those_of_the_formulas(kind: Kind, folder: Path, encoder: ClipEncoder) -> None:
    """A wrong activation, norm, head width, place, pool or projection would show in every row."""
    images = random_frames(3, encoder.frame_size)
    require_close(encoder.encode_frames(images), kind.frames(folder, images))


def test_texts_are_those_of_the_formulas(kind: Kind, folder: Path, encoder: ClipEncoder) -> None:
    rows = encoder._tokenize(QUERIES)
    wanted = kind.texts(folder, rows)
    require_close(encoder.encode_text(QUERIES), wanted)
    tokens = encoder.encode_tokens(QUERIES)
    require_close(np.array([each[-1] for each in tokens]), wanted)
    assert len(np.unique(wanted.round(6), axis=0)) == len(QUERIES)  # the formulas see the texts


def test_texts_in_bulk_and_pictures_by_torch_agree(folder: Path, encoder: ClipEncoder) -> None:
    resident = load_encoder(str(folder), device="cpu", precision="fp32", resident=True)
    np.testing.assert_allclose(resident.encode_text(QUERIES), encoder.encode_text(QUERIES), atol=1e-4)
    images = random_frames(2, encoder.frame_size)
    half = load_encoder(str(folder), device="cpu", precision="bf16")
    assert cosines(half.encode_frames(images), encoder.encode_frames(images)).min() > 0.995


def test_frames_are_fitted_as_the_settings_say(kind: Kind, encoder: ClipEncoder) -> None:
    side, pixels = encoder.frame_size.height, kind.config["preprocess_cfg"]
    squash = pixels["resize_mode"] == "squash"
    assert encoder.frame_size == FrameSize(
        side, side, "stretch" if squash else "crop", 0 if squash else side, pixels["interpolation"]
    )


def test_tokens_are_those_of_transformers(kind: Kind, folder: Path, encoder: ClipEncoder) -> None:
    """To the id: the text as it was cleaned in training, its end token once, cut before it, and filled where
    the tower looks ahead; CLIP fills with zeros, whatever its tokenizer's file names.
    """
    from transformers import PreTrainedTokenizerFast

    texts, longest = kind.config["model_cfg"]["text_cfg"], 12
    library = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    clean, wanted = texts.get("tokenizer_kwargs", {}).get("clean"), []
    for query in QUERIES:
        if clean == "canonicalize":
            query = "".join(sign for sign in query if sign not in ".,!").lower()
        elif "hf_tokenizer_name" not in texts and "hf_model_name" not in texts:
            query = query.lower()
        if clean == "canonicalize":
            ids = [*library(query.strip(), add_special_tokens=False)["input_ids"][: longest - 1], 7]
            wanted.append(ids + [1] * (longest - len(ids)))
        else:
            ids = library(query.strip(), truncation=True, max_length=longest)["input_ids"]
            wanted.append(ids + [0] * (longest - len(ids)) if texts.get("no_causal_mask") else ids)
    assert encoder._tokenize(QUERIES) == wanted


def test_what_a_checkpoint_implies(kind: Kind, encoder: ClipEncoder) -> None:
    """SigLIP's scale and bias are a probability; its pieces are of many languages only if they are many."""
    sigmoid = "init_logit_bias" in kind.config["model_cfg"]
    assert (encoder.match.line != 0.28) == sigmoid
    assert encoder.match.slope == pytest.approx(100 if sigmoid else 50)
    assert encoder.languages == (() if "hf" in kind.sizes else ("en",))


# ---- what is wrong is named --------------------------------------------------------------------------------


@pytest.fixture
def make(tmp_path: Path, write_tokenizer: Callable[..., None]) -> Callable[[str], Path]:
    """A function that writes a checkpoint of a kind into this test's folder."""

    def make(name: str) -> Path:
        write_tokenizer(tmp_path, KINDS[name].config)
        return KINDS[name].make(tmp_path)

    return make


def used(folder: Path) -> None:
    """Everything that a search and an index do with an encoder."""
    encoder = load_encoder(str(folder), device="cpu")
    encoder.encode_text(["a red door"])
    encoder.encode_frames(random_frames(1, encoder.frame_size))


@pytest.mark.parametrize("name", ["laion", "siglip2", "pe-core", "xlm-roberta"])
def test_every_tensor_that_is_missing_or_misshapen_is_named(name: str, make: Callable[[str], Path]) -> None:
    """By its own name in its own file, before anything is computed. One tensor of each sort is enough: layers
    are alike.
    """
    folder = make(name)
    file = folder / "open_clip_model.safetensors"
    tensors = load_file(file)
    for key in tensors:
        if ".1." in key or key in ("logit_scale", "logit_bias"):
            continue
        if key.endswith("bias") and ("patch_embed" in key or "head" in key):
            continue  # some have none
        save_file({other: value for other, value in tensors.items() if other != key}, file)
        with pytest.raises(DataError, match=rf"clip_model\.safetensors: holds no .*{key}.*; fetch it"):
            _ = load_encoder(str(folder), device="cpu").dim
        save_file(tensors | {key: np.zeros((*tensors[key].shape, 2), np.float32)}, file)
        with pytest.raises(DataError, match=rf"clip_model\.safetensors: '{key}' .*shape"):
            _ = load_encoder(str(folder), device="cpu").dim


VISION_CFG, TEXT_CFG = "vision_cfg", "text_cfg"


@pytest.mark.parametrize(
    ("name", "section", "change", "message"),
    [
        ("laion", VISION_CFG, {"layers": [3, 4, 6, 3]}, r"layers is \[3, 4, 6, 3\]; give a whole number"),
        ("laion", VISION_CFG, {"layers": 3}, r"holds no 'visual\.transformer\.resblocks\.2\.ln_1\.weight'"),
        ("laion", VISION_CFG, {"width": "wide"}, r"vision_cfg\.width is 'wide'; give a whole number above 0"),
        ("laion", VISION_CFG, {"width": 32}, r"shape \[24, 3, 8, 8\] where \[32, 3, 8, 8\] is due"),
        ("laion", VISION_CFG, {"head_width": 7}, "head_width is 7; give a divisor of width 24"),
        ("laion", VISION_CFG, {"image_size": 40}, r"positional_embedding' .* \[17, 24\] where \[26, 24\]"),
        ("laion", VISION_CFG, {"image_size": [32, 48]}, "square pictures"),
        ("laion", VISION_CFG, {"pool_type": "avg"}, "vision_cfg.pool_type is 'avg', which moviola"),
        ("laion", VISION_CFG, {"pos_embed_type": "sin_cos_2d"}, "pos_embed_type is 'sin_cos_2d'"),
        ("laion", VISION_CFG, {"ls_init_value": 0.1}, "ls_init_value is 0.1, a setting that"),
        ("laion", VISION_CFG, {"act_kwargs": {"approximate": "cubic"}}, "act_kwargs.approximate is 'cubic'"),
        ("laion", VISION_CFG, {"norm_kwargs": {"eps": -1}}, "norm_kwargs.eps is -1; give a number above 0"),
        ("laion", TEXT_CFG, {"pool_type": "mid"}, "pool_type is 'mid', .* it knows argmax, eos"),
        ("laion", TEXT_CFG, {"heads": 5}, "heads is 5; give a divisor of width 32"),
        ("laion", TEXT_CFG, {"vocab_size": 500}, r"\[420, 32\] where \[500 or more, 32\]"),
        ("laion", TEXT_CFG, {"context_length": 13}, r"positional_embedding' .* where \[13 or more, 32\]"),
        ("laion", TEXT_CFG, {"tokenizer_kwargs": {"clean": "scrub"}}, "clean is 'scrub'"),
        ("laion", TEXT_CFG, {"tokenizer_kwargs": 3}, "tokenizer_kwargs is 3, no object"),
        ("siglip", VISION_CFG, {"timm_model_name": "resnet50"}, "'resnet50', an arch"),
        ("siglip", VISION_CFG, {"timm_model_name": "vit_base_patch16_siglip_gap_224"}, "an architecture"),
        ("siglip", VISION_CFG, {"timm_model_name": "naflexvit_base_patch16_map"}, "those of SigLIP 2 are"),
        ("siglip", VISION_CFG, {"timm_model_name": "fastvit_mci0"}, "for research only; take PE-Core-T"),
        ("siglip", VISION_CFG, {"timm_pool": "avg"}, "timm_pool is 'avg', .* it knows map"),
        ("siglip", VISION_CFG, {"timm_proj": "mlp"}, "timm_proj is 'mlp'"),
        ("siglip", VISION_CFG, {"image_size": 40}, r"\[25, 48\]"),
        ("siglip", VISION_CFG, {"timm_model_name": "vit_so400m_patch16_siglip_224", "timm_proj": "linear"},
         r"holds no 'visual\.head\.proj\.weight'"),
        ("xlm-roberta", TEXT_CFG, {"hf_model_name": "google/mt5-base"}, "mt5-base', a tower of texts"),
        ("xlm-roberta", TEXT_CFG, {"pooler_type": "max_pooler"}, "hf_pooler_type is 'max_pooler'"),
        ("xlm-roberta", TEXT_CFG, {"proj": "tanh"}, "hf_proj_type is 'tanh'"),
        ("xlm-roberta", TEXT_CFG, {"context_length": 24}, r" where \[26 or more, 128\]"),
        ("laion", "preprocess_cfg", {"resize_mode": "longest"}, "preprocess_cfg.resize_mode is 'longest'"),
        ("laion", "preprocess_cfg", {"interpolation": "nearest"}, "interpolation is 'nearest'"),
        ("laion", "preprocess_cfg", {"mean": [0.5]}, r"mean is \[0\.5\]; give three numbers"),
        ("laion", "preprocess_cfg", {"std": [0.5, 0, 1]}, "std is .*; give three numbers above 0"),
    ],
)  # fmt: skip
def test_settings_that_are_not_met_are_named(
    name: str, section: str, change: dict[str, Any], message: str, make: Callable[[str], Path]
) -> None:
    """A setting that is passed over would make answers wrong in silence."""
    folder = make(name)
    path = folder / "open_clip_config.json"
    config = json.loads(path.read_text())
    place = config if section == "preprocess_cfg" else config["model_cfg"]
    place[section] |= change
    path.write_text(json.dumps(config))
    with pytest.raises((DataError, InvalidValue), match=message):
        used(folder)


def test_broken_settings_are_named(make: Callable[[str], Path]) -> None:
    path = make("laion") / "open_clip_config.json"
    config = json.loads(path.read_text())
    for broken, message in (
        ("{", r"open_clip_config\.json: not valid JSON"),
        ("[]", r"open_clip_config\.json: holds a list"),
        ("{}", "model_cfg has no vision_cfg and text_cfg"),
        ('{"model_cfg": 3}', "model_cfg is 3, no object"),
        (json.dumps({"model_cfg": config["model_cfg"] | {"multimodal_cfg": {"width": 8}}}), "multimodal_cfg"),
        (
            json.dumps({"model_cfg": config["model_cfg"] | {"quick_gelu": "yes"}}),
            "quick_gelu is 'yes'; give true or",
        ),
    ):
        path.write_text(broken)
        with pytest.raises((DataError, InvalidValue), match=message):
            used(path.parent)


def test_pickled_weights_are_not_opened(make: Callable[[str], Path]) -> None:
    folder = make("laion")
    (folder / "open_clip_model.safetensors").rename(folder / "open_clip_pytorch_model.bin")
    with pytest.raises(
        MissingModel, match=r"open_clip_pytorch_model\.bin is a pickle.*`moviola models unpickle "
    ):
        load_encoder(str(folder))


def test_a_tokenizer_that_is_missing_or_of_another_model_is_named(make: Callable[[str], Path]) -> None:
    folder = make("siglip")
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text().replace(": 7,", ": 4711,"))
    with pytest.raises(MoviolaError, match="gives the token 4711, its tower knows 420"):
        load_encoder(str(folder)).encode_text(["a"])
    (folder / "tokenizer.json").unlink()
    with pytest.raises(MissingModel, match=r"put those, .* of 'timm/ViT-B-16-SigLIP'"):
        load_encoder(str(folder)).encode_text(["a"])


def test_weights_of_several_gpus_are_read(make: Callable[[str], Path]) -> None:
    folder = make("laion")
    before = load_encoder(str(folder), device="cpu").encode_text(QUERIES)
    file = folder / "open_clip_model.safetensors"
    save_file({f"module.{name}": value for name, value in load_file(file).items()}, file)
    np.testing.assert_array_equal(load_encoder(str(folder), device="cpu").encode_text(QUERIES), before)


def test_weights_in_parts_are_read(make: Callable[[str], Path]) -> None:
    """As large ones are stored; and a part that is missing is named."""
    folder = make("laion")
    before = load_encoder(str(folder), device="cpu").encode_text(QUERIES)
    file = folder / "open_clip_model.safetensors"
    tensors, parts = load_file(file), ["open_clip_model-00001-of-00002.safetensors"] * 2
    parts[1] = parts[1].replace("00001-", "00002-")
    halves = [dict(list(tensors.items())[half::2]) for half in (0, 1)]
    for part, half in zip(parts, halves, strict=True):
        save_file(half, folder / part)
    placed = {name: part for part, half in zip(parts, halves, strict=True) for name in half}
    (folder / f"{file.name}.index.json").write_text(json.dumps({"weight_map": placed}))
    file.unlink()
    np.testing.assert_array_equal(load_encoder(str(folder), device="cpu").encode_text(QUERIES), before)
    (folder / parts[1]).unlink()
    with pytest.raises(MissingModel, match="1 of 2 files of weights"):
        load_encoder(str(folder))


def test_a_folder_of_two_formats_is_transformers_if_its_weights_are(
    make: Callable[[str], Path], make_clip: Callable[..., Path]
) -> None:
    """The hub's folders often have both, and a config.json that speaks of the pictures' tower alone."""
    folder = make_clip()
    own = load_encoder(str(folder), device="cpu").encode_text(QUERIES)
    tokenizer = (folder / "tokenizer.json").read_bytes()
    make("laion")
    (folder / "tokenizer.json").write_bytes(tokenizer)
    np.testing.assert_array_equal(load_encoder(str(folder), device="cpu").encode_text(QUERIES), own)
    (folder / "model.safetensors").unlink()
    other = load_encoder(str(folder), device="cpu").encode_text(QUERIES)
    assert not np.allclose(other, own)
    (folder / "config.json").write_text('{"architecture": "vit_base_patch32_clip_224"}')
    np.testing.assert_array_equal(load_encoder(str(folder), device="cpu").encode_text(QUERIES), other)


@pytest.mark.parametrize("timm", [False, True], ids=["clip", "pe-core"])
def test_wide_towers_are_quantised(timm: bool, tmp_path: Path) -> None:
    """8 bits on the CPU, checked against 32 as ever."""
    vision = {"image_size": 32, "layers": 2, "width": 512, "head_width": 64, "patch_size": 16}
    if timm:
        vision = {"image_size": 32, "timm_model_name": "vit_pe_core_medium_patch16_224", "timm_pool": "map"}
    sizes = {"width": 512, "layers": 2, "inner": 1024, "patch": 16, "class_token": True} if timm else None
    texts = {"context_length": 12, "vocab_size": 800, "width": 32, "heads": 4, "layers": 1}
    model = {"embed_dim": 64, "vision_cfg": vision, "text_cfg": texts}
    config = {"model_cfg": model, "preprocess_cfg": SIGLIP_PIXELS}
    folder = random_checkpoints.open_clip(tmp_path, config, timm=sizes)
    eight, full = load_encoder(str(folder)), load_encoder(str(folder), precision="fp32")
    images = random_frames(3, eight.frame_size)
    assert (eight.device, eight.precision, full.precision) == ("cpu", "int8", "fp32")
    small, exact = eight.encode_frames(images), full.encode_frames(images)
    assert least_cosine([small], [exact]) > 0.999
    assert not np.array_equal(small, exact)


def test_the_texts_of_a_siglip_are_the_last_place(make: Callable[[str], Path]) -> None:
    assert SIGLIP_TEXTS["pool_type"] == "last"
    encoder = load_encoder(str(make("siglip")), device="cpu")
    assert [len(each) for each in encoder.encode_tokens(["a", "a red box"])] == [12, 12]


# ---- by a hub's id -----------------------------------------------------------------------------------------

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A hub whose repositories are folders, by their ids; and an empty cache."""
    repositories: dict[str, Path] = {}
    cache = tmp_path / "cache"

    def download(name: str, *, allow_patterns: list[str]) -> str:
        snapshot = cache / f"models--{name.replace('/', '--')}" / "snapshots" / COMMIT
        (snapshot.parent.parent / "refs").mkdir(parents=True, exist_ok=True)
        (snapshot.parent.parent / "refs" / "main").write_text(COMMIT)
        snapshot.mkdir(parents=True, exist_ok=True)
        for path in repositories[name].iterdir():
            if any(fnmatch(path.name, pattern) for pattern in allow_patterns):
                shutil.copy(path, snapshot)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: SimpleNamespace(siblings=()))
    return repositories


def test_by_a_hub_id_with_the_tokenizer_of_another(
    hub: dict[str, Path], tmp_path: Path, write_tokenizer: Callable[..., None]
) -> None:
    """What a repository has besides is not fetched: pictures' towers of timm, pickles."""
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    write_tokenizer(other, KINDS["siglip"].config)
    shutil.copytree(other, own, dirs_exist_ok=True)
    wanted = load_encoder(str(KINDS["siglip"].make(own)), device="cpu").encode_text(QUERIES)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (own / name).unlink()
    (own / "config.json").write_text('{"architecture": "vit_base_patch16_siglip_224"}')
    for name in ("model.safetensors", "open_clip_pytorch_model.bin"):
        (own / name).write_bytes(b"not needed")
    hub |= {"timm/tiny": own, "timm/ViT-B-16-SigLIP": other}
    folder = pull_model("timm/tiny")
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", "open_clip_config.json", "open_clip_model.safetensors",
    ]  # fmt: skip
    encoder = load_encoder("timm/tiny", device="cpu")
    assert (encoder.id, encoder.revision) == ("timm/tiny", COMMIT)
    assert [model.name for model in available_models() if model.source == "hub cache"] == ["timm/tiny"]
    np.testing.assert_array_equal(encoder.encode_text(QUERIES), wanted)


def test_what_cannot_run_is_refused_before_its_weights(hub: dict[str, Path], tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    config = json.loads(json.dumps(KINDS["siglip"].config))
    config["model_cfg"]["vision_cfg"]["timm_model_name"] = "fastvit_mci2"
    (own / "open_clip_config.json").write_text(json.dumps(config))
    (own / "open_clip_model.safetensors").write_bytes(b"large")
    hub["apple/mobile"] = own
    with pytest.raises(InvalidValue, match="for research only"):
        pull_model("apple/mobile")
    assert not list((tmp_path / "cache").rglob("*.safetensors"))


def test_a_pickle_alone_is_not_fetched(hub: dict[str, Path], tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "open_clip_config.json").write_text(json.dumps(KINDS["laion"].config))
    (own / "open_clip_pytorch_model.bin").write_bytes(b"pickle")
    hub["old/clip"] = own
    with pytest.raises(MissingModel, match="a pickle can be fetched by hand and converted"):
        pull_model("old/clip")
    assert not list((tmp_path / "cache").rglob("*.bin"))
