"""The public benchmarks: the answers of a library to their questions, and their measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from moviola.errors import InvalidValue, MoviolaError, NotFound, counted
from moviola.search import Library, LikePicture, SearchQuery, Text
from moviola.study.datasets.readers.public import Question, Questions
from moviola.study.measures import Run, public
from moviola.types import require_known

__all__ = ["BENCHMARKS", "Answers", "PublicBenchmark", "answer_questions"]


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers.

    Attributes:
        run: moments by question, under the benchmark's names of videos.
        matched: by question, the library's verdict that it holds an answer; questions without a verdict are
            missing.
        missing: videos of the benchmark that the library lacks; their questions are not answered.
        refused: by question, why it cannot be answered.
        sureness: by question, confidence that there is an answer; where none is given, the highest score.
    """

    run: Run
    matched: Mapping[str, bool]
    missing: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    sureness: Mapping[str, float] = field(default_factory=dict)


def answer_questions(
    library: Library,
    questions: Questions,
    *,
    depth: int,
    corpus: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Answers:
    """Answer every question with a library.

    A video of the benchmark is matched by its file name in the library, without folder and suffix.

    Args:
        depth: moments of each answer.
        corpus: search all videos of the benchmark, one moment of each; else the one that the question names.
        progress: called with the number of finished questions.

    Raises:
        NotFound: the library holds no video of the benchmark.
        InvalidValue: two videos of the library have the same name.
        InvalidValue, MediaError: no question can be answered, for instance where no picture can be read.
        LibraryError, MissingModel: see :meth:`moviola.search.Library.search`.
    """
    known = _known(library, questions)
    missing = tuple(name for name in questions.videos if name not in known)
    if len(missing) == len(questions.videos):
        raise NotFound(
            f"{library.folder}: holds no video of {questions.name}, which has "
            f"{counted(len(missing), 'video')}, for instance {missing[0]}; give the folder whose files have "
            "these names"
        )
    benchmark_name = {video: name for name, video in known.items()}
    groups: dict[str, list[Question]] = {}  # by the video to search, "" for all
    for question in questions:
        if corpus or question.video_id in known:
            groups.setdefault("" if corpus else known[question.video_id], []).append(question)
    rows: list[tuple[str, str, float, float, float]] = []
    matched: dict[str, bool] = {}
    refused: dict[str, str] = {}
    done = 0
    for video, group in groups.items():
        refusals: dict[int, MoviolaError] = {}
        answers = library.search_many(
            [_query(question) for question in group], refuse=refusals.__setitem__,
            top_k=depth, per_video=1 if corpus else None, videos=[video] if video else list(known.values()),
        )  # fmt: skip
        refused |= {group[place].query_id: str(error) for place, error in refusals.items()}
        if len(refused) == sum(map(len, groups.values())):
            raise refusals[0]
        for question, moments in zip(group, answers, strict=True):
            name = question.query_id
            rows += [(name, benchmark_name[m.video_id], m.start, m.end, m.score) for m in moments]
            if moments.confident is not None:
                matched[name] = moments.confident
        done += len(group)
        if progress:
            progress(done)
    columns = list(zip(*rows, strict=True)) or [()] * 5
    run = Run.from_columns(*columns, queries=[row.query_id for row in questions], ranked=True)
    return Answers(run, matched, missing, refused)


def _known(library: Library, questions: Questions) -> dict[str, str]:
    """The library's id of each video of a benchmark that it has."""
    wanted = set(questions.videos)
    known: dict[str, str] = {}
    for video in library.videos():
        name = PurePosixPath(video.video_id).name
        if name in wanted and name in known:
            raise InvalidValue(
                f"{library.folder}: {known[name]} and {video.video_id} both are {name} of {questions.name}; "
                "remove one"
            )
        known[name] = video.video_id
    return {name: known[name] for name in questions.videos if name in known}


def _query(question: Question) -> SearchQuery:
    text = Text(question.text)
    return text if question.picture is None else text + LikePicture(question.picture)


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
"""Benchmarks by the names of :data:`moviola.study.datasets.readers.QUESTIONS`."""


def benchmark_of(name: str) -> PublicBenchmark:
    """A line of :data:`BENCHMARKS`; :class:`InvalidValue` for an unknown name."""
    require_known("benchmark", name, BENCHMARKS)
    return BENCHMARKS[name]
