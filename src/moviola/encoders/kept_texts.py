"""Features of texts, kept for queries that are asked again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.encoders import FrameTextEncoder

__all__ = ["KeptTexts"]

Floats = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Sequence[Floats] | Floats]


class Encodes(Protocol):
    """An encoder of frames, of sentences, or of the texts of some languages."""

    def encode_text(self, texts: Sequence[str]) -> Floats:
        """Features (n, d) of n texts; those of one are the same alone and among others."""


class KeptTexts:
    """Features of the texts that were asked last, of each encoder. Safe for threads.

    Args:
        most_bytes: of all that are kept.
    """

    def __init__(self, most_bytes: int = 1 << 25) -> None:
        self._most, self._bytes = most_bytes, 0
        # With the encoder, so that no other one gets its number.
        self._known: OrderedDict[tuple[int, str, str], tuple[object, Floats]] = OrderedDict()
        self._lock = Lock()

    def vectors(self, encoder: Encodes, texts: Sequence[str]) -> list[Floats]:
        """The features of each text, (d,), not to be written to."""
        return self._of(encoder, "text", encoder.encode_text, texts)

    def tokens(self, encoder: FrameTextEncoder, texts: Sequence[str]) -> list[Floats]:
        """The features of each text's tokens, (n, d), in the order of the texts."""
        return self._of(encoder, "tokens", encoder.encode_tokens, texts)

    def _of(self, encoder: object, kind: str, encode: Encode, texts: Sequence[str]) -> list[Floats]:
        """Of each text what ``encode`` gives, which is called with those that are not known, each once."""
        keys = [(id(encoder), kind, text) for text in texts]
        with self._lock:
            found = {key: self._known[key][1] for key in keys if key in self._known}
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        if missing:
            new = encode([text for *_, text in missing])
            found |= {key: np.array(row) for key, row in zip(missing, new, strict=True)}
        with self._lock:
            for key, row in found.items():
                row.flags.writeable = False
                self._bytes += row.nbytes - (self._known[key][1].nbytes if key in self._known else 0)
                self._known[key] = encoder, row
                self._known.move_to_end(key)
            while self._bytes > self._most:
                self._bytes -= self._known.popitem(last=False)[1][1].nbytes
        return [found[key] for key in keys]
