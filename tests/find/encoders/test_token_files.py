"""Tokenizers of older files give the ids that transformers' classes give, to the id, without transformers."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers.models.clip.tokenization_clip import CLIPTokenizer
from transformers.models.roberta.tokenization_roberta import RobertaTokenizer

from moviola.encoders import Checkpoint, tokens
from moviola.encoders.sentence_models import MINILM_FOLDER
from moviola.encoders.token_files import read_tokenizer
from moviola.encoders.tokens import open_tokenizer
from moviola.errors import DataError

LETTERS = "abRStu éß中文字ñ 0123456789 .,!?'\"-_/\\ \t\n\u00a0\u3000🙂👩‍🚀ﬁ"
TEXTS = [
    "a red door", "A  RED\tdoor", "it's the dog's, we'll they've I'm he'd", "room 101, 3.14", "", " ", "!?..",
    "Straße naïve é e\u0301", "中文 字", "🙂 🙂🙂", "<|endoftext|> a", "a<s>b</s>", "snow-white_2",
    *("".join(random.Random(seed).choices(LETTERS, k=30)) for seed in range(40)),
]  # fmt: skip


def byte_pairs(folder: Path, **written: Any) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The vocabulary of a checkpoint's ``tokenizer.json``, as older files; that file is gone then."""
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    pairs = [tuple(pair) for pair in model["merges"]]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"] | written))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in pairs)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n")
    (folder / "tokenizer.json").unlink()
    return model["vocab"], pairs


@pytest.fixture
def without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("transformers was called")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", refused)


@pytest.mark.usefixtures("without_transformers")
def test_byte_pairs_of_clip(make_clip: Callable[..., Path]) -> None:
    folder = make_clip()
    vocabulary, pairs = byte_pairs(folder)
    theirs = CLIPTokenizer(vocab=vocabulary, merges=pairs)
    ours = open_tokenizer(Checkpoint("clip", folder, ""), 77)
    assert ours.encode(TEXTS) == [theirs(text)["input_ids"] for text in TEXTS]
    assert ours.encode(["a " * 200])[0][-1] == theirs.eos_token_id and len(ours.encode(["a " * 200])[0]) == 77


@pytest.mark.usefixtures("without_transformers")
def test_byte_pairs_of_roberta(tmp_path: Path) -> None:
    from tokenizers import ByteLevelBPETokenizer

    made = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    made.train_from_iterator(TEXTS[:12], vocab_size=400, special_tokens=special, show_progress=False)
    made.save(str(tmp_path / "tokenizer.json"))
    vocabulary, pairs = byte_pairs(tmp_path)
    theirs = RobertaTokenizer(vocab=vocabulary, merges=pairs)
    ours = open_tokenizer(Checkpoint("roberta", tmp_path, ""), 64)
    assert ours.encode(TEXTS) == [theirs(text)["input_ids"] for text in TEXTS]


@pytest.mark.usefixtures("without_transformers")
def test_word_pieces_are_those_of_the_library() -> None:
    """Of texts in ASCII, which need no library, also with control characters, words that are too long, and
    tokens by name; and of the others, which need it.
    """
    checkpoint = Checkpoint("minilm", MINILM_FOLDER, "")
    ours, theirs = tokens.open_tokenizer(checkpoint, 32), tokens._open_by_library(checkpoint, 32)
    assert ours.special == theirs.special and ours.id_of("[SEP]") == theirs.id_of("[SEP]") == 102
    draw = random.Random(0)
    words = (Path(MINILM_FOLDER) / "vocab.txt").read_text(encoding="utf-8").split()
    texts = [*TEXTS, "a [SEP] b", "[ sep ]", "x" * 100, "x" * 101, "unbelievableness's", "A\x00b\x0bc\x7fd"]
    texts += ["".join(map(chr, draw.choices(range(128), k=40))) for _ in range(400)]
    texts += [" ".join(draw.choices(words, k=40)) for _ in range(100)]
    assert ours.encode(texts) == theirs.encode(texts)


def test_a_text_in_ascii_needs_no_library() -> None:
    """It would take a fifteenth of a first search."""
    code = (
        "import sys; from moviola.encoders import load_sentence_encoder; "
        "load_sentence_encoder('minilm').encode_text(['A car, on a road']); "
        "sys.exit('tokenizers' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_cannot_be_read_is_named(make_clip: Callable[..., Path]) -> None:
    folder = make_clip()
    checkpoint = Checkpoint("clip", folder, "")
    byte_pairs(folder)
    for name, content, message in (
        ("merges.txt", "a\n", "not a readable tokenizer"), ("vocab.json", '{"a</w>": 0}', "lacks the token"),
        ("vocab.json", "[", "not valid JSON"), ("vocab.json", '{"a": "b"}', "lacks the token"),
    ):  # fmt: skip
        before = (folder / name).read_text()
        (folder / name).write_text(content)
        with pytest.raises(DataError, match=message):
            read_tokenizer(checkpoint)
        (folder / name).write_text(before)
    (folder / "merges.txt").unlink()
    assert read_tokenizer(checkpoint) is None
