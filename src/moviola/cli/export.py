"""``moviola export``, ``open`` and ``cut``: moments of the last answer as files, or in a player."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from moviola.cli.app import JsonOption, app, leave_partial, note, show
from moviola.cli.options import DEFAULT_LIBRARIES, LibrariesOption, is_library, reading_all, with_options
from moviola.errors import InvalidValue, NotFound, counted
from moviola.files.writing import require_unread
from moviola.types import clock

if TYPE_CHECKING:
    from moviola.export import Selection, Written
    from moviola.search import Library
    from moviola.types import Moment


_LEFT = "no longer in the library; `moviola library removed` lists what can come back"


def format_options(
    title: Annotated[
        str | None, Option(help="Title of the timeline or sheet; by default the file's name.")
    ] = None,
    rate: Annotated[
        str | None,
        Option(
            help="Frames per second of the timeline: 25, 23.976, 30000/1001; by default the most frequent.",
        ),
    ] = None,
    drop_frame: Annotated[
        bool | None,
        Option(
            "--drop-frame/--non-drop-frame",
            help="Timecode at 29.97 and 59.94; by default as in the videos' own start timecode.",
            show_default=False,
        ),
    ] = None,
    start_timecode: Annotated[
        str | None, Option(metavar="HH:MM:SS:FF", help="Start of the timeline; by default 01:00:00:00.")
    ] = None,
    mode: Annotated[
        Literal["exact", "key-frames"] | None,
        Option(help="Clips cut to the frame (default), or copied from the key frame before."),
    ] = None,
    titles: Annotated[bool | None, Option("--titles", help="Title card before each moment.")] = None,
    size: Annotated[
        str | None,
        Option(metavar="WIDTHxHEIGHT", help="Size of the film; by default that of the largest video."),
    ] = None,
    columns: Annotated[int | None, Option(min=1, help="Stills per row of the sheet.")] = None,
) -> None:
    """Fields of :class:`moviola.export.ExportOptions`."""


@app.command("export")
@with_options("options", format_options)
def export_(
    out: Annotated[Path, Argument(help="The file, or the folder for formats of several files.")],
    *,
    format: Annotated[
        str | None,
        Option(
            help="csv, json, edl, edl-markers, edl-markers-video, otio, fcpxml, vtt, vtt-videos, vtt-film, "
            "film, clips or sheet; by default from the suffix of OUT, clips without a suffix.",
        ),
    ] = None,
    ranks: Annotated[
        str | None, Option(metavar="1,3-5", help="Ranks in their order; by default all.")
    ] = None,
    moments: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Moments of a .csv or .json file of this command, instead of the last answer.",
        ),
    ] = None,
    collection: Annotated[
        str | None,
        Option(metavar="NAME", help="Moments of a collection of the library, instead of the last answer."),
    ] = None,
    library: LibrariesOption = DEFAULT_LIBRARIES,
    options: dict[str, Any],
    json: JsonOption = False,
) -> None:
    """Write moments of the last answer, or of a collection, as a table, chapters, an edit list, clips, a film
    or a contact sheet.

    Example: `moviola search "a red door" && moviola export doors.edl --ranks 1,3-5`

    One film with titles: `moviola export doors.mp4 --titles`

    Moments that were edited by hand: `moviola export doors.csv`, then
    `moviola export doors.fcpxml --moments doors.csv`

    A collection, as the page or `moviola kept collect` keeps it: `moviola export dogs.edl --collection dogs`

    From Python: `moviola.export.write_moments`, of `moviola.search.last_answer.kept_answer`.
    """
    from moviola.export import format_of, named_format

    chosen_format = format_of(out) if format is None else named_format(format)
    if moments and collection is not None:
        raise BadParameter("--moments and --collection: give one of them")
    if "title" in chosen_format.options:
        options.setdefault("title", collection or out.stem)
    paths: dict[str, str] = {}
    if collection is not None:
        chosen = _collected(library, collection)
    elif moments:
        from moviola.export import read_moments

        require_unread(out, moments)
        chosen, paths = read_moments(moments)
    else:
        chosen, library = _last_answer(library)
    if ranks is not None:
        chosen = _ranked(chosen, ranks)
    missing = {selection.moment.video_id for selection in chosen} - paths.keys()
    lost: dict[str, str] = {}
    # A table with all paths needs no library.
    with reading_all(library) if missing or all(map(is_library, library)) else nullcontext() as lib:
        if lib is not None:  # one without videos is false
            lost = dict.fromkeys(sorted(missing - lib.catalogue.videos_named(missing).keys()), _LEFT)
            if lost and lost.keys() >= {selection.moment.video_id for selection in chosen}:
                raise NotFound(f"{', '.join(lost)}: {_LEFT}; there is nothing else to export")
            chosen = [one for one in chosen if one.moment.video_id not in lost]
            missing -= lost.keys()
            durations = _durations(lib, {selection.moment.video_id for selection in chosen}, paths)
            paths |= lib.store.paths_of(sorted(missing))[0]
            options |= {
                "durations": durations,
                "kept": lib.store.kept_still,
                "check": lib.store.require_outside,
            }
        written = write_out(chosen, paths, out, chosen_format.name, **options)
    for name, reason in lost.items():
        note(f"{name}: {reason}")
    refused = lost | dict(written.refused)
    result = {
        "out": str(out), "format": chosen_format.name, "moments": len(chosen),
        "files": list(map(str, written.files)), "refused": refused,
    }  # fmt: skip
    lacking = f"; {len(refused)} refused" if refused else ""
    show(json, result, f"{out}: {counted(len(chosen), 'moment')}, {chosen_format.title}{lacking}")
    if refused:
        leave_partial()


def _last_answer(libraries: list[Path]) -> tuple[list[Selection], list[Path]]:
    """The moments of the last answer, and the libraries that it is of."""
    from moviola.export import Selection
    from moviola.search.last_answer import kept_answer

    kept = kept_answer(libraries[0])
    if not kept.moments:
        raise NotFound("the last answer has no moments; search with --weak for the nearest")
    return [Selection(one) for one in kept.moments], [*kept.libraries] or libraries


def _collected(libraries: Sequence[Path], name: str) -> list[Selection]:
    """The moments of a collection, ranked as they stand."""
    from moviola.export import Selection

    with reading_all(libraries) as lib:
        value = lib.userdata.entry("collection", name).value
    moments = value.moments  # type: ignore[union-attr]  # of this kind
    if not moments:
        raise InvalidValue(f"collection {name}: empty; `moviola kept collect` adds moments")
    return [Selection.by_hand(rank, **one.model_dump()) for rank, one in enumerate(moments, 1)]


def _durations(lib: Library, video_ids: set[str], paths: Mapping[str, str]) -> dict[str, float]:
    """Seconds of the library's videos; not where a table names another file by the same id."""
    named = lib.catalogue.videos_named(video_ids)
    return {
        name: video.duration
        for name, video in named.items()
        if video.duration and paths.get(name, video.path) == video.path  # refused ones have no length
    }


