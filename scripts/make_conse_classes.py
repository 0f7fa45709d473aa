"""Write what the ConSE encoder knows of ImageNet's classes: names and glosses, and their vectors.

    python scripts/make_conse_classes.py [--wordnet FOLDER]

Names, glosses and kinds come from WordNet 3.0, whose synsets ImageNet's classes are; the folder is that of
its database files (Debian: the package wordnet-base). Without it the vectors are made again from the table
that is there. The table is in the order of the classifier's outputs, which is that of the ids.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from moviola.encoders import load_sentence_encoder
from moviola.encoders.conse import CLASSES_FOLDER, FACTS

TABLE = CLASSES_FOLDER / "classes.csv"
# Classes of these kinds are seen on people or in their hands; ImageNet has hardly a class of people.
WORN_OR_PLAYED = {"clothing", "musical instrument", "sports equipment"}
PERSON = "a person, human being, man, woman"
PERSON_SHARE = 0.4


@dataclass(frozen=True)
class Class:
    """A class of ImageNet: WordNet's id, words with semicolons between, gloss, and whether people wear it."""

    wnid: str
    words: str
    gloss: str
    person: int

    @property
    def phrases(self) -> tuple[str, str]:
        """Texts of the class: a caption, and its entry in a dictionary."""
        name = self.words.split("; ")[0]
        return f"a photo of a {name}", f"{name}: {self.gloss}"


@dataclass(frozen=True)
class Synset:
    """A noun of WordNet: its words, its gloss up to the first semicolon, and the ids of its hypernyms."""

    words: list[str]
    gloss: str
    kinds: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wordnet", type=Path, help="folder of WordNet 3.0's data.noun")
    options = parser.parse_args()
    classes = read_classes(TABLE)
    if options.wordnet:
        nouns = dict(read_nouns(options.wordnet / "data.noun"))
        classes = [described(row.wnid, nouns) for row in classes]
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(field.name for field in fields(Class))
            rows.writerows(astuple(row) for row in classes)
    save_file(vectors(classes), CLASSES_FOLDER / "vectors.safetensors")


def read_classes(path: Path) -> list[Class]:
    """The classes of the table."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Class(row[0], row[1], row[2], int(row[3])) for row in list(csv.reader(file))[1:]]


def read_nouns(path: Path) -> Iterator[tuple[str, Synset]]:
    """Ids and synsets of a ``data.noun`` (format: wndb(5WN))."""
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith(" "):
            continue
        head, gloss = line.split(" | ", 1)
        field = head.split()
        count = int(field[3], 16)
        pointers = field[5 + 2 * count :]
        kinds = [pointers[at + 1] for at in range(0, len(pointers), 4) if pointers[at] in ("@", "@i")]
        words = [field[4 + 2 * at].replace("_", " ") for at in range(count)]
        yield field[0], Synset(words, gloss.split(";")[0].strip(), kinds)


def described(wnid: str, nouns: dict[str, Synset]) -> Class:
    synset = nouns[wnid[1:]]
    person = WORN_OR_PLAYED & {word for kind in above(synset, nouns) for word in kind.words[:1]}
    return Class(wnid, "; ".join(synset.words), synset.gloss, int(bool(person)))


def above(synset: Synset, nouns: dict[str, Synset]) -> Iterator[Synset]:
    """All hypernyms, those of hypernyms included."""
    for kind in synset.kinds:
        yield nouns[kind]
        yield from above(nouns[kind], nouns)


def vectors(classes: list[Class]) -> dict[str, NDArray[np.float32 | np.float16]]:
    """``mean`` (384,) of the classes before centring; ``classes`` (1000, 384), ``facts`` (F, 384), unit."""
    encode = load_sentence_encoder(device="cpu").encode_text
    captions, glosses = (
        encode(list(phrases)) for phrases in zip(*(row.phrases for row in classes), strict=True)
    )
    own = unit(captions + glosses)
    person = np.array([row.person for row in classes], np.float32)[:, None]
    own = unit(own + np.float32(PERSON_SHARE) * person * encode([PERSON]))
    mean = np.asarray(own.mean(0), np.float32)
    facts = encode([fact.phrase for fact in FACTS])
    return {
        "mean": mean,
        "classes": unit(own - mean).astype(np.float16),
        "facts": unit(facts - mean).astype(np.float16),
    }


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


if __name__ == "__main__":
    main()
