"""What is found in real footage: the right file, and the right moment of films cut from real clips.

    python benchmarks/footage/report.py [--videos FOLDER] [--encoders conse-lite1 ...] [--films 8] [--seed 1]

Rows: random answers; each encoder's coarse proposals and refined moments, without training, by pictures
alone, and refined with what the files are called. Columns: the mean reciprocal rank of the first right file
over all files of the folder, also of each half of the queries; how often it comes first; nDCG@10 at three
overlaps over the shots of the films; CPU milliseconds a frame.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from query_films import Query, Shot, make_films, read_clips, read_queries
from rich.console import Console
from rich.table import Table

from moviola import Library
from moviola.encoders import load_encoder
from moviola.study.measures import Qrels, Run, evaluate
from moviola.types import Moment
from moviola.types import Query as TextQuery

VIDEOS = Path(__file__).resolve().parents[3] / "shared" / "videos"
ENCODERS = ("conse-lite1",)
MEASURES = ("nDCG@10,IoU>=0.3", "nDCG@10,IoU>=0.5", "nDCG@10,IoU>=0.7")


@dataclass(frozen=True)
class Films:
    """Films with the shots in them."""

    folder: Path
    shots: list[Shot]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of real files")
    parser.add_argument("--encoders", nargs="+", default=ENCODERS)
    parser.add_argument("--films", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    queries = read_queries()
    table = Table(title=f"{len(queries)} queries")
    columns = ("system", "MRR", "even", "odd", "first", *MEASURES, "ms / frame")
    for column in columns:
        table.add_column(column, justify="left" if column == "system" else "right")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "films"
        films = Films(folder, make_films(folder, options.videos, options.films, options.seed))
        table.add_row("random", *random_row(options.videos, films, queries))
        for name in options.encoders:
            for label, row in rows_of(name, options.videos, films, queries, Path(scratch) / name):
                table.add_row(label, *row)
    Console(width=150).print(table)


def rows_of(
    name: str, videos: Path, films: Films, queries: Sequence[Query], scratch: Path
) -> list[tuple[str, list[str]]]:
    """A row for coarse proposals, one for refined moments, one for these with the names of files."""
    cost = milliseconds(name)
    texts = [TextQuery(query.text, query.text) for query in queries]
    rows = []
    with (
        Library(scratch / "files", encoder=name, sentence_encoder="minilm") as files,
        Library(scratch / "films", encoder=name, sentence_encoder="none") as cut,
    ):
        files.index(videos, ocr=False)
        cut.index(films.folder, ocr=False)
        ways: tuple[tuple[str, dict[str, Any]], ...] = (
            ("coarse", {"by": "visual", "refine": False}),
            ("refined", {"by": "visual"}),
            ("names too", {}),
        )
        for label, way in ways:
            found = files.search_many(texts, top_k=len(files), per_video=1, **way)
            ranks = reciprocal_ranks(queries, found)
            moments = cut.search_many(texts, top_k=10, **way)
            rows.append((f"{name}, {label}", [*shown(ranks), *gains(films, queries, moments), f"{cost:.0f}"]))
    return rows


def random_row(videos: Path, films: Films, queries: Sequence[Query]) -> list[str]:
    """Files in random order, the mean of 100 draws; and random spans of the films of a shot's length."""
    random = np.random.default_rng(0)
    names = sorted({clip.file for clip in read_clips().values() if (videos / clip.file).is_file()})
    draws = []
    for _ in range(100):
        found = [
            [
                Moment(names[place], 0, 1, 1.0, rank)
                for rank, place in enumerate(random.permutation(len(names)), 1)
            ]
            for _ in queries
        ]
        draws.append(reciprocal_ranks(queries, found))
    ends = {shot.film: shot.end for shot in films.shots}
    moments = []
    for _ in queries:
        own = []
        for rank in range(1, 11):
            film = list(ends)[random.integers(len(ends))]
            length = random.uniform(3, 9)
            start = random.uniform(0, ends[film] - length)
            own.append(Moment(film, start, start + length, 1 / rank, rank))
        moments.append(own)
    return [
        *shown(np.mean(draws, 0), float(np.mean(np.array(draws) == 1))),
        *gains(films, queries, moments),
        "",
    ]


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


def gains(films: Films, queries: Sequence[Query], found: Sequence[Sequence[Moment]]) -> list[str]:
    """nDCG@10 over the shots of the films, for the queries that have one."""
    qrels = {
        query.text: [
            {"video_id": shot.film, "start": shot.start, "end": shot.end, "relevance": 1}
            for shot in films.shots
            if shot.clip in query.clips
        ]
        for query in queries
    }
    qrels = {text: rows for text, rows in qrels.items() if rows}
    run = {
        query.text: [
            {"video_id": m.video_id, "start": m.start, "end": m.end, "score": m.score} for m in moments
        ]
        for query, moments in zip(queries, found, strict=True)
        if query.text in qrels
    }
    results = evaluate(Run.from_dict(run), Qrels.from_dict(qrels), MEASURES)
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
