"""One type of index at one size: built, opened, searched in turns with exact search, and added to."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from measuring import alone
from moviola.files.rows import read_json
from moviola.files.writing import draft_of, write_json
from moviola.index import BACKENDS, FileRows, Index, load_index, save_index
from moviola.retrieval.segments import pack_ids
from scale.corpus import Corpus, ndcg
from scale.plan import DEPTH

__all__ = ["Spent", "built", "measured", "spent"]

NAME = "segments"
ADDED_SEGMENTS = 150
"""Segments of a video of ten minutes."""

Floats = NDArray[np.float32]
T = TypeVar("T")


@dataclass(frozen=True)
class Spent:
    """Time in seconds: on the clock, and of processors, which waiting for others does not count in."""

    wall: float
    cpu: float

    @property
    def entry(self) -> dict[str, float]:
        """For a JSON file."""
        return {"wall": self.wall, "cpu": self.cpu}


def spent(do: Callable[..., T], *inputs: Any) -> tuple[T, Spent]:
    """What a function gives, and the time that it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = do(*inputs)
    return found, Spent(time.perf_counter() - wall, time.process_time() - cpu)


# -- building ----------------------------------------------------------------------------------------------


def built(corpus: Corpus, kind: str, folder: Path) -> dict[str, Any]:
    """Build an index of a type in a folder, in a process of its own, unless it is there.

    Returns:
        seconds of building and writing (``wall``, ``cpu``), and ``peak_mb``, by how much the process grew.
    """
    about = folder / "build.json"
    if not about.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        segments: Any = corpus.segments
        source = Path(segments.filename), segments.offset, segments.shape
        write_json(about, alone(_build, source, corpus.ids, kind, folder))
    found: dict[str, Any] = read_json(about)
    return found


def _build(
    source: tuple[Path, int, tuple[int, int]], ids: NDArray[np.int64], kind: str, folder: Path
) -> dict[str, float]:
    path, offset, shape = source
    vectors = FileRows(os.open(path, os.O_RDONLY), str(path), offset, shape, np.dtype(np.float32))
    index = BACKENDS[kind](shape[1])
    before = high_water()

    def build() -> None:
        index.build(ids, vectors)
        save_index(index, folder, NAME, backend=kind, tag="")

    _, taken = spent(build)
    return {**taken.entry, "peak_mb": high_water() - before}


