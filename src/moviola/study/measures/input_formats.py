"""Read judgements and runs: our own JSON, JSON lines and CSV, and the files of the published data sets.

================  =====================================  ==========================================
format            judgements                             runs
================  =====================================  ==========================================
``json``          ``{query_id: [{video_id, start, end,   the same with ``score``
                  relevance}]}``
``jsonl``         one object per moment: ``query_id,     the same with ``score``
                  video_id, start, end, relevance``
``csv``           the same as columns                    the same as columns
``tvr_ranking``   ``[{query_id, query,                   none
                  relevant_moment: […]}]``, or JSON
                  lines with one pair each
``tvr``           JSON lines ``{desc_id, vid_name,       ``{video2idx, VCMR or SVMR: […]}``; the
                  ts}``; the relevance is 1              order of a list is the ranking
``qvhighlights``  JSON lines ``{qid, vid,                JSON lines ``{qid, vid,
                  relevant_windows}``; the relevance     pred_relevant_windows}``
                  is 1
``trec``          ``query 0 document relevance``         ``query Q0 document rank score tag``, ranked
                                                         by score, as evaluators of TREC do
``trec_rank``     none                                   the same, ranked by rank; never found out
================  =====================================  ==========================================

TREC documents are moments: see :mod:`moviola.study.measures.trec`. Row formats cannot hold a query without a
row.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from moviola.errors import DataError, InvalidValue
from moviola.files.rows import (
    Rows,
    blank_separated_rows,
    csv_rows,
    line_of,
    listed_rows,
    parse_json,
    read_text,
)
from moviola.study.measures.presets import Preset, preset_of
from moviola.study.measures.qrels_and_run import Columns, Floats, Qrels, Run, fault, query_name
from moviola.study.measures.trec import moment_of

__all__ = ["QRELS_FORMATS", "RUN_FORMATS", "ranks_disagree", "read_qrels", "read_run"]

_T = TypeVar("_T", bound=Columns)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file, not yet checked.

    ``columns`` are query, video, start, end and value; ``rows.where`` names the place of a moment;
    ``ranked``: the order of the file is the ranking.
    """

    rows: Rows
    columns: list[list[Any]]
    queries: list[Any] | None = None
    ranked: bool = False
    text: bool = False
    names: Mapping[str, str] = field(default_factory=dict)


Reader = Callable[[Path, str, str], Table]

_ROWS_ALONE = (".jsonl", ".trec")
"""Files of rows without a header: a run that answers no query is one without a row."""


def read_qrels(path: str | Path, format: str | None = None, *, preset: str | Preset | None = None) -> Qrels:
    """Judgements of a file.

    Args:
        format: a key of :data:`QRELS_FORMATS`; found out from the content when not given.
        preset: of the evaluation that follows; decides whether moments with ``end == start``, or with
            ``end < start``, are allowed.

    Raises:
        NotFound: no such file.
        DataError: the file is damaged; with the file, the line and the field.
        InvalidValue: no such format or preset.
    """
    return _read(Qrels, Path(path), format, QRELS_FORMATS, preset_of(preset))


def read_run(path: str | Path, format: str | None = None, *, preset: str | Preset | None = None) -> Run:
    """Ranked moments of a file; arguments and errors as in :func:`read_qrels`."""
    return _read(Run, Path(path), format, RUN_FORMATS, preset_of(preset))


def ranks_disagree(path: str | Path) -> bool:
    """Whether a TREC run has other ranks than its scores say, by which :func:`read_run` ranks it; False for
    files of other formats. Errors as in :func:`read_run`.
    """
    path = Path(path)
    text = read_text(path)
    if _detect(path, text) != "trec":
        return False
    rows = blank_separated_rows(path, text, _TREC_FIELDS["score"])
    number = {query: n for n, query in enumerate(dict.fromkeys(row[0] for row in rows.rows))}
    query = np.array([number[row[0]] for row in rows.rows], np.int64)
    rank = _numbers(rows, "rank", [row[3] for row in rows.rows], text=True)
    score = _numbers(rows, "score", [row[4] for row in rows.rows], text=True)
    order = np.lexsort((-score, rank, query))
    later = (np.diff(query[order]) == 0) & (np.diff(rank[order]) > 0)
    return bool((later & (np.diff(score[order]) > 0)).any())


