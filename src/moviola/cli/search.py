"""``moviola search``: moments that answer a query, or a run that answers a file of queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from moviola.cli.app import (
    JsonOption,
    app,
    console,
    emit_json,
    in_one_line,
    leave_partial,
    note,
    progress_bar,
    show_table,
)
from moviola.cli.export import write_out
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption
from moviola.errors import InvalidValue

if TYPE_CHECKING:
    from moviola.export import KeptStill
    from moviola.measures import Run
    from moviola.search import SearchOptions, SearchQuery, SearchResult
    from moviola.types import Moment

# Queries that are encoded together.
_AT_ONCE = 32
# What is said must not take all of a narrow terminal.
_SAID_WIDTH = 24

WeakOption = Annotated[bool, typer.Option("--weak", help="Show weak moments, too, behind the strong ones.")]
WhyOption = Annotated[bool, typer.Option("--why", help="Say what speaks for each moment, and by how much.")]


@app.command()
def search(
    text: Annotated[str | None, typer.Argument(help="What to look for, in plain words.")] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="Number of moments.")] = 10,
    per_video: Annotated[int | None, typer.Option(min=1, help="Number of moments of one video.")] = None,
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
    taken: Annotated[
        str | None,
        typer.Option(metavar="FROM..TO", help="Only videos taken then: 2021..2023-05, or 2023-05-31."),
    ] = None,
    near: Annotated[
        str | None,
        typer.Option(metavar="LAT,LON,DISTANCE", help="Only videos taken there: 52.52,13.40,5km."),
    ] = None,
    camera: Annotated[
        str | None, typer.Option(help="Only of cameras with this in make and model, such as 'iphone 15'.")
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
            help="Least score; .5 is as likely right as wrong.",
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
    weak: WeakOption = False,
    why: WhyOption = False,
    timings: Annotated[
        bool, typer.Option("--timings", help="Say how long each stage took; with --json in the document.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Moments that answer a text, a moment, a picture, best first.

    Strong moments are shown, and `--weak` shows the others, too; with `--json` all are there, each with
    `strong`. Words that begin with @ stand for what was taught with `moviola teach`. Moments are kept for
    `moviola open`, `cut`, `mark` and `export`.

    Example: `moviola search "somebody opens a red door" --top 5 --sheet found.png`

    More ways: `moviola search "at night" --like beach@1:05`, or
    `moviola search "a door opens" --then "a dog comes in" --gap 20 --not snow`

    A whole query file: `moviola search --queries test.json --run run.json --top 100`

    From Python: `moviola.Library.search`, and `search_many` with `moviola.measures.write_run`.
    """
    from moviola.search import Library
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
    named = {
        "top_k": top, "per_video": per_video, "videos": video or None, "min_score": min_score, "by": by,
        "refine": not coarse, "folder": folder, "modified": date, "video_length": video_length,
        "moment_length": length, "taken": taken, "near": near, "camera": camera, "where": where,
    }  # fmt: skip
    given = {name: value for name, value in named.items() if value is not None}
    options = options_of(given)
    if queries is not None and run is not None:
        with recorded() as seconds:
            made = _answer_file(library, queries, run, options)
        if json:
            told = {"queries": len(made.query_ids), "moments": len(made), "run": str(run)}
            emit_json({**told, "timings": milliseconds(seconds)} if timings else told)
        else:
            console.print(f"{run}: {len(made)} moments for {len(made.query_ids)} queries")
            _tell(seconds, timings)
        return
    assert asked is not None
    show = Shown(weak=weak, why=why, timings=timings, json=json)
    moments, sources = answer_and_keep(library, asked, given, show)
    if moments and wanted:
        with Library(library, read_only=True) as lib:
            _export(moments, sources, str(asked), wanted, lib.kept_still)


@dataclass(frozen=True)
class Shown:
    """What is printed of an answer."""

    weak: bool = False
    why: bool = False
    timings: bool = False
    json: bool = False


