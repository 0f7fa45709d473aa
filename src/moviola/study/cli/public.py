"""``moviola public``: public benchmarks, from videos to measures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.progress import BarColumn, MofNCompleteColumn
from typer import Argument, Context, Option, Typer

from moviola.cli.app import JsonOption, leave_partial, note, show_records, some
from moviola.cli.config import usual_device
from moviola.cli.options import DEFAULT_LIBRARY, EncoderOption, LibraryOption, encoder_for
from moviola.cli.progress import progress_bar
from moviola.errors import counted
from moviola.study.cli import STUDIES

commands = Typer()
"""What this module adds to ``moviola``."""


@commands.command(rich_help_panel=STUDIES, short_help="Answer and measure a public benchmark.")
def public(
    context: Context,
    name: Annotated[
        str,
        Argument(
            help="extreme_when_bench, moment_seeker, qv_m2, soccer_gmr, timelens, charades_fig, didemo_fig "
            "or activitynet_fig."
        ),
    ],
    annotations: Annotated[Path, Option("--annotations", "-a", help="Questions of the benchmark.")],
    videos: Annotated[Path | None, Option("--videos", help="Folder of its videos, named as there.")] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    encoder: EncoderOption = None,
    run: Annotated[Path | None, Option("--run", help="Measure this run; nothing is searched.")] = None,
    out: Annotated[
        Path | None,
        Option("--out", "-o", help="Run file for the answers: .json, .jsonl, .csv, or .trec (.txt, too)."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run a public benchmark: index its videos, answer its questions, measure the answers by its own rules.

    You fetch annotations and videos yourself, under their licences. Questions about a missing video count as
    not answered, and the video is named. Interrupted work continues.

    Example: `moviola public extreme_when_bench --videos films --annotations test.jsonl --library bench`

    A run of another system: `moviola public qv_m2 --annotations test.jsonl --run theirs.jsonl`

    From Python: `moviola.study.public.run_public`.
    """
    from moviola.library import IngestProgress
    from moviola.study.public import require_sources, run_public

    require_sources(name, videos, run)  # before an encoder is chosen, which is printed
    remedy = "indexed videos are in the library, and the same command continues"
    with progress_bar(BarColumn(), MofNCompleteColumn(), remedy=remedy) as bar:
        task = bar.add_task("looking for videos", total=None)

        def indexing(step: IngestProgress) -> None:
            bar.update(task, total=step.total, completed=step.done, description=step.video_id)

        def answering(done: int) -> None:
            bar.update(task, total=None, completed=done, description="questions")

        report = run_public(
            name, annotations, videos, library=library,
            encoder=None if run else encoder_for(context, library, encoder),
            device=usual_device(), run=run, out=out, indexing=indexing, answering=answering,
        )  # fmt: skip
    by = f", {report.encoder}" if report.encoder else ""
    title = f"{report.title}, {counted(report.questions, 'question')}{by}"
    rows = ((measure, "–" if value is None else f"{value:.4f}") for measure, value in report.measures.items())
    show_records(json, report, ("measure", "value"), rows, title=title)
    for reason in report.refused.values():
        note(reason)
    if missing := report.missing:
        of = counted(report.videos, "video")
        note(f"{len(missing)} of {of} missing; their questions count as not answered: {some(missing)}")
    if run and (missing := report.unanswered):
        of = counted(report.questions, "question")
        note(f"{len(missing)} of {of} missing from {run}; they count as not answered: {some(missing)}")
    if report.unknown:
        of = counted(report.videos, "video")
        note(
            f"{counted(len(report.unknown), 'video')} of {run} not among the {of} of {report.title}; their "
            f"moments do not count: {some(report.unknown)}"
        )
    if report.missing or report.refused:
        leave_partial()
