"""Speech and text of a video, printed by language or written as subtitles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from moviola.cli.app import JsonOption, app, note, show
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption, reading
from moviola.errors import InvalidValue, NotFound, counted
from moviola.types import Cue, clock
from moviola.words import language_title, same_language

__all__ = ["VideoArgument", "tracks_of"]

VideoArgument = Annotated[str, Argument(help="The video's id, as `moviola list` prints it.")]


@app.command()
def transcript(
    video: VideoArgument,
    kind: Annotated[
        Literal["said", "subtitles", "speech", "text", "chapters"],
        Option(
            help="said (subtitles and recognised speech), one of these two, text in pictures, or chapters."
        ),
    ] = "said",
    out: Annotated[Path | None, Option("--out", "-o", help="Subtitle file: .srt, .vtt or .ass.")] = None,
    language: Annotated[str | None, Option(help="Lines in this language alone: de, or German.")] = None,
    track: Annotated[
        str | None,
        Option(help="Lines of a further track alone, as it is called behind its language: commentary, or 2."),
    ] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Print what is said or written in a video, one language after the other, or write one as a subtitle
    file.

    Example: `moviola transcript interview --language de --out interview.srt`

    From Python: `moviola.library.Catalogue.cues` and `moviola.media.write_subtitles`.
    """
    from moviola.search import KINDS, Filter

    with reading(library) as lib:
        if out is not None:
            lib.store.require_outside(out)
        row = lib.catalogue.video(video)
        cues = [cue for cue in lib.catalogue.cues(row.row) if cue.kind in KINDS[kind]]
        file = lib.store.file_of(row.video_id)
    if language is not None:
        wanted = Filter.parse(language=language).languages
        cues = [cue for cue in cues if any(same_language(cue.language, one) for one in wanted)]
        if out is not None:  # one alone is written
            cues = [cue for cue in cues if cue.language in wanted] or cues
    further = sorted({cue.further_track for cue in cues} - {""})
    if track is not None or (out is not None and further):
        cues = [cue for cue in cues if cue.further_track.casefold() == (track or "").casefold()]
    tracks = tracks_of(cues)
    if not cues:
        of_language = f" in {language}" if language else ""
        of_language += f" of a track {track!r}; further ones are {further}" if track else ""
        none = f"{video}: no cues of the kind {kind!r}{of_language}; `moviola show` counts those of each kind"
        if out is not None:
            raise NotFound(f"{none}. {out} was not written")
        note(none)
    if out is not None:
        _write_one_language(cues, out, video, file)
        if further and track is None:
            note(f"{video}: without the lines of {', '.join(further)}, which --track chooses")
    lines: list[str] = []
    for title, own in tracks.items():
        lines += [f"{title}:"] if len(tracks) > 1 else []
        lines += [f"{clock(cue.start)} – {clock(cue.end)}  " + cue.text.replace("\n", " / ") for cue in own]
    ordered = [cue for own in tracks.values() for cue in own]
    show(json, ordered, *([f"{out}: {counted(len(cues), 'cue')}"] if out else lines))


def _write_one_language(cues: Sequence[Cue], out: Path, video: str, file: Path | None) -> None:
    """Write the cues of a video as subtitles; ``file`` is that of the video, if it is there."""
    from moviola.media import lead_of, write_subtitles
    from moviola.search.forms import UNKNOWN_LANGUAGE

    languages = sorted({cue.language for cue in cues})
    if len(languages) > 1:
        named = ", ".join(f"{language_title(one)} ({one or UNKNOWN_LANGUAGE})" for one in languages)
        raise InvalidValue(f"{video}: lines in {named}; choose one with --language. {out} was not written")
    lead = lead_of(file) if file else 0.0  # players count from the file's beginning
    ordered = sorted(cues, key=lambda cue: (cue.start, cue.end))
    write_subtitles(out, [replace(cue, start=cue.start + lead, end=cue.end + lead) for cue in ordered])


def tracks_of(cues: Sequence[Cue]) -> dict[str, list[Cue]]:
    """Cues in order of time by kind, language and form, in words; those first that are most."""
    tracks: dict[str, list[Cue]] = {}
    for cue in sorted(cues, key=lambda cue: (cue.start, cue.end)):
        title = ", ".join(filter(None, (cue.kind, language_title(cue.language), cue.form)))
        tracks.setdefault(title, []).append(cue)
    return dict(sorted(tracks.items(), key=lambda track: -len(track[1])))
