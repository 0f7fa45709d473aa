"""``moviola index`` and ``moviola watch``: videos into a library, once or whenever a folder changes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typer import Argument, Context, Option, confirm

from moviola.cli.app import JsonOption, app, console, emit_json, leave_partial, note, some
from moviola.cli.config import table_of, usual_device, usual_reading
from moviola.cli.options import (
    DEFAULT_LIBRARY,
    DeviceOption,
    EncoderOption,
    LibraryOption,
    alert_options,
    as_reading,
    encoder_for,
    file_options,
    for_new,
    is_library,
    reading_options,
    used,
    with_options,
)
from moviola.cli.progress import progress_bar, steps_on
from moviola.errors import NotFound, counted
from moviola.files.names import no_such
from moviola.files.presence import is_gone

if TYPE_CHECKING:
    from moviola.library import IngestReport


@app.command("index")
@with_options("reading", reading_options)
@with_options("files", file_options)
def index_(
    context: Context,
    sources: Annotated[list[Path], Argument(help="Video files and folders (searched recursively).")],
    *,
    library: LibraryOption = DEFAULT_LIBRARY,
    encoder: EncoderOption = None,
    sentence_encoder: Annotated[
        str | None,
        Option(
            envvar="MOVIOLA_SENTENCE_ENCODER",
            help="Sentence encoder of a new library, for subtitles: minilm, a hub id, a folder, or none.",
        ),
    ] = None,
    segment_seconds: Annotated[
        float | None, Option(help="Length of the segments of a new library; 4 s by default.")
    ] = None,
    frame_rate: Annotated[
        float | None, Option(help="Frames per second of a new library; 1 by default.")
    ] = None,
    prune: Annotated[
        bool,
        Option(
            "--prune",
            help="Remove videos from the library whose file was deleted from these folders, or is excluded "
            "now; never those of a drive that is away.",
        ),
    ] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Prune without a question.")] = False,
    exclude: Annotated[
        list[str] | None,
        Option(
            metavar="PATTERN",
            help="Files to leave out, as in .gitignore; repeatable; kept for these folders until given "
            "again, '' for none. A file .moviolaignore in a folder does the same.",
            show_default=False,
        ),
    ] = None,
    default_excludes: Annotated[
        bool | None,
        Option(
            "--default-excludes/--no-default-excludes",
            help="Leave out hidden files, previews, trash, and folders with .nomedia (`moviola doctor` lists "
            "them); kept for later runs, too.",
            show_default=False,
        ),
    ] = None,
    reading: dict[str, Any],
    files: dict[str, Any],
    speech_track: Annotated[
        str | None, Option(help="Sound track to recognise: a number, a language such as de, or all.")
    ] = None,
    workers: Annotated[
        str | None,
        Option(
            help="Number of processes on this machine, or a Ray cluster, ray://HOST:PORT; by default this "
            "process alone.",
            show_default=False,
        ),
    ] = None,
    device: DeviceOption = "auto",
    hwaccel: Annotated[
        str | None,
        Option(
            metavar="auto|none|NAME",
            help="Device that decodes films, where its pictures are those of software: a name of libav's, "
            "such as cuda, vaapi, videotoolbox; none by default.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Bring videos into a library; unchanged ones are skipped, interrupted work continues.

    Pictures come first, then sounds, text in pictures, and speech; a step that was left out can follow later.

    Example: `moviola index ~/Videos`

    Without speech, which takes longest: `moviola index ~/Videos --no-speech`

    On the machines of a Ray cluster: `moviola index /films --workers ray://head:10001`

    From Python: `moviola.library.Indexer.index`.
    """
    from moviola.library import change_begun
    from moviola.library.ingest.recognition import Readers
    from moviola.library.ingest.sounds import chosen_sound_reader
    from moviola.search import Library

    reading, tuned = as_reading(context, reading), table_of("index")
    if not is_library(library):
        _require_there(sources)
        # Nor may the name of a reader that is not there.
        unnamed = dict.fromkeys(("ocr", "ocr_reader", "speech"))
        named = unnamed | {name: value for name, value in reading.items() if name != "sounds"}
        Readers.require(**named, device=device, speech_track=speech_track)
        chosen_sound_reader(reading.get("sounds"))
    tuned["hwaccel"] = hwaccel or tuned.get("hwaccel", "none")
    with Library(
        library, encoder=encoder_for(context, library, encoder, sources, json=json),
        sentence_encoder=for_new(context, library, "sentence_encoder", sentence_encoder),
        segment_seconds=segment_seconds, frame_rate=frame_rate, device=device,
        precision=tuned.pop("precision", "auto"),
    ) as lib:  # fmt: skip
        used(lib, library)
        with progress_bar(
            BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
            remedy="finished videos are in the library, and the same command continues",
        ) as bar:  # fmt: skip
            report = lib.index(
                *sources, prune=prune, confirm=_confirm(bar, yes),
                exclude=None if exclude is None else [one for one in exclude if one],
                default_excludes=default_excludes, speech_track=speech_track, workers=workers,
                progress=steps_on(bar), **reading, **files, **tuned,
            )  # fmt: skip
        count, begun = len(lib), change_begun(lib.store)
    _print_report(report, library, count, json)
    if begun:
        note(begun.said)
    if any(_refusals(report).values()) or report.offline or report.not_pruned:
        leave_partial()


