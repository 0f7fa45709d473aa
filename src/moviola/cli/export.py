"""``moviola export``: moments of the last answer, or of a file, in any of the formats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, leave_partial, note
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption
from moviola.errors import InvalidValue

if TYPE_CHECKING:
    from moviola.export import Selection, Written
    from moviola.types import Moment


class _Mode(StrEnum):
    EXACT = "exact"
    KEY_FRAMES = "key-frames"


@app.command("export")
def export_(
    out: Annotated[Path, typer.Argument(help="The file, or the folder for formats of several files.")],
    format: Annotated[
        str | None,
        typer.Option(
            help="csv, json, edl, edl-markers, edl-markers-video, otio, fcpxml, vtt, vtt-videos, vtt-film, "
            "film, clips or sheet; by default the first with the suffix of OUT, clips without one."
        ),
    ] = None,
    ranks: Annotated[
        str | None, typer.Option(metavar="1,3-5", help="Only these, in this order; by default all.")
    ] = None,
    moments: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Moments of a .csv or .json instead, as written by this command."),
    ] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    title: Annotated[
        str | None, typer.Option(help="Name of the timeline or the sheet; by default that of the file.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            help="Frames a second of the timeline: 25, 23.976, 30000/1001; by default most videos'."
        ),
    ] = None,
    drop_frame: Annotated[
        bool | None,
        typer.Option(
            "--drop-frame/--non-drop-frame",
            help="Timecode at 29.97 and 59.94; by default as the videos' own start timecode counts.",
            show_default=False,
        ),
    ] = None,
    start_timecode: Annotated[
        str | None, typer.Option(metavar="HH:MM:SS:FF", help="Where the timeline begins; 01:00:00:00.")
    ] = None,
    mode: Annotated[
        _Mode | None,
        typer.Option(help="Clips cut to the frame, or copied from the key frame before; exact by default."),
    ] = None,
    titles: Annotated[
        bool | None, typer.Option("--titles", help="A card with the title before each moment of the film.")
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="WIDTHxHEIGHT", help="Of the film; by default the largest video's.")
    ] = None,
    columns: Annotated[int | None, typer.Option(min=1, help="Pictures in a row of the sheet.")] = None,
    json: JsonOption = False,
) -> None:
    """Moments of the last answer as a table, chapters, a cut for an editing program, clips, or one film.

    Example: `moviola search "a red door" && moviola export doors.edl --ranks 1,3-5`

    One film with titles: `moviola export doors.mp4 --titles`

    Moments that were edited by hand: `moviola export doors.csv`, then
    `moviola export doors.fcpxml --moments doors.csv`

    From Python: `moviola.export.write_moments`, of `moviola.search.last_answer.kept_answer`.
    """
    from moviola.export import format_of, named_format

    asked = {
        "title": title, "rate": rate, "drop_frame": drop_frame, "start_timecode": start_timecode,
        "mode": mode and mode.value, "titles": titles, "size": size, "columns": columns,
    }  # fmt: skip
    options = {name: value for name, value in asked.items() if value is not None}
    if format is None:
        format = format_of(out).name
    if "title" in named_format(format).options:
        options.setdefault("title", out.stem)
    chosen, paths = _of_file(moments, library) if moments else _of_last_answer(library)
    if ranks is not None:
        chosen = _ranked(chosen, ranks)
    written = write_out(chosen, paths, out, format, **options)
    if json:
        files = [str(path) for path in written.files]
        emit_json({"out": str(out), "format": format, "moments": len(chosen), "files": files,
                   "refused": written.refused})  # fmt: skip
    else:
        console.print(f"{out}: {len(chosen)} moments, {named_format(format).title}")
    if written.refused:
        leave_partial()


def write_out(
    moments: Sequence[Moment | Selection],
    paths: Mapping[str, str],
    out: Path,
    format: str | None = None,
    **options: Any,
) -> Written:
    """Write moments and say what was left out."""
    from moviola.export import write_moments

    written = write_moments(moments, paths, out, format, **options)
    for name, reason in written.refused.items():
        note(f"{name}: {reason}")
    return written


def _of_last_answer(library: Path) -> tuple[list[Selection], dict[str, str]]:
    from moviola.export import Selection
    from moviola.search.last_answer import kept_answer

    kept = kept_answer(library)
    return [Selection(moment) for moment in kept.moments], kept.paths


def _of_file(file: Path, library: Path) -> tuple[list[Selection], dict[str, str]]:
    """Moments of a file; paths that it does not name are the library's."""
    from moviola.export import read_moments
    from moviola.search import Library

    chosen, paths = read_moments(file)
    missing = {selection.moment.video_id for selection in chosen} - paths.keys()
    if missing:
        with Library(library, read_only=True) as lib:
            paths |= lib.paths_of(sorted(missing))[0]
    return chosen, paths


def _ranked(chosen: Sequence[Selection], ranks: str) -> list[Selection]:
    """Those with the ranks that ``1,3-5`` names, in that order."""
    known = {selection.moment.rank: selection for selection in chosen}
    picked = []
    for part in ranks.split(","):
        found = re.fullmatch(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if last < first:
            raise InvalidValue(f"ranks {ranks!r}: write single ranks and ranges, such as 1,3-5")
        for rank in range(first, last + 1):
            if rank not in known:
                raise InvalidValue(f"ranks {ranks!r}: there is no rank {rank} among {len(known)} moments")
            picked.append(known[rank])
    return picked
