"""SigLIP 2 NaFlex (Tschannen et al. 2025): pictures in their own shape, by patches of a limited number."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from among_others import require_the_same_alone
from moviola.compiled.module import least_cosine
from moviola.encoders import load_encoder
from moviola.errors import DataError, InvalidValue, MissingModel
from moviola.media import of_one_size, read_picture, sample_frames, shrunk, write_video
from moviola.search import Library
from moviola.types import FrameSize
from towers_by_formula import Array, Formulas, cosines

PATCH, MOST, TABLE = 8, 24, 16
HEADS = 3
TEXTS = ["a red robot picks up the key", "Blue BALL, in the room!", "", "zebra " * 20]
SHAPES = [(4, 6), (1, 24), (24, 1), (3, 5), (4, 4), (2, 2)]
"""Rows and columns of patches: as many as there may be, larger and smaller than the table, and as it is."""


@pytest.fixture
def own(naflex: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    made = tmp_path / "naflex"
    made.mkdir()
    for path in naflex.iterdir():
        (made / path.name).write_bytes(path.read_bytes())
    return made


def frames(rows: int, columns: int, count: int = 2) -> NDArray[np.uint8]:
    draw = np.random.default_rng(rows * 100 + columns)
    return draw.integers(0, 256, (count, rows * PATCH, columns * PATCH, 3), dtype=np.uint8)


def places_by_formula(table: Array, rows: int, columns: int) -> Array:
    """Along each side a new place is the mean of the old ones below a triangle around its middle, as wide as
    the larger of both steps: bilinear where there are more, with antialiasing where there are fewer.
    """
    side = int(np.sqrt(len(table)))

    def along(values: Array, new: int) -> Array:
        wide, made = max(1.0, side / new), []
        for place in range(new):
            middle = (place + 0.5) * side / new
            weights = [max(0.0, 1 - abs(old + 0.5 - middle) / wide) for old in range(side)]
            made.append(sum(w * value for w, value in zip(weights, values, strict=True)) / sum(weights))
        return np.array(made)

    square = along(table.reshape(side, side, -1), rows)
    return np.array([along(row, columns) for row in square]).reshape(rows * columns, -1)


def frame_by_formula(tensors: Any, image: NDArray[np.uint8], padded: int) -> Array:
    """The feature of a frame by the paper's formulas: linear patches, scaled places, pre-norm layers and one
    query that gathers; with padding to a number of patches, which is not looked at.
    """
    f = Formulas(tensors, 1e-6, "tanh")
    rows, columns = image.shape[0] // PATCH, image.shape[1] // PATCH
    pixels = (image / 255 - 0.5) / 0.5
    patches = np.array([
        pixels[r * PATCH : (r + 1) * PATCH, c * PATCH : (c + 1) * PATCH].reshape(-1)
        for r in range(rows)
        for c in range(columns)
    ])  # fmt: skip
    at = "vision_model"
    x = f.linear(f"{at}.embeddings.patch_embedding", patches)
    x = x + places_by_formula(f[f"{at}.embeddings.position_embedding.weight"], rows, columns)
    real, x = len(x), np.concatenate([x, np.full((padded - len(x), x.shape[1]), 7.0)])
    seen = np.tile(np.arange(padded) < real, (padded, 1))
    for number in range(2):
        layer = f"{at}.encoder.layers.{number}"
        normed = f.norm(f"{layer}.layer_norm1", x)
        q, k, v = (f.linear(f"{layer}.self_attn.{part}_proj", normed) for part in "qkv")
        x = x + f.linear(f"{layer}.self_attn.out_proj", f.attention(q, k, v, HEADS, seen))
        inner = f.gelu(f.linear(f"{layer}.mlp.fc1", f.norm(f"{layer}.layer_norm2", x)))
        x = x + f.linear(f"{layer}.mlp.fc2", inner)
    x, head = f.norm(f"{at}.post_layernorm", x), f"{at}.head"
    q, _, _ = f.joint(f"{head}.attention.in_proj_", f[f"{head}.probe"][0])
    _, k, v = f.joint(f"{head}.attention.in_proj_", x)
    pooled = f.linear(f"{head}.attention.out_proj", f.attention(q, k, v, HEADS, seen[:1]))[0]
    inner = f.gelu(f.linear(f"{head}.mlp.fc1", f.norm(f"{head}.layernorm", pooled)))
    return np.asarray(pooled + f.linear(f"{head}.mlp.fc2", inner))


def frames_by_transformers(folder: Path, images: NDArray[np.uint8]) -> NDArray[Any]:
    """By its own model, from its own patches, padded to the most that there may be."""
    from transformers.models.siglip2.image_processing_pil_siglip2 import Siglip2ImageProcessorPil
    from transformers.models.siglip2.modeling_siglip2 import Siglip2Model

    processor = Siglip2ImageProcessorPil(patch_size=PATCH, max_num_patches=MOST, do_resize=False)
    model = Siglip2Model.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        given = {key: torch.as_tensor(np.array(value)) for key, value in processor(list(images)).items()}
        return np.asarray(model.get_image_features(**given).pooler_output)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_frames_are_those_of_the_formulas_and_of_transformers(naflex: Path, rows: int, columns: int) -> None:
    """Places of a table that is not scaled, aliased, or turned; patches in another order; padding that is
    looked at, which it is not: a picture alone, and among others, has one feature.
    """
    encoder = load_encoder(str(naflex), device="cpu", precision="fp32")
    images = frames(rows, columns)
    found = encoder.encode_frames(images)
    tensors = load_file(naflex / "model.safetensors")
    wanted = np.array([frame_by_formula(tensors, image, MOST) for image in images])
    assert cosines(found, wanted).min() > 0.99999
    np.testing.assert_allclose(found, wanted, atol=2e-5)
    if columns > 1:  # torch 2 scales a table in another layout in memory to one column wrongly
        np.testing.assert_allclose(found, frames_by_transformers(naflex, images), atol=2e-5)
    by_torch = load_encoder(str(naflex), device="cpu", precision="bf16").encode_frames(images)
    assert least_cosine([by_torch], [found]) > 0.995


def test_texts_are_those_of_transformers(naflex: Path) -> None:
    from transformers.models.siglip2.modeling_siglip2 import Siglip2Model

    encoder: Any = load_encoder(str(naflex), device="cpu", precision="fp32")
    model = Siglip2Model.from_pretrained(naflex).eval()
    ids = torch.tensor(encoder._tokenize(TEXTS))
    with torch.inference_mode():
        wanted = model.get_text_features(input_ids=ids).pooler_output.numpy()
    found = encoder.encode_text(TEXTS)
    np.testing.assert_allclose(found, wanted, atol=2e-5)
    np.testing.assert_allclose(
        load_encoder(str(naflex), device="cpu", resident=True).encode_text(TEXTS), wanted, atol=2e-5
    )
    assert cosines(found, wanted).min() > 0.99999
    require_the_same_alone(lambda: load_encoder(str(naflex), device="cpu"))


def test_the_same_tensors_by_timms_names_give_the_same(every_checkpoint: Mapping[str, Path]) -> None:
    """open_clip's format: a table of another shape, joint layers, patches whose number no setting says."""
    theirs, ours = (load_encoder(str(one), device="cpu", precision="fp32") for one in (
        every_checkpoint["open_clip naflex"], every_checkpoint["naflex"],
    ))  # fmt: skip
    assert theirs.frame_size == FrameSize(PATCH, PATCH, "patches", 0, "bilinear", 25)
    for rows, columns in SHAPES:
        images = frames(rows, columns)
        np.testing.assert_allclose(theirs.encode_frames(images), ours.encode_frames(images), atol=1e-6)
    texts = ["a red robot picks up the key", "zebra"]
    np.testing.assert_allclose(theirs.encode_text(texts), ours.encode_text(texts), atol=1e-6)


