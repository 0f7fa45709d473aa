"""``moviola serve`` and ``moviola mcp``: a library over HTTP, with a page, and as tools for agents."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Any

from typer import BadParameter, Option

from moviola.cli.app import JsonOption, app, emit_json, show
from moviola.cli.config import usual_device
from moviola.cli.options import (
    DEFAULT_LIBRARY,
    LibraryOption,
    alert_options,
    reading,
    reading_options,
    with_options,
)
from moviola.errors import MissingDependency


@app.command()
@with_options("reading", reading_options)
@with_options("alerts", alert_options)
def serve(
    *,
    library: LibraryOption = DEFAULT_LIBRARY,
    host: Annotated[
        str, Option(help="Address to listen on; other than local ones need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    token: Annotated[
        str,
        Option(envvar="MOVIOLA_TOKEN", help="Secret for clients that read and change.", show_default=False),
    ] = "",
    read_token: Annotated[
        str,
        Option(envvar="MOVIOLA_READ_TOKEN", help="Secret for clients that only read.", show_default=False),
    ] = "",
    allow_ingest: Annotated[
        list[Path] | None, Option(help="Folder that the page may index; repeatable.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, Option(help="Further host name of the server; repeatable.")
    ] = None,
    watch: Annotated[
        list[Path] | None,
        Option(help="Folder to keep the library in step with, as `moviola watch` does; repeatable."),
    ] = None,
    reading: dict[str, Any],
    alerts: dict[str, Any],
    judge: Annotated[Path | None, Option(help="Task of `moviola judge new`, for raters at /judge.")] = None,
    dres: Annotated[str, Option(help="Address of a DRES evaluation server to submit moments to.")] = "",
    dres_user: Annotated[
        str, Option(help="Account there; its password stands in MOVIOLA_DRES_PASSWORD.", show_default=False)
    ] = "",
    dres_evaluation: Annotated[
        str, Option(help="Name or id of the evaluation; by default the only active one.", show_default=False)
    ] = "",
    open_page: Annotated[bool, Option("--open", help="Open the page in a browser of this machine.")] = False,
    json: JsonOption = False,
) -> None:
    """Serve a library: a page to search, watch and collect in, and an HTTP API.

    The address is printed as soon as the server answers; Ctrl-C ends it.

    Example: `moviola serve --library films`

    For others on the network: `moviola serve --host 0.0.0.0 --token a-long-secret`

    For others who only look: `moviola serve --host 0.0.0.0 --token a-long-secret --read-token another`

    With a watched folder: `moviola serve --watch ~/Videos`

    For raters: `moviola serve --judge task.sqlite`, and open /judge

    In an evaluation: `MOVIOLA_DRES_PASSWORD=… moviola serve --dres https://dres.example.org --dres-user team`

    From Python: `moviola.server.serve`, and `create_app` for a server of your own.
    """
    from moviola.server import Options
    from moviola.server import serve as run
    from moviola.server.dres import PASSWORD

    reports = alert_options(**alerts)
    if reports and not watch:
        raise BadParameter("--alert-command and --webhook report what comes in by --watch; give that too")
    if (dres_user or dres_evaluation) and not dres:
        raise BadParameter("--dres-user and --dres-evaluation: name the server, too, with --dres")
    options = Options(
        host=host, port=port, token=token, read_token=read_token, allow_ingest=tuple(allow_ingest or ()),
        allow_hosts=tuple(allow_host or ()), watch=tuple(watch or ()), judge=judge,
        reading=reading, alerts=reports, device=usual_device(),
        dres=(dres, dres_user, os.environ.get(PASSWORD, ""), dres_evaluation) if dres else None,
    )  # fmt: skip

    def started(address: str) -> None:
        about = {"url": address, "library": str(library)}
        show(json, about, f"{library}: {address}", "Ctrl-C ends the server.")
        if open_page:
            # A browser that stays in the foreground must not hold the server up.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    run(library, options, started=started)


@app.command()
def mcp(
    library: LibraryOption = DEFAULT_LIBRARY,
    clips: Annotated[Path | None, Option(help="Folder for clips that agents cut; by default none.")] = None,
    http: Annotated[
        int | None,
        Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve http://127.0.0.1:PORT/mcp instead of standard input.",
        ),
    ] = None,
    json: Annotated[bool, Option("--json", help="Print the entry for an agent's configuration.")] = False,
) -> None:
    """Serve a library to agents: search moments, look at them, list videos, cut clips.

    Speaks the Model Context Protocol on standard input and output; an agent's program starts this command.

    Example: `moviola mcp --library films --clips clips`

    The entry for its configuration: `moviola mcp --library films --json`; with --http that of a server at the
    port, which you start yourself by the same command without --json.

    From Python: `moviola.mcp.library_server` and `serve_stdio`.
    """
    try:
        from moviola.mcp import library_server, serve_http, serve_stdio
    except ModuleNotFoundError as error:
        raise MissingDependency(f"{error.name} is not installed; run: pip install 'moviola[mcp]'") from error

    with reading(library) as lib:
        if json and http is not None:  # where a client finds the server
            emit_json({"mcpServers": {"moviola": {"type": "http", "url": f"http://127.0.0.1:{http}/mcp"}}})
            return
        if json:  # how a client starts this server
            options = ["--clips", str(clips.resolve())] if clips else []
            args = ["-m", "moviola", "mcp", "--library", str(library.resolve()), *options]
            emit_json({"mcpServers": {"moviola": {"command": sys.executable, "args": args}}})
            return
        server = library_server(lib, clips=clips)
        if http is not None:
            serve_http(server, http)
        else:
            serve_stdio(server)
