"""What shots are worth in search without training: nDCG@10 on films cut from real clips.

    python benchmarks/footage/moments.py [--videos FOLDER] [--encoder conse-lite1] [--films 8] [--seed 1]

Rows: coarse proposals; the curve of similarities, which knows of no shots; shots that score the mean of their
best one, two, three and all clips. All on one library of the films of ``query_films.py``, whose queries and
judgements are those of ``report.py``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from query_films import make_films, read_queries
from report import MEASURES, VIDEOS, Films, gains
from rich.console import Console
from rich.table import Table

from moviola.library import Indexer, LibraryStore
from moviola.retrieval import CurveRefiner, Refiner, ShotRefiner
from moviola.search import Searcher, SearchOptions
from moviola.types import Query

ALL = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of real files")
    parser.add_argument("--encoder", default="conse-lite1")
    parser.add_argument("--films", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    queries = read_queries()
    table = Table(title=f"{options.encoder}, {len(queries)} queries, {options.films} films")
    for column in ("system", *MEASURES):
        table.add_column(column, justify="left" if column == "system" else "right")
    systems: dict[str, Refiner | None] = {"coarse proposals": None, "curve": CurveRefiner()}
    systems |= {
        f"shots, {'all' if best == ALL else f'best {best}'} clips": ShotRefiner(best=best)
        for best in (1, 2, 3, ALL)
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "films"
        films = Films(folder, make_films(folder, options.videos, options.films, options.seed))
        with LibraryStore(
            Path(scratch) / "library", encoder=options.encoder, sentence_encoder="none"
        ) as store:
            Indexer(store).index(folder, ocr=False)
            texts = [Query(query.text, query.text) for query in queries]
            for name, refiner in systems.items():
                searcher = Searcher(store)
                searcher.refiner = refiner
                found = searcher.search_many(texts, SearchOptions(by="visual", refine=refiner is not None))
                table.add_row(name, *gains(films, queries, found))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
