"""Indexing that ends at a point of the test's choice, and not when a message of progress happens to come."""

from __future__ import annotations

from itertools import count

import pytest

from moviola.library.ingest.committing import Commits
from moviola.library.ingest.frame_features import EncodedPart, Outcome
from moviola.library.ingest.plan import Paused

__all__ = ["stop_after"]


def stop_after(patch: pytest.MonkeyPatch, parts: int) -> None:
    """Ends indexing once a number of parts are in: with several threads two may come in at the same time."""
    take, taken = Commits.take, count(1)

    def one(self: Commits, outcome: Outcome) -> None:
        take(self, outcome)
        if isinstance(outcome, EncodedPart) and next(taken) == parts:
            raise Paused

    patch.setattr(Commits, "take", one)
