"""``make demo``: make films, index them, search them, and say what is true.

First a film of photographs, with the encoder that any folder of films gets; then robots, with and without
trained models. Everything here is what a user would type, except the judgements: it is known what happens in
these films, so each answer can be set against the truth.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from textwrap import shorten
from typing import Any

from rich.console import Console
from rich.table import Table

from moviola import Library
from moviola.encoders import best_encoder
from moviola.encoders.readers import OFFLINE_SPEECH
from moviola.export import export_sheet
from moviola.library.disk.settings import SETTINGS_FILE
from moviola.media import write_video
from moviola.study.datasets import gridhouse
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.measures import Run, evaluate, read_qrels
from moviola.types import Moment, Span, clock
from photo_film import FOOTBALL, NAME, STATION, UMBRELLA, Label, make_film

console = Console(highlight=False, soft_wrap=True)
# Queries for the film of photographs, and the photograph that answers each.
PHOTO_QUERIES = {
    "a cat": "chelsea.png",
    "a cup of coffee": "coffee.png",
    "an astronaut": "astronaut.png",
    "a rocket": "rocket.jpg",
    "a man with a camera": "camera.png",
    "stars and galaxies": "hubble_deep_field.jpg",
}
# Queries for the film's words, and the words that are written or said where the answer is.
WORD_QUERIES = {
    "to the stars": "To the stars",
    "look closely": "Look closely",
    "kids kick a ball": FOOTBALL,
    "the station on monday": STATION,
    "an umbrella in a storm": UMBRELLA,
}
PHOTO_SHEET = Path("demo-photographs.png")
VIDEOS = 24
# Of the demo's world; encoder and models were trained on others (see scripts/train_demo_*.py).
SEED = 7
QUERIES = 6
OVERLAPS = (0.3, 0.5, 0.7)
SHEET = Path("demo-results.png")
VERBS = {
    "picks", "opens", "closes", "drops", "puts", "goes", "takes", "walks", "shuts", "places", "pick", "open",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("photographs", type=Path, help="where the film of photographs and its library go")
    parser.add_argument("world", type=Path, help="where the films of robots go")
    parser.add_argument("library", type=Path, help="where their library goes")
    options = parser.parse_args()
    command = Path(os.path.relpath(sys.executable)).with_name("moviola")
    console.print(
        "[bold]Real pictures[/]: found by what they show, what is written in them and what is said\n"
    )
    photographs(options.photographs)
    console.print("\n[bold]Robots[/]: what training brings\n")
    robots(options.world, options.library)
    console.print(f"\nThe same as pictures: {PHOTO_SHEET}, {SHEET}")
    console.print(f'Try your own query: {command} search "a robot opens a door" --library {options.library}')
    console.print("[bold]The web page[/]: see, scrub, play and collect what is found:")
    console.print(f"   {command} serve --library {options.photographs / 'library'}    # or {options.library}")
    console.print("[bold]Your own films[/] (nothing to download; run it again when there are more):")
    console.print(f"   {command} index ~/Videos")
    console.print(f'   {command} search "a cat on a sofa"')


def photographs(folder: Path) -> None:
    """Make, index and search the film of photographs."""
    films, place = folder / "films", folder / "library"
    console.print(f"[bold]1. A film[/] -> {films}/{NAME}.mp4")
    labels = make_film(films)
    console.print(f"[bold]2. moviola index[/] {films} --speech {OFFLINE_SPEECH} --library {place}")
    started = time.perf_counter()
    encoder = None if (place / SETTINGS_FILE).is_file() else best_encoder().name
    with Library(place, encoder=encoder) as library:
        library.index(films, ocr=True, speech=OFFLINE_SPEECH)
        seconds = time.perf_counter() - started
        console.print(
            f"   {labels[-1].end:.0f} s of film in {seconds:.0f} s, with {library.settings.encoder}"
        )
        console.print(f"[bold]3. moviola show[/] {NAME} --library {place}")
        print_shots(library, labels)
        console.print(f'[bold]4. moviola search[/] "…" --library {place}')
        search_photographs(library, labels)
        search_words(library, labels)


def print_shots(library: Library, labels: list[Label]) -> None:
    """Print the shots of the film beside those that were found, the nearest within half a second."""
    found = library.catalogue.shots(library.catalogue.video(NAME).row)
    table = photo_table("begins at", "with", "found at", "as", "shows")
    for label in labels:
        middle = label.start + label.dissolve / 2
        true = "start" if label.start == 0 else "dissolve" if label.dissolve else "cut"
        near = min(found, key=lambda shot: abs(shot.start - middle))
        close = abs(near.start - middle) <= 0.5
        answer = (f"{near.start:.1f} s", near.opening) if close else ("missed", "")
        table.add_row(f"{middle:.1f} s", true, *answer, described(label))
    console.print(table)
    console.print(f"   {len(labels)} shots in the film, {len(found)} found")


def photo_table(*columns: str) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def described(label: Label) -> str:
    return label.shows or f"title card “{label.text[0]}”"


def search_photographs(library: Library, labels: list[Label]) -> None:
    """Print the first answer to each query, what the film shows there, and where the right answer is.

    Found means: the answer and a shot of the photograph overlap with an IoU of at least 0.5.
    """
    shown: list[Moment] = []
    notes: list[str] = []
    table = photo_table("query", "answer", "which shows", "truth", "found", "sure")
    for query, photograph in PHOTO_QUERIES.items():
        moments = library.search(query, top_k=5)
        true = [label.span for label in labels if label.photograph == photograph]
        right = [any(moment.span.iou(span) >= 0.5 for span in true) for moment in moments]
        found = "no" if True not in right else "yes" if right[0] else f"rank {right.index(True) + 1}"
        first = moments[0]
        there = max(labels, key=lambda label: label.span.intersection(first.span))
        truth = ", ".join(f"{span.start:g}–{span.end:g}" for span in true)
        sure = "yes" if moments.confident else "no"
        table.add_row(query, f"{first.start:.1f}–{first.end:.1f}", described(there), truth, found, sure)
        shown += moments
        notes += [("right" if hit else "wrong") + f": “{query}”" for hit in right]
    console.print(table)
    console.print("   (seconds; sure: whether search itself thinks that the film has an answer)")
    sources = {row.video_id: row.path for row in library.catalogue.videos()}
    export_sheet(shown, sources, PHOTO_SHEET, title="moviola demo: the first five of each query", notes=notes)


def search_words(library: Library, labels: list[Label]) -> None:
    """Print the first answer to each query that is about words, and where they are written or said."""
    table = photo_table("query", "answer", "by", "words as read or heard", "truth", "found")
    for query, words in WORD_QUERIES.items():
        first = library.search(query, top_k=1)[0]
        (label,) = (label for label in labels if words in (*label.text, label.said))
        found = "yes" if first.span.intersection(label.span) > 0 else "no"
        heard = shorten(first.snippet.replace("\n", " / "), 22, placeholder="…")
        by, truth = first.snippet_kind or first.source, f"{label.start:g}–{label.end:g}"
        table.add_row(query, f"{first.start:.1f}–{first.end:.1f}", by, heard, truth, found)
    console.print(table)


def robots(world: Path, folder: Path) -> None:
    """Make, index and search films of robots, without and with trained models."""
    console.print(f"[bold]1. {VIDEOS} films[/] -> {world}/videos")
    gridhouse.build(world, videos=VIDEOS, seed=SEED, workers=os.cpu_count() or 1, write_video=write_video)
    console.print(f"[bold]2. moviola index[/] {world}/videos --library {folder} --encoder demo")
    started = time.perf_counter()
    with Library(folder, encoder="demo") as library:
        library.index(world / "videos")
        seconds = sum(video.duration for video in library.videos())
        console.print(f"   {seconds / 60:.0f} min of film in {time.perf_counter() - started:.0f} s")
        library.indexer.use(stage1="none", refiner="none")  # if the demo was here before
        figures = answer_all(library, world, "without training")
        console.print(f"[bold]3. moviola library use[/] --library {folder} --stage1 demo --refiner demo")
        library.indexer.use(stage1="demo", refiner="demo")
        figures |= answer_all(library, world, "trained")
        print_figures(figures, len(read_queries(world / "test.json")))
        search(library, world)


def answer_all(library: Library, world: Path, models: str) -> dict[str, list[float]]:
    """Means over all test queries, of coarse proposals and of refined moments."""
    queries, qrels = read_queries(world / "test.json"), read_qrels(world / "test.json")
    found = {}
    for kind, refine in (("coarse", False), ("refined", True)):
        answers = library.search_many(queries, top_k=100, refine=refine)
        run = Run.from_dict({
            query.query_id: [
                {"video_id": m.video_id, "start": m.start, "end": m.end, "score": m.score} for m in moments
            ]
            for query, moments in zip(queries, answers, strict=True)
        })  # fmt: skip
        measures = [f"nDCG@20,IoU>={overlap}" for overlap in OVERLAPS]
        found[f"{kind}, {models}"] = list(evaluate(run, qrels, measures).measures.values())
    return found


def print_figures(figures: dict[str, list[float]], count: int) -> None:
    table = Table(box=None, header_style="dim", padding=(0, 0, 0, 3))
    table.add_column(f"nDCG@20, mean of {count} test queries")
    for overlap in OVERLAPS:
        table.add_column(f"IoU ≥ {overlap}", justify="right")
    for name, values in figures.items():
        table.add_row(name, *(f"{value:.3f}" for value in values))
    console.print(table)


def search(library: Library, world: Path) -> None:
    """Print the answers to some test queries, from which coarse proposal each is, and what is true."""
    shown: list[Moment] = []
    notes: list[str] = []
    for query in varied(json.loads((world / "test.json").read_text())):
        console.print(f'\n[bold]4. moviola search[/] "{query["query"]}"')
        proposals = library.search(query["query"], top_k=1000, refine=False)
        table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
        for column in ("", "video", "coarse proposal", "rank", "refined", "relevance", "IoU"):
            table.add_column(column, justify="right" if column == "rank" else "left", no_wrap=True)
        for moment in library.search(query["query"], top_k=5):
            coarse = origin(moment, proposals)
            relevance, true = truth(moment, query["relevant_moment"])
            judged = f"{relevance} of 4"
            ious = f"{coarse.span.iou(true):.2f} → {moment.span.iou(true):.2f}" if true else ""
            spans = times(coarse), str(coarse.rank), times(moment)
            table.add_row(str(moment.rank), moment.video_id, *spans, judged if true else "none", ious)
            shown.append(moment)
            notes.append(f"{judged}: “{query['query']}”" if moment.rank == 1 else judged)
        console.print(table)
    sources = {row.video_id: row.path for row in library.catalogue.videos()}
    export_sheet(shown, sources, SHEET, title="moviola demo: the first five of each query", notes=notes)


def times(moment: Moment) -> str:
    return "–".join(clock(seconds).removeprefix("0:") for seconds in (moment.start, moment.end))


def origin(moment: Moment, proposals: list[Moment]) -> Moment:
    """The coarse proposal that a refined moment is from: of its video, and overlapping or else near it."""

    def near(proposal: Moment) -> tuple[float, float]:
        distance = abs(proposal.start + proposal.end - moment.start - moment.end)
        return proposal.span.iou(moment.span), -distance

    return max((p for p in proposals if p.video_id == moment.video_id), key=near)


def varied(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Some queries about different things: the first of each opening verb, in the file's order."""
    first: dict[str, dict[str, Any]] = {}
    for query in queries:
        verb = next((word for word in query["query"].split() if word in VERBS), query["query"])
        if any(row["relevance"] == 4 for row in query["relevant_moment"]):
            first.setdefault(verb, query)
    return list(first.values())[:QUERIES]


def truth(moment: Moment, judged: list[dict[str, Any]]) -> tuple[int, Span | None]:
    """Relevance and span of the judged moment that an answer overlaps most; 0 and None if there is none."""
    spans = [
        (Span(*row["timestamp"]), int(row["relevance"]))
        for row in judged
        if row["video_name"] == moment.video_id
    ]
    span, relevance = max(spans, key=lambda row: row[0].iou(moment.span), default=(None, 0))
    return (relevance, span) if span and span.iou(moment.span) > 0 else (0, None)


if __name__ == "__main__":
    main()
