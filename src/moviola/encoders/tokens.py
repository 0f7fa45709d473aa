"""From texts to token ids, by the checkpoint's own ``tokenizer.json``.

The ``tokenizers`` library alone starts at once, without torch. What transformers' classes add to the file
(SigLIP's canonical text, its end token) is added here, by the checkpoint's own settings. A checkpoint without
``tokenizer.json`` goes through transformers.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from moviola.encoders.checkpoints import Checkpoint
from moviola.errors import DataError, MissingDependency, MissingModel

__all__ = ["Tokenize", "Tokenizer", "clip_tokenizer", "open_tokenizer", "siglip_tokenizer"]

Tokenize = Callable[[Sequence[str]], list[list[int]]]
"""Texts -> token ids, each list at most the model's length, special tokens included."""

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """The common interface of both libraries.

    Attributes:
        encode: texts to ids, without padding.
        id_of: the id of a token by its name.
        special: ids that stand for no text, that of unknown tokens among them.
    """

    encode: Tokenize
    id_of: Callable[[str], int | None]
    special: frozenset[int]


def clip_tokenizer(checkpoint: Checkpoint, text_config: dict[str, Any]) -> Tokenize:
    """CLIP: start token, text, end token; what follows the end token in a batch does not matter."""
    return open_tokenizer(checkpoint, text_config["max_position_embeddings"]).encode


def siglip_tokenizer(checkpoint: Checkpoint, text_config: dict[str, Any]) -> Tokenize:
    """SigLIP and SigLIP 2: canonical text, end token, padded to the model's full length.

    SigLIP was trained on lower-case text without punctuation, SigLIP 2 on lower-case text
    (``do_lower_case``).
    """
    settings = checkpoint.json("tokenizer_config.json")
    longest = text_config["max_position_embeddings"]
    tokenizer = open_tokenizer(checkpoint, longest)
    end, pad = (_special_id(checkpoint, tokenizer, settings, name) for name in ("eos_token", "pad_token"))
    lower = settings.get("do_lower_case", True)
    sentencepiece = str(settings.get("tokenizer_class", "")).startswith("SiglipTokenizer")
    left = settings.get("padding_side", "right") == "left"
    close = [end] if sentencepiece or settings.get("add_eos_token", False) else []

    def tokenize(texts: Sequence[str]) -> list[list[int]]:
        if lower:
            texts = [text.lower() for text in texts]
        if sentencepiece:
            texts = [re.sub(r"\s+", " ", text.translate(_NO_PUNCTUATION)).strip() for text in texts]
        rows = [
            ids if ids[-1:] == close else ids[: longest - len(close)] + close
            for ids in tokenizer.encode(texts)
        ]
        fills = [[pad] * (longest - len(ids)) for ids in rows]
        return [fill + ids if left else ids + fill for ids, fill in zip(rows, fills, strict=True)]

    return tokenize


def _special_id(checkpoint: Checkpoint, tokenizer: Tokenizer, settings: dict[str, Any], name: str) -> int:
    token = settings.get(name) or "</s>"
    token = token["content"] if isinstance(token, dict) else token
    number = tokenizer.id_of(token)
    if number is None:
        raise DataError(
            f"{checkpoint.folder}: {name} {token!r} is not in the vocabulary; fetch the model again"
        )
    return number


def open_tokenizer(checkpoint: Checkpoint, longest: int) -> Tokenizer:
    """The checkpoint's tokenizer, cutting at ``longest`` ids; by the ``tokenizers`` library where it has the
    file for that.
    """
    if not (checkpoint.folder / "tokenizer.json").is_file():
        return _open_by_transformers(checkpoint, longest)
    import tokenizers

    path = checkpoint.folder / "tokenizer.json"
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        raise DataError(f"{path}: not a readable tokenizer ({error}); fetch the checkpoint again") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest)
    added = tokenizer.get_added_tokens_decoder()
    return Tokenizer(
        lambda texts: [encoding.ids for encoding in tokenizer.encode_batch(list(texts))],
        tokenizer.token_to_id,
        frozenset(number for number, token in added.items() if token.special),
    )


def _open_by_transformers(checkpoint: Checkpoint, longest: int) -> Tokenizer:
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder, local_files_only=True)
    except ImportError as error:
        raise MissingDependency(
            f"{checkpoint.id}: has no tokenizer.json, so it needs transformers ({error})",
            "train",
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise MissingModel(
            f"{checkpoint.id}: no tokenizer files that transformers can read ({error}); fetch the whole model"
        ) from error

    def encode(texts: Sequence[str]) -> list[list[int]]:
        rows = tokenizer(list(texts), truncation=True, max_length=longest)["input_ids"]
        return [list(row) for row in rows]

    return Tokenizer(encode, tokenizer.convert_tokens_to_ids, frozenset(tokenizer.all_special_ids))
