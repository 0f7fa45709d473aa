"""Durations of the stages of a search: measured where they run, summed for a recorder.

    with recorded() as seconds:
        with stage("text"):
            ...

Each stage counts the seconds in which no stage inside it ran, so that the sum of the stages is at most
``"total"``. A recording belongs to one thread; a nested one counts for the outer one, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter

__all__ = ["STAGES", "milliseconds", "recorded", "stage"]

STAGES: dict[str, str] = {
    "opening": "mapping files, loading models and encoders",
    "text": "encoding the query",
    "retrieval": "finding its segments in the index",
    "proposals": "merging them into proposals",
    "refinement": "finding the best span of each proposal",
    "calibration": "suppressing duplicates, and turning matching scores into scores",
    "cues": "searching speech and text",
    "sounds": "searching sounds",
    "names": "searching names of videos",
    "fusion": "joining the evidence, filters and ranking",
}
"""The stages of a search, in the order in which they run."""


@dataclass
class _Recording:
    seconds: dict[str, float] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    since: float = field(default_factory=perf_counter)

    def turn(self) -> None:
        """Add the time since the last switch to the innermost stage."""
        now = perf_counter()
        if self.running:
            self.seconds[self.running[-1]] = self.seconds.get(self.running[-1], 0.0) + now - self.since
        self.since = now


_recording: ContextVar[_Recording | None] = ContextVar("recording", default=None)


@contextmanager
def recorded() -> Iterator[dict[str, float]]:
    """Seconds of each of :data:`STAGES` that runs inside, and ``"total"``; set when the block ends."""
    outer, own, began = _recording.get(), _Recording(), perf_counter()
    result: dict[str, float] = {}
    if outer is not None:
        outer.turn()
    token = _recording.set(own)
    try:
        yield result
    finally:
        _recording.reset(token)
        result |= {name: own.seconds[name] for name in STAGES if name in own.seconds}
        result["total"] = perf_counter() - began
        if outer is not None:
            for name, seconds in own.seconds.items():
                outer.seconds[name] = outer.seconds.get(name, 0.0) + seconds
            outer.since = perf_counter()


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Measure a stage, one of :data:`STAGES`; does nothing without a recorder."""
    recording = _recording.get()
    if recording is None:
        yield
        return
    recording.turn()
    recording.running.append(name)
    try:
        yield
    finally:
        recording.turn()
        recording.running.pop()


def milliseconds(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds as milliseconds, to a thousandth of one."""
    return {name: round(1000 * value, 3) for name, value in seconds.items()}