def test_wide_towers_are_quantised_under_the_check(wide_naflex: Path) -> None:
    eight, full = load_encoder(str(wide_naflex)), load_encoder(str(wide_naflex), precision="fp32")
    assert (eight.precision, full.precision) == ("int8", "fp32")
    for rows, columns in ((4, 6), (3, 5)):
        images = frames(rows, columns)
        small, exact = eight.encode_frames(images), full.encode_frames(images)
        assert least_cosine([small], [exact]) > 0.999 and not np.array_equal(small, exact)


def sides_by_bisection(size: FrameSize, width: int, height: int) -> tuple[int, int]:
    """The documented way: the scale is halved in, and each side rounded up to whole patches."""
    low, high = 1e-6, 100.0

    def rounded(scale: float) -> tuple[int, int]:
        one, other = (max(p, math.ceil(s * scale / p) * p) for s, p in
                      ((height, size.height), (width, size.width)))  # fmt: skip
        return one, other

    while high - low >= 1e-9:
        middle = (low + high) / 2
        rows, columns = rounded(middle)
        fits = rows // size.height * (columns // size.width) <= size.most_patches
        low, high = (middle, high) if fits else (low, middle)
    return rounded(low)


@pytest.mark.parametrize("size", [
    FrameSize(16, 16, "patches", 0, "bilinear", 256), FrameSize(14, 14, "patches", 0, "bilinear", 7),
])  # fmt: skip
def test_sides_are_those_of_the_processor(size: FrameSize) -> None:
    """A side too small, or aspect ratios that are not kept."""
    from transformers.models.siglip2.image_processing_pil_siglip2 import get_image_size_for_max_num_patches

    draw = np.random.default_rng(0)
    shown = [(1920, 1080), (1080, 1920), (640, 480), (256, 256), (4000, 10), (7, 3000), (17, 16)]
    shown += [(int(w), int(h)) for w, h in draw.integers(1, 3000, (40, 2))]
    for width, height in shown:
        sides = size.sides(width, height)
        assert size.takes(*sides) and sides == sides_by_bisection(size, width, height)
        theirs = get_image_size_for_max_num_patches(height, width, size.height, size.most_patches)
        assert sides == theirs, (width, height)


