"""Write what belongs to e5-small besides its weights: the layer that whitens it, and the way to MiniLM.

    python scripts/make_e5.py --wordnet FOLDER --locales FOLDER

Vectors of e5 have most in common whatever they are of: cosines lie between .7 and .9. ``3_Dense`` takes the
mean off, and divides by the root of the covariance, to each eigenvalue of which 20 times their mean is added,
so that what hardly varies is not made large. Before that it takes off what says in which language a text is:
the five main axes of the mean differences between messages of programs in 24 languages and in English, as in
language information removal (Yang et al. 2021). That of ``e5_small_to_minilm`` is the linear map from e5's
vectors to MiniLM's of the same texts (ridge regression). Both are fitted on English: names and glosses of
ImageNet's classes, texts about everything, and of WordNet 3.0 (Debian: the package wordnet-base) 2,000 first
words, 2,000 glosses and 5,000 example sentences.
"""

from __future__ import annotations

import argparse
import gettext
import hashlib
import json
import random
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from make_conse_classes import TABLE, read_classes
from moviola.encoders import E5, MINILM, load_sentence_encoder
from moviola.encoders.e5 import ANCHORS, BRIDGE_FOLDER, E5_FOLDER, SHA256
from moviola.retrieval import unrelated_queries

KEPT, PENALTY, AXES = 20.0, 1.0, 5
KINDS = ("noun", "verb", "adj")
NAMES, GLOSSES, EXAMPLES = 2000, 2000, 5000
LANGUAGES = [
    "ar", "cs", "da", "de", "el", "es", "fi", "fr", "hi", "hu", "it", "ja",
    "ko", "nl", "pl", "pt_BR", "ro", "ru", "sv", "th", "tr", "uk", "vi", "zh_CN",
]  # fmt: skip
PROGRAMS = ("glib20", "coreutils")
MESSAGES = 60

Floats = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wordnet", type=Path, required=True, help="folder of WordNet 3.0's data files")
    parser.add_argument(
        "--locales",
        type=Path,
        required=True,
        help="folder of messages by language (Debian: /usr/share/locale, of libglib2.0-data and coreutils)",
    )
    options = parser.parse_args()
    texts = texts_of(options.wordnet)
    same = np.eye(384, dtype=np.float32)
    write_dense(E5_FOLDER, same, np.zeros(384, np.float32))
    own, theirs = (load_sentence_encoder(name, resident=True).encode_text(texts) for name in (E5, MINILM))
    alike = same - projection(differences(options.locales))
    mean, (values, axes) = own.mean(0), np.linalg.eigh(np.cov(own.T))
    white = axes @ np.diag((values + KEPT * values.mean()) ** -0.5) @ axes.T @ alike
    write_dense(E5_FOLDER, white, -white @ mean)
    write_dense(BRIDGE_FOLDER, *ridge(own, theirs))
    known = theirs[[texts.index(text) for text in unrelated_queries()]]
    save_file({"texts": known.astype(np.float16)}, ANCHORS)


def texts_of(wordnet: Path) -> list[str]:
    """Distinct English texts."""
    classes = read_classes(TABLE)
    texts = [phrase for one in classes for phrase in one.phrases]
    texts += [word for one in classes for word in one.words.split("; ")]
    texts += unrelated_queries()
    rows = [row for kind in KINDS for row in read_synsets(wordnet / f"data.{kind}")]
    chosen = random.Random(0)
    names = [name for name, _, _ in rows]
    glosses = [gloss for _, gloss, _ in rows]
    examples = [example for _, _, own in rows for example in own]
    for some, count in ((names, NAMES), (glosses, GLOSSES), (examples, EXAMPLES)):
        texts += chosen.sample(some, count)
    return list(dict.fromkeys(texts))


def differences(locales: Path) -> Floats:
    """Mean differences (languages, 384) between vectors of messages in a language and in English."""
    encoder = load_sentence_encoder(E5, resident=True)
    found = []
    for language in LANGUAGES:
        messages = messages_in(locales, language)
        chosen = random.Random(0).sample(sorted(messages), MESSAGES)
        theirs = encoder.encode_text([messages[one] for one in chosen])
        found.append((theirs - encoder.encode_text(chosen)).mean(0))
    return np.array(found, np.float32)


def messages_in(locales: Path, language: str) -> dict[str, str]:
    """Messages of a few words, by what they are in English."""
    found: dict[str, str] = {}
    for program in PROGRAMS:
        # One that Debian does not have in this country's form is in the language's own.
        files = (locales / name / "LC_MESSAGES" / f"{program}.mo" for name in (language, language[:2]))
        path = next((path for path in files if path.is_file()), None)
        if path is None:
            continue
        with path.open("rb") as file:
            catalogue: dict[object, str] = vars(gettext.GNUTranslations(file))["_catalog"]
        found |= {
            text: said
            for text, said in catalogue.items()
            if isinstance(text, str) and 15 < len(text) < 100 and not set("%\n\x04_<") & set(text)
            and said and said != text
        }  # fmt: skip
    return found


def projection(rows: Floats) -> Floats:
    """Onto the main axes of some rows (n, 384)."""
    axes = np.linalg.svd(rows)[2][:AXES]
    return np.asarray(axes.T @ axes, np.float32)


def read_synsets(path: Path) -> list[tuple[str, str, list[str]]]:
    """First word, gloss up to the first semicolon, and example sentences (format: wndb(5WN))."""
    lines = [line for line in path.read_text(encoding="ascii").splitlines() if not line.startswith(" ")]
    pairs = (line.split(" | ", 1) for line in lines)
    return [
        (
            head.split()[4].replace("_", " "),
            gloss.split(";")[0].strip(),
            re.findall(r'"([^"]{15,90})"', gloss),
        )
        for head, gloss in pairs
    ]


def write_dense(folder: Path, weight: Floats, bias: Floats) -> None:
    """Write the dense layer of an encoder, and its revision, which depends on it."""
    path = folder / "3_Dense" / "model.safetensors"
    layer = {"linear.weight": weight.astype(np.float16), "linear.bias": bias.astype(np.float32)}
    save_file({name: np.ascontiguousarray(rows) for name, rows in layer.items()}, path)
    digest = hashlib.blake2b(SHA256.encode(), digest_size=8)
    digest.update(path.read_bytes())
    stated = json.loads((folder / "moviola.json").read_text(encoding="utf-8"))
    stated["revision"] = digest.hexdigest()
    (folder / "moviola.json").write_text(json.dumps(stated, indent=2) + "\n", encoding="utf-8")


def ridge(own: Floats, theirs: Floats) -> tuple[Floats, Floats]:
    """Weight and bias of the linear map from rows (n, 384) to others."""
    start, end = own.mean(0), theirs.mean(0)
    x, y = own - start, theirs - end
    weight = np.linalg.solve(x.T @ x + PENALTY * np.eye(x.shape[1]), x.T @ y).T
    return weight, end - weight @ start


if __name__ == "__main__":
    main()
