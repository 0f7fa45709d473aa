"""Commands on what a library holds: index, list, show, remove, verify, library use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    show_table,
)
from moviola.cli.reports import IndexProgress, listed, print_report, print_trials
from moviola.errors import MissingDependency, MissingModel

if TYPE_CHECKING:
    from moviola.library import Reading
    from moviola.search import Library

LibraryOption = Annotated[
    Path, typer.Option("--library", "-l", envvar="MOVIOLA_LIBRARY", help="The library folder.")
]
DEFAULT_LIBRARY = Path("moviola-library")

settings_group = typer.Typer(
    name="library",
    help="What a library works with.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(settings_group)


@app.command("index")
def index_(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(help="Video files and folders (searched recursively).", show_default=False),
    ] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Visual encoder of a new library: one of `moviola models list`, a hub id, a folder, none; "
            "by default the best on this machine."
        ),
    ] = None,
    sentences: Annotated[
        str | None,
        typer.Option(help="Sentence encoder for subtitles: minilm, a hub id, a folder, or none."),
    ] = None,
    segment_seconds: Annotated[
        float | None, typer.Option(help="Length of the segments of a new library (4 by default).")
    ] = None,
    frame_rate: Annotated[
        float | None, typer.Option(help="Frames a second that a new library encodes (1 by default).")
    ] = None,
    prune: Annotated[
        bool,
        typer.Option(
            help="Take out videos whose file is gone from these folders, or left out now; never what lies "
            "on a drive that is away."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before pruning takes more than a tenth.")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="What to leave out, as in .gitignore; repeatable; kept for these folders until it is given "
            "again, '' for nothing. A file .moviolaignore in a folder says the same.",
            show_default=False,
        ),
    ] = None,
    default_excludes: Annotated[
        bool | None,
        typer.Option(
            "--default-excludes/--no-default-excludes",
            help="Leave out hidden files, previews, trash, and folders with .nomedia (`moviola doctor` lists "
            "them); kept likewise.",
            show_default=False,
        ),
    ] = None,
    ocr: Annotated[
        bool | None,
        typer.Option(
            "--ocr/--no-ocr",
            help="Read text in pictures; by default in all but small ones.",
            show_default=False,
        ),
    ] = None,
    speech: Annotated[
        str | None,
        typer.Option(
            help="Who writes down what is said in videos without subtitles: pocketsphinx (English, offline), "
            "a Whisper model such as Systran/faster-whisper-small, a folder; by default nobody."
        ),
    ] = None,
    speech_track: Annotated[
        str | None, typer.Option(help="Sound track listened to: a number, a language such as de, or all.")
    ] = None,
    speech_language: Annotated[
        str | None, typer.Option(help="Language that is spoken, such as de; else the reader finds out.")
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            help="Who encodes and reads: so many processes of this machine, or those of a Ray cluster, "
            "ray://HOST:PORT; by default this one alone.",
            show_default=False,
        ),
    ] = None,
    every_frame: Annotated[
        bool,
        typer.Option("--every-frame", help="Encode all frames, those too that look as one before."),
    ] = False,
    stills: Annotated[
        bool,
        typer.Option(
            "--stills/--no-stills",
            help="Keep a small still of each segment, some 1.4 kB, for when a drive is away.",
        ),
    ] = True,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
    precision: Annotated[str, typer.Option(help="fp32, fp16, bf16 or auto.")] = "auto",
    index_type: Annotated[
        str | None,
        typer.Option(
            "--index",
            help="How nearest segments are found: flat, ivf, ivfpq, reranked; auto goes by their number; "
            "milvus://HOST:PORT/COLLECTION on a server.",
        ),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Measure how far searches must look, and look as far from now on.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Bring videos into a library; what has not changed is passed over, interrupted work goes on.

    Pictures come first, then the text in them, then speech: each a step that can be made up for later.

    Example: `moviola index ~/Videos`

    With speech: `moviola index ~/Videos --speech pocketsphinx`

    On the machines of a Ray cluster: `moviola index /films --workers ray://head:10001`

    A library of many thousand hours, measured: `moviola index --tune`

    From Python: `moviola.Library.index`, `use_index` and `tune_index`.
    """
    from dataclasses import asdict

    from moviola.library import IngestReport
    from moviola.search import Library

    with Library(
        library,
        encoder=encoder or (encoder_of_new(library) if sources else None),
        sentence_encoder=sentences,
        segment_seconds=segment_seconds,
        frame_rate=frame_rate,
        device=device,
        precision=precision,
    ) as lib:
        if index_type is not None:
            lib.use_index(index_type)
        if sources or not (tune or index_type):
            with IndexProgress() as progress:
                report = lib.index(
                    *(sources or ()), prune=prune, confirm=_confirm(progress, yes),
                    exclude=None if exclude is None else [one for one in exclude if one],
                    default_excludes=default_excludes, ocr=ocr, speech=speech, speech_track=speech_track,
                    speech_language=speech_language, every_frame=every_frame, stills=stills,
                    workers=workers, progress=progress,
                )  # fmt: skip
        else:
            report = IngestReport()
        trials = lib.tune_index() if tune else []
        count = len(lib)
    if json:
        emit_json(asdict(report) | ({"trials": [asdict(trial) for trial in trials]} if tune else {}))
    else:
        print_report(report, library, count)
        print_trials(trials)
    if (
        report.refused or report.partial or report.subtitle_problems or report.reading_problems
        or report.offline or report.not_pruned
    ):  # fmt: skip
        leave_partial()