def test_frames_of_a_film_and_a_picture_keep_their_shape(naflex: Path, tmp_path: Path) -> None:
    size = load_encoder(str(naflex), device="cpu").frame_size
    assert size == FrameSize(PATCH, PATCH, "patches", 0, "bilinear", MOST)
    picture = np.zeros((60, 120, 3), np.uint8)
    write_video(tmp_path / "film.mp4", [picture] * 3, rate=1)
    with sample_frames(tmp_path / "film.mp4", rate=1.0, size=size) as stream:
        shapes = {frame.image.shape for frame in stream}
    assert shapes == {(3 * PATCH, 6 * PATCH, 3)}
    assert read_picture(tmp_path / "film.mp4", size).shape == (3 * PATCH, 6 * PATCH, 3)


def test_a_library_of_films_of_several_shapes(naflex: Path, tmp_path: Path) -> None:
    """Films of different shapes share the encoder; features are those of each frame alone."""
    draw = np.random.default_rng(0)
    films = tmp_path / "films"
    films.mkdir()
    for name, (height, width) in {"wide": (48, 96), "high": (96, 48)}.items():
        walls = draw.integers(0, 255, (4, 3), np.uint8)
        pictures = [np.broadcast_to(wall, (height, width, 3)).copy() for wall in walls for _ in range(2)]
        write_video(films / f"{name}.mp4", pictures, rate=1)
    with Library(tmp_path / "library", encoder=str(naflex), sentence_encoder="none") as library:
        library.index(films, ocr=False, speech="none", sounds="none")
        encoder = load_encoder(str(naflex), device="cpu", precision=library.settings.encoder_precision)
        for video in library.catalogue.videos():
            with sample_frames(Path(video.path), rate=1.0, size=encoder.frame_size) as stream:
                alone = np.concatenate([encoder.encode_frames(frame.image[None]) for frame in stream])
            assert video.frames is not None
            stored = np.array(library.store.frame_features.checked(video.frames), np.float32)
            assert least_cosine([stored], [alone]) > 0.99
        assert library.search("a red robot", weak=True)