@app.command()
@with_options("files", file_options)
@with_options("alerts", alert_options)
def watch(
    context: Context,
    folders: Annotated[list[Path], Argument(help="Folders to watch.")],
    *,
    library: LibraryOption = DEFAULT_LIBRARY,
    encoder: EncoderOption = None,
    files: dict[str, Any],
    alerts: dict[str, Any],
    json: JsonOption = False,
) -> None:
    """Keep a library in step with folders: new, changed, moved and deleted files, until Ctrl-C.

    A file that is still being written waits. Deleted videos are removed, and can be restored; videos of a
    drive that is away stay, and so do many that are deleted at once.

    Example: `moviola watch ~/Videos /media/camera --library films`

    With a message for new findings of a saved search:
    `moviola watch ~/Videos --alert "red doors" --alert-to "notify-send found"`

    Text, speech and sounds are read as `config.toml` or the environment says. Only at night, and on some of
    the cores: `hours` and `cores` in the table `watch` of `config.toml`.

    From Python: `moviola.library.ingest.watching.Watcher`, `moviola.search.alerts.Alerts`.
    """
    from moviola.library.ingest.watching import (
        Hours,
        Watcher,
        WatchOptions,
        require_watchable,
        require_watchfiles,
    )
    from moviola.threads import limit_threads

    tuned = table_of("watch")
    hours, cores = tuned.pop("hours", None), tuned.pop("cores", None)
    options = WatchOptions(hours=Hours.parse(hours) if hours else None, **tuned)
    require_watchfiles()
    if not is_library(library):
        _require_there(folders)
    if cores is not None:
        limit_threads(cores)
    if hasattr(os, "nice"):  # not on Windows
        os.nice(10)  # interactive work on the machine comes first
    from moviola.search import Library
    from moviola.search.alerts import Alerts

    reports = alert_options(**alerts)
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    chosen = encoder_for(context, library, encoder, folders, json=json)
    with Library(library, encoder=chosen, device=usual_device()) as lib:
        require_watchable(lib.catalogue, folders)
        reporter = Alerts(lib, reports, stop)
        reporter.queue()

        def print_one(report: IngestReport) -> None:
            _print_report(report, library, len(lib), json)
            sys.stdout.flush()
            reporter.queue()

        note(f"{library}: watching {', '.join(map(str, folders))}; Ctrl-C ends it")
        with reporter:
            Watcher(
                partial(lib.index, **usual_reading(), **files),
                library,
                folders,
                options,
                print_one,
                note,
                stop,
            ).run()


def _require_there(sources: Sequence[Path]) -> None:
    """Refuse a mistyped source, which must not leave an empty library that would keep its encoder."""
    for source in sources:
        if is_gone(source) and not source.is_symlink():
            raise NotFound(no_such(source, "file or folder"))


def _confirm(bar: Progress, yes: bool) -> Callable[[Sequence[str], int], bool]:
    """Asks at a terminal whether to prune many videos; elsewhere the answer is ``yes``."""

    def ask(videos: Sequence[str], total: int) -> bool:
        if yes or not sys.stdin.isatty():
            return yes
        bar.stop()
        try:
            return confirm(f"Remove {len(videos)} of {counted(total, 'video')} from the library?", err=True)
        finally:
            bar.start()

    return ask