def _confirm(progress: IndexProgress, yes: bool) -> Callable[[Sequence[str], int], bool]:
    """Asks a person at a terminal whether so much may be pruned; nobody is asked elsewhere."""

    def confirm(videos: Sequence[str], total: int) -> bool:
        if yes or not sys.stdin.isatty():
            return yes
        with progress.paused():
            return typer.confirm(f"Take {len(videos)} of {total} videos out of the library?", err=True)

    return confirm


def encoder_of_new(library: Path) -> str | None:
    """The best encoder for a library that is not there yet, said aloud; None for one that has its own."""
    from moviola.encoders import best_encoder
    from moviola.library.disk.settings import SETTINGS_FILE

    if (library / SETTINGS_FILE).is_file():
        return None
    best = best_encoder()
    note(f"Encoder: {best.name}." + (f" A better one: {best.better}." if best.better else ""))
    return best.name


@app.command("list")
def list_(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """The videos of a library, refused ones with the reason.

    Example: `moviola list --library films`

    From Python: `moviola.library.Catalogue.videos`, of `moviola.Library.catalogue`.
    """
    from moviola.search import Library
    from moviola.types import clock

    with Library(library, read_only=True) as lib:
        videos = lib.catalogue.videos()
        away = lib.paths_of(video.video_id for video in videos)[1]
    if json:
        fields = ("video_id", "duration", "state", "error", "path")
        emit_json([
            {**{field: getattr(video, field) for field in fields}, "away": video.video_id in away}
            for video in videos
        ])  # fmt: skip
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("video", "duration", "state"):
        table.add_column(column, overflow="fold")
    show_table(
        table,
        (
            (
                in_one_line(v.video_id),
                clock(v.duration),
                (f"{v.state}: {v.error}" if v.error else v.state) + (", away" if v.video_id in away else ""),
            )
            for v in videos
        ),
    )


@app.command()
def show(
    video: Annotated[str, typer.Argument(help="The video's id, as `moviola list` prints it.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """What the library knows of one video, and where its shots begin.

    Example: `moviola show holiday/beach`

    From Python: `moviola.library.Catalogue.video`, of `moviola.Library.catalogue`.
    """
    from moviola.library import taken_of
    from moviola.search import Library
    from moviola.types import CUE_KINDS, clock

    with Library(library, read_only=True) as lib:
        row = lib.catalogue.video(video)
        cues, shots = lib.catalogue.cues(row.row), lib.catalogue.shots(row.row)
        readings = lib.catalogue.readings(row.row)
        capture = lib.catalogue.capture(row.row)
        taken = taken_of(row, capture)
        about: dict[str, object] = {
            "video_id": row.video_id,
            "path": row.path,
            "copies": [copy.path for copy in lib.catalogue.copies_of(row.row)],
            "away": lib.file_of(video) is None,
            "taken": str(taken),
            "taken_from": taken.source,
            "taken_zone": taken.zone,
            "latitude": capture.latitude,
            "longitude": capture.longitude,
            "camera": f"{capture.make} {capture.model}".strip(),
            "state": row.state,
            "error": row.error,
            "duration": row.duration,
            "width": row.width,
            "height": row.height,
            "codec": row.codec,
            "size": row.size,
            "frames": row.frames.count if row.frames else 0,
            "repeats": lib.catalogue.repeats(row.row),
            "cues": len(cues),
            "kinds": {kind: sum(cue.kind == kind for cue in cues) for kind in CUE_KINDS},
            "readers": {kind: _reader(reading) for kind, reading in readings.items()},
            "shots": [
                {"start": shot.start, "end": end, "opening": shot.opening}
                for shot, end in zip(shots, [*(shot.start for shot in shots[1:]), row.duration], strict=False)
            ],
        }
    if json:
        emit_json(about)
        return
    about |= {"duration": clock(row.duration), "shots": len(shots) or "not looked for"}
    about |= {key: listed(about[key]) for key in ("kinds", "readers")}
    for key, value in about.items():
        console.print(f"{key:>10}  {value}")
    for number, shot in enumerate(shots, start=1):
        console.print(f"{number:>10}  {clock(shot.start)}  {shot.opening}")


def _reader(reading: Reading) -> str:
    heard = f", heard {reading.language}" if reading.language else ""
    return f"{reading.reader} {reading.revision}{heard}"


@app.command()
def remove(
    videos: Annotated[list[str], typer.Argument(help="Ids, as `moviola list` prints them.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Take videos out of a library. The files themselves are not touched.

    Example: `moviola remove holiday/beach holiday/harbour`

    From Python: `moviola.Library.remove`.
    """
    from moviola.search import Library

    with Library(library) as lib:
        removed = lib.remove(videos)
    if json:
        emit_json({"removed": removed})
    else:
        console.print(f"{library}: {len(removed)} removed")


@app.command()
def verify(
    library: LibraryOption = DEFAULT_LIBRARY,
    repair: Annotated[
        bool, typer.Option(help="Put right what can be: damaged videos are taken out.")
    ] = False,
    compact: Annotated[bool, typer.Option(help="Give back the space of removed videos.")] = False,
    json: JsonOption = False,
) -> None:
    """Check every stored byte, the indexes and the source files. Exit code 3 when something is wrong.

    Example: `moviola verify --repair`

    From Python: `moviola.library.verify`, `repair` and `compact`.
    """
    from dataclasses import asdict

    from moviola.search import Library

    with Library(library, read_only=not (repair or compact)) as lib:
        repaired = lib.repair() if repair else []
        freed = lib.compact() if compact else 0
        problems = lib.verify()
    if json:
        emit_json({
            "problems": [asdict(problem) for problem in problems],
            "repaired": [asdict(problem) for problem in repaired],
            "freed_bytes": freed,
        })  # fmt: skip
    else:
        for problem in repaired:
            console.print(f"repaired: {in_one_line(problem.video_id) or library}: {problem.message}")
        for problem in problems:
            console.print(f"{in_one_line(problem.video_id) or library}: {problem.message}")
        if compact:
            console.print(f"{freed / 2**20:.1f} MiB given back")
        if not problems:
            console.print(f"{library}: sound")
    if problems:
        leave_partial()


@settings_group.command()
def info(
    library: Annotated[Path, typer.Argument(help="The library folder.")],
    json: JsonOption = False,
) -> None:
    """What a library was built with, what it holds, and how pictures are compared in it.

    Example: `moviola library info films`

    From Python: `moviola.search.Library`, whose attributes say the same.
    """
    from moviola.search import Library

    with Library(library, read_only=True) as lib:
        about: dict[str, object] = {
            **lib.settings.model_dump(),
            "index": lib.settings.shown_index,
            "videos": len(lib),
            "frames": sum(video.frames.count for video in lib.catalogue.videos() if video.frames),
            "repeats": lib.catalogue.repeats(),
            "cues": lib.catalogue.cue_counts(),
            "likeness": _likeness(lib),
        }
    if json:
        emit_json(about)
        return
    about["cues"] = listed(about["cues"])
    for key, value in about.items():
        console.print(f"{key:>17}  {'none' if value == '' else value}")


def _likeness(library: Library) -> str:
    """By which features `--like` and `--image` compare pictures, and how to have better ones."""
    from moviola.encoders import picture_dim

    if library.settings.picture_dim:
        return f"by features of pictures, {library.settings.picture_dim} numbers per frame"
    with suppress(MissingModel, MissingDependency):
        if library.encoder is not None and picture_dim(library.encoder):
            return (
                "by the features that texts are compared with: the library was built before there were "
                "others; index the videos into a new one to have them"
            )
    return "by the features that texts are compared with"


@settings_group.command()
def use(
    library: Annotated[Path, typer.Argument(help="The library folder.")],
    stage1: Annotated[
        str | None,
        typer.Option(help="Folder of a trained spr-stage1 model, demo, or none for the mean of the frames."),
    ] = None,
    refiner: Annotated[
        str | None,
        typer.Option(help="Folder of a trained reel, spr-clip or reloclnet model, demo, or none."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Take a model that does not say what it was trained on.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Search with trained models from now on; they are copied into the library. `none` goes back.

    `demo` is what moviola carries for libraries of the encoder demo (a folder of that name: `./demo`).
    Without an option it only says what is in use.

    Example: `moviola library use films --stage1 models/stage1 --refiner models/reel`

    Example: `moviola library use demo-library --stage1 demo --refiner demo`

    From Python: `moviola.Library.use`.
    """
    from moviola.search import Library

    with Library(library, read_only=stage1 is None and refiner is None) as lib:
        if not lib.read_only:
            lib.use(stage1=stage1, refiner=refiner, force=force)
        models = lib.models_in_use()
    if json:
        emit_json(models)
        return
    for role, model in models.items():
        about = f"{model['name']} (revision {model['revision']})" if model else "none"
        console.print(f"{role:>7}  {about}")
