"""Concepts, learnt from marks and kept in a library under a name: ``concepts/NAME.safetensors``.

A file holds the features of the marked moments, so that a concept outlives its videos, the moments' ids and
times, and a digest of all that, which files of earlier versions lack. While the encoder of a library is
changed, what was learnt again by the next one lies in ``concepts/next``: readers take the file of the encoder
that is in use.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, EncoderMismatch, InvalidValue, NotFound
from moviola.files.writing import atomic_write
from moviola.library.disk.backups import keep_copy
from moviola.library.disk.settings import Settings

__all__ = [
    "Concept", "concept_name", "concepts_of", "forget_concept", "keep_concept", "read_concept",
    "settle_concepts",
]  # fmt: skip

FORMAT = 1
_NEXT = "next"
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Concept:
    """A concept learnt from marked moments, by its name after ``@`` in queries and the title that was given.

    Attributes:
        right, wrong: (n, d) float32, features of likeness of the marked moments.
        moments: these, ``VIDEO@START-END``, right ones first; then those of the concept from which it was
            taught.
        wrong_moments: those of them that were marked wrong; None where the file, an earlier version's, does
            not say.
        encoder: by which its features were made, name and revision; empty for one that was never kept.
    """

    name: str
    title: str
    right: Floats
    wrong: Floats
    moments: tuple[str, ...]
    wrong_moments: tuple[str, ...] | None = ()
    encoder: tuple[str, str] = ("", "")


def concept_name(title: str) -> str:
    """The name of a concept: lower case, ``-`` for everything but letters with their marks, and digits, of
    which there are one to sixty, else :class:`InvalidValue`.
    """
    name = ""
    for letter in unicodedata.normalize("NFC", title.lower()):
        # Vowels of many scripts are marks on a letter.
        is_mark = name[-1:] not in ("", "-") and unicodedata.category(letter) in ("Mn", "Mc")
        name += letter if letter.isalnum() or is_mark else "-"
    name = re.sub("-+", "-", name).strip("-")
    if not 0 < len(name) <= 60:
        raise InvalidValue(f"{title!r:.80}: name a concept with one to sixty letters and digits")
    return name


def keep_concept(folder: Path, settings: Settings, concept: Concept, *, next_: bool = False) -> None:
    """Save a concept, replacing one of the same name; under the library's write lock. ``next_``: by the
    encoder that the library will have, beside the one by the encoder that it has.
    """
    facts = {
        "format": str(FORMAT), "encoder": settings.encoder, "encoder_revision": settings.encoder_revision,
        "title": concept.title, "moments": json.dumps(concept.moments),
    }  # fmt: skip
    if concept.wrong_moments is not None:
        facts["wrong_moments"] = json.dumps(concept.wrong_moments)
    facts["digest"] = _digest(facts, concept.right, concept.wrong)
    from safetensors.numpy import save

    # Not by safetensors' own file: its errors are no OSError, and a killed process leaves its draft.
    content = save({"right": concept.right, "wrong": concept.wrong}, facts)
    with atomic_write(_path(folder, concept.name, next_=next_), "wb", follow=False) as file:
        file.write(content)
    if not next_:
        _path(folder, concept.name, next_=True).unlink(missing_ok=True)


def read_concept(
    folder: str | Path, settings: Settings, name: str, *, of_any_encoder: bool = False
) -> Concept:
    """Load a concept of a library.

    Args:
        of_any_encoder: whether its features are not asked for, so that they may be another encoder's.

    Raises:
        NotFound: no such concept; the message names those that exist.
        DataError: damaged, or of a newer format.
        EncoderMismatch: taught with another encoder.
    """
    path = _path(folder, name)
    if not path.is_file():
        raise _unknown(folder, name, ". In a query, a word after @ names a concept")
    concept, wanted = _read(path, name), (settings.encoder, settings.encoder_revision)
    if concept.encoder != wanted and (after := _path(folder, name, next_=True)).is_file():
        concept = _read(after, name)
    if concept.encoder != wanted and not of_any_encoder:
        raise EncoderMismatch(
            f"@{name}: taught with encoder {concept.encoder[0]} ({concept.encoder[1]}), but the library has "
            f"{settings.encoder} ({settings.encoder_revision}); none of its moments can be looked at now. "
            "Index their files again, then it is learnt again, or teach it again"
        )
    return concept


def _read(path: Path, name: str) -> Concept:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            facts = file.metadata() or {}
            if facts.get("format") != str(FORMAT):
                raise DataError(
                    f"{path}: format {facts.get('format')}, but this moviola reads {FORMAT}; update moviola"
                )
            right, wrong = file.get_tensor("right"), file.get_tensor("wrong")
            if facts.pop("digest", None) not in (None, _digest(facts, right, wrong)):
                raise ValueError("it does not match its digest")
            title, moments = facts["title"], tuple(json.loads(facts["moments"]))
            marked_wrong = facts.get("wrong_moments", "null" if len(wrong) else "[]")
            wrongs = json.loads(marked_wrong)
            theirs = facts["encoder"], facts["encoder_revision"]
    except DataError:  # it is a ValueError, too
        raise
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise DataError(f"{path}: damaged ({error}); restore it from a copy, or teach it again") from error
    return Concept(name, title, right, wrong, moments, None if wrongs is None else tuple(wrongs), theirs)


def settle_concepts(folder: Path, settings: Settings) -> None:
    """Put what was learnt again by the encoder that the library has in place, and drop what is of any other;
    under the library's write lock. The file before is copied to ``backups/``: it may hold moments that are
    nowhere else.
    """
    wanted = settings.encoder, settings.encoder_revision
    for path in sorted((folder / "concepts" / _NEXT).glob("*.safetensors")):
        old = _path(folder, path.stem)
        if old.is_file() and _encoder_of(path) == wanted:
            keep_copy(folder, old)
            # Not renamed: a disk may know that it has left a folder, and not that it is in another.
            with atomic_write(old, "wb", follow=False) as file:
                file.write(path.read_bytes())
        path.unlink()


def _encoder_of(path: Path) -> tuple[str, str] | None:
    """The encoder of a concept's file; None where it is damaged."""
    try:
        return _read(path, path.stem).encoder
    except DataError:
        return None


def concepts_of(folder: str | Path) -> Sequence[str]:
    """Names of all concepts of a library, sorted."""
    return sorted(path.stem for path in (Path(folder) / "concepts").glob("*.safetensors"))


def forget_concept(folder: Path, name: str) -> None:
    """Delete a concept, under the library's write lock; :class:`NotFound` where there is none."""
    if name not in concepts_of(folder):
        raise _unknown(folder, name)
    _path(folder, name).unlink()
    _path(folder, name, next_=True).unlink(missing_ok=True)


def _digest(facts: Mapping[str, str], right: Floats, wrong: Floats) -> str:
    """SHA-256 of all else in a file."""
    content = json.dumps(facts, sort_keys=True).encode() + right.tobytes() + wrong.tobytes()
    return hashlib.sha256(content).hexdigest()


def _unknown(folder: str | Path, name: str, hint: str = "") -> NotFound:
    known = ", ".join(f"@{one}" for one in concepts_of(folder)) or "nothing yet"
    return NotFound(f"@{name}: no such concept in this library; it has {known}{hint}")


def _path(folder: str | Path, name: str, *, next_: bool = False) -> Path:
    parts = ("concepts", _NEXT) if next_ else ("concepts",)
    return Path(folder, *parts, f"{concept_name(name)}.safetensors")
