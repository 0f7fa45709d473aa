"""Pooling: the best moments of several systems, without near-duplicates.

As in TREC, everything that any system ranks among its first ``depth`` is judged, so that no system is
measured by the judgements of another. A moment that overlaps one of the pool is the same few seconds with
another edge, and not judged again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from moviola.errors import InvalidValue, MoviolaError, NotFound
from moviola.library import VideoNames
from moviola.search import KINDS, Library
from moviola.study.datasets.building.candidate_pairs import BATCH, Pair
from moviola.study.judging.task import JudgingTask, TaskSettings
from moviola.study.measures import Run, overlap, read_run, suppress
from moviola.types import Query

__all__ = ["Pool", "library_runs", "make_task", "pool"]

SYSTEMS: dict[str, dict[str, Any]] = {
    "refined": {"by": "visual"}, "coarse": {"by": "visual", "refine": False}, "said": {"by": "said"},
    "text": {"by": "text"}, "joined": {"by": "all"},
}  # fmt: skip
"""Ways to search a library, each a system: options of `moviola.Library.search` by name."""

NEAR = 0.5  # moments of one video that overlap more (IoU) are judged as one


@dataclass(frozen=True, slots=True)
class Pool:
    """The pooled moments, and their systems.

    Attributes:
        pairs: by query, then by best rank in any system.
        found_by: by pair id, the systems with this moment among their first; a moment is that of the pool
            that overlaps it, the best of several.
        refused: why queries cannot be answered in any way to search, by id; they are left out.
    """

    pairs: tuple[Pair, ...]
    systems: tuple[str, ...]
    found_by: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str] = field(default_factory=dict)

    def contributions(self) -> dict[str, tuple[int, int]]:
        """For each system the number of its moments in the pool, and the number that no other found."""
        counts = Counter(system for systems in self.found_by.values() for system in systems)
        alone = Counter(systems[0] for systems in self.found_by.values() if len(systems) == 1)
        return {system: (counts[system], alone[system]) for system in self.systems}


def library_runs(
    library: Library,
    queries: Sequence[Query],
    *,
    depth: int = BATCH,
    systems: Sequence[str] | None = None,
    progress: Callable[[str, int], None] | None = None,
    refuse: Callable[[str, str, MoviolaError], None] | None = None,
) -> dict[str, Run]:
    """A library's answers in each of its ways to search: a run for each system.

    Args:
        depth: moments per query and system, >= 1.
        systems: names in :data:`SYSTEMS`; by default those with evidence in the library.
        progress: called with a system and the number of its finished queries.
        refuse: called with a system, and the id and the error of a query that it cannot answer, see
            :meth:`moviola.Library.search_many`. By default the first such error is raised.

    Raises:
        InvalidValue: no such system.
        LibraryError: the library has no evidence for a system that was named.
    """
    chosen = _systems_of(library) if systems is None else list(dict.fromkeys(systems))
    unknown = [name for name in chosen if name not in SYSTEMS]
    if unknown or not chosen:
        raise InvalidValue(f"systems {', '.join(unknown) or 'none'}: choose from {', '.join(SYSTEMS)}")
    runs = {}
    for name in chosen:
        report = (lambda done, name=name: progress(name, done)) if progress else None
        leave = (lambda at, error, name=name: refuse(name, queries[at].query_id, error)) if refuse else None
        answers = library.search_many(queries, top_k=depth, progress=report, refuse=leave, **SYSTEMS[name])
        columns = [
            (query.query_id, m.video_id, m.start, m.end, m.score)
            for query, moments in zip(queries, answers, strict=True)
            for m in moments
        ]
        runs[name] = Run.from_columns(
            *(zip(*columns, strict=True) if columns else [()] * 5),
            queries=[query.query_id for query in queries],
        )
    return runs


def _systems_of(library: Library) -> list[str]:
    """The distinct systems of a library: pictures, words, names and their combinations."""
    counts = library.catalogue.cue_counts()
    visual = ["refined", "coarse"] if library.settings.encoder else []
    words = [name for name in ("said", "text") if any(counts[kind] for kind in KINDS[name])]
    joined = visual and (words or VideoNames.of(library.store.searchable()).distinctive)
    return [*visual, *words, *(["joined"] if joined else [])]


def pool(
    queries: Sequence[Query],
    runs: Mapping[str, Run],
    durations: Mapping[str, float],
    *,
    depth: int = BATCH,
    merge_above: float = NEAR,
    top: int = 2 * BATCH,
) -> Pool:
    """The first moments of all systems, by best rank, without near-duplicates.

    Of equal ranks, the system named first comes first. ``similarity`` of a pair is one by its best rank.

    Args:
        runs: by system.
        durations: of the videos by id, in seconds; moments end with their video.
        depth: number of moments taken per run and query, >= 1.
        merge_above: of moments of one video that overlap more (IoU in [0, 1)) only the better-ranked one is
            pooled.
        top: maximum number of moments to judge per query; the paper's two batches by default.

    Raises:
        InvalidValue: ``depth`` or ``merge_above`` out of range, no run, a query id twice, or a moment that
            begins after its video.
        NotFound: a moment of a video without a duration.
    """
    if depth < 1 or not runs:
        raise InvalidValue(f"depth={depth}, {len(runs)} systems: give at least 1 of both")
    if not 0 <= merge_above < 1:
        raise InvalidValue(
            f"merge_above={merge_above}: an overlap (IoU) from 0 up to, but not, 1, which is the same moment"
        )
    if len({query.query_id for query in queries}) != len(queries):
        raise InvalidValue("a query id is given twice; give each query an id of its own")
    rows_of = {name: run.rows() for name, run in runs.items()}
    pairs: list[Pair] = []
    found_by: dict[str, tuple[str, ...]] = {}
    for query in queries:
        candidates = [
            (rank, name, *_within(row, durations, name))
            for name, rows in rows_of.items()
            for rank, row in enumerate(rows.get(query.query_id, ())[:depth], start=1)
        ]
        candidates.sort(key=lambda one: one[0])  # stable: equal ranks keep the order of the systems
        for pair, systems in _pooled(query, candidates, durations, merge_above, top):
            pairs.append(pair)
            found_by[pair.pair_id] = systems
    return Pool(tuple(pairs), tuple(runs), found_by)


def _within(row: Mapping[str, Any], durations: Mapping[str, float], system: str) -> tuple[str, float, float]:
    """A moment's video and times, ending with the video."""
    video, start, end = row["video_id"], row["start"], row["end"]
    if video not in durations:
        raise NotFound(
            f"{system}: answers with {video}, which is not in the library; give a run on its videos"
        )
    if start >= durations[video]:
        raise InvalidValue(
            f"{system}: {video} from {start:g} s, but it ends at {durations[video]:g} s; give a run on the "
            "library's videos"
        )
    return video, start, min(end, durations[video])