def _print_report(report: IngestReport, library: Path, count: int, json: bool) -> None:
    """What indexing did, in a library that now has ``count`` videos."""
    if json:
        emit_json(report)
        return
    copies = [path for paths in report.copies.values() for path in paths]
    done = {
        "added": report.added, "updated": report.updated, "moved": report.moved, "restored": report.restored,
        "further copy" if len(copies) == 1 else "further copies": copies, "removed": report.removed,
        "away": report.away, "unchanged": report.unchanged, "searched for shots": report.shots_found,
        "given a fingerprint": report.fingerprinted,
    }  # fmt: skip
    parts = [f"{len(ids)} {what}" for what, ids in done.items() if ids] or ["no videos to bring in"]
    console.print(f"{library}: {', '.join(parts)}; {counted(count, 'video')} can be searched")
    if report.repeats:
        frames = counted(report.frames, "frame")
        console.print(f"{report.repeats / report.frames:.0%} of {frames} repeat an earlier one")
    for kind, ids in report.read.items():
        if ids:
            console.print(f"{kind} read in {counted(len(ids), 'video')}")
    if report.heard:
        console.print(f"sounds read in {counted(len(report.heard), 'video')}")
    if report.decoding:
        note(f"decoded: {report.decoding}")
    for line in _problems(report):
        note(line.replace("\n", "\ufffd"))


def _refusals(report: IngestReport) -> dict[str, dict[str, str]]:
    """Reasons by video, by what was refused."""
    return {
        "refused": report.refused, "partial": report.partial, "subtitles": report.subtitle_problems,
        "not read": report.reading_problems,
    }  # fmt: skip


def _problems(report: IngestReport) -> Iterator[str]:
    """What was refused, left out or is not there."""
    for what, reasons in _refusals(report).items():
        for video_id, reason in reasons.items():
            # An unreadable file has no id but its path, with which the reason begins.
            yield f"{what}: {video_id}: {reason.removeprefix(f'{video_id}: ')}"
    for video_id, said in report.subtitle_notes.items():
        yield f"subtitles: {video_id}: {said}"
    for video_id, said in report.reading_notes.items():
        yield f"not read: {video_id}: {said}"
    yield from _not_used(report)
    for kind, remedy in report.not_read.items():
        yield f"{kind}: not read; {remedy}"
    if report.excluded:
        yield f"left out: {counted(len(report.excluded), 'path')} ({some(report.excluded)})"
    if report.waiting:
        yield f"still being written: {some(report.waiting)}; index again later"
    for folder, reason in report.offline.items():
        yield f"away: {folder}: {reason}; its videos stay. `moviola library move` gives them a new folder"
    gone = "it is gone, and all its files are elsewhere now"
    yield from (f"forgotten: {folder}: {gone}" for folder in report.forgotten)
    for video_id in report.missing:
        yield (
            f"missing: {video_id}: its file is not there any more; index its new place, or take it out "
            "of the library by --prune"
        )
    for video_id in report.left_out:
        yield f"left out: {video_id}: is in the library; --prune removes it"
    if report.not_pruned:
        yield f"not pruned: {report.not_pruned}; --yes removes them"
    if report.removed:
        yield f"removed: {some(report.removed)}; `moviola library restore` brings them back"


def _not_used(report: IngestReport) -> Iterator[str]:
    """Files, and parts of them, that nothing uses."""
    if report.unmatched:
        files = counted(len(report.unmatched), "file")
        yield f"subtitles: {files} of no video by the name, not read ({some(report.unmatched)})"
    if report.unused:
        parts = ", ".join(f"{kind} {count}" for kind, count in sorted(report.unused.items()))
        yield f"not used of files: {parts}; `moviola show` names what a file holds"
    for camera in report.unknown_cameras:
        yield f"camera {camera}: no video was taken with it yet; `moviola show` prints the camera of a video"
    if report.ignored:
        kinds = sorted({Path(path).suffix or "no suffix" for path in report.ignored})
        files = counted(len(report.ignored), "file")
        yield f"ignored: {files} without a suffix of videos ({', '.join(kinds)}); --suffix takes one as such"
