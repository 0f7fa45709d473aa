"""Progress of work that takes longer than a request: the share that is done, and the time that is left."""

from __future__ import annotations

from time import monotonic

__all__ = ["Progress"]

# Seconds of work, and share of it, from which the time that is left can be said.
_SOONEST, _LEAST = 2.0, 0.01


class Progress:
    """How far one piece of work is. Written by the thread that does it, read by others.

    Attributes:
        share: from 0 to 1, never falling; None until the work begins.
    """

    def __init__(self) -> None:
        self.share: float | None = None
        self._began = 0.0

    def at(self, share: float) -> None:
        """Note that this share is done; the first call begins the work."""
        if self.share is None:
            self._began, self.share = monotonic(), 0.0
        self.share = max(self.share, min(share, 1.0))

    @property
    def seconds_left(self) -> float | None:
        """Seconds to the end at the pace so far; None as long as that says nothing."""
        if self.share is None or self.share < _LEAST:
            return None
        passed = monotonic() - self._began
        return passed * (1 - self.share) / self.share if passed >= _SOONEST else None
