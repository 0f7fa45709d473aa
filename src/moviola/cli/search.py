"""``moviola search``: moments that answer a query, or a run that answers a file of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from moviola.cli.app import JsonOption, app, console, emit_json, leave_partial, note, progress_bar, show_table
from moviola.cli.export import write_out
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption
from moviola.errors import InvalidValue

if TYPE_CHECKING:
    from moviola.measures import Run
    from moviola.search import SearchQuery
    from moviola.types import Moment

# Queries that are encoded together.
_AT_ONCE = 32
# What is said must not take all of a narrow terminal.
_SAID_WIDTH = 24


@app.command()
def search(
    text: Annotated[str | None, typer.Argument(help="What to look for, in plain words.")] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="At most so many moments.")] = 10,
    per_video: Annotated[int | None, typer.Option(min=1, help="At most so many of one video.")] = None,
    like: Annotated[
        list[str] | None,
        typer.Option(metavar="VIDEO@TIME", help="More like this moment of the library; repeatable."),
    ] = None,
    image: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="More like this picture; repeatable.")
    ] = None,
    weight: Annotated[
        float, typer.Option(min=0, help="Weight of the words where moments or pictures, 1 each, join them.")
    ] = 1.0,
    then: Annotated[
        list[str] | None, typer.Option(help="What comes later in the same video; repeatable, in order.")
    ] = None,
    gap: Annotated[
        float, typer.Option(min=0, help="Most seconds from the end of one step to the start of the next.")
    ] = 60.0,
    not_: Annotated[
        list[str] | None, typer.Option("--not", help="What must not be seen or said; repeatable.")
    ] = None,
    video: Annotated[list[str] | None, typer.Option(help="Look only into this video; repeatable.")] = None,
    folder: Annotated[
        str | None, typer.Option(help="Only files below this folder, or a pattern such as '*/beach/*.mov'.")
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(metavar="FROM..TO", help="Only files last changed then: 2024-05-01..2024-05-31."),
    ] = None,
    video_length: Annotated[
        str | None, typer.Option(metavar="LOW..HIGH", help="Only videos so long: 60.. or 1:00..10:00.")
    ] = None,
    length: Annotated[
        str | None, typer.Option(metavar="LOW..HIGH", help="Only moments so long: 5..30, in seconds.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="LOW..HIGH", help="Only there in a video: 0..10%, or -1:00.. from its end."),
    ] = None,
    min_score: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Leave out what scores less; with a trained refiner .5 is as likely right as wrong, without "
            "one as good as the luckiest piece of the library would be by chance.",
        ),
    ] = 0.0,
    by: Annotated[
        Literal["both", "visual", "subtitles", "speech", "said", "text"],
        typer.Option(
            help="Which evidence to use: all; pictures; subtitles; recognised speech; both of these; text in "
            "pictures."
        ),
    ] = "both",
    coarse: Annotated[
        bool, typer.Option("--coarse", help="Proposals as they are, without refinement.")
    ] = False,
    clips: Annotated[Path | None, typer.Option(help="Cut the moments into this folder.")] = None,
    sheet: Annotated[Path | None, typer.Option(help="Write a contact sheet of the moments (PNG).")] = None,
    export: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Write them as .csv, .json, .edl, .otio, .fcpxml, .vtt, .mp4; repeatable."
        ),
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="A file of queries: TVR-Ranking JSON, or one query a line.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="Where the answers to --queries go: .json, .jsonl, .csv or .trec (a run file)."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Show the least bad moments where nothing matches.")
    ] = False,
    timings: Annotated[
        bool, typer.Option("--timings", help="Say how long each stage took; with --json in the document.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Moments that answer a text, a moment, a picture, best first.

    Where nothing in the library seems to match, that is said, and `--all` shows the least bad moments; with
    `--json` they are always there, `confident` false. Moments are kept for `moviola open` and `cut`.

    Example: `moviola search "somebody opens a red door" --top 5 --sheet found.png`

    More ways: `moviola search "at night" --like beach@1:05`, or
    `moviola search "a door opens" --then "a dog comes in" --gap 20 --not snow`

    A whole query file: `moviola search --queries test.json --run run.json --top 100`

    From Python: `moviola.Library.search`, and `search_many` with `moviola.measures.write_run`.
    """
    from moviola.search import Filter, Library
    from moviola.search.last_answer import keep_answer, moment_row
    from moviola.timing import milliseconds, recorded

    asked = _query(text, like or [], image or [], weight, then or [], gap, not_ or [])
    if (asked is None) == (queries is None):
        raise typer.BadParameter(
            "give either something to look for (a text, --like, --image) or --queries FILE"
        )
    if (queries is None) != (run is None):
        raise typer.BadParameter("--queries and --run belong together")
    if run is not None and (clips or sheet or export):
        raise typer.BadParameter(
            "--clips, --sheet and --export are of the answer to one text, not to a query file"
        )
    wanted = _wanted(clips, sheet, export or [])
    limits: dict[str, Any] = {
        "top_k": top, "per_video": per_video, "videos": video or None, "min_score": min_score, "by": by,
        "refine": not coarse,
        "filter": Filter.parse(
            folder=folder, modified=date, video_length=video_length, moment_length=length, where=where
        ),
    }  # fmt: skip
    if queries is not None and run is not None:
        with recorded() as seconds:
            made = _answer_file(library, queries, run, limits)
        if json:
            told = {"queries": len(made.query_ids), "moments": len(made), "run": str(run)}
            emit_json({**told, "timings": milliseconds(seconds)} if timings else told)
        else:
            console.print(f"{run}: {len(made)} moments for {len(made.query_ids)} queries")
            _tell(seconds, timings)
        return
    assert asked is not None
    with recorded() as seconds, Library(library, read_only=True) as lib:
        moments = lib.search(asked, **limits)
        sources = {m.video_id: lib.catalogue.video(m.video_id).path for m in moments}
    if moments.confident is False and not (all_ or json):
        moments.clear()
        console.print("no confident match; --all shows the least bad moments")
    elif json:
        rows = [{**moment_row(moment, sources), "confident": moments.confident} for moment in moments]
        emit_json({"moments": rows, "timings": milliseconds(seconds)} if timings else rows)
    else:
        _print_moments(moments, sources)
    if not json:
        _tell(seconds, timings)
    try:
        keep_answer(library, moments, sources)
    except InvalidValue as error:
        note(f"not kept for `moviola open` and `cut`: {error}")
    if moments and wanted:
        _export(moments, sources, str(asked), wanted)


