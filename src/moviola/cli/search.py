"""``moviola search``: the moments that answer a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from moviola.cli.app import (
    JsonOption,
    app,
    console,
    emit_json,
    leave_partial,
    note,
    show_table,
)
from moviola.cli.asking import field_options, query_of, query_options
from moviola.cli.looking import looker_of, looker_options
from moviola.cli.options import (
    DEFAULT_LIBRARIES,
    LibrariesOption,
    WeakOption,
    WhyOption,
    reading_all,
    with_options,
)
from moviola.errors import InvalidValue, counted
from moviola.files.moments import moment_row
from moviola.files.names import name_now
from moviola.files.writing import require_unread
from moviola.search.filters import Filter
from moviola.search.forms import assumed_distance
from moviola.timing import milliseconds, recorded
from moviola.types import clock, shown_score

if TYPE_CHECKING:
    from moviola.cli.terminal import Shortening
    from moviola.search import Asked, Library, SearchResult
    from moviola.types import Moment


@app.command()
@with_options("query", query_options)
@with_options("options", field_options())
@with_options("looking", looker_options)
def search(
    context: Context,
    options: dict[str, Any],
    looking: dict[str, Any],
    query: dict[str, Any],
    text: Annotated[str | None, Argument(help="What to look for, in plain words.")] = None,
    library: LibrariesOption = DEFAULT_LIBRARIES,
    export: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE",
            help="Write the moments: a sheet of stills (.png), clips (a folder), .csv, .json, .edl, .otio, "
            ".fcpxml, .vtt, .mp4; repeatable.",
        ),
    ] = None,
    save: Annotated[
        str | None, Option(metavar="NAME", help="Save the search under a name, for `moviola kept run`.")
    ] = None,
    weak: WeakOption = False,
    why: WhyOption = False,
    timings: Annotated[bool, Option("--timings", help="Print the time of each stage.")] = False,
    json: JsonOption = False,
) -> None:
    """Search for a text, a moment or a picture; the best moments come first.

    Strong moments come first (more likely right than not), then possible ones, with `--weak` the others too;
    `--json` prints all, each with its band. "no X" and "without X" exclude X; in quotation marks words are
    taken as they are. A word after @ is a concept that `moviola teach` named. The answer is kept for `moviola
    open`, `cut`, `mark` and `export`.

    Example: `moviola search "a red door opens" --top-k 5 --export doors.png`

    A moment and a text: `moviola search "at night" --like beach@1:05`

    A sequence: `moviola search "a door opens" --then "a dog comes in" --gap 20 --without snow`

    Several libraries as one: `moviola search "a dog" --library 2024 --library 2025`

    Looked at by a model: `moviola search "a dog jumps" --check 10 --looker http://localhost:11434/v1
    --looker-model qwen2.5vl`

    Saved, to be asked again or watched: `moviola search "a dog" --taken 2023 --save "beach days"`

    From Python: `moviola.Library.search`; of several libraries `moviola.Libraries`.
    """
    from moviola.search import Asked, SearchOptions

    question = Asked(query_of(context, text, **query), SearchOptions.parse(options))
    if question.options.check is None:
        looking = {}
    if assumed := assumed_distance(options.get("near")):
        note(assumed)
    formats = {}
    if export:  # else their import is saved
        from moviola.export import format_of

        formats = {out: format_of(out) for out in export}
        for out in formats:
            require_unread(out, *query.get("picture", ()))
    if save is not None:
        with reading_all(library) as lib:
            kept = lib.saved.save(save, question)
        note(f"search {kept.name}: saved, version {kept.version}; run it with `moviola kept run`")
        if question.options.check is not None:
            note("--check is not saved: give it to `moviola kept run`, too")
    moments, paths = answer_and_keep(
        library, question, looking=looking, weak=weak, why=why, json=json, timings=timings
    )
    refused: dict[str, str] = {}
    if moments and formats:
        from moviola.cli.export import write_out

        with reading_all(library) as lib:
            for out, format in formats.items():
                title = {"title": str(question.query)} if "title" in format.options else {}
                written = write_out(
                    moments,
                    paths,
                    out,
                    format.name,
                    kept=lib.store.kept_still,
                    check=lib.store.require_outside,
                    **title,
                )
                refused |= written.refused
    if formats and not moments:
        kind = "moment" if weak or json else "strong or possible moment; --weak writes weak ones too"
        note(f"{', '.join(map(str, formats))}: not written, since there is no {kind}")
    if refused:
        leave_partial()


def answer_and_keep(
    libraries: Sequence[Path],
    question: Asked,
    *,
    looking: Mapping[str, Any] = {},
    timings: bool = False,
    **shown: bool,
) -> tuple[list[Moment], dict[str, str]]:
    """Answer a question, print the answer, see :func:`print_answer`, and keep it in the first of the
    libraries. ``looking`` has the values of :func:`moviola.cli.looking.looker_options`.
    """
    from moviola.search.last_answer import KeptAnswer, keep_answer

    with recorded() as seconds, reading_all(libraries) as lib:
        lib.checker = looker_of(lib.store, **looking)
        found = lib.search(question.query, question.options)
        filtered = question.options.videos is not None or question.options.filter != Filter()
        moments, paths = print_answer(lib, found, filtered=filtered, **shown)
    if timings:
        parts = milliseconds(seconds)
        text = ", ".join(f"{name} {value:.1f} ms" for name, value in parts.items())
        note(dumps(parts) if shown["json"] else text)
    try:
        further = tuple(libraries) if len(libraries) > 1 else ()
        keep_answer(libraries[0], KeptAnswer(question, moments, further))
    except InvalidValue as error:
        note(f"not kept for `moviola open`, `cut` and `mark`: {error}")
    return moments, paths


def print_answer(
    library: Library, found: SearchResult, *, filtered: bool, weak: bool, why: bool = False, json: bool
) -> tuple[list[Moment], dict[str, str]]:
    """Print the strong and possible moments, or all; gives these and the paths of their videos by id."""
    from moviola.search.found import still_there

    found, videos, away = still_there(found, library.catalogue)
    paths = {video_id: video.path for video_id, video in videos.items()}
    moments = list(found) if weak or json else [*found.strong, *found.possible]
    for one in found.notes:
        note(str(one))
    if json:
        for moment in moments:
            about = {"path": paths[moment.video_id], "away": moment.video_id in away}
            emit_json({**moment_row(moment), **about, "confident": found.confident})
        return moments, paths
    if moments:
        columns = _columns(moments, paths, away)
        if why:
            columns["why"] = lambda m: ", ".join(map(str, m.why))
        rows = [[cell(moment) for cell in columns.values()] for moment in moments]
        # A line below the strong ones, and one below the possible ones.
        ends = {at for at, (one, later) in enumerate(pairwise(moments)) if one.band != later.band}
        one_line: dict[str, Shortening] = {} if why else {"video": "in the middle", "words": "at the end"}
        show_table(list(columns), rows, lines=ends, short=one_line)
    _note_bands(found, moments, filtered=filtered)
    return moments, paths


def _columns(moments: Sequence[Moment], paths: Mapping[str, str], away: set[str]) -> dict[str, Any]:
    """The columns of a table of moments: their heads, and what each has of a moment."""
    files = _short_names(paths)
    # A terminal is narrow, and most videos are short.
    hours = not console.is_terminal or any(moment.end >= 3599.95 for moment in moments)
    time = clock if hours else lambda seconds: clock(seconds).removeprefix("0:").removeprefix("0")
    columns: dict[str, Any] = {
        "rank": lambda m: str(m.rank),
        "video": lambda m: m.video_id,
        "start – end": lambda m: tuple(f"{time(p.start)} – {time(p.end)}" for p in m.steps or (m,)),
        "score": lambda m: f"{shown_score(m.score)}{'' if m.strong else f' {m.band}'}",
        "file": lambda m: files[m.video_id] + (" (away)" if m.video_id in away else ""),
        "words": _words,
        "more": lambda m: f"+{len(m.folded)}" if m.folded else "",
    }
    if console.is_terminal:  # one of the two
        file = columns.pop("file")
        columns["video"] = lambda m: (
            file(m) if m.video_id in away else name_now(m.video_id, paths[m.video_id])
        )
    return columns


def _note_bands(found: SearchResult, moments: list[Moment], *, filtered: bool) -> None:
    """How sure an answer is, and what of it is not shown."""
    others = len(found) - len(moments)
    hidden = f"; --weak shows the {counted(others, 'nearest moment')}" if others else ""
    if found.videos == 0:
        note(f"no match: {'the filters leave' if filtered else 'the library has'} no video to search")
    elif not found:
        note("nothing matches")
    elif found.strong or found.confident:
        if others:
            note(f"{counted(others, 'weak moment')}: --weak shows them too")
    elif found.possible:
        note(f"nothing certain; {len(found.possible)} possible{hidden}")
    else:
        note(f"nothing matches{hidden}")


def _words(moment: Moment) -> str:
    """The words said or written, with their kind unless that is a subtitle, or the name of the video."""
    if moment.source == "named":
        described = all(reason.kind != "named" for reason in moment.why)
        return "by what its file says" if described else "by its name"
    if moment.by_key_frames:
        return "by key frames"
    words = moment.snippet.replace("\n", " ")
    return words if moment.snippet_kind in ("", "subtitle") else f"{moment.snippet_kind}: {words}"


def _short_names(paths: Mapping[str, str]) -> dict[str, str]:
    """File names by video id, with folders before them where names are not unique."""
    parts = {video_id: Path(path).parts for video_id, path in paths.items()}

    def ending(own: tuple[str, ...]) -> tuple[str, ...]:
        lengths = range(1, len(own))
        alone = (n for n in lengths if sum(other[-n:] == own[-n:] for other in parts.values()) == 1)
        return own[-next(alone, len(own)) :]

    return {video_id: str(Path(*ending(own))) for video_id, own in parts.items()}
