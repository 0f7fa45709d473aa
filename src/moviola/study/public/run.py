"""A public benchmark in one call."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from moviola.encoders import best_encoder
from moviola.errors import InvalidValue, NotFound
from moviola.files.rows import listed_rows, number, read_text, text
from moviola.files.writing import atomic_write, require_unread
from moviola.library import IngestProgress
from moviola.library.disk.settings import SETTINGS_FILE
from moviola.search import Library
from moviola.study.datasets.readers import read_questions
from moviola.study.measures import Preset, read_run, write_run
from moviola.study.measures.output_formats import format_of, qvhighlights_rows, write_lines
from moviola.study.public.benchmarks import Answers, answer_questions, benchmark_of

__all__ = ["PublicReport", "require_sources", "run_public"]


@dataclass(frozen=True, slots=True)
class PublicReport:
    """The result of a benchmark.

    Attributes:
        measures: values by name, see :mod:`moviola.study.measures.public`; None for a mean over no query.
        questions, videos: number of questions, and of the videos that they name.
        missing: missing videos; questions about them count as not answered.
        unanswered: ids of questions that a measured run lacks or a library cannot answer; they count as not
            answered.
        unknown: videos of a measured run that the benchmark does not have; their moments do not count.
        refused: files that could not be indexed, by path, and questions that cannot be answered, by id, with
            the reason.
        encoder: of the library; empty for a measured run.
        groups: number of questions by part of the benchmark.
    """

    title: str
    measures: dict[str, float | None]
    questions: int
    videos: int
    missing: tuple[str, ...]
    unanswered: tuple[str, ...]
    refused: dict[str, str]
    encoder: str
    groups: dict[str, int]
    unknown: tuple[str, ...] = ()


def run_public(
    name: str,
    annotations: str | Path,
    videos: str | Path | None = None,
    *,
    library: str | Path | None = None,
    encoder: str | None = None,
    device: str = "auto",
    run: str | Path | None = None,
    out: str | Path | None = None,
    indexing: Callable[[IngestProgress], None] | None = None,
    answering: Callable[[int], None] | None = None,
) -> PublicReport:
    """Index the videos of a public benchmark, answer its questions, and measure the answers.

    Args:
        name: a key of :data:`moviola.study.public.BENCHMARKS`.
        annotations: its file; see :mod:`moviola.study.datasets.readers.public`.
        videos: the folder of its videos, whose files have the names of the annotations.
        library: folder of the index; by default ``NAME-library`` beside the annotations. Videos that are in
            it already are skipped.
        encoder: of a new library; by default the best on this machine.
        run: existing ranked moments, in any form of :func:`moviola.study.measures.read_run`; they are
            measured, and nothing is indexed. Rows of Soccer-GMR's form may have a ``pred_exist_score``, the
            confidence that there is an answer.
        out: file for the answers, in a form of :func:`moviola.study.measures.write_run`; a run with a
            ``pred_exist_score`` is written in Soccer-GMR's form, to JSON lines only.
        indexing: called after each step of indexing.
        answering: called with the number of finished questions.

    Raises:
        InvalidValue: an unknown name, both or neither of ``videos`` and ``run``, ``out`` of no form, of one
            that cannot hold the ``pred_exist_score`` of the run, or one of the files that are read.
        NotFound, DataError: a file or the folder is missing, a file damaged, or none of the videos there.
        LibraryError, MissingModel: see :meth:`moviola.library.Indexer.index` and ``search``.
    """
    benchmark = benchmark_of(name)
    require_sources(name, videos, run)
    out, run = (None if path is None else Path(path) for path in (out, run))
    if out is not None:
        format_of(out)  # an unknown suffix is refused before the videos are indexed
        require_unread(out, annotations, run)
    questions = read_questions(annotations, name)
    refused: dict[str, str] = {}
    unanswered: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    used = ""
    if run is not None:
        read = read_run(run, preset=Preset(any_order=benchmark.any_order))
        answers = Answers(read, {}, sureness=_sureness(run))
        known = set(answers.run.query_ids)
        unanswered = tuple(row.query_id for row in questions if row.query_id not in known)
        there = set(questions.videos)
        unknown = tuple(video for video in read.video_ids if video not in there)
    else:
        folder = Path(library or Path(annotations).with_name(f"{name}-library"))
        fresh = not (folder / SETTINGS_FILE).is_file()
        chosen = encoder or (best_encoder().name if fresh else None)
        with Library(folder, encoder=chosen, device=device) as opened:
            if out is not None:
                opened.store.require_outside(out)
            refused = dict(opened.index(videos or ".", progress=indexing).refused)
            used = opened.settings.encoder
            answers = answer_questions(
                opened, questions, depth=benchmark.depth, corpus=benchmark.corpus, progress=answering
            )
        unanswered = tuple(answers.refused)
        refused |= {name: f"question {name}: {reason}" for name, reason in answers.refused.items()}
    if out is not None:
        _write(answers, out)
    return PublicReport(
        questions.name, dict(benchmark.measure(questions, answers)), len(questions), len(questions.videos),
        answers.missing, unanswered, refused, used,
        groups=dict(Counter(row.group for row in questions if row.group)), unknown=unknown,
    )  # fmt: skip


def require_sources(name: str, videos: str | Path | None, run: str | Path | None) -> None:
    """Refuse a benchmark without a source of answers; see :func:`run_public`.

    Raises:
        InvalidValue: an unknown name, or both or neither of ``videos`` and ``run``.
        NotFound: the folder is missing.
    """
    benchmark_of(name)
    if (videos is None) == (run is None):
        raise InvalidValue(
            f"{name}: give either a folder of videos to answer from (--videos), or a run to measure (--run)"
        )
    if videos is not None and not Path(videos).is_dir():  # a filled library would answer without it
        raise NotFound(f"{videos}: no folder there; give that of the benchmark's videos")


def _sureness(run: Path) -> dict[str, float]:
    """``pred_exist_score`` by question, of the rows of a run that have one."""
    content, name = read_text(run), "pred_exist_score"
    if f'"{name}"' not in content:
        return {}
    return {
        text(row, "qid", place): number(row[name], name, place, low=-math.inf)
        for place, row in listed_rows(run, content).objects()
        if name in row
    }


def _write(answers: Answers, out: Path) -> None:
    """Write the answers: in Soccer-GMR's form if some have a sureness, which no other form holds."""
    if not answers.sureness:
        write_run(answers.run, out)
        return
    if format_of(out) != "jsonl":
        raise InvalidValue(
            f"{out}: a {out.suffix} file cannot hold the pred_exist_score of the run; "
            "give one that ends in .jsonl"
        )
    rows = list(qvhighlights_rows(answers.run))
    for query, row in zip(answers.run.query_ids, rows, strict=True):
        if query in answers.sureness:
            row["pred_exist_score"] = answers.sureness[query]
    with atomic_write(out) as file:
        write_lines(rows, file)
