"""A moment on its way to the answer, and the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from moviola.types import CueKind, Moment, Span

__all__ = ["Found", "SearchResult"]


@dataclass(frozen=True, slots=True)
class Found:
    """A moment before ranking.

    Attributes:
        row: row number of its video in the catalogue.
        span: its time.
        score: in [0, 1].
        source: which evidence found it: ``"visual"``, the kind of a cue, or ``"both"`` for several.
        snippet: what is said or written, where that is why.
        match: the matching score behind ``score``, which decides where that saturates.
        steps: those of a sequence, in order.
        snippet_kind: of the cue that says it; empty without a snippet.
    """

    row: int
    span: Span
    score: float
    source: str
    snippet: str = ""
    match: float = 0.0
    steps: tuple[Found, ...] = ()
    snippet_kind: CueKind | Literal[""] = ""

    def moment(self, video_id: str, rank: int) -> Moment:
        """Ranked."""
        steps = tuple(step.moment(video_id, rank) for step in self.steps)
        start, end, kind = self.span.start, self.span.end, self.snippet_kind
        return Moment(video_id, start, end, self.score, rank, self.source, self.snippet, steps, kind)


class SearchResult(list[Moment]):
    """The answer to a query: a list of its moments, best first, with ranks from 1.

    Attributes:
        confident: whether the library seems to have an answer at all; None where that is not known, see
            :mod:`moviola.retrieval.confidence`. False: these moments are only the least bad ones.
        lead: of a text, how far its best segment leads unrelated queries, in their standard deviations; None
            where that is not known.
        timings: seconds of the stages of :data:`moviola.timing.STAGES` that ran, and ``"total"``; of all
            queries together where several were asked at once.
    """

    def __init__(
        self, moments: Iterable[Moment] = (), *, confident: bool | None = None, lead: float | None = None
    ) -> None:
        super().__init__(moments)
        self.confident, self.lead = confident, lead
        self.timings: dict[str, float] = {}