def high_water() -> float:
    """MB that this process had in memory at most so far; NaN where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return float("nan")
    (found,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(found) / 1e3


# -- asking ------------------------------------------------------------------------------------------------


def measured(
    corpus: Corpus,
    kind: str,
    work: Path,
    *,
    timed: int,
    rounds: int,
    smallest: tuple[Corpus, Path] | None = None,
) -> dict[str, Any]:
    """Everything about one type, beside exact search; both are built in ``work`` where they are not there.

    Args:
        corpus: what is searched.
        kind: a name in :data:`moviola.index.BACKENDS`.
        work: the folder of this size.
        timed: queries of each kind that are searched for one by one.
        rounds: how often all are searched for at once.
        smallest: the smallest library and its folder, with whose index of this type it is compared; None
            for that one itself.
    """
    folder = work / kind
    building = built(corpus, kind, folder)
    built(corpus, "flat", work / "flat")
    index, flat = _opened(folder), _opened(work / "flat")
    stats = index.stats()
    singles = {name: [query[None] for query in queries[:timed]] for name, queries in corpus.queries.items()}
    timed_queries = np.concatenate([queries[:timed] for queries in corpus.queries.values()])
    return {
        "type": kind,
        "segments": len(corpus.ids),
        "build": building,
        "lists": stats.lists,
        "parameters": dict(stats.parameters),
        "bytes": {
            "scanned": stats.scanned_bytes,
            "ranked": stats.ranked_bytes,
            "disk": sum(path.stat().st_size for path in folder.glob(f"{NAME}-*")) / len(corpus.ids),
        },
        "memory": alone(_grown, folder, timed_queries),
        "single": {
            name: _in_turns({"own": index, "flat": flat}, queries, median)
            for name, queries in singles.items()
        },
        "growth": _growth(index, kind, *smallest, singles) if smallest else {},
        "batch": {
            "queries": len(corpus.batch),
            **_in_turns({"own": index, "flat": flat}, [corpus.batch], min, rounds),
        },
        **_judged(corpus, index, flat, work / "exact.npz"),
        "add": _added(corpus, folder, kind),
    }


def _opened(folder: Path) -> Index:
    loaded = load_index(folder, NAME, BACKENDS)
    assert loaded is not None
    return loaded[0]


def _in_turns(
    indexes: Mapping[str, Index], batches: list[Floats], of: Callable[[list[float]], float], rounds: int = 1
) -> dict[str, dict[str, float]]:
    """Seconds by each of some indexes, searched in turn, so that all meet the same machine.

    All are searched once before: what is read of mapped files for the first time costs more than the search.
    """
    taken: dict[str, list[Spent]] = {name: [] for name in indexes}
    for index in indexes.values():
        for queries in batches:
            index.search(queries, DEPTH)
    for queries in batches * rounds:
        for name, index in indexes.items():
            taken[name].append(spent(index.search, queries, DEPTH)[1])
    return {
        name: Spent(of([one.wall for one in times]), of([one.cpu for one in times])).entry
        for name, times in taken.items()
    }


def _growth(
    index: Index, kind: str, smallest: Corpus, work: Path, singles: Mapping[str, list[Floats]]
) -> dict[str, Any]:
    """Seconds by a type, and by the same over the smallest library, whose files are in memory."""
    built(smallest, kind, work / kind)
    indexes = {"own": index, "smallest": _opened(work / kind)}
    times = {name: _in_turns(indexes, queries, median) for name, queries in singles.items()}
    return {"segments": len(smallest.ids), **times}


def _judged(corpus: Corpus, index: Index, flat: Index, path: Path) -> dict[str, Any]:
    """Recall and NDCG by kind of query, against exact search, whose answers are kept in a file."""
    if not path.is_file():
        scores, ids = flat.search(corpus.batch, DEPTH)
        with draft_of(path) as draft, draft.open("wb") as file:
            np.savez(file, scores=scores, ids=ids)
    scores, ids = index.search(corpus.batch, DEPTH)
    recall, gains, begin = {}, {}, 0
    with np.load(path) as exact:
        exact_scores, exact_ids = exact["scores"], exact["ids"]
    for kind, queries in corpus.queries.items():
        own = slice(begin, begin + len(queries))
        begin += len(queries)
        pairs = zip(ids[own], exact_ids[own], strict=True)
        recall[kind] = float(np.mean([len(np.intersect1d(*pair)) / DEPTH for pair in pairs]))
        wanted = corpus.proposals(exact_scores[own], exact_ids[own])
        gains[kind] = ndcg(corpus, corpus.proposals(scores[own], ids[own]), wanted)
    return {"recall": recall, "ndcg": gains}


def _added(corpus: Corpus, folder: Path, kind: str) -> dict[str, float]:
    """Seconds to open an index, add a video and write what is new."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        # Files of an index are never changed, so a copy can share them.
        copy = shutil.copytree(folder, Path(scratch) / kind, copy_function=os.link)
        ids = pack_ids(int(corpus.features.keys[-1]) + 1, ADDED_SEGMENTS)
        vectors = np.array(corpus.segments[:ADDED_SEGMENTS])

        def add() -> None:
            index = _opened(copy)
            index.add(ids, vectors)
            save_index(index, copy, NAME, backend=kind, tag="")

        return spent(add)[1].entry


def _grown(folder: Path, queries: Floats) -> dict[str, float]:
    """MB that a new process takes at most for an index and single queries, and seconds to open it."""
    # An index of nothing loads faiss, whose code is not the index's memory.
    BACKENDS["flat"](queries.shape[1])
    before = high_water()
    index, opening = spent(_opened, folder)
    for query in queries:
        index.search(query[None], DEPTH)
    return {"peak_mb": high_water() - before, "open": opening.wall}
