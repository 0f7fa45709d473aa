"""``Qrels`` and ``Run``: judged and ranked moments of many queries, columnar.

Both are a query vocabulary, a video vocabulary and one contiguous array per field; the moments of query ``i``
are rows ``offsets[i]:offsets[i + 1]``. A query may have no row at all, which differs from a missing query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.temporal import suppress

__all__ = [
    "Columns", "Flags", "Floats", "Integers", "Qrels", "Run", "fault", "query_name", "query_number",
    "temporal_nms",
]  # fmt: skip


Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_T = TypeVar("_T", bound="Columns")


def query_name(value: object, field: str = "query_id") -> str:
    """The one form of a query's or a video's id, text: ``7`` is ``"7"``. Other types are an
    :class:`InvalidValue`.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    raise InvalidValue(f"{field} {value!r:.200}: must be text or a whole number")


def query_number(name: str) -> int | str:
    """A query id as files with numeric ids hold it: a whole number if that reads back as the same text."""
    return int(name) if re.fullmatch("0|[1-9][0-9]{0,17}", name) else name


def fault(
    field: str,
    start: Floats,
    end: Floats,
    value: Floats,
    *,
    zero_length: bool = False,
    any_order: bool = False,
) -> tuple[int, str] | None:
    """The first invalid row, with its problem; ``None`` if all are valid."""
    for name, column in (("start", start), ("end", end), (field, value)):
        bad = ~np.isfinite(column)
        if bad.any():
            row = int(np.argmax(bad))
            return row, f"{name} is {column[row]}; it must be a finite number"
    bad = end < start if zero_length else end <= start
    if bad.any() and not any_order:
        row = int(np.argmax(bad))
        return row, f"start is {start[row]} and end is {end[row]}; the end must come after the start"
    if field == "relevance" and (value < 0).any():
        row = int(np.argmax(value < 0))
        return row, f"relevance is {value[row]}; it must not be negative"
    return None


