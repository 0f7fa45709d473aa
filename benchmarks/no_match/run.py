"""Whether scores separate queries that a library answers from those that it does not.

    python benchmarks/no_match/run.py [--videos FOLDER] [--gridhouse WORLD] [--out FILE]

Real footage: the queries of `benchmarks/footage/queries.csv` are answered by some file of the folder, those
of `benchmarks/no_match/queries.txt` by none; they were written apart from the texts of the background
(`unrelated_queries.txt`). Those of `second.csv`, of both kinds, were written after all settings were chosen.
gridhouse: the test queries of a world (`moviola gridhouse`), searched with the demo's models, beside
`gridhouse.csv`, which asks for things, deeds and nonsense that no world shows.

Columns: AUROC of the best score with its 95 % interval; the share of answerable queries that have a strong
moment, and of the others that have none; Rej-F1 of that; the share of absent ones that are refused where a
threshold keeps 95 % of the answerable ones; and how many absent ones have a score above one half.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from moviola import Library
from moviola.retrieval import STRONG
from moviola.search import By
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.measures.no_answer import auroc, auroc_interval, refused_share, rejection_f1
from moviola.types import Query

HERE = Path(__file__).parent
VIDEOS = Path(__file__).resolve().parents[3] / "shared" / "videos"
FOOTAGE = HERE.parent / "footage" / "queries.csv"
WAYS: tuple[By, ...] = ("all", "visual")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of real files")
    parser.add_argument("--gridhouse", type=Path, help="a world of gridhouse")
    parser.add_argument("--encoder", default="conse-lite1")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        absent = (HERE / "queries.txt").read_text(encoding="utf-8").splitlines()
        sets = {"footage": (_column(FOOTAGE, "query"), absent), "second set": _by_kind("second.csv")}
        with Library(Path(scratch) / "footage", encoder=options.encoder) as library:
            library.index(options.videos, ocr=False)
            for name, (sure, unsure) in sets.items():
                for by in WAYS:
                    label = f"{name}, {options.encoder}, by {by}"
                    rows.append({"case": label, **figures(library, sure, unsure, by)})
        if options.gridhouse:
            with Library(Path(scratch) / "gridhouse", encoder="demo", sentence_encoder="none") as library:
                library.index(options.gridhouse / "videos", ocr=False)
                library.use(stage1="demo", refiner="demo")
                answerable = [query.text for query in read_queries(options.gridhouse / "test.json")]
                table = _table(HERE / "gridhouse.csv")
                kinds = {kind: [q for k, q in table if k == kind] for kind, _ in table}
                for kind, texts in {"absent": [q for _, q in table], **kinds}.items():
                    label = f"gridhouse, demo models: {kind}"
                    rows.append({"case": label, **figures(library, answerable, texts, "visual")})
    report(rows)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def figures(library: Library, answerable: Sequence[str], absent: Sequence[str], by: By) -> dict[str, Any]:
    """What the best scores of both kinds of queries say."""
    sure, unsure = best(library, answerable, by), best(library, absent, by)
    low, high = auroc_interval(sure, unsure)
    refused = np.concatenate([sure, unsure]) < STRONG
    truth = np.concatenate([np.zeros(len(sure), bool), np.ones(len(unsure), bool)])
    return {
        "answerable": len(sure),
        "absent": len(unsure),
        "AUROC": auroc(sure, unsure),
        "low": low,
        "high": high,
        "kept": float((sure >= STRONG).mean()),
        "refused": float((unsure < STRONG).mean()),
        "Rej-F1": rejection_f1(refused, truth),
        "refused at 95 % kept": refused_share(sure, unsure),
        "absent above .5": float((unsure > 0.5).mean()),
    }


def best(library: Library, texts: Sequence[str], by: By) -> np.ndarray:
    """(n,) float64, the best score of each text; -inf without a moment."""
    queries = [Query(str(number), text) for number, text in enumerate(texts)]
    answers = library.search_many(queries, top_k=1, by=by)
    return np.array([answer[0].score if answer else -np.inf for answer in answers])


def _column(path: Path, name: str) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def _by_kind(name: str) -> tuple[list[str], list[str]]:
    """Answerable and absent queries of a file beside this one."""
    table = _table(HERE / name)
    return [q for kind, q in table if kind == "answerable"], [q for kind, q in table if kind == "absent"]


def _table(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["kind"], row["query"]) for row in csv.DictReader(file)]


def report(rows: Sequence[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table()
    names = [name for name in rows[0] if name not in ("low", "high")]
    for name in names:
        table.add_column(name, justify="left" if name == "case" else "right")
    for row in rows:
        interval = f" ({row['low']:.2f} to {row['high']:.2f})"
        shown = {**row, "AUROC": f"{row['AUROC']:.3f}{interval}"}
        table.add_row(*(f"{v:.3f}" if isinstance(v := shown[n], float) else str(v) for n in names))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