def test_a_film_that_changes_its_shape_is_encoded_shape_by_shape() -> None:
    """Frames of several shapes cannot be stacked; their order is that of the film."""
    wide, high = np.zeros((8, 16, 3), np.uint8), np.ones((16, 8, 3), np.uint8)
    stacks = of_one_size([wide, wide, high, wide])
    assert [(one.shape, int(one.max())) for one in stacks] == [
        ((2, 8, 16, 3), 0), ((1, 16, 8, 3), 1), ((1, 8, 16, 3), 0),
    ]  # fmt: skip
    assert shrunk([wide[:, :8], high[:8]]).shape == (2, 8, 8, 3)


def test_frames_of_other_sides_are_refused(naflex: Path) -> None:
    encoder = load_encoder(str(naflex), device="cpu")
    for shape in (
        (1, PATCH, PATCH + 1, 3),
        (1, 5 * PATCH, 5 * PATCH, 3),
        (1, 0, PATCH, 3),
        (PATCH, PATCH, 3),
    ):
        with pytest.raises(
            InvalidValue, match=rf"\(n, {PATCH} \* r, {PATCH} \* c, 3\), r \* c from 1 to {MOST}"
        ):
            encoder.encode_frames(np.zeros(shape, np.uint8))


def changed(path: Path, change: Callable[[Any], Any]) -> None:
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def test_settings_that_contradict_are_named(own: Path) -> None:
    settings = own / "preprocessor_config.json"
    for wrong, message in (
        ({"patch_size": 16}, "patches of 8 pixels, preprocessor_config.json for 16x16"),
        ({"max_num_patches": 0}, "max_num_patches 0"),
        ({"max_num_patches": "many"}, "max_num_patches 'many'"),
        ({"patch_size": None}, "patches of 8 pixels, preprocessor_config.json for 16x16"),
    ):
        before = settings.read_text()
        changed(settings, lambda given, wrong=wrong: {**given, **wrong})
        with pytest.raises(DataError, match=message):
            load_encoder(str(own), device="cpu")
        settings.write_text(before)
    config = own / "config.json"
    for count in (15, 25, -1, "many"):
        before = config.read_text()
        changed(config, lambda c, n=count: {**c, "vision_config": {**c["vision_config"], "num_patches": n}})
        with pytest.raises(DataError, match=r"num_patches|position_embedding"):
            load_encoder(str(own), device="cpu").encode_frames(frames(2, 2))
        config.write_text(before)


def test_tensors_that_do_not_fit_are_named(own: Path) -> None:
    file = own / "model.safetensors"
    tensors = load_file(file)
    for name in (
        "vision_model.embeddings.patch_embedding.weight", "vision_model.embeddings.position_embedding.weight",
    ):  # fmt: skip
        for given in ({**tensors, name: np.zeros((5, 7), np.float32)}, {**tensors, name: None}):
            save_file({key: value for key, value in given.items() if value is not None}, file)
            with pytest.raises(DataError, match=name.replace(".", r"\.")):
                load_encoder(str(own), device="cpu").encode_frames(frames(2, 2))


def test_pickled_weights_are_named(own: Path) -> None:
    """They are read by transformers, whose tower takes pictures in another form."""
    torch.save({}, own / "pytorch_model.bin")
    (own / "model.safetensors").unlink()
    with pytest.raises(MissingModel, match=r"pytorch_model\.bin"):
        load_encoder(str(own), device="cpu")