def write_out(
    moments: Sequence[Moment | Selection], paths: Mapping[str, str], out: Path, format: str, **options: Any
) -> Written:
    """Write moments; print what was refused, and what a picture lacks."""
    from moviola.export import write_moments

    written = write_moments(moments, paths, out, format, **options)
    for name, reason in written.refused.items():
        note(f"{name}: {reason}")
    if written.remark:
        note(f"{out}: {written.remark}")
    return written


def _ranked(chosen: Sequence[Selection], ranks: str) -> list[Selection]:
    """Those with the ranks that ``1,3-5`` names, in that order."""
    known = {selection.moment.rank: selection for selection in chosen}
    picked = []
    for part in ranks.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9})\s*)?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if last < first:
            raise InvalidValue(f"ranks {ranks!r}: write single ranks and ranges, such as 1,3-5")
        for rank in range(first, last + 1):
            if rank not in known:
                there = counted(len(known), "moment")
                raise InvalidValue(f"ranks {ranks!r}: there is no rank {rank} among {there}")
            picked.append(known[rank])
    return picked


@contextmanager
def _moment(libraries: Sequence[Path], rank: int) -> Iterator[tuple[Library, Moment, Path]]:
    """A moment of the last answer, a file of its video that is there now, and the library or libraries."""
    from moviola.search.last_answer import kept_answer

    kept = kept_answer(libraries[0])
    moment = kept.moment(rank)
    with reading_all(kept.libraries or libraries) as lib:
        if (path := lib.store.file_of(moment.video_id)) is None:
            gone = lib.catalogue.video(moment.video_id).path
            raise NotFound(
                f"{gone}: the video's file is not there; plug its drive in, or index its new place"
            )
        yield lib, moment, path


def _next_files(library: Library, moment: Moment) -> list[Path]:
    """The files in which a moment's recording goes on, up to one that is not there."""
    recording = library.recordings.get(moment.video_id)
    later = recording.video_ids[recording.part(moment.video_id) :] if recording else ()
    return [*filter(None, takewhile(bool, map(library.store.file_of, later)))]


RankArgument = Annotated[int, Argument(min=1, help="Rank of a moment in the last answer.")]


@app.command("open")
def open_(
    rank: RankArgument,
    library: LibrariesOption = DEFAULT_LIBRARIES,
    player: Annotated[
        str | None,
        Option(
            envvar="MOVIOLA_PLAYER",
            help="mpv, vlc, ffplay, or a command with {path} and {start}; by default the first of these "
            "players that is installed, else the system's player (from the beginning). A recording goes on "
            "in its next files in mpv and vlc, and for {next} in a command.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Play a moment of the last answer.

    Example: `moviola search "a red door" && moviola open 2 --player mpv`

    From Python: `moviola.export.player_command` and `play`, of `moviola.search.last_answer.kept_answer`.
    """
    from moviola.export import play, player_command

    with _moment(library, rank) as (lib, moment, path):
        following = _next_files(lib, moment)
    command = player_command(path, moment.span, player, following)
    play(command)
    show(
        json, {"rank": rank, "video_id": moment.video_id, "path": str(path), "command": command},
        f"{path} from {clock(moment.start)} to {clock(moment.end)}, in {Path(command[0]).name}",
    )  # fmt: skip


@app.command()
def cut(
    rank: RankArgument,
    out: Annotated[
        Path | None, Option("--out", "-o", help="MP4 file; by default named by its moment.")
    ] = None,
    track: Annotated[
        str | None,
        Option(
            help="Sound track: a number, or a language such as de; by default the one that players choose.",
            show_default=False,
        ),
    ] = None,
    library: LibrariesOption = DEFAULT_LIBRARIES,
    json: JsonOption = False,
) -> None:
    """Cut a moment of the last answer into an MP4, exact to the frame.

    Example: `moviola cut 2 --out door.mp4`

    With its German sound: `moviola cut 2 --track de`

    From Python: `moviola.export.export_clip`, of `moviola.search.last_answer.kept_answer`.
    """
    from moviola.export import clip_name, export_clip

    with _moment(library, rank) as (lib, moment, path):
        target = out or Path(clip_name(moment))
        lib.store.require_outside(target)
    export_clip(moment, path, target, track=track)
    about = {"rank": rank, "video_id": moment.video_id, "path": str(path), "out": str(target)}
    show(json, about, str(target))
