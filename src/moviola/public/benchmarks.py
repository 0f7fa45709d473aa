"""The public benchmarks: their answers and measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from moviola.datasets.questions import Question, Questions
from moviola.measures import public
from moviola.public.benchmark_answers import Answers
from moviola.types import require_known

__all__ = ["BENCHMARKS", "PublicBenchmark", "measure_answers"]

Values = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class PublicBenchmark:
    """A benchmark: moments per answer, and its measure of all questions with their answers.

    ``corpus``: questions go to all videos, not to the one that they name. ``any_order``: the measure has a
    rule for moments that do not end after their start; elsewhere a run that has one is refused.
    """

    depth: int
    measure: Callable[[Questions, Answers], Values]
    corpus: bool = False
    any_order: bool = False


def _named(
    measure: Callable[[Sequence[public.Answered]], Values],
) -> Callable[[Questions, Answers], Values]:
    """A measure of questions about one named video; moments of others do not count."""

    def values(questions: Questions, answers: Answers) -> Values:
        rows = answers.run.rows()

        def answered(one: Question) -> public.Answered:
            own = (m for m in rows.get(one.query_id, []) if m["video_id"] == one.video_id)
            windows = [(m["start"], m["end"], m["score"]) for m in own]
            sureness = answers.sureness.get(one.query_id)
            return public.Answered.of(one.windows, windows, duration=one.duration, sureness=sureness)

        return measure([answered(one) for one in questions])

    return values


def _fig(questions: Questions, answers: Answers) -> dict[str, float]:
    rows = answers.run.rows()

    def answered(one: Question) -> public.CorpusAnswered:
        moments = rows.get(one.query_id, [])
        scores = {m["video_id"]: m["score"] for m in sorted(moments, key=lambda m: m["score"])}
        video, window = ("", None)
        if moments:
            video, window = moments[0]["video_id"], (moments[0]["start"], moments[0]["end"])
        matched = answers.matched.get(one.query_id)
        return public.CorpusAnswered(
            one.video_id, one.windows[0], one.duration, scores, video, window, matched
        )

    return public.fig([answered(one) for one in questions])


BENCHMARKS: dict[str, PublicBenchmark] = {
    "extreme_when_bench": PublicBenchmark(1, _named(public.extreme_when_bench), any_order=True),
    "moment_seeker": PublicBenchmark(5, _named(public.moment_seeker)),
    "qv_m2": PublicBenchmark(10, _named(public.qv_m2)),
    "soccer_gmr": PublicBenchmark(10, _named(public.soccer_gmr), any_order=True),
    "timelens": PublicBenchmark(1, _named(public.timelens), any_order=True),
    "charades_fig": PublicBenchmark(100, _fig, corpus=True),
    "didemo_fig": PublicBenchmark(100, _fig, corpus=True),
    "activitynet_fig": PublicBenchmark(100, _fig, corpus=True),
}
"""Benchmarks by the names of :data:`moviola.datasets.readers.QUESTIONS`."""


def measure_answers(name: str, questions: Questions, answers: Answers) -> Mapping[str, float | None]:
    """The values of a benchmark, by the names of :mod:`moviola.measures.public`; None: a mean over no query.

    A question without an entry in the run counts as not answered.

    Raises:
        InvalidValue: an unknown name.
    """
    return benchmark_of(name).measure(questions, answers)


def benchmark_of(name: str) -> PublicBenchmark:
    """A line of :data:`BENCHMARKS`; :class:`InvalidValue` for an unknown name."""
    require_known("benchmark", name, BENCHMARKS)
    return BENCHMARKS[name]
