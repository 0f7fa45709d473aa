"""``moviola gridhouse``: make a world of films with exact times and graded relevance."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, progress_bar


@app.command()
def gridhouse(
    folder: Annotated[Path, typer.Argument(help="Where the data set goes.")],
    videos: Annotated[int, typer.Option(min=1, help="Ordinary films, about 45 to 120 s each.")] = 24,
    seed: Annotated[int, typer.Option(min=0, help="Same seed and settings, same annotation.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as cores by default.")
    ] = None,
    subtitles: Annotated[bool, typer.Option("--subtitles", help="With a narrator's subtitle files.")] = False,
    long: Annotated[int, typer.Option(min=0, help="Films of ten minutes besides.")] = 0,
    hour: Annotated[bool, typer.Option("--hour", help="A film of an hour besides.")] = False,
    filler: Annotated[int, typer.Option(min=0, help="Films besides in which nothing happens.")] = 0,
    similarity: Annotated[
        str,
        typer.Option(help="What pseudo labels go by: slots, or a sentence encoder such as minilm."),
    ] = "slots",
    json: JsonOption = False,
) -> None:
    """Make films of robots in houses, with captions, queries and judgements in TVR-Ranking's format.

    Called again with another --similarity it keeps the films and chooses the pseudo training sets anew.

    Example: `moviola gridhouse world --videos 200 --seed 1`

    From Python: `moviola.datasets.gridhouse.build`.
    """
    from dataclasses import asdict

    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from moviola.datasets.gridhouse import build
    from moviola.media import write_video

    with progress_bar(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("making films", total=None)
        report = build(
            folder, videos=videos, seed=seed, workers=workers or os.cpu_count() or 1, write_video=write_video,
            subtitles=subtitles, long_videos=long, hour=hour, filler=filler, similarity=similarity,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    if json:
        emit_json(asdict(report))
        return
    console.print(
        f"{folder}: {report.videos} films of {report.mean_duration:.0f} s on average, "
        f"{report.moments} moments of {report.mean_moment:.1f} s ({report.mean_ratio:.2f} of a film)",
    )
    queries = ", ".join(f"{count} {split}" for split, count in report.queries.items())
    levels = ", ".join(f"{level}: {count}" for level, count in report.levels.items())
    console.print(f"queries: {queries}; {report.relevant_per_query:.1f} relevant moments each ({levels})")
