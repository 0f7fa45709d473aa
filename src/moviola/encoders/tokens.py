"""From texts to token ids, by the checkpoint's own files (:mod:`moviola.encoders.token_files`).

The ``tokenizers`` library alone starts at once, without torch. What transformers' classes add to the file
(SigLIP's canonical text, its end token) is added here, by the checkpoint's own settings. A checkpoint of
other files goes through transformers.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from moviola.encoders.checkpoints import Checkpoint
from moviola.encoders.sections import Section
from moviola.encoders.token_files import (
    SPECIAL,
    TOKENIZER_FILES,
    is_lower,
    read_tokenizer,
    read_vocabulary,
)
from moviola.encoders.word_pieces import WordPieces
from moviola.errors import DataError, MissingDependency, MissingModel

__all__ = [
    "CLEANINGS", "TokenRules", "Tokenize", "Tokenizer", "bert_tokenizer", "clip_tokenizer", "open_tokenizer",
    "ruled_tokenizer", "siglip_tokenizer",
]  # fmt: skip

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
    settings = _settings(checkpoint)
    longest = text_config["max_position_embeddings"]
    tokenizer = open_tokenizer(checkpoint, longest)
    end, pad = (_special_id(checkpoint, tokenizer, settings, name) for name in ("eos_token", "pad_token"))
    lower = settings.flag("do_lower_case", True)
    sentencepiece = settings.text("tokenizer_class").startswith("SiglipTokenizer")
    left = settings.one_of("padding_side", {"right": False, "left": True}, "right")
    close = [end] if settings.flag("add_eos_token") or sentencepiece else []

    def tokenize(texts: Sequence[str]) -> list[list[int]]:
        if lower:
            texts = [text.lower() for text in texts]
        if sentencepiece:
            texts = [_one_spaced(text.translate(_NO_PUNCTUATION)) for text in texts]
        return _filled(_closed(tokenizer.encode(texts), close, longest), longest, pad, left=left)

    return tokenize


def _one_spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


CLEANINGS: dict[str, Callable[[str], str]] = {
    "whitespace": _one_spaced,
    "lower": lambda text: _one_spaced(text).lower(),
    "canonicalize": lambda text: _one_spaced(text.translate(_NO_PUNCTUATION).lower()),
}
"""What happens to a text first, by the names of open_clip's ``tokenizer_kwargs.clean``."""


@dataclass(frozen=True)
class TokenRules:
    """How a text becomes the tokens of a tower in open_clip's format.

    Attributes:
        named: repository of the tokenizer; empty for CLIP's own.
        longest: most tokens of a text.
        clean: what happens to it first.
        padded: whether all texts get as many tokens as the longest.
    """

    named: str
    longest: int
    clean: Callable[[str], str]
    padded: bool = False


# Their last token belongs to their text, but is not always in the file.
_CLOSING = ("T5Tokenizer", "SiglipTokenizer")


def ruled_tokenizer(checkpoint: Checkpoint, rules: TokenRules, vocabulary: int) -> Tokenize:
    """The tokens of a tower in open_clip's format, which are below ``vocabulary``."""
    settings = _settings(checkpoint)
    tokenizer = open_tokenizer(checkpoint, rules.longest)
    ends = settings.flag("add_eos_token") or settings.text("tokenizer_class").startswith(_CLOSING)
    close = [_special_id(checkpoint, tokenizer, settings, "eos_token")] if ends else []
    # CLIP's own is filled with zeros, whatever its file says.
    pad = _special_id(checkpoint, tokenizer, settings, "pad_token") if rules.padded and rules.named else 0

    def tokenize(texts: Sequence[str]) -> list[list[int]]:
        rows = _closed(tokenizer.encode([rules.clean(text) for text in texts]), close, rules.longest)
        if rules.padded:
            rows = _filled(rows, rules.longest, pad)
        highest = max((max(ids, default=0) for ids in rows), default=0)
        if highest >= vocabulary:
            raise DataError(
                f"{checkpoint.folder}: its tokenizer gives the token {highest}, its tower knows "
                f"{vocabulary} tokens; "
                "take the tokenizer that the checkpoint was trained with"
            )
        return rows

    return tokenize


def bert_tokenizer(checkpoint: Checkpoint, text_config: dict[str, Any]) -> Tokenize:
    """WordPiece (Devlin et al. 2019): first token, text, last token."""
    return open_tokenizer(checkpoint, text_config["context_length"]).encode


def _closed(rows: list[list[int]], close: list[int], longest: int) -> list[list[int]]:
    """Token ids that end with a token, if there is one to close with."""
    return [ids if ids[-1:] == close else ids[: longest - len(close)] + close for ids in rows]


def _filled(rows: list[list[int]], longest: int, pad: int, *, left: bool = False) -> list[list[int]]:
    """Token ids, all of them as many."""
    fills = [[pad] * (longest - len(ids)) for ids in rows]
    return [fill + ids if left else ids + fill for ids, fill in zip(rows, fills, strict=True)]


def _settings(checkpoint: Checkpoint) -> Section:
    file = "tokenizer_config.json"
    return Section(checkpoint.folder / file, "", checkpoint.json(file))


def _special_id(checkpoint: Checkpoint, tokenizer: Tokenizer, settings: Section, name: str) -> int:
    given = settings.given(name)
    token = "</s>" if given is None or given == "" else given
    token = token.get("content") if isinstance(token, dict) else token
    number = tokenizer.id_of(token) if isinstance(token, str) else None
    if number is None:
        raise DataError(
            f"{checkpoint.folder}: {name} {token!r:.80} is not in the vocabulary; fetch the model again"
        )
    return number


def open_tokenizer(checkpoint: Checkpoint, longest: int) -> Tokenizer:
    """The checkpoint's tokenizer, cutting at ``longest`` ids; by the ``tokenizers`` library where it has the
    files for that, but for what needs no library (:mod:`moviola.encoders.word_pieces`).
    """
    if (vocabulary := read_vocabulary(checkpoint)) is None:
        return _open_by_library(checkpoint, longest)
    pieces = WordPieces(
        vocabulary, longest, lower=is_lower(checkpoint),
        library=lambda: _open_by_library(checkpoint, longest).encode,
    )  # fmt: skip
    return Tokenizer(pieces.encode, vocabulary.get, frozenset(vocabulary[name] for name in SPECIAL))


def _open_by_library(checkpoint: Checkpoint, longest: int) -> Tokenizer:
    tokenizer = read_tokenizer(checkpoint)
    if tokenizer is None:
        return _open_by_transformers(checkpoint, longest)
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
            f"{checkpoint.id}: has no {TOKENIZER_FILES}, so it needs transformers ({error})",
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
