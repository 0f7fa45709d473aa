"""``moviola transcript``: what is said or written in a video, printed or as a subtitle file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption


class _Wanted(StrEnum):
    SAID = "said"
    SUBTITLES = "subtitles"
    SPEECH = "speech"
    TEXT = "text"


@app.command()
def transcript(
    video: Annotated[str, typer.Argument(help="The video's id, as `moviola list` prints it.")],
    of: Annotated[
        _Wanted, typer.Option(help="What: subtitles and recognised speech, one of them, or text in pictures.")
    ] = _Wanted.SAID,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A subtitle file: .srt, .vtt or .ass.")
    ] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """What is said or written in a video, as the library knows it.

    Example: `moviola transcript interview --out interview.srt`

    From Python: `moviola.library.Catalogue.cues` and `moviola.media.write_subtitles`.
    """
    from dataclasses import asdict

    from moviola.media import write_subtitles
    from moviola.search import KINDS, Library
    from moviola.types import clock

    with Library(library, read_only=True) as lib:
        row = lib.catalogue.video(video).row
        cues = [cue for cue in lib.catalogue.cues(row) if cue.kind in KINDS[of.value]]
    cues.sort(key=lambda cue: (cue.start, cue.end))
    if out is not None:
        write_subtitles(out, cues)
    if json:
        emit_json([asdict(cue) for cue in cues])
    elif out is not None:
        console.print(f"{out}: {len(cues)} cues")
    for cue in cues if out is None and not json else ():
        console.print(f"{clock(cue.start)} – {clock(cue.end)}  {cue.text.replace(chr(10), ' / ')}")
