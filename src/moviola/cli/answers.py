"""``moviola open`` and ``moviola cut``: a moment of the last answer, by its rank."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption

RankArgument = Annotated[int, typer.Argument(min=1, help="Rank of a moment in the last answer.")]


@app.command("open")
def open_(
    rank: RankArgument,
    library: LibraryOption = DEFAULT_LIBRARY,
    player: Annotated[
        str | None,
        typer.Option(
            envvar="MOVIOLA_PLAYER",
            help="mpv, vlc, ffplay, or a command with {path} and {start} in it; by default the first of "
            "these that is installed, else what the system opens videos with (from the beginning).",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show a moment of the last answer in a player.

    The last answer lies in the library's cache folder, or in the user's where that cannot be written.

    Example: `moviola search "a red door" && moviola open 2 --player mpv`

    From Python: `moviola.export.player_command` and `play`, of `moviola.search.last_answer.kept_moment`.
    """
    from moviola.export import play, player_command
    from moviola.search.last_answer import kept_moment
    from moviola.types import clock

    moment, path = kept_moment(library, rank)
    command = player_command(path, moment.span, player)
    play(command)
    if json:
        emit_json({"rank": rank, "video_id": moment.video_id, "path": str(path), "command": command})
    else:
        console.print(f"{path} from {clock(moment.start)} to {clock(moment.end)}, in {Path(command[0]).name}")


@app.command()
def cut(
    rank: RankArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The MP4; by default named by its place.")
    ] = None,
    track: Annotated[
        str | None,
        typer.Option(
            help="Sound track: a number, or a language such as de; by default the one that players choose.",
            show_default=False,
        ),
    ] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Cut a moment of the last answer into an MP4, exact to the frame.

    Example: `moviola cut 2 --out door.mp4`

    With its German sound: `moviola cut 2 --track de`

    From Python: `moviola.export.export_clip`, of `moviola.search.last_answer.kept_moment`.
    """
    from moviola.export import clip_name, export_clip
    from moviola.search.last_answer import kept_moment

    moment, path = kept_moment(library, rank)
    target = out or Path(clip_name(moment))
    export_clip(moment, path, target, track=track)
    if json:
        emit_json({"rank": rank, "video_id": moment.video_id, "path": str(path), "out": str(target)})
    else:
        console.print(str(target))
