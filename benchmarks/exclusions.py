"""What `without` does: of queries about any robot, those of one colour are excluded.

    python benchmarks/exclusions.py LIBRARY QUERIES

LIBRARY holds the films of a gridhouse world, QUERIES are of the same world (`test.json`). For every query
that names no robot's colour and has moments with robots of a colour and of others, that colour is excluded:
moments with such robots count for nothing. nDCG of the answer as it is and with the exclusion, and the share
of excluded moments among the first ten.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from moviola.files.rows import read_json
from moviola.search import Library, SearchQuery, Text
from moviola.study.datasets.gridhouse.vocabulary import ROBOTS
from moviola.study.measures import Qrels, Run, evaluate
from moviola.types import Moment, Span

MEASURE = "nDCG@20,IoU>=0.3"
MOST = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("queries", type=Path)
    options = parser.parse_args()
    chosen = cases(read_json(options.queries))
    table = Table("answer", MEASURE, "excluded in the first ten")
    with Library(options.library, read_only=True) as library:
        for name, query_of in (
            ("as it is", lambda text, colour: Text(text)),
            ("without", lambda text, colour: Text(text).without(f"a {colour} robot")),
        ):
            answers = [answer(library, query_of(query["query"], colour)) for query, colour in chosen]
            table.add_row(name, *map("{:.3f}".format, judged(chosen, answers)))
    Console().print(f"{len(chosen)} queries", table)


def cases(queries: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Queries, each with a colour of robots that some of its moments have and others have not."""
    found = []
    for query in queries:
        if any(f"{colour} robot" in query["query"] for colour in ROBOTS):
            continue
        for colour in ROBOTS:
            good = [moment for moment in query["relevant_moment"] if moment["relevance"] >= 2]
            bad = [moment for moment in good if f"{colour} robot" in moment["caption"]]
            if len(bad) >= 2 and len(good) - len(bad) >= 2:
                found.append((query, colour))
    order = np.random.default_rng(0).permutation(len(found))[:MOST]
    return [found[place] for place in order.tolist()]


def answer(library: Library, query: SearchQuery) -> list[Moment]:
    return library.search(query, top_k=20, by="visual")


def judged(chosen: list[tuple[dict[str, Any], str]], answers: list[list[Moment]]) -> tuple[float, float]:
    """nDCG where the excluded moments have no relevance, and their share among the first ten."""
    relevant, run, shares = {}, {}, []
    for number, ((query, colour), moments) in enumerate(zip(chosen, answers, strict=True)):
        rows = [(row, f"{colour} robot" in row["caption"]) for row in query["relevant_moment"]]
        relevant[str(number)] = [
            {"video_id": row["video_name"], "start": row["timestamp"][0], "end": row["timestamp"][1],
             "relevance": row["relevance"]}
            for row, excluded in rows if not excluded
        ]  # fmt: skip
        run[str(number)] = [
            {"video_id": m.video_id, "start": m.start, "end": m.end, "score": m.score} for m in moments
        ]
        wrong = [row for row, excluded in rows if excluded]
        shares.append(np.mean([any(shown(moment, row) for row in wrong) for moment in moments[:10]]))
    results = evaluate(Run.from_dict(run), Qrels.from_dict(relevant), [MEASURE])
    return results.measures[MEASURE], float(np.mean(shares))


def shown(moment: Moment, row: dict[str, Any]) -> bool:
    """Whether a moment and a judged one share some time."""
    return moment.video_id == row["video_name"] and moment.span.intersection(Span(*row["timestamp"])) > 0


if __name__ == "__main__":
    main()
