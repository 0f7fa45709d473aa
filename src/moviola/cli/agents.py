"""``moviola mcp``: a library as tools for agents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from moviola.cli.app import app, emit_json
from moviola.cli.looking import looker_of, looker_options
from moviola.cli.options import DEFAULT_LIBRARIES, LibrariesOption, reading_all, with_options
from moviola.errors import MissingDependency


@app.command()
@with_options("looking", looker_options)
def mcp(
    *,
    library: LibrariesOption = DEFAULT_LIBRARIES,
    looking: dict[str, Any],
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
    """Serve a library, or several as one, to agents: search moments, look at them, list videos, cut clips.

    Speaks the Model Context Protocol on standard input and output; an agent's program starts this command.

    Example: `moviola mcp --library films --clips clips`

    Several as one: `moviola mcp --library 2024 --library 2025`

    The entry for its configuration: `moviola mcp --library films --json`; with --http that of a server at the
    port, which you start yourself by the same command without --json.

    From Python: `moviola.mcp.library_server` and `serve_stdio`.
    """
    try:
        from moviola.mcp import library_server, serve_http, serve_stdio
    except ModuleNotFoundError as error:
        raise MissingDependency(f"{error.name} is not installed", "mcp") from error

    with reading_all(library) as lib:
        if json and http is not None:  # where a client finds the server
            emit_json({"mcpServers": {"moviola": {"type": "http", "url": f"http://127.0.0.1:{http}/mcp"}}})
            return
        if json:  # how a client starts this server
            options = ["--clips", str(clips.resolve())] if clips else []
            for name, value in looking.items():
                options += [f"--{name.replace('_', '-')}", str(value)]
            named = [word for one in library for word in ("--library", str(one.resolve()))]
            args = ["-m", "moviola", "mcp", *named, *options]
            emit_json({"mcpServers": {"moviola": {"command": sys.executable, "args": args}}})
            return
        lib.checker = looker_of(lib.store, **looking)
        server = library_server(lib, clips=clips)
        if http is not None:
            serve_http(server, http)
        else:
            serve_stdio(server)
