"""``moviola mcp``: a library as tools for agents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import app, emit_json
from moviola.errors import MissingDependency


@app.command()
def mcp(
    library: Annotated[Path, typer.Argument(help="The library folder.")],
    clips: Annotated[
        Path | None, typer.Option(help="Let agents cut clips into this folder, and nowhere else.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=1, max=65535, help="Serve http://127.0.0.1:PORT/mcp, not stdio."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Only print the entry for the configuration of an agent's program.")
    ] = False,
) -> None:
    """Serve a library to agents: find moments, look at them, list videos, cut clips.

    Speaks the Model Context Protocol on standard input and output; an agent's program starts it by itself.

    Example: `moviola mcp films --clips clips`

    The entry for its configuration: `moviola mcp films --json`

    From Python: `moviola.mcp.library_server` and `serve_stdio`.
    """
    from moviola.search import Library

    try:
        from moviola.mcp import library_server, serve_http, serve_stdio
    except ModuleNotFoundError as error:
        raise MissingDependency(f"{error.name} is not installed; run: pip install 'moviola[mcp]'") from error

    with Library(library, read_only=True, resident=True) as lib:
        if json:
            emit_json(_entry(library, clips))
            return
        server = library_server(lib, clips=clips)
        if http is not None:
            serve_http(server, http)
        else:
            serve_stdio(server)


def _entry(library: Path, clips: Path | None) -> dict[str, object]:
    """How a client starts this server, with paths that hold wherever it is started."""
    options = ["--clips", str(clips.resolve())] if clips else []
    arguments = ["-m", "moviola", "mcp", str(library.resolve()), *options]
    return {"mcpServers": {"moviola": {"command": sys.executable, "args": arguments}}}