def _read(kind: type[_T], path: Path, format: str | None, formats: Mapping[str, Reader], rules: Preset) -> _T:
    if format is not None and format not in formats:
        raise InvalidValue(f"format {format!r}: unknown here; choose {', '.join(formats)}")
    text = read_text(path)
    if not text.strip() and not (kind is Run and path.suffix in _ROWS_ALONE):
        raise DataError(f"{path}: line 1: the file is empty; give one with at least one row")
    name = format or _detect(path, text)
    if name not in formats:
        held = kind.__name__.lower()
        raise DataError(f"{path}: a {name} file holds no {held}; give one of {', '.join(formats)}")
    # No search for reference cycles meanwhile: rows hold none, and a million would be searched often.
    was = gc.isenabled()
    gc.disable()
    try:
        return _build(kind, formats[name](path, text, kind.field), rules)
    finally:
        if was:
            gc.enable()


def _build(kind: type[_T], table: Table, rules: Preset) -> _T:
    rows, called = table.rows, table.names
    query, video, *measured = table.columns
    start, end, value = (
        _numbers(rows, called.get(name, name), column, table.text)
        for name, column in zip(("start", "end", kind.field), measured, strict=True)
    )
    problem = fault(kind.field, start, end, value, zero_length=rules.zero_length, any_order=rules.any_order)
    if problem is not None:
        raise rows.error(*problem)
    for name, column in (("query_id", query), ("video_id", video)):
        if not set(map(type, column)) <= {str, int}:
            row = next(i for i, value in enumerate(column) if type(value) not in (str, int))
            raise rows.error(row, f"{called.get(name, name)} is {column[row]!r}; it must be text")
    return kind.from_columns(
        query, video, start, end, value, queries=table.queries, zero_length=rules.zero_length,
        any_order=rules.any_order, ranked=table.ranked,
    )  # fmt: skip


def _numbers(rows: Rows, name: str, column: list[Any], text: bool) -> Floats:
    try:
        if text:
            return np.fromiter(map(float, column), np.float64, len(column))
        if set(map(type, column)) <= {int, float}:
            return np.array(column, np.float64)
    except (ValueError, OverflowError):
        pass
    for i, value in enumerate(column):
        try:
            if not text and type(value) not in (int, float):
                raise ValueError
            float(value)
        except (ValueError, OverflowError):
            raise rows.error(i, f"{name} is {value!r}; it must be a number") from None
    raise AssertionError("unreachable: one value was no number")


def _json(path: Path, text: str, value: str) -> Table:
    content = parse_json(path, text)
    if not isinstance(content, dict):
        raise DataError(f"{path}: line 1: an object {{query_id: [moments]}} was expected")
    for query, moments in content.items():
        if not isinstance(moments, list):
            line = line_of(text, [query])
            raise DataError(f"{path}: line {line}: query {query}: a list of moments was expected")
    queries = list(content)

    def where(i: int, j: int) -> str:
        return f"line {line_of(text, [queries[i], j])}: query {queries[i]}, moment {j + 1}"

    of, rows = _entries(path, list(content.values()), where)
    columns = rows.fields("video_id", "start", "end", value)
    return Table(rows, [[queries[i] for i in of], *columns], queries=queries)


def _entries(
    path: Path, lists: Sequence[list[Any]], where: Callable[[int, int], str]
) -> tuple[list[int], Rows]:
    """The entries of all lists, and of which list each is; ``where`` takes the places of both."""
    places = [(i, j) for i, found in enumerate(lists) for j in range(len(found))]
    rows = Rows(path, [entry for found in lists for entry in found], lambda row: where(*places[row]))
    return [i for i, _ in places], rows


def _json_lines(path: Path, text: str, value: str) -> Table:
    rows = listed_rows(path, text)
    return Table(rows, rows.fields("query_id", "video_id", "start", "end", value))


def _csv(path: Path, text: str, value: str) -> Table:
    names = ("query_id", "video_id", "start", "end", value)
    rows = csv_rows(path, text, required=names)
    return Table(rows, rows.fields(*names), text=True)


