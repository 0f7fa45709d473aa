"""Write judgements and runs in the formats that :mod:`moviola.study.measures.input_formats` reads."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from moviola.errors import InvalidValue
from moviola.files.writing import atomic_write
from moviola.study.measures.qrels_and_run import Columns, Qrels, Run, query_number
from moviola.study.measures.trec import documents, strict_scores
from moviola.study.measures.tvr import submission_of

__all__ = ["WRITERS", "format_of", "qvhighlights_rows", "write_lines", "write_qrels", "write_run"]

Writer = Callable[[Columns, IO[str]], None]
SUFFIXES = {".json": "json", ".jsonl": "jsonl", ".csv": "csv", ".trec": "trec", ".txt": "trec"}


def write_qrels(qrels: Qrels, path: str | Path, format: str | None = None) -> None:
    """Write judgements; ``format`` is a key of :data:`WRITERS`, from the suffix when not given.

    Row formats (jsonl, csv, trec) cannot hold a query without moments; it is not written there.

    Raises:
        InvalidValue: no such format, the format cannot hold these moments, or the file cannot be written.
    """
    _write(qrels, Path(path), format)


def write_run(run: Run, path: str | Path, format: str | None = None) -> None:
    """Write a run; arguments and errors as in :func:`write_qrels`."""
    _write(run, Path(path), format)


def format_of(path: Path, format: str | None = None) -> str:
    """The key of :data:`WRITERS` for a file: ``format``, or by its suffix; else :class:`InvalidValue`."""
    name = format or SUFFIXES.get(path.suffix, "")
    if name not in WRITERS:
        if format:
            raise InvalidValue(f"format {format!r}: unknown; give a format: {', '.join(WRITERS)}")
        raise InvalidValue(
            f"{path}: suffix {path.suffix!r}: unknown; give a file that ends in {', '.join(SUFFIXES)} (TREC)"
        )
    return name


def _write(moments: Columns, path: Path, format: str | None) -> None:
    name = format_of(path, format)
    with atomic_write(path) as file:
        WRITERS[name](moments, file)


def _flat(moments: Columns) -> Iterator[dict[str, Any]]:
    for query, rows in moments.rows().items():
        for row in rows:
            yield {"query_id": query, **row}


def _json(moments: Columns, file: IO[str]) -> None:
    between = "{\n"
    for query, rows in moments.rows().items():
        inner = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
        file.write(f"{between} {json.dumps(query, ensure_ascii=False)}: [\n  {inner}\n ]")
        between = ",\n"
    file.write("\n}\n" if moments.query_ids else "{}\n")


def write_lines(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> None:
    """Write rows as JSON lines."""
    file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _csv(moments: Columns, file: IO[str]) -> None:
    names = ["query_id", "video_id", "start", "end", moments.field]
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_flat(moments))


def _trec(moments: Columns, file: IO[str]) -> None:
    names = [_word(name) for name in moments.query_ids]
    query, rank = moments.query.tolist(), moments.rank.tolist()
    if isinstance(moments, Run):
        scores = strict_scores(moments).tolist()
        for q, r, document, score in zip(query, rank, documents(moments), scores, strict=True):
            file.write(f"{names[q]} Q0 {document} {r} {score!r} moviola\n")
    else:
        for q, document, value in zip(query, documents(moments), moments.value.tolist(), strict=True):
            file.write(f"{names[q]} 0 {document} {int(value) if value.is_integer() else value}\n")


def _word(query: str) -> str:
    if not query or any(sign.isspace() for sign in query):
        raise InvalidValue(f"query {query!r}: TREC files cannot hold an id with blanks; rename it")
    return query


def _tvr(moments: Columns, file: IO[str]) -> None:
    if not isinstance(moments, Run):
        raise InvalidValue("TVR's form of judgements has no relevance; write json")
    json.dump(submission_of(moments, "VCMR"), file)


def qvhighlights_rows(moments: Columns) -> Iterator[dict[str, Any]]:
    """The rows of QVHighlights' form, one for each query.

    Raises:
        InvalidValue: moments of a query are in several videos.
    """
    for query, rows in moments.rows().items():
        videos = {row["video_id"] for row in rows}
        if len(videos) > 1:
            raise InvalidValue(
                f"query {query}: moments of {len(videos)} videos; QVHighlights knows one per query"
            )
        row: dict[str, Any] = {"qid": query_number(query), "vid": videos.pop() if videos else ""}
        if isinstance(moments, Run):
            row["pred_relevant_windows"] = [[m["start"], m["end"], m["score"]] for m in rows]
        else:
            row["relevant_windows"] = [[m["start"], m["end"]] for m in rows if m["relevance"] > 0]
        yield row


def _tvr_ranking(moments: Columns, file: IO[str]) -> None:
    if not isinstance(moments, Qrels):
        raise InvalidValue("TVR-Ranking has no file of runs; write json")
    queries = []
    for query, rows in moments.rows().items():
        relevant = [
            {"video_name": m["video_id"], "timestamp": [m["start"], m["end"]], "relevance": m["relevance"]}
            for m in rows
        ]
        queries.append({"query_id": query, "relevant_moment": relevant})
    json.dump(queries, file, ensure_ascii=False, indent=1)


WRITERS: dict[str, Writer] = {
    "json": _json, "jsonl": lambda moments, file: write_lines(_flat(moments), file), "csv": _csv,
    "trec": _trec, "tvr": _tvr,
    "qvhighlights": lambda moments, file: write_lines(qvhighlights_rows(moments), file),
    "tvr_ranking": _tvr_ranking,
}  # fmt: skip
