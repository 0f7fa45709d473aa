"""Questions of public benchmarks: ExtremeWhenBench, MomentSeeker, QV-M2, Soccer-GMR, TimeLens-Bench, *-FIG.

Forms (times in seconds):

- ExtremeWhenBench, JSON lines: ``qid, video_id, question, correct_interval [start, end], video_duration_s,
  source_corpus``.
- MomentSeeker, a JSON list: ``qry_text, qry_img_path, qry_video_path, src_video_path, task,
  answering_time_interval [[start, end], …]``. There are no ids; a question's is its place from 1.
- QV-M2 and Soccer-GMR, JSON lines: ``qid, query, vid, duration, relevant_windows``; in Soccer-GMR, empty
  windows mean that nothing answers.
- TimeLens-Bench, JSON: video to ``duration, spans, queries``. An id is ``VIDEO.mp4>>>QUERY>>>[START, END]``,
  as in its files of predictions.
- Charades-FIG, DiDeMo-FIG, ActivityNet-FIG (VERIFIED), JSON lines: ``video, time [start, end], desc_id,
  duration, fig_desc``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moviola.errors import DataError
from moviola.files.rows import number, read_json, read_json_lines, span, text
from moviola.study.datasets.annotations import Annotations, Collector
from moviola.study.datasets.readers.moments import entries_by_video
from moviola.types import require_known

__all__ = ["QUESTIONS", "Question", "Questions", "annotations_reader", "read_questions"]


Seconds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a public benchmark.

    Attributes:
        query_id: unique in its file.
        video_id: the named video, or, for questions to the whole corpus, the one with the answer.
        windows: answers, (start, end) in seconds as annotated; empty: no answer.
        duration: of the video in seconds; infinite if the file has none.
        group: part of the benchmark; empty without parts.
        picture: a picture or a video that belongs to the question; None for words alone.
    """

    query_id: str
    text: str
    video_id: str
    windows: tuple[Seconds, ...]
    duration: float = math.inf
    group: str = ""
    picture: Path | None = None


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a file, in its order, each id once, and the name of their benchmark."""

    name: str
    rows: tuple[Question, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.rows)

    @property
    def videos(self) -> tuple[str, ...]:
        """All videos that are named, each once."""
        return tuple(dict.fromkeys(row.video_id for row in self.rows))

    def annotations(self) -> Annotations:
        """Each window as a moment whose caption is the question; one without an answer is among the flaws."""
        collector = Collector(self.name)
        for row in self.rows:
            collector.add_video(row.video_id, row.duration if math.isfinite(row.duration) else math.nan)
        for row in self.rows:
            if not row.windows:
                collector.add_unanswered(row.query_id, row.video_id)
            for place, (start, end) in enumerate(row.windows, start=1):
                name = row.query_id if len(row.windows) == 1 else f"{row.query_id}-{place}"
                collector.add(row.video_id, start, end, row.text, moment_id=name, query_id=row.query_id)
        return collector.made()


Rows = Callable[[Path], Iterator[Question]]


def _lines(*fields: str, group: str = "") -> Rows:
    """Reader of JSON lines by the names of their id, text, video, one window or several, and duration."""
    name, question, video, windows, duration = fields

    def read(path: Path) -> Iterator[Question]:
        for where, row in read_json_lines(path):
            several = windows == "relevant_windows"
            yield Question(
                text(row, name, where), text(row, question, where), text(row, video, where),
                _windows(row, windows, where) if several else (_ordered(row.get(windows), windows, where),),
                number(row.get(duration), duration, where), group=str(row.get(group, "")),
            )  # fmt: skip

    return read


def _moment_seeker(path: Path) -> Iterator[Question]:
    content = read_json(path)
    if not isinstance(content, list):
        raise DataError(f"{path}: a list of questions is expected")
    for place, row in enumerate(content, start=1):
        where = f"{path}: entry {place}"
        if not isinstance(row, dict):
            raise DataError(f"{where}: an object is expected, not {row!r:.60}")
        if "candidate_video_list" in row:
            raise DataError(
                f"{where}: candidate_video_list: this is an older file; give t2v.json, ti2v.json or tv2v.json"
            )
        picture = str(row.get("qry_img_path") or row.get("qry_video_path") or "")
        yield Question(
            str(place), text(row, "qry_text", where), Path(text(row, "src_video_path", where)).stem,
            _windows(row, "answering_time_interval", where), group=str(row.get("task", "")),
            picture=path.parent / picture if picture else None,
        )  # fmt: skip


def _timelens(path: Path) -> Iterator[Question]:
    for where, video, entry in entries_by_video(path, "spans", "queries"):
        duration = number(entry.get("duration"), "duration", where)
        for place, (pair, query) in enumerate(zip(entry["spans"], entry["queries"], strict=True), start=1):
            window = _ordered(pair, "spans", f"{where}, {place}")
            name = f"{video}.mp4>>>{query}>>>{pair}"
            yield Question(name, str(query), video, (window,), duration)


def _windows(row: Mapping[str, Any], name: str, where: str) -> tuple[Seconds, ...]:
    windows = row.get(name)
    if not isinstance(windows, list):
        raise DataError(f"{where}: {name}: a list of [start, end] is expected, not {windows!r:.60}")
    return tuple(_ordered(window, name, where) for window in windows)


def _ordered(value: Any, name: str, where: str) -> Seconds:
    start, end = span(value, name, where)
    if end < start:
        raise DataError(f"{where}: {name}: {value!r}: the end comes before the start")
    return start, end


_several = _lines("qid", "query", "vid", "relevant_windows", "duration", group="dataset_source")
_fig = _lines("desc_id", "fig_desc", "video", "time", "duration")
_extreme_when = _lines(
    "qid", "question", "video_id", "correct_interval", "video_duration_s", group="source_corpus"
)

QUESTIONS: dict[str, tuple[str, Rows]] = {
    "extreme_when_bench": ("ExtremeWhenBench", _extreme_when),
    "moment_seeker": ("MomentSeeker", _moment_seeker),
    "qv_m2": ("QV-M2", _several),
    "soccer_gmr": ("Soccer-GMR", _several),
    "timelens": ("TimeLens-Bench", _timelens),
    "charades_fig": ("Charades-FIG", _fig),
    "didemo_fig": ("DiDeMo-FIG", _fig),
    "activitynet_fig": ("ActivityNet-FIG", _fig),
}
"""Title and reader of each benchmark, by name."""


def read_questions(path: str | Path, kind: str) -> Questions:
    """The questions of a public benchmark, a key of :data:`QUESTIONS`.

    Raises:
        InvalidValue: an unknown name.
        NotFound, DataError: no file, or a damaged one, one without a question, or with an id twice.
    """
    require_known("benchmark", kind, QUESTIONS)
    title, rows = QUESTIONS[kind]
    questions = Questions(title, tuple(rows(Path(path))))
    if not len(questions):
        raise DataError(f"{path}: holds no question; give a file with at least one")
    name, times = Counter(row.query_id for row in questions).most_common(1)[0]
    if times > 1:
        raise DataError(f"{path}: question {name} is given {times} times; each id must be given once")
    return questions


def annotations_reader(kind: str) -> Callable[[Path, Path | None], Annotations]:
    """The benchmark's moments as every data set has them; see :meth:`Questions.annotations`."""

    def read(path: Path, durations: Path | None = None) -> Annotations:
        return read_questions(path, kind).annotations()

    return read
