"""Tiny random checkpoints of every family, made by transformers itself and loaded by the code under test."""

from __future__ import annotations

import json
import shutil
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import chinese_clips
import open_clips
from moviola.encoders import CONSE, DEMO

WORDS = ("a the red blue green robot picks up key ball box in room opens door zebra crossing street").split()  # noqa: SIM905
SPECIAL = {"clip": ["<|startoftext|>", "<|endoftext|>"], "siglip": ["<pad>", "<eos>", "<bos>", "<unk>"]}


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def bpe_vocabulary(special: list[str], suffix: str, alphabet: list[str]) -> tuple[dict[str, int], list[Any]]:
    """Vocabulary and merges of a byte-pair encoding of WORDS."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=alphabet,
        end_of_word_suffix=suffix,
        min_frequency=1,
        show_progress=False,
    )
    tokenizer.train_from_iterator(WORDS, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def clip_checkpoint(
    folder: Path, *, legacy: bool = False, act: str = "quick_gelu", dtype: Any = None, width: int = 24
) -> Path:
    """A CLIP; ``legacy`` puts the end token last and says 2 in the configuration, as OpenAI's do."""
    from tokenizers import pre_tokenizers
    from transformers import CLIPConfig
    from transformers.models.clip.modeling_clip import CLIPModel
    from transformers.models.clip.tokenization_clip import CLIPTokenizer

    vocab, merges = bpe_vocabulary(SPECIAL["clip"], "</w>", pre_tokenizers.ByteLevel.alphabet())
    if legacy:
        last = max(vocab, key=lambda token: vocab[token])
        vocab[last], vocab["<|endoftext|>"] = vocab["<|endoftext|>"], vocab[last]
    tokenizer = CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=20)
    tokenizer.save_pretrained(folder)
    text = {
        "vocab_size": len(vocab),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 20,
        "hidden_act": act,
        "eos_token_id": 2 if legacy else vocab["<|endoftext|>"],
    }
    vision = {
        "hidden_size": width,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": width // 8,
        "image_size": 32,
        "patch_size": 8,
    }
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=16))
    model.to(dtype).save_pretrained(folder)
    write_json(
        folder / "preprocessor_config.json",
        {
            "size": 40,
            "crop_size": 32,
            "do_center_crop": True,
            "resample": 3,
            "image_mean": [0.4, 0.5, 0.6],
            "image_std": [0.2, 0.25, 0.3],
        },
    )
    return folder


def gemma_tokenizer(folder: Path, padding_side: str = "right") -> int:
    """A lower-casing tokenizer like Gemma's; returns the number of its tokens."""
    from transformers.models.siglip2.tokenization_siglip2 import Siglip2Tokenizer

    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    vocab, merges = bpe_vocabulary([*SPECIAL["siglip"], *byte_tokens], "", ["▁"])
    tokenizer = Siglip2Tokenizer(
        vocab=vocab, merges=merges, padding_side=padding_side, add_bos_token=False, add_eos_token=True
    )
    tokenizer.save_pretrained(folder)
    return len(vocab)


def naflex_checkpoint(folder: Path, *, width: int = 24) -> Path:
    """A SigLIP 2 NaFlex, of patches of 8 pixels, 24 at most, and a table of 4 x 4 places."""
    from transformers import Siglip2Config
    from transformers.models.siglip2.modeling_siglip2 import Siglip2Model

    text = {
        "vocab_size": gemma_tokenizer(folder), "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 12,
        "projection_size": width,
    }  # fmt: skip
    vision = {
        "hidden_size": width, "intermediate_size": 40, "num_hidden_layers": 2,
        "num_attention_heads": width // 8, "num_patches": 16, "patch_size": 8,
    }  # fmt: skip
    model = Siglip2Model(Siglip2Config(text_config=text, vision_config=vision))
    with torch.no_grad():  # places that matter
        model.vision_model.embeddings.position_embedding.weight.normal_()
    model.save_pretrained(folder)
    write_json(
        folder / "preprocessor_config.json",
        {
            "patch_size": 8, "max_num_patches": 24, "resample": 2, "do_rescale": True,
            "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "rescale_factor": 1 / 255,
        },
    )  # fmt: skip
    return folder


