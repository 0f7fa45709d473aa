"""The command on public benchmarks: `public`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from moviola.cli.app import JsonOption, app, emit_json, leave_partial, note, progress_bar, show_table

__all__ = ["public"]


@app.command()
def public(
    name: Annotated[
        str,
        typer.Argument(
            help="extreme_when_bench, moment_seeker, qv_m2, soccer_gmr, timelens, charades_fig, didemo_fig "
            "or activitynet_fig."
        ),
    ],
    annotations: Annotated[
        Path, typer.Option("--annotations", "-a", help="The benchmark's file of questions.")
    ],
    videos: Annotated[
        Path | None,
        typer.Option("--videos", help="The folder of its videos; a file's name is its video's."),
    ] = None,
    library: Annotated[
        Path | None,
        typer.Option(
            "--library", "-l", help="Where the index lies; NAME-library beside the annotations by default."
        ),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Visual encoder of a new library; by default the best on this machine.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Measure these ranked moments; nothing is indexed or asked.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the answers, as json, jsonl, csv or trec by its suffix."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """A public benchmark: index its videos, answer its questions, measure the answers as it counts them.

    Annotations and videos are fetched by you, under their licences. A video that is not there leaves its
    questions without an answer; they count, and it is named. Work that was interrupted goes on.

    Example: `moviola public extreme_when_bench --videos films --annotations test.jsonl`

    The answers of another system: `moviola public qv_m2 --annotations test.jsonl --run theirs.jsonl`

    From Python: `moviola.public.run_public`.
    """
    from dataclasses import asdict

    from rich.progress import BarColumn, MofNCompleteColumn

    from moviola.library import IngestProgress
    from moviola.public import run_public

    with progress_bar(BarColumn(), MofNCompleteColumn()) as bar:
        task = bar.add_task("looking for videos", total=None)

        def indexing(step: IngestProgress) -> None:
            bar.update(task, total=step.total, completed=step.done, description=step.video_id)

        def answering(done: int) -> None:
            bar.update(task, total=None, completed=done, description="questions")

        report = run_public(
            name, annotations, videos,
            library=library, encoder=encoder, run=run, out=out, indexing=indexing, answering=answering,
        )  # fmt: skip
    if json:
        emit_json(asdict(report))
    else:
        _show(report.title, report.encoder, report.questions, report.measures)
    for reason in report.refused.values():
        note(reason)
    if report.missing:
        shown = ", ".join(report.missing[:5]) + (", …" if len(report.missing) > 5 else "")
        note(
            f"{len(report.missing)} of {report.videos} videos are not there, their questions count as not "
            f"answered: {shown}"
        )
    if report.missing or report.refused:
        leave_partial()


def _show(title: str, encoder: str, questions: int, measures: dict[str, float]) -> None:
    by = f", {encoder}" if encoder else ""
    table = Table("measure", title=f"{title}, {questions} questions{by}")
    table.add_column("value", justify="right")
    show_table(table, [(name, f"{value:.4f}") for name, value in measures.items()])
