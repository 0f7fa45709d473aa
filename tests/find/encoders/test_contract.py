"""One contract for all encoders of frames and texts: CLIP and SigLIP checkpoints, the packaged ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import erf

from among_others import require_the_same_alone
from moviola.encoders import FrameTextEncoder, PictureEncoder, load_encoder, picture_dim
from moviola.encoders.loading import BUILTIN
from moviola.encoders.towers import ACTIVATIONS
from moviola.errors import InvalidValue
from moviola.retrieval import CurveRefiner

TEXTS = [
    "a red robot picks up the key",
    "Blue BALL, in the room!",
    "zebra",
    "",
    "a box " * 30,
    "漢字 ünïcode",
]


@pytest.fixture(scope="module")
def encoder(name: str) -> FrameTextEncoder:
    return load_encoder(name, device="cpu", precision="fp32", batch_size=5)


def pictures(n: int, encoder: FrameTextEncoder) -> NDArray[np.uint8]:
    """Noise that is coarse enough to be seen: blocks of 8 pixels."""
    size = encoder.frame_size
    blocks = np.random.default_rng(0).integers(0, 256, (n, size.height // 8 + 1, size.width // 8 + 1, 3))
    fine = blocks.repeat(8, 1).repeat(8, 2)[:, : size.height, : size.width]
    return fine.astype(np.uint8)


def test_features_have_the_shape_that_is_promised(encoder: FrameTextEncoder) -> None:
    for features in (encoder.encode_frames(pictures(3, encoder)), encoder.encode_text(TEXTS[:3])):
        assert features.shape == (3, encoder.dim)
        assert features.dtype == np.float32
        assert np.isfinite(features).all()


def test_features_for_likeness_come_with_the_others(encoder: FrameTextEncoder) -> None:
    if not isinstance(encoder, PictureEncoder):
        assert picture_dim(encoder) == 0
        return
    images = pictures(7, encoder)
    frames, alike = encoder.encode_pictures(images)
    np.testing.assert_array_equal(frames, encoder.encode_frames(images))
    assert alike.shape == (7, encoder.picture_dim) and alike.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(alike, axis=1), 1, atol=1e-5)
    with pytest.raises(InvalidValue, match="frames: "):
        encoder.encode_pictures(images[:, :-1])


def test_what_a_library_records_is_stable(name: str, encoder: FrameTextEncoder) -> None:
    again = load_encoder(name, device="cpu")
    assert (again.id, again.revision, again.dim) == (encoder.id, encoder.revision, encoder.dim)
    assert encoder.revision
    assert (encoder.device, encoder.precision) == ("cpu", "fp32")
    CurveRefiner(**encoder.curve)


@pytest.mark.parametrize("resident", [False, True], ids=["at once", "resident"])
def test_a_text_has_the_same_features_alone_and_among_others(name: str, resident: bool) -> None:
    """Nobody's answer may depend on what else is asked: texts multiplied together, padded to the longest, or
    computed in another way where there are many, differ in their last bits.
    """
    require_the_same_alone(lambda: load_encoder(name, device="cpu", resident=resident))


def test_gelu_against_its_definition() -> None:
    x = np.concatenate([np.linspace(-8, 8, 100_001), [0, -100, 100]]).astype(np.float32)
    exact = x * 0.5 * (1 + erf(x.astype(np.float64) / np.sqrt(2)))
    np.testing.assert_allclose(ACTIVATIONS["gelu"](x), exact, rtol=1e-7, atol=1e-7)
    assert np.isnan(ACTIVATIONS["gelu"](np.array([np.nan], np.float32))).all()


def test_a_resident_process_gets_the_same(name: str, encoder: FrameTextEncoder) -> None:
    resident = load_encoder(name, device="cpu", resident=True)
    np.testing.assert_allclose(resident.encode_text(TEXTS), encoder.encode_text(TEXTS), atol=2e-5)


def test_batches_do_not_change_features(name: str, encoder: FrameTextEncoder) -> None:
    """ConSE mixed the classes of all frames of a batch in one product."""
    images = pictures(7, encoder)
    images[5] = 0
    found = _features(encoder, images)
    for size in (1, 2, 3):
        other = load_encoder(name, device="cpu", precision="fp32", batch_size=size)
        np.testing.assert_array_equal(_features(other, images), found)


def _features(encoder: FrameTextEncoder, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    if isinstance(encoder, PictureEncoder):
        return np.concatenate(encoder.encode_pictures(images), axis=1)
    return encoder.encode_frames(images)


def test_nothing_gives_nothing(encoder: FrameTextEncoder) -> None:
    assert encoder.encode_text([]).shape == (0, encoder.dim)
    assert encoder.encode_tokens([]) == []
    assert encoder.encode_frames(pictures(0, encoder)).shape == (0, encoder.dim)


def test_non_contiguous_frames_are_taken(encoder: FrameTextEncoder) -> None:
    images = pictures(3, encoder)
    np.testing.assert_allclose(
        encoder.encode_frames(images[::2]), encoder.encode_frames(images[::2].copy()), atol=1e-6
    )


def wrong_frames(height: int, width: int) -> dict[str, Any]:
    return {
        "size": np.zeros((2, height // 2, width, 3), np.uint8),
        "channels first": np.zeros((2, 3, height, width), np.uint8),
        "single frame": np.zeros((height, width, 3), np.uint8),
        "dtype": np.zeros((2, height, width, 3), np.float32),
        "list": [[0]],
    }


@pytest.mark.parametrize("what", wrong_frames(2, 2))
def test_wrong_frames_are_refused(encoder: FrameTextEncoder, what: str) -> None:
    size = encoder.frame_size
    with pytest.raises(InvalidValue, match=rf"takes uint8 \(n, {size.height}, {size.width}, 3\)"):
        encoder.encode_frames(wrong_frames(size.height, size.width)[what])


@pytest.mark.parametrize("texts", ["one string", [b"bytes"], [None]])
def test_wrong_texts_are_refused(encoder: FrameTextEncoder, texts: Any) -> None:
    for encode in (encoder.encode_text, encoder.encode_tokens):
        with pytest.raises(InvalidValue, match="string"):
            encode(texts)


def test_half_precision_is_close(name: str, encoder: FrameTextEncoder) -> None:
    half = load_encoder(name, device="cpu", precision="bf16")
    images = pictures(2, encoder)
    a, b = encoder.encode_frames(images), half.encode_frames(images)
    assert half.precision == "bf16"
    assert b.dtype == np.float32
    assert not np.array_equal(a, b)
    assert np.linalg.norm(a - b) < 0.1 * np.linalg.norm(a)


@pytest.mark.parametrize(
    "options", [{"device": "tpu"}, {"precision": "int8"}, {"batch_size": 0}, {"device": "cuda:99"}]
)
@pytest.mark.parametrize("builtin", BUILTIN)
def test_wrong_options_are_refused(builtin: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        _ = load_encoder(builtin, **options).device


@pytest.mark.parametrize("builtin", ["demo", "conse-lite1"])
def test_a_query_needs_no_torch(builtin: str) -> None:
    """The cold start of a search: text features without importing torch or transformers."""
    program = (
        "import sys; from moviola.encoders import load_encoder; "
        f"print(load_encoder({builtin!r}).encode_text(['a red robot']).shape[0]); "
        "print(*sorted({'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


def test_the_first_frames_ever_are_encoded_without_a_word(tmp_path: Path) -> None:
    """The graph is made then, and who traces a model looks at its loss, of which transformers warns."""
    program = (
        "import numpy as np\n"
        "from moviola.encoders import load_encoder\n"
        "print(load_encoder('demo').encode_frames(np.zeros((2, 112, 112, 3), np.uint8)).shape)\n"
    )
    environment = os.environ | {"MOVIOLA_COMPILED": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert (done.stdout, done.stderr) == ("(2, 128)\n", "")
    assert list(tmp_path.iterdir())