def _query(
    text: str | None, like: list[str], images: list[Path], weight: float, then: list[str], gap: float,
    excluded: list[str],
) -> SearchQuery | None:  # fmt: skip
    """What the options ask for; None where they name nothing."""
    from moviola.search import LikeMoment, LikePicture, compose

    alike: list[LikeMoment | LikePicture] = [*map(LikeMoment.parse, like), *map(LikePicture, images)]
    if text is None and not alike:
        if then or excluded:
            raise typer.BadParameter("--then and --not join something to look for: a text, --like or --image")
        return None
    return compose(text, alike, weight=weight, then=then, gap=gap, excluded=excluded)


def _wanted(clips: Path | None, sheet: Path | None, export: list[Path]) -> list[tuple[Path, str]]:
    """Places and formats of the files to write; what writes them is imported where there are some."""
    wanted = [(out, name) for out, name in ((clips, "clips"), (sheet, "sheet")) if out]
    if export:
        from moviola.export import format_of

        wanted += [(out, format_of(out).name) for out in export]
    return wanted


def _tell(seconds: Mapping[str, float], wanted: bool) -> None:
    """How long each stage took, where that is wanted."""
    if wanted:
        note(", ".join(f"{name} {1000 * value:.1f} ms" for name, value in seconds.items()))


def _export(
    moments: Sequence[Moment], sources: Mapping[str, str], title: str, wanted: Sequence[tuple[Path, str]]
) -> None:
    """Files in the formats that are wanted; what fails is named, with an exit code of its own."""
    from moviola.export import FORMATS

    refused: dict[str, str] = {}
    for out, format in wanted:
        options = {"title": title} if "title" in FORMATS[format].options else {}
        refused |= write_out(moments, sources, out, format, **options).refused
    if refused:
        leave_partial()


def _print_moments(moments: Sequence[Moment], sources: Mapping[str, str]) -> None:
    if not moments:
        console.print("no moment found")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rank", justify="right")
    table.add_column("video", overflow="fold")
    table.add_column("start – end", no_wrap=True)
    table.add_column("score", justify="right")
    table.add_column("file", overflow="fold")
    files = _short_names(sources)
    rows = [
        [
            str(m.rank),
            m.video_id,
            _times(m),
            f"{m.score:.3f}",
            files[m.video_id],
            _words(m),
        ]
        for m in moments
    ]
    if any(moment.snippet for moment in moments):
        written = any(moment.snippet_kind == "text" for moment in moments)
        title = "said or written" if written else "said"
        table.add_column(title, overflow="ellipsis", no_wrap=True, max_width=_SAID_WIDTH)
    else:
        rows = [row[:-1] for row in rows]
    show_table(table, rows)


def _words(moment: Moment) -> str:
    """What is said or written, with its kind unless that is a subtitle."""
    words = moment.snippet.replace("\n", " ")
    return words if moment.snippet_kind in ("", "subtitle") else f"{moment.snippet_kind}: {words}"


def _times(moment: Moment) -> str:
    """Start and end, of each step below each other where there are some."""
    from moviola.types import clock

    return "\n".join(f"{clock(part.start)} – {clock(part.end)}" for part in moment.steps or (moment,))


def _short_names(sources: Mapping[str, str]) -> dict[str, str]:
    """File names by video id, with as many folders before each as tell it from the others."""
    parts = {video_id: Path(path).parts for video_id, path in sources.items()}

    def ending(own: tuple[str, ...]) -> tuple[str, ...]:
        lengths = range(1, len(own))
        alone = (n for n in lengths if sum(other[-n:] == own[-n:] for other in parts.values()) == 1)
        return own[-next(alone, len(own)) :]

    return {video_id: str(Path(*ending(own))) for video_id, own in parts.items()}


def _answer_file(library: Path, queries: Path, out: Path, limits: dict[str, Any]) -> Run:
    """Search for every query of a file and write the run; a place that cannot be written is refused first."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

    from moviola.datasets.readers.queries import read_queries
    from moviola.files.writing import draft_of
    from moviola.measures import Run, write_run
    from moviola.measures.output_formats import format_of
    from moviola.search import Library

    asked, format = read_queries(queries), format_of(out)
    bar = progress_bar(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with draft_of(out) as draft, Library(library, read_only=True) as lib, bar:
        answers = []
        task = bar.add_task("searching", total=len(asked))
        for start in range(0, len(asked), _AT_ONCE):
            answers += lib.search_many(asked[start : start + _AT_ONCE], **limits)
            bar.update(task, completed=len(answers))
        run = Run.from_dict({
            query.query_id: [
                {"video_id": m.video_id, "start": m.start, "end": m.end, "score": m.score} for m in moments
            ]
            for query, moments in zip(asked, answers, strict=True)
        })  # fmt: skip
        write_run(run, draft, format)
    return run
