"""Chinese-CLIP: CLIP's tower of pictures and a BERT, whose first token is the text (Yang et al. 2022)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from among_others import require_the_same_alone
from chinese_clips import VOCABULARY, make
from moviola.encoders import load_encoder
from moviola.errors import DataError
from towers_by_formula import Formulas, cosines

QUERIES = ["一只红色的机器人", "蓝色的球, KEYS!", "", "门" * 80, "龘 x"]
LONGEST = 52


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("chinese-clip"))


def test_tokens_are_those_of_transformers(folder: Path) -> None:
    from transformers import BertTokenizer

    library = BertTokenizer(vocab={token: place for place, token in enumerate(VOCABULARY)})
    encoder: Any = load_encoder(str(folder), device="cpu")
    wanted = [library(query, truncation=True, max_length=LONGEST)["input_ids"] for query in QUERIES]
    assert encoder._tokenize(QUERIES) == wanted
    assert max(map(len, wanted)) == LONGEST


def test_features_are_those_of_the_formulas_and_of_transformers(folder: Path) -> None:
    from transformers import ChineseCLIPModel

    encoder: Any = load_encoder(str(folder), device="cpu", precision="fp32")
    model = ChineseCLIPModel.from_pretrained(folder).eval()
    tensors = load_file(folder / "model.safetensors")
    formulas, rows = Formulas(tensors, 1e-12, "exact"), encoder._tokenize(QUERIES)
    found = encoder.encode_text(QUERIES)
    first = [formulas.bert_states("text_model.", ids, 4, 0)[0] for ids in rows]
    wanted: NDArray[Any] = np.array(first) @ tensors["text_projection.weight"].T
    assert cosines(found, wanted).min() > 0.99999
    with torch.inference_mode():
        texts = [model.get_text_features(input_ids=torch.tensor([ids])).pooler_output[0] for ids in rows]
    np.testing.assert_allclose(found, torch.stack(texts).numpy(), atol=2e-5)
    images = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    mean, std = np.array([0.48145466, 0.4578275, 0.40821073]), np.array([0.26862954, 0.26130258, 0.27577711])
    pixels = torch.from_numpy(((images / 255 - mean) / std).transpose(0, 3, 1, 2)).float()
    with torch.inference_mode():
        frames = model.get_image_features(pixel_values=pixels).pooler_output.numpy()
    np.testing.assert_allclose(encoder.encode_frames(images), frames, atol=2e-5)


def test_ways_and_batches_agree(folder: Path) -> None:
    """Also with weights that torch alone can read, and compiled for a process that stays."""
    encoder = load_encoder(str(folder), device="cpu", precision="fp32")
    wanted = encoder.encode_text(QUERIES)
    for options in ({"resident": True}, {"precision": "bf16"}):
        other: Any = load_encoder(str(folder), device="cpu", **options)
        np.testing.assert_allclose(other.encode_text(QUERIES), wanted, atol=2e-5)
    require_the_same_alone(lambda: load_encoder(str(folder), device="cpu"))


def test_pickled_weights_are_read(tmp_path: Path) -> None:
    folder = make(tmp_path)
    wanted = load_encoder(str(folder), device="cpu").encode_text(QUERIES)
    state = {name: torch.tensor(value) for name, value in load_file(folder / "model.safetensors").items()}
    torch.save(state, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    np.testing.assert_allclose(
        load_encoder(str(folder), device="cpu").encode_text(QUERIES), wanted, atol=2e-5
    )


def test_it_reads_chinese(folder: Path) -> None:
    encoder: Any = load_encoder(str(folder), device="cpu")
    assert encoder.languages == ("zh",)
    assert encoder.match.line == 0.28


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            "text_model.encoder.layer.1.output.dense.bias",
            r"holds no 'text_model\.encoder\.layer\.1\.output\.dense\.bias'",
        ),
        ("vision_model.post_layernorm.weight", r"holds no 'vision_model\.post_layernorm\.weight'"),
        ("text_projection.weight", r"holds no 'text_projection\.weight'"),
    ],
)
def test_missing_tensors_are_named(damage: str, message: str, tmp_path: Path) -> None:
    file = make(tmp_path) / "model.safetensors"
    save_file({name: value for name, value in load_file(file).items() if name != damage}, file)
    with pytest.raises(DataError, match=rf"model\.safetensors: {message}"):
        load_encoder(str(tmp_path), device="cpu").encode_text(["门"])


def test_a_damaged_vocabulary_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path)
    (folder / "vocab.txt").write_text("一\n")
    with pytest.raises(DataError, match=r"vocab\.txt: not a readable tokenizer"):
        load_encoder(str(folder), device="cpu").encode_text(["门"])
