"""Search in real footage: the right file, and the right moment of films cut from real clips.

    python benchmarks/footage/report.py [--videos FOLDER] [--encoders conse-lite1 ...] [--films 8] [--seed 1]

Rows: random answers; each encoder's coarse proposals and refined moments, without training, by pictures
alone, and refined with what the files are called. Columns: the mean reciprocal rank of the first right file
over all files of the folder, also of each half of the queries; how often it comes first; nDCG@10 at three
overlaps over the shots of the films; CPU milliseconds a frame.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from clips import VIDEOS
from query_films import Query, Shot, make_films, read_clips, read_queries

from comparison.table import Table
from measuring import arguments, as_run
from moviola import Library
from moviola.encoders import load_encoder
from moviola.study.measures import Qrels, evaluate
from moviola.types import Moment
from moviola.types import Query as TextQuery

MEASURES = ("nDCG@10,IoU>=0.3", "nDCG@10,IoU>=0.5", "nDCG@10,IoU>=0.7")


def main() -> None:
    options = arguments(__doc__, videos=VIDEOS, encoders=["conse-lite1"], films=8, seed=1)
    queries = read_queries()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "films"
        shots = make_films(folder, options.videos, options.films, options.seed)
        rows = [("random", *random_row(options.videos, shots, queries))]
        for name in options.encoders:
            rows += rows_of(
                name, queries, shots, videos=options.videos, films=folder, scratch=Path(scratch) / name
            )
    head = ("system", "MRR", "even", "odd", "first", *MEASURES, "ms / frame")
    Table(f"{len(queries)} queries", head, rows).print(150)


def rows_of(
    name: str, queries: Sequence[Query], shots: Sequence[Shot], *, videos: Path, films: Path, scratch: Path
) -> list[tuple[str, ...]]:
    """A row for coarse proposals, one for refined moments, one for these with the names of files."""
    cost = milliseconds(name)
    texts = [TextQuery(query.text, query.text) for query in queries]
    rows = []
    with (
        Library(scratch / "files", encoder=name, sentence_encoder="minilm") as files,
        Library(scratch / "films", encoder=name, sentence_encoder="none") as cut,
    ):
        files.index(videos, ocr=False)
        cut.index(films, ocr=False)
        ways: tuple[tuple[str, dict[str, Any]], ...] = (
            ("coarse", {"by": "visual", "refine": False}),
            ("refined", {"by": "visual"}),
            ("names too", {}),
        )
        for label, way in ways:
            found = files.search_many(texts, top_k=len(files), per_video=1, **way)
            ranks = reciprocal_ranks(queries, found)
            moments = cut.search_many(texts, top_k=10, **way)
            rows.append((f"{name}, {label}", *shown(ranks), *gains(shots, queries, moments), f"{cost:.0f}"))
    return rows


def random_row(videos: Path, shots: Sequence[Shot], queries: Sequence[Query]) -> list[str]:
    """Files in random order, the mean of 100 draws; and random spans of the films of a shot's length."""
    random = np.random.default_rng(0)
    names = sorted({clip.file for clip in read_clips().values() if (videos / clip.file).is_file()})
    draws = []
    for _ in range(100):
        orders = [random.permutation(len(names)) for _ in queries]
        found = [
            [Moment(names[place], 0, 1, 1.0, rank) for rank, place in enumerate(order, 1)] for order in orders
        ]
        draws.append(reciprocal_ranks(queries, found))
    ends = {shot.film: shot.end for shot in shots}

    def anywhere(rank: int) -> Moment:
        film = list(ends)[random.integers(len(ends))]
        length = random.uniform(3, 9)
        start = random.uniform(0, ends[film] - length)
        return Moment(film, start, start + length, 1 / rank, rank)

    moments = [[anywhere(rank) for rank in range(1, 11)] for _ in queries]
    first = float(np.mean(np.array(draws) == 1))
    return [*shown(np.mean(draws, 0), first), *gains(shots, queries, moments), ""]


def reciprocal_ranks(queries: Sequence[Query], found: Sequence[Sequence[Moment]]) -> np.ndarray:
    """(Q,) one over the rank of the first file that holds a clip of the query, 0 if none does."""
    clips = read_clips()
    values = np.zeros(len(queries))
    for place, (query, moments) in enumerate(zip(queries, found, strict=True)):
        files = {clips[clip].file for clip in query.clips}
        stems = files | {Path(file).stem for file in files}
        ranks = [rank for rank, moment in enumerate(moments, 1) if moment.video_id in stems]
        values[place] = 1 / ranks[0] if ranks else 0
    return values


def shown(ranks: np.ndarray, first: float | None = None) -> list[str]:
    """All, the even and the odd queries, and the share of queries whose first file is right."""
    share = float(np.mean(ranks == 1)) if first is None else first
    return [f"{part.mean():.3f}" for part in (ranks, ranks[::2], ranks[1::2])] + [f"{share:.2f}"]


def gains(shots: Sequence[Shot], queries: Sequence[Query], found: Sequence[Sequence[Moment]]) -> list[str]:
    """nDCG@10 over the shots of the films, for the queries that have one."""
    qrels = {
        query.text: [
            {"video_id": shot.film, "start": shot.start, "end": shot.end, "relevance": 1}
            for shot in shots
            if shot.clip in query.clips
        ]
        for query in queries
    }
    qrels = {text: rows for text, rows in qrels.items() if rows}
    texts = [query.text for query in queries]
    answers = [(text, moments) for text, moments in zip(texts, found, strict=True) if text in qrels]
    results = evaluate(as_run(answers), Qrels.from_dict(qrels), MEASURES)
    return [f"{results.measures[name]:.3f}" for name in MEASURES]


def milliseconds(name: str) -> float:
    """CPU time a frame, of noise, which costs what pictures cost."""
    encoder = load_encoder(name, device="cpu")
    size = encoder.frame_size
    images = np.random.default_rng(0).integers(0, 256, (16, size.height, size.width, 3), dtype=np.uint8)
    encoder.encode_frames(images)
    started = time.process_time()
    encoder.encode_frames(images)
    return (time.process_time() - started) / len(images) * 1000


if __name__ == "__main__":
    main()