def siglip_checkpoint(
    folder: Path, *, padding_side: str = "right", shards: bool = False, dtype: Any = None
) -> Path:
    """A SigLIP 2 of fixed resolution: SigLIP's architecture with a lower-casing Gemma-like tokenizer."""
    from transformers import SiglipConfig
    from transformers.models.siglip.modeling_siglip import SiglipModel

    text = {
        "vocab_size": gemma_tokenizer(folder, padding_side),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 12,
        "projection_size": 24,
    }
    vision = {
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "image_size": 32,
        "patch_size": 16,
    }
    model = SiglipModel(SiglipConfig(text_config=text, vision_config=vision))
    model.to(dtype).save_pretrained(folder, **({"max_shard_size": "40KB"} if shards else {}))
    write_json(
        folder / "preprocessor_config.json",
        {
            "size": {"height": 32, "width": 32},
            "resample": 2,
            "image_mean": [0.5] * 3,
            "image_std": [0.5] * 3,
            "rescale_factor": 1 / 255,
        },
    )
    return folder


def bert_checkpoint(
    folder: Path,
    *,
    kind: str = "bert",
    pooling: str = "mean_tokens",
    normalise: bool = True,
    dtype: Any = None,
) -> Path:
    """A sentence encoder in sentence-transformers' layout; ``kind`` is transformers' type of model."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import AutoConfig, AutoModel

    vocab = {token: i for i, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(length=30)  # must not matter
    tokenizer.save(str(folder / "tokenizer.json"))
    config = AutoConfig.for_model(
        kind,
        vocab_size=len(vocab),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=24,
        pad_token_id=0 if kind == "bert" else 1,
    )
    AutoModel.from_config(config).to(dtype).save_pretrained(folder)
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    if normalise:
        normalize = "sentence_transformers.models.Normalize"
        modules.append({"idx": 2, "name": "2", "path": "2_Normalize", "type": normalize})
    write_json(folder / "modules.json", modules)
    (folder / "1_Pooling").mkdir()
    modes = {"mean_tokens": False, "cls_token": False, "max_tokens": False} | {pooling: True}
    write_json(
        folder / "1_Pooling" / "config.json",
        {"word_embedding_dimension": 32, **{f"pooling_mode_{mode}": on for mode, on in modes.items()}},
    )
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 10})
    return folder


KINDS: dict[str, Callable[[Path], Path]] = {
    "clip": clip_checkpoint,
    "clip-legacy-gelu": lambda folder: clip_checkpoint(folder, legacy=True, act="gelu"),
    "clip-bf16": lambda folder: clip_checkpoint(folder, dtype=torch.bfloat16),
    "siglip2": siglip_checkpoint,
    "siglip2-bf16": lambda folder: siglip_checkpoint(folder, dtype=torch.bfloat16),
    "siglip2-left-sharded": lambda folder: siglip_checkpoint(folder, padding_side="left", shards=True),
}


@pytest.fixture(scope="session", params=KINDS)
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One checkpoint folder of each kind in turn."""
    torch.manual_seed(0)
    return KINDS[request.param](tmp_path_factory.mktemp("checkpoint"))


# One of each sort of tower in open_clip's format.
OPEN_CLIPS = ("laion", "siglip2", "pe-core", "xlm-roberta")


