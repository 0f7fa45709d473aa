"""``moviola serve``: a library over HTTP, with a page."""

from __future__ import annotations

import threading
import webbrowser
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

from typer import BadParameter, Option

from moviola.cli.app import JsonOption, app, show
from moviola.cli.config import usual_device, usual_number, usual_reading
from moviola.cli.looking import endpoint_of, looker_options
from moviola.cli.options import DEFAULT_LIBRARIES, LibrariesOption, alert_options, with_options
from moviola.plugins import server_additions


@app.command()
@with_options("alerts", alert_options)
@with_options("looking", looker_options)
@with_options("added", *(one.options for one in server_additions().values()))
def serve(
    *,
    library: LibrariesOption = DEFAULT_LIBRARIES,
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
    root_path: Annotated[
        str, Option(help="Path below which a proxy has the server, as /films.", show_default=False)
    ] = "",
    watch: Annotated[
        list[Path] | None,
        Option(help="Folder to keep the library in step with, as `moviola watch` does; repeatable."),
    ] = None,
    alerts: dict[str, Any],
    looking: dict[str, Any],
    added: dict[str, Any],
    open_page: Annotated[bool, Option("--open", help="Open the page in a browser of this machine.")] = False,
    json: JsonOption = False,
) -> None:
    """Serve a library, or several as one: a page to search, watch and collect in, and an HTTP API.

    The address is printed as soon as the server answers; Ctrl-C ends it.

    Example: `moviola serve --library films`

    Several as one: `moviola serve --library 2024 --library 2025`

    For others on the network: `moviola serve --host 0.0.0.0 --token a-long-secret`

    For others who only look: `moviola serve --host 0.0.0.0 --token a-long-secret --read-token another`

    With a watched folder: `moviola serve --watch ~/Videos`

    Text, speech and sounds of videos that come in are read as `config.toml` or the environment says:
    `MOVIOLA_SPEECH=none moviola serve --watch ~/Videos`

    For raters: `moviola serve --judge task.sqlite`, and open /judge

    In an evaluation: `MOVIOLA_DRES_PASSWORD=… moviola serve --dres https://team@dres.example.org`

    Below a path of a proxy: `moviola serve --allow-host films.example.org --root-path /films`

    From Python: `moviola.server.serve`, and `create_app` for a server of your own.
    """
    from moviola.server import Options
    from moviola.server import serve as run

    reports = alert_options(**alerts)
    if reports and not watch:
        raise BadParameter("--alert-to reports what comes in by --watch; give that too")
    options = Options(
        host=host, port=port, token=token, read_token=read_token, allow_ingest=tuple(allow_ingest or ()),
        allow_hosts=tuple(allow_host or ()), root_path=root_path, watch=tuple(watch or ()),
        reading=usual_reading(), alerts=reports, looker=endpoint_of(**looking),
        looker_right=usual_number("looker_right"), device=usual_device(), additions=_wanted(added),
    )  # fmt: skip

    def started(address: str) -> None:
        served = [str(one) for one in library]
        about = {"url": address, "libraries": served}
        show(json, about, f"{', '.join(served)}: {address}", "Ctrl-C ends the server.")
        if open_page:
            # A browser that stays in the foreground must not hold the server up.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    run(library, options, started=started)


def _wanted(given: dict[str, Any]) -> dict[str, Any]:
    """Settings of the additions that are wanted, from the values of their options."""
    settings = {}
    for name, one in server_additions().items():
        own = {key: given[key] for key in signature(one.options).parameters if key in given}
        if (found := one.options(**own)) is not None:
            settings[name] = found
    return settings