def answer_and_keep(
    library: Path, asked: SearchQuery, given: dict[str, Any], show: Shown
) -> tuple[list[Moment], dict[str, str]]:
    """Answer a query, print the answer and keep it.

    Args:
        library: its folder.
        asked: what to look for.
        given: options of the search and of its filter by name, as JSON has them.
        show: what is printed.

    Returns:
        the moments that were printed, and the paths of their videos by id.
    """
    from moviola.search import Library
    from moviola.search.last_answer import KeptAnswer, keep_answer
    from moviola.search.present import still_there
    from moviola.timing import milliseconds, recorded

    with recorded() as seconds, Library(library, read_only=True) as lib:
        found, videos, away = still_there(lib.search(asked, options_of(given)), lib.catalogue)
        sources = {video_id: video.path for video_id, video in videos.items()}
    moments = list(found) if show.weak or show.json else found.strong
    if show.json:
        rows = answer_rows(found, sources, away)
        emit_json({"moments": rows, "timings": milliseconds(seconds)} if show.timings else rows)
    else:
        print_moments(moments, sources, away, why=show.why)
        print_others(moments, found)
        _tell(seconds, show.timings)
    try:
        keep_answer(library, KeptAnswer(asked, moments, sources, given))
    except InvalidValue as error:
        note(f"not kept for `moviola open`, `cut` and `mark`: {error}")
    return moments, sources


def options_of(given: dict[str, Any]) -> SearchOptions:
    """Options of a search from their names and values as JSON has them.

    Raises:
        InvalidValue: a value outside its range.
    """
    from moviola.search import Filter, SearchOptions

    names = Filter.__dataclass_fields__
    filters = {name: value for name, value in given.items() if name in names}
    others = {name: value for name, value in given.items() if name not in names}
    return SearchOptions(**others, filter=Filter.parse(**filters))


def print_others(shown: Sequence[Moment], found: SearchResult) -> None:
    """What there is besides what was printed."""
    weak = len(found) - len(shown)
    if not found.confident and not shown:
        console.print(f"no strong match; --weak shows the {len(found)} nearest moments" if found else "")
    elif weak:
        console.print(f"{weak} weaker {'one' if weak == 1 else 'ones'}: --weak shows them, too")


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
    moments: Sequence[Moment],
    sources: Mapping[str, str],
    title: str,
    wanted: Sequence[tuple[Path, str]],
    kept: KeptStill,
) -> None:
    """Files in the formats that are wanted; what fails is named, with an exit code of its own."""
    from moviola.export import FORMATS

    refused: dict[str, str] = {}
    for out, format in wanted:
        options = {"title": title} if "title" in FORMATS[format].options else {}
        refused |= write_out(moments, sources, out, format, kept=kept, **options).refused
    if refused:
        leave_partial()


def answer_rows(
    found: SearchResult, sources: Mapping[str, str], away: Collection[str]
) -> list[dict[str, Any]]:
    """The moments of an answer as JSON has them, with paths."""
    from moviola.files.moments import moment_row

    return [
        {
            **moment_row(moment),
            "path": sources[moment.video_id],
            "away": moment.video_id in away,
            "confident": found.confident,
        }
        for moment in found
    ]


def print_moments(
    moments: Sequence[Moment], sources: Mapping[str, str], away: Collection[str] = (), *, why: bool = False
) -> None:
    """A table of moments; those of videos that are away bear a mark."""
    if not moments:
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
            in_one_line(m.video_id),
            _times(m),
            f"{m.score:.3f}{'' if m.strong else ' weak'}",
            in_one_line(files[m.video_id]) + (" (away)" if m.video_id in away else ""),
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
    if any(moment.folded or moment.copies for moment in moments):
        table.add_column("and")
        rows = [
            [*row, f"+{more}" if (more := len(moment.folded) + len(moment.copies)) else ""]
            for row, moment in zip(rows, moments, strict=True)
        ]
    if why:
        table.add_column("why", overflow="fold")
        rows = [[*row, ", ".join(map(str, moment.why))] for row, moment in zip(rows, moments, strict=True)]
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


def _answer_file(library: Path, queries: Path, out: Path, options: SearchOptions) -> Run:
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
            answers += lib.search_many(asked[start : start + _AT_ONCE], options)
            bar.update(task, completed=len(answers))
        run = Run.from_dict({
            query.query_id: [
                {"video_id": m.video_id, "start": m.start, "end": m.end, "score": m.score} for m in moments
            ]
            for query, moments in zip(asked, answers, strict=True)
        })  # fmt: skip
        write_run(run, draft, format)
    return run
