"""``make demo``: make films, index them, search them, and show the true relevance beside each answer.

Everything here is what a user would type, except the judgements: gridhouse knows what happens in its films,
so each answer can be set against the truth.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from moviola import Library
from moviola.cli.app import console
from moviola.datasets import gridhouse
from moviola.export import clock, export_sheet
from moviola.media import write_video
from moviola.types import Moment, Span

VIDEOS = 24
# Seeds of the demo; the encoder was trained on others (see scripts/train_demo_clip.py).
SEED = 7
QUERIES = 6
SHEET = Path("demo-results.png")


def main() -> None:
    world, folder = Path(sys.argv[1]), Path(sys.argv[2])
    console.print(f"[bold]1. {VIDEOS} films[/] -> {world}/videos")
    gridhouse.build(world, videos=VIDEOS, seed=SEED, workers=os.cpu_count() or 1, write_video=write_video)
    console.print(f"[bold]2. moviola index[/] {world}/videos --library {folder} --encoder demo")
    started = time.perf_counter()
    with Library(folder, encoder="demo") as library:
        library.index(world / "videos")
        seconds = sum(video.duration for video in library.videos())
        console.print(f"   {seconds / 60:.0f} min of film in {time.perf_counter() - started:.0f} s")
        search(library, world)
    console.print(f"\nThe same as pictures: {SHEET}")
    command = Path(os.path.relpath(sys.executable)).with_name("moviola")
    console.print(f'Try your own: {command} search "a robot opens a door" --library {folder}')


def search(library: Library, world: Path) -> None:
    """Print the answers to some test queries with the relevance of what they found."""
    queries = varied(json.loads((world / "test.json").read_text()))
    sources = {row.video_id: row.path for row in library.catalogue.videos()}
    shown: list[Moment] = []
    notes: list[str] = []
    for query in queries:
        console.print(f'\n[bold]3. moviola search[/] "{query["query"]}"')
        for moment in library.search(query["query"], top_k=5):
            relevance, iou = truth(moment, query["relevant_moment"])
            judged = f"relevance {relevance}, IoU {iou:.2f}" if relevance else "not relevant"
            console.print(
                f"   {moment.rank}  {moment.video_id}  {clock(moment.start)} – {clock(moment.end)}"
                f"  {moment.score:.3f}   {judged}"
            )
            shown.append(moment)
            notes.append(f"“{query['query']}”: {relevance} of 4" if moment.rank == 1 else f"{relevance} of 4")
    export_sheet(shown, sources, SHEET, title="moviola demo: the first five of each query", notes=notes)


def varied(queries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Some queries about different things: the first of each opening verb, in the file's order."""
    first: dict[str, dict[str, Any]] = {}
    for query in queries:
        captions = [m["caption"] for m in query["relevant_moment"] if m["relevance"] == 4]
        verb = next((word for word in query["query"].split() if word in VERBS), query["query"])
        if captions:
            first.setdefault(verb, query)
    return list(first.values())[:QUERIES]


VERBS = {
    "picks",
    "opens",
    "closes",
    "drops",
    "puts",
    "goes",
    "takes",
    "walks",
    "shuts",
    "places",
    "pick",
    "open",
}


def truth(moment: Moment, judged: list[dict[str, Any]]) -> tuple[int, float]:
    """Relevance and overlap of the judged moment that an answer overlaps most."""
    best = max(
        (
            (Span(*row["timestamp"]).iou(moment.span), row["relevance"])
            for row in judged
            if row["video_name"] == moment.video_id
        ),
        default=(0.0, 0),
    )
    return (best[1], best[0]) if best[0] > 0 else (0, 0.0)


if __name__ == "__main__":
    main()
