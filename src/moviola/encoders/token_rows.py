"""Tokens of several texts as rows that are multiplied in blocks of one shape.

The last bits of a matrix product depend on its shape: a BLAS has other kernels for other numbers of rows, and
they add up in another order. If texts were multiplied together, what is asked beside a text would change its
vector by some 1e-6. So a text is multiplied as if it were alone: in a block of as many rows as it has tokens,
rounded up to a multiple of 4, since products of 3 or 7 rows take longer than those of 4 or 8. Only texts of
up to 8 tokens share blocks, of 8 rows: a BLAS computes these side by side in one register, of which
:func:`moviola.encoders.towers.same_in_all_places` makes sure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["SHARED_ROWS", "TokenRows", "rounded_up"]

_MULTIPLE = 4

SHARED_ROWS = 8
"""Rows of the blocks that several texts may share; no block is smaller."""


def rounded_up(tokens: int) -> int:
    """The rows of a block for a text with this number of tokens."""
    return max(SHARED_ROWS, -(-tokens // _MULTIPLE) * _MULTIPLE)


class _Run(NamedTuple):
    """Texts of equal length that lie one after the other: which of the batch, how many tokens each has, and
    their rows.
    """

    texts: slice
    tokens: int
    rows: slice


@dataclass(frozen=True)
class TokenRows:
    """Where the tokens of the texts of a batch lie.

    Attributes:
        blocks: sizes of blocks, rising, and the rows of those of each, one after the other; rows that are no
            text's fill them up.
        runs: the texts, by length.
    """

    blocks: tuple[tuple[int, slice], ...]
    runs: tuple[_Run, ...]

    @classmethod
    def of(cls, lengths: NDArray[np.int64]) -> Self:
        """Of texts with some numbers of tokens (b,), rising."""
        begin, first = 0, 0
        blocks: list[tuple[int, slice]] = []
        runs: list[_Run] = []
        for block, alike in groupby(lengths.tolist(), rounded_up):
            start = begin
            for tokens, texts in groupby(alike):
                last = first + len(list(texts))
                end = begin + (last - first) * (tokens if block == SHARED_ROWS else block)
                runs.append(_Run(slice(first, last), tokens, slice(begin, end)))
                first, begin = last, end
            begin += (start - begin) % block
            blocks.append((block, slice(start, begin)))
        return cls(tuple(blocks), tuple(runs))

    @property
    def count(self) -> int:
        """Rows of all blocks."""
        return int(self.blocks[-1][1].stop)

    def views(self, rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Of rows (count, …) those of the texts of each run, (texts, tokens, …); they may be written to."""
        for texts, tokens, own in self.runs:
            yield rows[own].reshape(texts.stop - texts.start, -1, *rows.shape[1:])[:, :tokens]

    def packed(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Token ids (b, n), padded behind, as rows (count,)."""
        rows = np.zeros(self.count, np.int64)
        for run, own in zip(self.runs, self.views(rows), strict=True):
            own[...] = ids[run.texts, : run.tokens]
        return rows

    def spread(self, rows: NDArray[np.float32], longest: int) -> NDArray[np.float32]:
        """Rows (count, d) by text and token (b, longest, d), with zeros behind each text."""
        states = np.zeros((self.runs[-1].texts.stop, longest, rows.shape[1]), np.float32)
        for run, own in zip(self.runs, self.views(rows), strict=True):
            states[run.texts, : run.tokens] = own
        return states
