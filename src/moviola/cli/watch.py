"""``moviola watch``: folders whose videos come into a library by themselves."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from moviola.cli.app import JsonOption, app, emit_json, note
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption, encoder_of_new
from moviola.cli.reports import print_report

if TYPE_CHECKING:
    from moviola.library import IngestReport

# Whoever works at the machine comes first.
_NICENESS = 10


@app.command()
def watch(
    folders: Annotated[list[Path], typer.Argument(help="Folders to watch.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    encoder: Annotated[
        str | None, typer.Option(help="Visual encoder of a new library, as of `moviola index`.")
    ] = None,
    hours: Annotated[
        str | None,
        typer.Option(metavar="FROM-TO", help="Work only then, such as 22:00-06:00; always by default."),
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Use at most so many cores.")] = None,
    poll: Annotated[
        float,
        typer.Option(help="Seconds between two looks where the file system tells nothing (SMB, NFS)."),
    ] = 10.0,
    force_polling: Annotated[
        bool, typer.Option("--force-polling", help="Poll whatever file system it is.")
    ] = False,
    settle: Annotated[float, typer.Option(help="Seconds that a file must have stayed the same.")] = 2.0,
    alert: Annotated[
        list[str] | None,
        typer.Option(help="Saved search that reports what is new; repeatable; all by default."),
    ] = None,
    alert_command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND", help="Run for each new finding, which is JSON on its standard input."
        ),
    ] = "",
    webhook: Annotated[
        str, typer.Option(metavar="URL", help="Address that each new finding is posted to, as JSON.")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Keep a library as some folders are: new, changed, moved and deleted files, until Ctrl-C.

    A file that is still being written waits. Deleted videos are taken out, and can be restored; those of a
    drive that is away stay, and so do many at once. With `--json` every run that did something is a document.

    Example: `moviola watch ~/Videos /media/camera --library films`

    At night, on half of a machine: `moviola watch /films --hours 22:00-06:00 --cores 4`

    With a word when a saved search finds something new:
    `moviola watch ~/Videos --alert "red doors" --alert-command "notify-send found"`

    From Python: `moviola.library.watching.Watcher`, `moviola.search.alerts.Alerts`.
    """
    import shlex
    from dataclasses import asdict

    from moviola.library.watching import Hours, Watcher, WatchOptions
    from moviola.threads import limit_threads

    options = WatchOptions(
        poll=poll, force_polling=force_polling, settle=settle, hours=Hours.parse(hours) if hours else None
    )
    if cores is not None:
        limit_threads(cores)
    os.nice(_NICENESS)
    from moviola.search import Library
    from moviola.search.alerts import AlertOptions, Alerts

    told_of = AlertOptions(tuple(alert or ()), tuple(shlex.split(alert_command)), webhook)
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with Library(library, encoder=encoder or encoder_of_new(library)) as lib:
        alerts = Alerts(lib, told_of, stop)
        alerts.check()

        def told(report: IngestReport) -> None:
            if json:
                emit_json(asdict(report))
            else:
                print_report(report, library, len(lib))
            sys.stdout.flush()
            alerts.check()

        note(f"{library}: watching {', '.join(map(str, folders))}; Ctrl-C ends it")
        Watcher(lib.index, library, folders, options, told, note, stop).run()
