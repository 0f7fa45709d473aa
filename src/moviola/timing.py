"""Where the time of a search goes: stages are timed where they run, and added up for whoever records.

    with recorded() as seconds:
        with stage("text"):
            ...

Each stage counts the seconds in which no stage inside of it ran, so that stages add up to no more than
``"total"``. Recordings are of one thread; one inside of another is part of it, too.
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
    "calibration": "suppressing what was found twice, and turning matching scores into scores",
    "cues": "looking for what is said and written",
    "names": "looking for names of videos",
    "fusion": "joining the evidence, filters and ranking",
}
"""What a search is made of, in the order in which it runs."""


@dataclass
class _Recording:
    seconds: dict[str, float] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    since: float = field(default_factory=perf_counter)

    def turn(self) -> None:
        """What has passed since the last turn belongs to the innermost stage."""
        now = perf_counter()
        if self.running:
            self.seconds[self.running[-1]] = self.seconds.get(self.running[-1], 0.0) + now - self.since
        self.since = now


_recording: ContextVar[_Recording | None] = ContextVar("recording", default=None)


@contextmanager
def recorded() -> Iterator[dict[str, float]]:
    """Seconds of each of :data:`STAGES` that runs inside, and ``"total"``; filled in when the block ends."""
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
    """Time what runs inside as a stage, one of :data:`STAGES`; nothing where nobody records."""
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
    """The same as people read them, to a thousandth."""
    return {name: round(1000 * value, 3) for name, value in seconds.items()}
