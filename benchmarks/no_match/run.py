"""How often a library says that nothing matches: to queries without an answer, and wrongly to those with one.

    python benchmarks/no_match/run.py LIBRARY QUERIES [--clips CLIPS]

QUERIES have answers in the library: what `moviola search --queries` reads, or a CSV file with a column
`query`. Those without are `benchmarks/no_match/queries.txt`, written apart from `unrelated_queries.txt`, with
which answers are compared. With `--clips CLIPS`, QUERIES has columns `query,clips`, and CLIPS places these
clips in files (as in `benchmarks/footage`); then each is also asked of the videos that do not show it. The
level is the share of unrelated queries that must lead less far.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from moviola.datasets.readers.queries import read_queries
from moviola.library import read_unrelated
from moviola.retrieval import Unrelated, level_of
from moviola.retrieval.confidence import ENOUGH
from moviola.search import Library
from moviola.types import Query

Leads = NDArray[np.float64]
LEVELS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 0.8, 0.85, 0.9, 0.95)
WITHOUT = Path(__file__).with_name("queries.txt")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("queries", type=Path, help="queries with answers")
    parser.add_argument("--clips", type=Path, help="a CSV file that places the clips of the queries in files")
    options = parser.parse_args()
    texts = texts_of(options.queries)
    without = WITHOUT.read_text(encoding="utf-8").splitlines()
    with Library(options.library, read_only=True) as library:
        unrelated = read_unrelated(library.store)
        if unrelated is None:
            raise SystemExit(f"{options.library}: run `moviola index` on it again")
        leads = {
            "with an answer": leads_of(library, texts),
            "without one": leads_of(library, without),
        }
        if options.clips:
            places = answers_of(options.queries, options.clips)
            others = [
                [video.video_id for video in library.catalogue.videos()
                 if video.state != "refused" and Path(video.path).name not in files]
                for files in places
            ]  # fmt: skip
            leads["of other videos"] = np.concatenate(
                [leads_of(library, [text], own) for text, own in zip(texts, others, strict=True)]
            )
        report(library.settings.encoder, unrelated, leads)
        said = np.array(
            [found.confident is False for found in (library.search(text) for text in [*texts, *without])]
        )
    refused = [part.mean() for part in (said[: len(texts)], said[len(texts) :])]
    print(f"by search, subtitles included: {refused[0]:.3f} of real, {refused[1]:.3f} of others refused")


def texts_of(path: Path) -> list[str]:
    """The queries in a file."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return [row["query"] for row in csv.DictReader(file)]
    return [query.text for query in read_queries(path)]


def answers_of(queries: Path, clips: Path) -> list[set[str]]:
    """Names of the files that show each query."""
    with clips.open(encoding="utf-8", newline="") as file:
        place = {row["clip"]: row["file"] for row in csv.DictReader(file)}
    with queries.open(encoding="utf-8", newline="") as file:
        return [{place[clip] for clip in row["clips"].split()} for row in csv.DictReader(file)]


def leads_of(library: Library, texts: Sequence[str], videos: Sequence[str] | None = None) -> Leads:
    """How far each text leads the unrelated queries, in some videos or all."""
    queries = [Query(str(number), text) for number, text in enumerate(texts)]
    answers = library.search_many(queries, videos=videos, by="visual", refine=False, top_k=1)
    return np.array([answer.lead for answer in answers], dtype=np.float64)


def report(encoder: str, unrelated: Unrelated, leads: dict[str, Leads]) -> None:
    """Share of each kind of queries that is refused, by level."""
    table = Table("level", "lead", *(f"{kind} ({len(own)})" for kind, own in leads.items()))
    for level in sorted({*LEVELS, level_of(encoder)}):
        asked = min(float(np.quantile(unrelated.leads, level)), ENOUGH)
        refused = (f"{1 - unrelated.confident(own, level).mean():.3f}" for own in leads.values())
        mark = " *" if level == level_of(encoder) else ""
        table.add_row(f"{level:.2f}{mark}", f"{asked:.2f}", *refused)
    Console(width=110).print(table, "* in use; shares are of queries that are refused")


if __name__ == "__main__":
    main()
