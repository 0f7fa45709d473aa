"""Potentially relevant pairs: captions that may also describe other moments (paper 003, section 4).

Phi of two captions is the largest cosine of embeddings of their texts: ``sent`` takes the whole sentences,
``vp`` {sentence} and verb phrases, ``np-vp`` strings "noun verb phrase" (the sentence, where there is no
verb). Psi, the strength with which a pair counts, is max(cosine of the whole sentences, 0). A pair is
potentially relevant (f = 1) where Phi >= theta; these are few, so they are the rows of one sparse table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue, NotFound
from moviola.files.writing import atomic_write
from moviola.study.datasets.building.phrases import Phrase
from moviola.types import require_known

__all__ = [
    "RelevantPairs", "mark_of", "parts_of", "read_relevant_pairs", "relevant_pairs", "write_relevant_pairs",
]  # fmt: skip

_BLOCK = 1024


def _noun_verb_phrases(caption: str, phrases: Sequence[Phrase]) -> list[str]:
    whole = [f"{noun} {phrase.verb_phrase}".strip() for phrase in phrases for noun in (phrase.nouns or ("",))]
    return whole or [caption]


PHI: dict[str, Callable[[str, Sequence[Phrase]], list[str]]] = {
    "sent": lambda caption, phrases: [caption],
    "vp": lambda caption, phrases: [caption, *(phrase.verb_phrase for phrase in phrases)],
    "np-vp": _noun_verb_phrases,
}
"""Compared texts of a caption, by the name of Phi; never none."""


def parts_of(
    captions: Sequence[str], phi: str, phrases: Sequence[Sequence[Phrase]]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The texts that Phi compares, without repetitions within a caption, and where those of each begin.

    Args:
        phi: a name in :data:`PHI`.

    Returns:
        texts, and offsets (n + 1,) int64: those of caption i are ``texts[offsets[i]:offsets[i + 1]]``.

    Raises:
        InvalidValue: an unknown Phi.
    """
    require_known("phi", phi, PHI)
    groups = [
        list(dict.fromkeys(PHI[phi](caption, own))) for caption, own in zip(captions, phrases, strict=True)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    return tuple(text for group in groups for text in group), offsets


@dataclass(frozen=True, eq=False)
class RelevantPairs:
    """Ordered pairs i != j of captions with Phi >= theta, sorted by i, then j; (j, i) is there too.

    Attributes:
        count: captions in all.
        rows: (count + 1,) int64; pairs of caption i are ``rows[i]`` to ``rows[i + 1]``.
        other: (p,) int64, j of each pair.
        phi, psi: (p,) float32, in [theta, 1] and in [0, 1].
        mark: of the captions in their order, see :func:`mark_of`; "" where it is not known.
    """

    count: int
    theta: float
    rows: NDArray[np.int64]
    other: NDArray[np.int64]
    phi: NDArray[np.float32]
    psi: NDArray[np.float32]
    mark: str = ""

    def __len__(self) -> int:
        return len(self.other)

    def among(self, batch: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """f and Psi of a training batch: (b, b) bool, False on the diagonal; (b, b) float32, 0 where f is 0.

        ``batch`` holds (b,) positions of captions.

        Raises:
            InvalidValue: a position comes twice or is out of range.
        """
        if len(np.unique(batch)) != len(batch) or (
            len(batch) and not 0 <= batch.min() <= batch.max() < self.count
        ):
            raise InvalidValue(f"batch: positions below {self.count}, each once, are expected")
        column = np.full(self.count, -1, np.int64)
        column[batch] = np.arange(len(batch))
        f = np.zeros((len(batch), len(batch)), np.bool_)
        psi = np.zeros((len(batch), len(batch)), np.float32)
        for row, caption in enumerate(batch):
            mine = slice(self.rows[caption], self.rows[caption + 1])
            places = column[self.other[mine]]
            there = places >= 0
            f[row, places[there]] = True
            psi[row, places[there]] = self.psi[mine][there]
        return f, psi


def mark_of(captions: Sequence[str]) -> str:
    """16 hex digits that change with captions and their order, blanks around a caption apart."""
    return sha256("\0".join(map(str.strip, captions)).encode()).hexdigest()[:16]


def relevant_pairs(
    sentences: NDArray[np.float32],
    parts: NDArray[np.float32],
    offsets: NDArray[np.int64],
    theta: float,
) -> RelevantPairs:
    """All pairs of captions with Phi >= theta; memory is bounded by a block and the pairs that are found.

    Args:
        sentences: (n, d) float32 embeddings of whole captions, L2-normalised.
        parts: (t, d) float32 embeddings of the texts that Phi compares, L2-normalised.
        offsets: (n + 1,) int64, see :func:`parts_of`; every caption has at least one text.
        theta: threshold in (0, 1].

    Raises:
        InvalidValue: theta is out of range, or the arrays do not fit together.
    """
    if not 0 < theta <= 1:
        raise InvalidValue(f"theta={theta}: must be in (0, 1]")
    count = len(sentences)
    if len(offsets) != count + 1 or offsets[-1] != len(parts) or (count and np.diff(offsets).min() < 1):
        raise InvalidValue(f"{count} captions, {len(parts)} texts: offsets do not fit them")
    none = np.empty(0, np.int64)
    found = [(none, none, np.empty(0, np.float32))]
    for first in range(0, count, _BLOCK):
        rows = slice(first, min(first + _BLOCK, count))
        for other in range(first, count, _BLOCK):
            one, two, value = _above(parts, offsets, rows, slice(other, min(other + _BLOCK, count)), theta)
            found.append((one, two, value))
            # The same pairs the other way round; a product of its own may be rounded in another way.
            if other > first:
                found.append((two, one, value))
    i, j, phi = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((j, i))
    i, j, phi = i[order], j[order], phi[order]
    psi = np.empty(len(i), np.float32)
    for first in range(0, len(i), 1 << 16):
        some = slice(first, first + (1 << 16))
        psi[some] = np.einsum("nd,nd->n", sentences[i[some]], sentences[j[some]])
    rows_of = np.searchsorted(i, np.arange(count + 1)).astype(np.int64)
    return RelevantPairs(count, theta, rows_of, j, phi, np.clip(psi, 0, 1))


def _above(
    parts: NDArray[np.float32], offsets: NDArray[np.int64], rows: slice, columns: slice, theta: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Pairs of two blocks of captions: the maximum over the texts of each side."""
    left = parts[offsets[rows.start] : offsets[rows.stop]]
    right = parts[offsets[columns.start] : offsets[columns.stop]]
    cosines = left @ right.T
    cosines = np.maximum.reduceat(cosines, offsets[rows] - offsets[rows.start], axis=0)
    cosines = np.maximum.reduceat(cosines, offsets[columns] - offsets[columns.start], axis=1)
    i, j = np.nonzero(cosines >= theta)
    phi = np.minimum(cosines[i, j], np.float32(1))
    i, j = i + rows.start, j + columns.start
    other = i != j
    return i[other].astype(np.int64), j[other].astype(np.int64), phi[other]


def write_relevant_pairs(pairs: RelevantPairs, path: Path) -> None:
    """Write a table of pairs as npz, for :func:`read_relevant_pairs`."""
    with atomic_write(path, "wb") as file:
        np.savez(
            file, count=pairs.count, theta=pairs.theta, rows=pairs.rows, other=pairs.other,
            phi=pairs.phi, psi=pairs.psi, mark=pairs.mark,
        )  # fmt: skip


def read_relevant_pairs(path: Path) -> RelevantPairs:
    """Read a table written by :func:`write_relevant_pairs`.

    Raises:
        NotFound: no such file.
        DataError: damaged.
    """
    if not path.exists():
        raise NotFound(f"{path}: no such file; `moviola dataset relevant-pairs` writes it")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as table:
            pairs = RelevantPairs(
                int(table["count"]), float(table["theta"]), table["rows"], table["other"], table["phi"],
                table["psi"], str(table["mark"]) if "mark" in table else "",
            )  # fmt: skip
    except (OSError, EOFError, KeyError, TypeError, ValueError, BadZipFile) as error:
        raise DataError(
            f"{path}: no table of relevant pairs ({error}); `moviola dataset relevant-pairs` writes one"
        ) from error
    if len(pairs.rows) != pairs.count + 1 or not pairs.rows[-1] == len(pairs.other) == len(pairs.psi):
        raise DataError(f"{path}: no table of relevant pairs (its columns do not fit together)")
    return pairs
