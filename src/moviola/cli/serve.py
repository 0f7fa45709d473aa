"""``moviola serve``: a library over HTTP, with a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json
from moviola.cli.library import DEFAULT_LIBRARY


@app.command()
def serve(
    library: Annotated[
        Path, typer.Argument(help="The library folder.", envvar="MOVIOLA_LIBRARY")
    ] = DEFAULT_LIBRARY,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    token: Annotated[
        str, typer.Option(envvar="MOVIOLA_TOKEN", help="What clients have to show.", show_default=False)
    ] = "",
    allow_ingest: Annotated[
        list[Path] | None,
        typer.Option(help="Folder below which videos may be brought into the library; repeatable."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Name under which the server may be addressed, besides localhost; repeatable."),
    ] = None,
    watch: Annotated[
        list[Path] | None,
        typer.Option(help="Keep the library as this folder is, as `moviola watch` does; repeatable."),
    ] = None,
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
    judge: Annotated[
        Path | None, typer.Option(help="A task of `moviola judge new`, to be judged in the page.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Serve a library: a page to search, watch and collect in, and an HTTP API.

    The address is printed when requests are taken; Ctrl-C ends the server.

    Example: `moviola serve films`

    For others on the network: `moviola serve films --host 0.0.0.0 --token "a long secret"`

    With what is put in a folder: `moviola serve films --watch ~/Videos`

    For raters: `moviola serve films --judge task.sqlite`, and open /judge

    From Python: `moviola.server.serve`, and `create_app` for a server of your own.
    """
    import shlex

    from moviola.search.alerts import AlertOptions
    from moviola.server import Options
    from moviola.server import serve as run

    options = Options(
        host=host, port=port, token=token, allow_ingest=tuple(allow_ingest or ()),
        allow_hosts=tuple(allow_host or ()), watch=tuple(watch or ()), judge=judge,
        alerts=AlertOptions(tuple(alert or ()), tuple(shlex.split(alert_command)), webhook),
    )  # fmt: skip

    def started(address: str) -> None:
        if json:
            emit_json({"url": address, "library": str(library)})
        else:
            console.print(f"{library}: {address}\nCtrl-C ends the server.")

    run(library, options, started=started)
