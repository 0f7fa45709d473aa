"""A Whisper model of random numbers, in the form and with the files of a real one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

# Tokens of text in a real model; the control tokens follow them.
_TEXTS = 50257
_CONTROL = (
    "<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>",
    "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>",
)  # fmt: skip


def make_whisper(folder: Path) -> Path:
    """Write a model for CTranslate2 into a new folder; it hears words that nobody said."""
    from ctranslate2.converters import TransformersConverter  # four seconds that few tests need
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    source = folder.with_name(f"{folder.name}-transformers")
    source.mkdir(parents=True)
    vocabulary = _vocabulary()
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(_CONTROL))
    tokenizer.save(str(source / "tokenizer.json"))
    end = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    (source / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **end})
    )
    _model(len(vocabulary)).save_pretrained(source)
    TransformersConverter(str(source), copy_files=["tokenizer.json"]).convert(str(folder))
    return folder


def _vocabulary() -> dict[str, int]:
    from tokenizers import pre_tokenizers

    generator = random.Random(0)
    tokens = dict.fromkeys(sorted(pre_tokenizers.ByteLevel.alphabet()))
    while len(tokens) < _TEXTS:
        tokens["Ġ" + "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=6))] = None
    times = (f"<|{number * 0.02:.2f}|>" for number in range(1501))
    return {token: number for number, token in enumerate((*tokens, *_CONTROL, *times))}


def _model(tokens: int) -> Any:
    import torch
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(0)
    model = WhisperForConditionalGeneration(
        WhisperConfig(
            vocab_size=tokens, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
        )
    )  # fmt: skip
    # Large, so that each place in the text has a word of its own.
    torch.nn.init.normal_(model.model.decoder.embed_positions.weight, std=3)
    torch.nn.init.normal_(model.model.decoder.embed_tokens.weight, std=1)
    return model
