"""Files that tokenizers lie in, read by the ``tokenizers`` library without transformers.

``tokenizer.json`` says all. Older checkpoints have a vocabulary alone, whose rules follow from its kind: a
``vocab.txt`` is WordPiece's (Devlin et al. 2019), a ``vocab.json`` with ``merges.txt`` holds byte pairs
(Sennrich et al. 2016), of CLIP where words end with ``</w>`` (Radford et al. 2021), else of RoBERTa.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from moviola.encoders.checkpoints import Checkpoint, read_json
from moviola.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["SPECIAL", "TOKENIZER_FILES", "has_tokenizer", "is_lower", "read_tokenizer", "read_vocabulary"]

TOKENIZER_FILES = "tokenizer.json, vocab.txt, or vocab.json with merges.txt"

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Tokens of a ``vocab.txt`` that stand for no text, unless a text has them by name."""

_CLIP_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
"""What CLIP's byte pairs are joined within: letters, single digits, other signs, English endings."""


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder has a tokenizer's files that are read here."""
    return _file_of(folder) is not None


def read_tokenizer(checkpoint: Checkpoint) -> Tokenizer | None:
    """The tokenizer in a checkpoint's folder; None where it lies in other files.

    Raises:
        DataError: a file cannot be read.
    """
    import tokenizers

    path = _file_of(checkpoint.folder)
    if path is None:
        return None
    try:
        if path.name == "tokenizer.json":
            return tokenizers.Tokenizer.from_file(str(path))
        return (_word_pieces if path.name == "vocab.txt" else _byte_pairs)(checkpoint)
    except DataError:
        raise
    except Exception as error:  # the library raises nothing more specific
        raise DataError(f"{path}: not a readable tokenizer ({error}); fetch the checkpoint again") from error


def _file_of(folder: Path) -> Path | None:
    found = [name for name in ("tokenizer.json", "vocab.txt", "vocab.json") if (folder / name).is_file()]
    if found[:1] == ["vocab.json"] and not (folder / "merges.txt").is_file():
        return None
    return folder / found[0] if found else None


def _word_pieces(checkpoint: Checkpoint) -> Tokenizer:
    """That of ``vocab.txt``, of texts in lower case unless ``do_lower_case`` is false."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    path = checkpoint.folder / "vocab.txt"
    made = Tokenizer(models.WordPiece.from_file(str(path), unk_token="[UNK]"))
    numbers = {name: number for name in SPECIAL if (number := made.token_to_id(name)) is not None}
    if lacking := [name for name in ("[UNK]", "[CLS]", "[SEP]") if name not in numbers]:
        raise DataError(f"{path}: not a readable tokenizer (lacks {lacking[0]}); fetch the checkpoint again")
    made.add_special_tokens([*numbers])
    made.normalizer = normalizers.BertNormalizer(lowercase=is_lower(checkpoint))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(*((name, numbers[name]) for name in ("[SEP]", "[CLS]")))
    return made


def is_lower(checkpoint: Checkpoint) -> bool:
    """Whether a tokenizer of ``vocab.txt`` has texts in lower case."""
    return bool(checkpoint.json("tokenizer_config.json").get("do_lower_case", True))


def read_vocabulary(checkpoint: Checkpoint) -> dict[str, int] | None:
    """Ids by token of a checkpoint whose tokenizer is its ``vocab.txt``; None where it is another, or the
    file lacks a token that all have, of which the library complains.
    """
    path = _file_of(checkpoint.folder)
    if path is None or path.name != "vocab.txt":
        return None
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError):
        return None
    numbers = dict(zip(map(str.rstrip, lines), range(len(lines)), strict=True))
    return numbers if numbers.keys() >= set(SPECIAL) else None


def _byte_pairs(checkpoint: Checkpoint) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    path = checkpoint.folder / "vocab.json"
    vocabulary = read_json(path)
    lines = (checkpoint.folder / "merges.txt").read_text(encoding="utf-8").splitlines()
    pairs = [tuple(line.split()) for line in lines if line and not line.startswith("#version")]
    of_clip = any(token.endswith("</w>") for token in vocabulary)
    begin, end = ("<|startoftext|>", "<|endoftext|>") if of_clip else ("<s>", "</s>")
    if lacking := [token for token in (begin, end) if token not in vocabulary]:
        raise DataError(f"{path}: lacks the token {lacking[0]!r}; fetch the checkpoint again")
    unknown = end if of_clip else "<unk>"
    made = Tokenizer(
        models.BPE(
            vocabulary, pairs, unk_token=unknown if unknown in vocabulary else None,  # type: ignore[arg-type]  # pairs
            continuing_subword_prefix="", end_of_word_suffix="</w>" if of_clip else "",
        )
    )  # fmt: skip
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not of_clip)
    made.pre_tokenizer = bytewise
    if of_clip:
        spaces = normalizers.Replace(Regex(r"\s+"), " ")
        made.normalizer = normalizers.Sequence([normalizers.NFC(), spaces, normalizers.Lowercase()])
        words = pre_tokenizers.Split(Regex(_CLIP_WORDS), "removed", invert=True)
        made.pre_tokenizer = pre_tokenizers.Sequence([words, bytewise])
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in (begin, end)])
    made.post_processor = processors.RobertaProcessing(
        (end, vocabulary[end]), (begin, vocabulary[begin]), trim_offsets=False, add_prefix_space=False
    )
    return made