def _tvr_ranking(path: Path, text: str, value: str) -> Table:
    outer = listed_rows(path, text)
    if outer.rows and not any(isinstance(row, dict) and "relevant_moment" in row for row in outer.rows):
        return _pairs(outer, outer.fields("query_id")[0], value)
    names, moments = outer.fields("query_id", "relevant_moment")
    for i, found in enumerate(moments):
        if not isinstance(found, list):
            raise outer.error(i, "relevant_moment must be a list")
        _named(outer, i, names[i])
    one_document = text.lstrip().startswith("[")  # else each line is one

    def where(i: int, j: int) -> str:
        return f"line {line_of(text, [i, 'relevant_moment', j])}" if one_document else outer.where(i)

    of, rows = _entries(path, moments, where)
    return _pairs(rows, [names[i] for i in of], value, queries=names)


def _named(rows: Rows, row: int, name: object) -> str:
    try:
        return query_name(name)
    except InvalidValue as error:
        raise rows.error(row, str(error)) from None


def _require_once(rows: Rows, names: list[Any]) -> None:
    """Raise :class:`DataError` unless every row is of a query of its own."""
    seen: set[str] = set()
    for i, name in enumerate(names):
        known = _named(rows, i, name)
        if known in seen:
            raise rows.error(i, f"query {known} is given twice; put its list in one row")
        seen.add(known)


def _pairs(rows: Rows, query: list[Any], value: str, queries: list[Any] | None = None) -> Table:
    video, times, values = rows.fields("video_name", "timestamp", value)
    columns = [query, video, *_split(rows, "timestamp", times), values]
    return Table(rows, columns, queries=queries, names={"video_id": "video_name"})


def _split(rows: Rows, name: str, times: list[Any]) -> tuple[list[Any], list[Any]]:
    for i, pair in enumerate(times):
        if not (isinstance(pair, list) and len(pair) == 2):
            raise rows.error(i, f"{name} is {pair!r}; it must be [start, end]")
    return [pair[0] for pair in times], [pair[1] for pair in times]


def _detect(path: Path, text: str) -> str:
    """The format of a file by its first characters, keys and suffix."""
    head = text.lstrip()[:1]
    if head not in ("[", "{"):
        first = text.lstrip().partition("\n")[0]
        # An id of a query may hold commas; the # of a document stands in no header.
        table = "#" not in first and any(separator in first for separator in ",;\t|")
        return "csv" if path.suffix in (".csv", ".tsv") or table else "trec"
    marks = _first_keys(text, head)
    plain = "json" if head == "{" else "jsonl"
    return next((name for key, name in _MARKS.items() if key in marks), plain)


_MARKS = {
    "video2idx": "tvr", "VCMR": "tvr", "SVMR": "tvr", "VR": "tvr",
    "relevant_moment": "tvr_ranking", "video_name": "tvr_ranking", "desc_id": "tvr",
    "relevant_windows": "qvhighlights", "pred_relevant_windows": "qvhighlights", "query_id": "jsonl",
}  # fmt: skip
"""Distinctive keys of each format, in order of precedence."""


def _first_keys(text: str, head: str) -> set[str]:
    """Keys of the first object of a file, few if the file is one object of lists; empty if it is damaged."""
    decode = json.JSONDecoder().raw_decode
    try:
        at = text.index("{", text.index(head))
        key, after = decode(text, text.index('"', at))
        holds = text[after : after + 99].lstrip(" :\n\t\r")[:1]
        if holds in ("[", "{") and key not in ("relevant_moment", "timestamp", "ts"):
            return {key}
        return set(decode(text, at)[0])
    except (ValueError, RecursionError):
        return set()


def _tvr_truth(path: Path, text: str, value: str) -> Table:
    rows = listed_rows(path, text)
    query, video, times = rows.fields("desc_id", "vid_name", "ts")
    several = [i for i, ts in enumerate(times) if isinstance(ts, list) and ts and isinstance(ts[0], list)]
    if several:
        raise rows.error(several[0], "ts holds several time stamps; only the TVR evaluator can use them")
    names = {"query_id": "desc_id", "video_id": "vid_name", "start": "ts", "end": "ts"}
    return Table(rows, [query, video, *_split(rows, "ts", times), [1] * len(query)], names=names)