@pytest.fixture(scope="session", params=[*KINDS, *OPEN_CLIPS, DEMO, CONSE, "example"])
def name(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A name for ``load_encoder``: a folder of each kind, the packaged encoders, a plug-in's."""
    if request.param in OPEN_CLIPS:
        folder = tmp_path_factory.mktemp("open-clip")
        own_tokenizer(folder, open_clips.KINDS[request.param].config)
        return str(open_clips.KINDS[request.param].make(folder))
    if request.param not in KINDS:
        return str(request.param)
    torch.manual_seed(0)
    return str(KINDS[request.param](tmp_path_factory.mktemp("checkpoint")))


def own_tokenizer(folder: Path, config: Mapping[str, Any]) -> None:
    """Write the tokenizer of a checkpoint in open_clip's format: CLIP's byte pairs where it names none, else
    pieces like those of SigLIP, SigLIP 2 and XLM-R, of which only some have their end token in the file.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers.models.clip.tokenization_clip import CLIPTokenizer

    texts = config["model_cfg"]["text_cfg"]
    named = texts.get("hf_tokenizer_name") or texts.get("hf_model_name")
    if not named:
        vocab, merges = bpe_vocabulary(SPECIAL["clip"], "</w>", pre_tokenizers.ByteLevel.alphabet())
        last = max(vocab, key=lambda token: vocab[token])
        vocab[last], vocab["<|endoftext|>"] = vocab["<|endoftext|>"], vocab[last]
        CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=77).save_pretrained(folder)
        return
    special = ["<s>", "<pad>", "<unk>", "[3]", "[4]", "[5]", "[6]", "</s>"]
    if named.startswith("bert"):  # whose padding is the first
        special[:2] = reversed(special[:2])
    vocab, merges = bpe_vocabulary(special, "", ["▁", *string.ascii_letters])
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Metaspace()
    settings = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    if "SigLIP" in named:
        settings |= {"tokenizer_class": "T5Tokenizer"}
    else:
        tokenizer.post_processor = processors.RobertaProcessing(
            ("</s>", 7), ("<s>", special.index("<s>")), add_prefix_space=False
        )
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", settings)


@pytest.fixture(scope="session")
def write_tokenizer() -> Callable[[Path, Mapping[str, Any]], None]:
    """:func:`own_tokenizer`."""
    return own_tokenizer


def of_open_clip(name: str) -> Callable[[Path], Path]:
    """What writes a checkpoint of ``open_clips.KINDS`` with its tokenizer."""

    def make(folder: Path) -> Path:
        own_tokenizer(folder, open_clips.KINDS[name].config)
        return open_clips.KINDS[name].make(folder)

    return make


def open_clip_naflex(folder: Path) -> Path:
    """:func:`naflex_checkpoint` as open_clip stores it, by timm's names, for pictures of 5 x 5 patches."""
    naflex_checkpoint(folder)
    given = load_file(folder / "model.safetensors")
    made = {name: given[name] for name in ("logit_scale", "logit_bias")}

    def put(to: str, *of: str, kinds: tuple[str, ...] = ("weight", "bias"), dot: str = ".") -> None:
        for kind in kinds:
            made[f"{to}{dot}{kind}"] = np.concatenate([given[f"{one}.{kind}"] for one in of])

    seen, said = "vision_model", "text_model"
    trunk, pool, head = "visual.trunk", "visual.trunk.attn_pool", f"{seen}.head"
    put(f"{trunk}.embeds.proj", f"{seen}.embeddings.patch_embedding")
    made[f"{trunk}.embeds.pos_embed"] = given[f"{seen}.embeddings.position_embedding.weight"].reshape(
        1, 4, 4, -1
    )
    put(f"{trunk}.norm", f"{seen}.post_layernorm")
    made[f"{pool}.latent"] = given[f"{head}.probe"]
    for kind in ("weight", "bias"):
        joint = given[f"{head}.attention.in_proj_{kind}"]
        width = len(joint) // 3
        made[f"{pool}.q.{kind}"], made[f"{pool}.kv.{kind}"] = joint[:width].copy(), joint[width:].copy()
    for to, of in {
        "proj": "attention.out_proj",
        "norm": "layernorm",
        "mlp.fc1": "mlp.fc1",
        "mlp.fc2": "mlp.fc2",
    }.items():
        put(f"{pool}.{to}", f"{head}.{of}")
    made["text.token_embedding.weight"] = given[f"{said}.embeddings.token_embedding.weight"]
    made["text.positional_embedding"] = given[f"{said}.embeddings.position_embedding.weight"]
    put("text.ln_final", f"{said}.final_layer_norm")
    put("text.text_projection", f"{said}.head")
    for number in range(2):
        at, layer = f"{trunk}.blocks.{number}", f"{seen}.encoder.layers.{number}"
        put(f"{at}.attn.qkv", *(f"{layer}.self_attn.{part}_proj" for part in "qkv"))
        put(f"{at}.attn.proj", f"{layer}.self_attn.out_proj")
        for to, of in {
            "norm1": "layer_norm1",
            "norm2": "layer_norm2",
            "mlp.fc1": "mlp.fc1",
            "mlp.fc2": "mlp.fc2",
        }.items():
            put(f"{at}.{to}", f"{layer}.{of}")
        at, layer = f"text.transformer.resblocks.{number}", f"{said}.encoder.layers.{number}"
        put(f"{at}.attn.in_proj", *(f"{layer}.self_attn.{part}_proj" for part in "qkv"), dot="_")
        put(f"{at}.attn.out_proj", f"{layer}.self_attn.out_proj")
        for to, of in {
            "ln_1": "layer_norm1",
            "ln_2": "layer_norm2",
            "mlp.c_fc": "mlp.fc1",
            "mlp.c_proj": "mlp.fc2",
        }.items():
            put(f"{at}.{to}", f"{layer}.{of}")
    save_file(made, folder / "open_clip_model.safetensors")
    texts = open_clips.SIGLIP_TEXTS | {
        "vocab_size": len(made["text.token_embedding.weight"]), "act_kwargs": {"approximate": "tanh"},
    }  # fmt: skip
    vision = {
        "image_size": 40,
        "timm_model_name": "naflexvit_tiny_patch16_siglip",
        "timm_pool": "map",
        "timm_proj": "none",
    }
    write_json(folder / "open_clip_config.json", {
        "model_cfg": {
            "embed_dim": 24, "init_logit_bias": -10, "custom_text": True, "vision_cfg": vision,
            "text_cfg": texts,
        },
        "preprocess_cfg": open_clips.SIGLIP_PIXELS | {"interpolation": "bilinear"},
    })  # fmt: skip
    for name in ("model.safetensors", "config.json", "preprocessor_config.json"):
        (folder / name).unlink()
    return folder


EVERY: dict[str, Callable[[Path], Path]] = {
    "clip": clip_checkpoint, "siglip": siglip_checkpoint, "naflex": naflex_checkpoint,
    "chinese-clip": chinese_clips.make, "open_clip naflex": open_clip_naflex,
    **{f"open_clip {name}": of_open_clip(name) for name in open_clips.KINDS},
}  # fmt: skip
"""Every architecture in every format that is read; a test compares them with the product's own tables."""


@pytest.fixture(scope="session")
def every_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A tiny checkpoint of each of :data:`EVERY`, which stay as they are."""
    place, made = tmp_path_factory.mktemp("every"), {}
    for name, make in EVERY.items():
        torch.manual_seed(0)
        folder = place / name.replace(" ", "-")
        folder.mkdir()
        made[name] = make(folder)
    return made


@pytest.fixture(params=EVERY)
def each(request: pytest.FixtureRequest, every_checkpoint: Mapping[str, Path], tmp_path: Path) -> Path:
    """A copy of a checkpoint of each of :data:`EVERY` in turn, in this test's folder."""
    return Path(shutil.copytree(every_checkpoint[request.param], tmp_path / "checkpoint"))


@pytest.fixture
def make_clip(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a tiny CLIP checkpoint into this test's folder."""
    torch.manual_seed(0)
    return lambda **options: clip_checkpoint(tmp_path, **options)


@pytest.fixture
def make_siglip(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a tiny SigLIP 2 checkpoint into this test's folder."""
    torch.manual_seed(0)
    return lambda **options: siglip_checkpoint(tmp_path, **options)


@pytest.fixture(scope="session")
def naflex(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny SigLIP 2 NaFlex checkpoint, which stays as it is."""
    torch.manual_seed(0)
    return naflex_checkpoint(tmp_path_factory.mktemp("naflex"))


@pytest.fixture
def wide_naflex(tmp_path: Path) -> Path:
    """One whose tower of pictures is so wide that 8 bits compute it."""
    torch.manual_seed(0)
    return naflex_checkpoint(tmp_path, width=512)


@pytest.fixture
def make_bert(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a tiny sentence encoder into this test's folder."""
    torch.manual_seed(0)
    return lambda **options: bert_checkpoint(tmp_path, **options)
