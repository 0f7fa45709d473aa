"""``moviola gridhouse``: generated films with exact times and graded relevance."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from typer import Argument, Option

from moviola.cli.app import JsonOption, app, show
from moviola.cli.progress import progress_bar


@app.command()
def gridhouse(
    folder: Annotated[Path, Argument(help="Folder for the data set.")],
    videos: Annotated[int, Option(min=1, help="Number of ordinary films, 45 to 120 s each.")] = 24,
    seed: Annotated[int, Option(min=0, help="Random seed; the same seed gives the same annotation.")] = 0,
    workers: Annotated[int | None, Option(min=1, help="Processes; by default one per core.")] = None,
    subtitles: Annotated[bool, Option("--subtitles", help="Write subtitle files of a narrator.")] = False,
    long_videos: Annotated[int, Option(min=0, help="Number of further films of ten minutes.")] = 0,
    hour: Annotated[bool, Option("--hour", help="Add a film of an hour.")] = False,
    filler: Annotated[int, Option(min=0, help="Number of further films in which nothing happens.")] = 0,
    edited: Annotated[
        bool, Option("--edited", help="Films of several takes, cut as films are, in many sizes and rates.")
    ] = False,
    edited_videos: Annotated[
        int, Option(min=0, help="Number of further films that are edited, beside plain ones.")
    ] = 0,
    similarity: Annotated[
        str, Option(help="Similarity for pseudo labels: slots, a sentence encoder such as minilm, or truth.")
    ] = "slots",
    json: JsonOption = False,
) -> None:
    """Generate films of robots in houses, with captions, queries and judgements in TVR-Ranking's format.

    A second call with another --similarity keeps the films and chooses new pseudo training sets.

    Example: `moviola gridhouse world --videos 200 --seed 1`

    From Python: `moviola.datasets.gridhouse.build`.
    """
    from moviola.datasets.gridhouse import build
    from moviola.media import write_video

    with progress_bar(
        BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), remedy="run the same command again"
    ) as bar:
        task = bar.add_task("making films", total=None)
        report = build(
            folder, videos=videos, seed=seed, workers=workers or os.cpu_count() or 1, write_video=write_video,
            subtitles=subtitles, long_videos=long_videos, hour=hour, filler=filler, edited=edited,
            edited_videos=edited_videos, similarity=similarity,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    queries = ", ".join(f"{count} {split}" for split, count in report.queries.items())
    levels = ", ".join(f"{level}: {count}" for level, count in report.levels.items())
    show(
        json, report,
        f"{folder}: {report.videos} films of {report.mean_duration:.0f} s on average, "
        f"{report.moments} moments of {report.mean_moment:.1f} s ({report.mean_ratio:.2f} of a film)",
        f"queries: {queries}; {report.relevant_per_query:.1f} relevant moments each ({levels})",
    )  # fmt: skip