def _pooled(
    query: Query,
    found: Sequence[tuple[int, str, str, float, float]],
    durations: Mapping[str, float],
    merge_above: float,
    top: int,
) -> list[tuple[Pair, tuple[str, ...]]]:
    """One query's pairs, each with the systems that found it; ``found`` by rising rank."""
    if not found:
        return []
    video = np.unique([one[2] for one in found], return_inverse=True)[1]
    start, end = (np.array([one[at] for one in found]) for at in (3, 4))
    taken = np.zeros(len(found), np.bool_)  # a moment that overlaps two of the pool is counted for the better
    pooled: list[tuple[Pair, tuple[str, ...]]] = []
    for place in suppress(start, end, -np.arange(len(found)), merge_above, top, video=video).tolist():
        near = (video == video[place]) & (overlap(start[place], end[place], start, end) > merge_above)
        same = near & ~taken
        taken |= same
        systems = tuple(dict.fromkeys(found[other][1] for other in np.flatnonzero(same).tolist()))
        rank, _, name, begins, ends = found[place]
        pair = Pair(
            f"{query.query_id}:{name}:{begins:.3f}-{ends:.3f}", query.query_id, query.text, name, begins,
            ends, durations[name], "", round(1 / rank, 6), len(pooled) + 1,
        )  # fmt: skip
        pooled.append((pair, systems))
    return pooled


def make_task(
    path: str | Path,
    library: Library,
    queries: Sequence[Query],
    *,
    run_files: Sequence[str | Path] = (),
    systems: Sequence[str] | None = None,
    depth: int = BATCH,
    settings: TaskSettings | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Pool:
    """A new judging task: pooled answers of a library and of other systems to one's own queries. Those that
    the library cannot answer, for instance with an unknown ``@name``, are left out.

    Args:
        path: the task's file, which must not exist.
        queries: each with an id of its own.
        run_files: other systems' answers to these queries in these videos, see
            :func:`moviola.study.measures.read_run`.
        systems, progress: see :func:`library_runs`.
        depth: see :func:`pool`.
        settings: of the task; the paper's by default.

    Raises:
        InvalidValue: the file is there already, two systems have one name (a run's is that of its file), a
            run is of other queries, or no moments to judge; or as in :func:`pool`.
        MoviolaError: no query can be answered; the error of the first.
        NotFound, DataError: a run file is missing or damaged, or is about other videos.
    """
    path, files = Path(path), [Path(file) for file in run_files]
    if path.exists():
        raise InvalidValue(
            f"{path}: exists already; name another file, or go on with `moviola judge progress`"
        )
    names = Counter([*dict.fromkeys(systems or SYSTEMS), *(file.stem for file in files)])
    if twice := [name for name, count in names.items() if count > 1]:
        raise InvalidValue(f"{twice[0]}: two systems of that name; rename the run file")
    given = {file.stem: _read_run(file, queries) for file in files}  # before a search that may take long
    errors: dict[str, dict[str, MoviolaError]] = {}

    def refuse(system: str, query_id: str, error: MoviolaError) -> None:
        errors.setdefault(query_id, {})[system] = error

    runs = library_runs(library, queries, depth=depth, systems=systems, progress=progress, refuse=refuse)
    # What has examples or marks is not answered by words alone, but by pictures.
    refused = {
        query_id: next(iter(own.values())) for query_id, own in errors.items() if len(own) == len(runs)
    }
    answered = [query for query in queries if query.query_id not in refused]
    if refused and not answered:
        raise next(iter(refused.values()))
    durations = {video.video_id: video.duration for video in library.videos()}
    pooled = replace(
        pool(answered, runs | given, durations, depth=depth),
        refused={query_id: str(error) for query_id, error in refused.items()},
    )
    JudgingTask.create(path, pooled.pairs, settings or TaskSettings()).close()
    return pooled


def _read_run(path: Path, queries: Sequence[Query]) -> Run:
    """A run file, which has to be about some of the queries: else its system would seem to have no share."""
    run = read_run(path)
    if run.query_ids and {query.query_id for query in queries}.isdisjoint(run.query_ids):
        raise InvalidValue(
            f"{path}: answers queries such as {run.query_ids[0]!r}, but none of those given; give a run of "
            "these (lines of a text file have the ids 1, 2, …)"
        )
    return run
