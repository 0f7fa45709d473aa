"""Random draws in parts that bound memory, with checks of their number."""

from __future__ import annotations

from collections.abc import Iterator

from moviola.errors import InvalidValue

__all__ = ["CHUNK", "chunks", "require_draws"]

CHUNK = 2**22
"""Numbers drawn at once, to bound memory."""


def chunks(trials: int, width: int) -> Iterator[int]:
    """``trials`` in parts, each of at most :data:`CHUNK` numbers where a trial takes ``width`` of them."""
    step = max(1, CHUNK // width)
    return (min(step, trials - done) for done in range(0, trials, step))


def require_draws(trials: int, seed: int, confidence: float = 0.95) -> None:
    """Raise :class:`InvalidValue` if ``trials`` is below 1, ``seed`` below 0, or ``confidence`` not inside
    (0, 1).
    """
    if trials < 1:
        raise InvalidValue(f"trials {trials}: at least 1 is needed")
    if seed < 0:
        raise InvalidValue(f"seed {seed}: must be at least 0")
    if not 0 < confidence < 1:
        raise InvalidValue(f"confidence {confidence}: must be between 0 and 1, for instance 0.95")