@dataclass(frozen=True, eq=False)
class Columns:
    """Moments of many queries. Use :class:`Qrels` or :class:`Run`.

    Attributes:
        query_ids: the queries, each once.
        offsets: (queries + 1,) int64, rising from 0 to the number of moments.
        video_ids: the video vocabulary.
        video: (moments,) int64, index into ``video_ids``.
        start, end: (moments,) float64, seconds, finite, ``end > start``.
        value: (moments,) float64, finite; the relevance of a judgement or the score of a prediction.
    """

    query_ids: tuple[str, ...]
    offsets: Integers
    video_ids: tuple[str, ...]
    video: Integers
    start: Floats
    end: Floats
    value: Floats

    field = "value"

    def __len__(self) -> int:
        return len(self.video)

    @cached_property
    def query(self) -> Integers:
        """(moments,) int64: which query each moment belongs to."""
        return np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))

    @cached_property
    def rank(self) -> Integers:
        """(moments,) int64: place within the query, from 1."""
        return np.arange(len(self), dtype=np.int64) - self.offsets[self.query] + 1

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The plain form: ``{query_id: [{video_id, start, end, relevance or score}]}``, in order of rank."""
        values: list[float | int] = self.value.tolist()
        if self.field == "relevance":
            values = [int(value) if float(value).is_integer() else value for value in values]
        columns = self.video.tolist(), self.start.tolist(), self.end.tolist(), values
        table = [
            {"video_id": self.video_ids[video], "start": start, "end": end, self.field: value}
            for video, start, end, value in zip(*columns, strict=True)
        ]
        bounds = self.offsets.tolist()
        return {name: table[bounds[i] : bounds[i + 1]] for i, name in enumerate(self.query_ids)}

    @classmethod
    def from_columns(
        cls: type[_T],
        query: Sequence[object] | NDArray[Any],
        video: Sequence[object] | NDArray[Any],
        start: Any,
        end: Any,
        value: Any,
        *,
        queries: Iterable[object] | None = None,
        zero_length: bool = False,
        any_order: bool = False,
        ranked: bool = False,
    ) -> _T:
        """From columns with one row per moment, in any order of queries.

        Args:
            query: (n,) query ids, text or whole numbers.
            video: (n,) video ids.
            start, end: (n,) seconds.
            value: (n,) relevance or score.
            queries: all queries in their order, when some have no moment; else those of ``query``.
            zero_length: accept ``end == start``, as the published evaluators do; it overlaps nothing.
            any_order: accept ``end < start``, too, for a measure that has a rule for it.
            ranked: the rows of a query are in order of rank already; else a run is ranked by falling score,
                equal scores in the order given. Judgements keep their order.

        Raises:
            InvalidValue: a number is not finite, ``end <= start``, a relevance is negative, with the row
                named; an id of another type; or columns differ in length.
        """
        names, codes = _coded(query, query_name, None if queries is None else map(query_name, queries))
        videos, video_codes = _coded(video, partial(query_name, field="video_id"))
        starts, ends, values = (np.asarray(column, np.float64) for column in (start, end, value))
        lengths = [len(column) for column in (codes, video_codes, starts, ends, values)]
        if len(set(lengths)) > 1:
            raise InvalidValue(
                f"columns of {', '.join(map(str, lengths))} rows: give one row per moment in each"
            )
        order = np.argsort(codes, kind="stable")
        offsets = np.cumsum(np.bincount(codes + 1, minlength=len(names) + 1))
        columns = (video_codes[order], starts[order], ends[order], values[order])
        made = cls(names, offsets, videos, *columns)
        problem = fault(
            cls.field, made.start, made.end, made.value, zero_length=zero_length, any_order=any_order
        )
        if problem is not None:
            row, complaint = problem
            name = made.query_ids[made.query[row]]
            raise InvalidValue(f"query {name}, moment {made.rank[row]}: {complaint}")
        return made if ranked else made._ranked()

    def _ranked(self: _T) -> _T:
        return self

    @classmethod
    def from_dict(
        cls: type[_T],
        rows: Mapping[Any, Iterable[Mapping[str, Any]]],
        *,
        zero_length: bool = False,
        ranked: bool = False,
    ) -> _T:
        """From the plain form ``{query_id: [{video_id, start, end, relevance or score}]}`` of :meth:`rows`.

        Raises:
            InvalidValue: as in :meth:`from_columns`, a field is missing or no number, or two keys are the
                same query (``7`` and ``"7"``); with the query and the moment named.
        """
        names = [query_name(key) for key in rows]
        table: list[tuple[str, str, float, float, float]] = []
        for name, moments in zip(names, rows.values(), strict=True):
            for position, moment in enumerate(moments, start=1):
                try:
                    table.append((name, *_row(moment, cls.field)))
                except (KeyError, TypeError) as error:
                    missing = f"the field {error.args[0]!r} is missing"
                    complaint = missing if isinstance(error, KeyError) else error
                    raise InvalidValue(f"query {name}, moment {position}: {complaint}") from None
        if len(set(names)) != len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise InvalidValue(f"query {twice}: given twice")
        columns = zip(*table, strict=True) if table else [()] * 5
        return cls.from_columns(*columns, queries=names, zero_length=zero_length, ranked=ranked)


def _coded(
    values: Sequence[object] | NDArray[Any],
    named: Callable[[object], str],
    vocabulary: Iterable[str] | None = None,
) -> tuple[tuple[str, ...], Integers]:
    """The vocabulary, by default of the values' own names, and the place of each value's name in it."""
    given = values.tolist() if isinstance(values, np.ndarray) else list(values)
    names = {raw: named(raw) for raw in dict.fromkeys(given)}
    known = names.values() if vocabulary is None else vocabulary
    code = {name: i for i, name in enumerate(dict.fromkeys(known))}
    if strange := [name for name in names.values() if name not in code]:
        raise InvalidValue(f"query {strange[0]}: not among the queries given")
    place = {raw: code[name] for raw, name in names.items()}
    return tuple(code), np.fromiter(map(place.__getitem__, given), np.int64, len(given))


def _row(moment: Mapping[str, Any], field: str) -> tuple[str, float, float, float]:
    video = moment["video_id"]
    if not isinstance(video, (str, int)) or isinstance(video, bool):
        raise TypeError(f"video_id is {video!r}; it must be text")
    numbers = []
    for name in ("start", "end", field):
        number = moment[name]
        if isinstance(number, bool) or not isinstance(number, (int, float, np.integer, np.floating)):
            raise TypeError(f"{name} is {number!r}; it must be a number")
        try:
            numbers.append(float(number))
        except OverflowError:
            raise TypeError(f"{name} is {number!r}; it is too large") from None
    return (str(video), *numbers)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Qrels(Columns):
    """Graded judgements: for each query the moments that answer it (:class:`Columns`).

    ``value`` is the relevance, >= 0; 0: judged, no answer.
    """

    field = "relevance"

    @property
    def relevance(self) -> Floats:
        """The grade of each moment, (moments,) float64, >= 0."""
        return self.value


@dataclass(frozen=True, eq=False)
class Run(Columns):
    """A system's answers: for each query its moments in order of rank (:class:`Columns`).

    ``value`` is the score, higher is better; the order of rows is the ranking.
    """

    field = "score"

    @property
    def score(self) -> Floats:
        """The score of each moment, (moments,) float64, higher is better."""
        return self.value

    def _ranked(self) -> Run:
        order = np.lexsort((-self.value, self.query))  # stable
        columns = (self.video[order], self.start[order], self.end[order], self.value[order])
        return Run(self.query_ids, self.offsets, self.video_ids, *columns)


def temporal_nms(run: Run, threshold: float, *, read: int = 1000, keep: int = 100) -> Run:
    """Suppression inside every video of every query, merged again by falling score.

    Args:
        threshold: a moment whose IoU with a better one of its video is above it is dropped, in [0, 1].
        read: number of first moments of a query that take part, >= 1.
        keep: maximum number of moments of a query, >= 1.

    Raises:
        InvalidValue: ``threshold``, ``read`` or ``keep`` is out of range.
    """
    if read < 1:
        raise InvalidValue(f"read {read}: give at least 1")
    survivors = [np.zeros(0, np.int64)]
    for low, high in pairwise(run.offsets.tolist()):
        rows = np.arange(low, min(low + read, high))
        # By video in the order of their first moment, which decides between equal scores.
        _, first, group = np.unique(run.video[rows], return_index=True, return_inverse=True)
        rows = rows[np.argsort(first[group], kind="stable")]
        spans = run.start[rows], run.end[rows], run.score[rows]
        survivors.append(rows[suppress(*spans, threshold, keep, video=run.video[rows])])
    rows = np.concatenate(survivors)
    offsets = np.cumsum([len(some) for some in survivors])
    columns = (run.video[rows], run.start[rows], run.end[rows], run.score[rows])
    return Run(run.query_ids, offsets, run.video_ids, *columns)