def _tvr_submission(path: Path, text: str, value: str) -> Table:
    content = parse_json(path, text)
    if not isinstance(content, dict):
        raise DataError(f"{path}: line 1: an object with video2idx and VCMR was expected")
    task = next((task for task in ("VCMR", "SVMR") if isinstance(content.get(task), list)), None)
    names = content.get("video2idx")
    if task is None or not isinstance(names, dict):
        missing = "VCMR" if isinstance(names, dict) else "video2idx"
        raise DataError(
            f"{path}: line 1: the field {missing!r} is missing; a submission has video2idx and VCMR"
        )
    outer = Rows(path, content[task], lambda i: f"line {line_of(text, [task, i])}")
    queries, predictions = outer.fields("desc_id", "predictions")
    _require_once(outer, queries)
    for i, found in enumerate(predictions):
        if not isinstance(found, list):
            raise outer.error(i, "predictions must be a list")
    of, rows = _entries(path, predictions, lambda i, j: f"line {line_of(text, [task, i, 'predictions', j])}")
    for i, row in enumerate(rows.rows):
        if not (isinstance(row, list) and len(row) >= 4):
            raise rows.error(i, f"predictions holds {row!r}; it must be [video index, start, end, score]")
    video_of = {json.dumps(index): name for name, index in names.items()}
    if len(video_of) < len(names):
        raise DataError(f"{path}: video2idx: two videos have one index; give each its own")
    video = [video_of.get(json.dumps(row[0])) for row in rows.rows]
    if None in video:
        strange = video.index(None)
        raise rows.error(strange, f"video index {rows.rows[strange][0]!r} is not in video2idx")
    columns = [[queries[i] for i in of], video, *([row[at] for row in rows.rows] for at in (1, 2, 3))]
    return Table(rows, columns, queries=queries, ranked=True, names={"query_id": "desc_id"})


def _qvhighlights(path: Path, text: str, value: str) -> Table:
    """Windows [start, end] of judgements, whose relevance is 1; or [start, end, score] of a run."""
    judged = value == "relevance"
    field, width = ("relevant_windows", 2) if judged else ("pred_relevant_windows", 3)
    outer = listed_rows(path, text)
    queries, videos, windows = outer.fields("qid", "vid", field)
    lists = [found if isinstance(found, list) else [found] for found in windows]
    of, rows = _entries(path, lists, lambda i, j: outer.where(i))
    _require_once(outer, queries)
    for i, row in enumerate(rows.rows):
        if not (isinstance(row, list) and len(row) == width):
            wanted = "[start, end]" if judged else "[start, end, score]"
            raise rows.error(i, f"{field} holds {row!r}; it must be {wanted}")
    columns = [[queries[i] for i in of], [videos[i] for i in of]]
    columns += [[row[at] for row in rows.rows] for at in range(width)]
    if judged:
        columns.append([1] * len(of))
    return Table(rows, columns, queries=queries, names={"query_id": "qid", "video_id": "vid"})


def _trec(path: Path, text: str, value: str) -> Table:
    fields = _TREC_FIELDS[value]
    rows = blank_separated_rows(path, text, fields)
    moments = []
    for i, row in enumerate(rows.rows):
        try:
            moments.append(moment_of(row[2]))
        except InvalidValue as error:
            raise rows.error(i, str(error)) from None
    query, values = ([row[at] for row in rows.rows] for at in (0, fields.index(value)))
    return Table(rows, [query, *([moment[j] for moment in moments] for j in range(3)), values], text=True)


def _trec_by_rank(path: Path, text: str, value: str) -> Table:
    """A run in the order of its column of ranks, equal ones in that of the file."""
    table = _trec(path, text, value)
    rows = table.rows
    ranks = _numbers(rows, "rank", [row[3] for row in rows.rows], text=True)
    order = np.argsort(ranks, kind="stable").tolist()
    columns = [[column[i] for i in order] for column in table.columns]
    return Table(
        Rows(path, [rows.rows[i] for i in order], lambda row: rows.where(order[row])), columns,
        queries=[*dict.fromkeys(table.columns[0])], ranked=True, text=True,
    )  # fmt: skip


_TREC_FIELDS = {
    "relevance": ("query", "iteration", "document", "relevance"),
    "score": ("query", "Q0", "document", "rank", "score", "tag"),
}

QRELS_FORMATS: dict[str, Reader] = {
    "json": _json, "jsonl": _json_lines, "csv": _csv, "tvr_ranking": _tvr_ranking, "tvr": _tvr_truth,
    "qvhighlights": _qvhighlights, "trec": _trec,
}  # fmt: skip
RUN_FORMATS: dict[str, Reader] = {
    "json": _json, "jsonl": _json_lines, "csv": _csv, "tvr": _tvr_submission, "qvhighlights": _qvhighlights,
    "trec": _trec, "trec_rank": _trec_by_rank,
}  # fmt: skip
