"""Serving a library until somebody ends it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import uvicorn

from moviola.errors import InvalidValue
from moviola.server.app import create_app
from moviola.server.options import Options

__all__ = ["serve"]

# Seconds that streams may go on when the server is asked to end.
_PATIENCE = 3


def serve(
    library_folder: str | os.PathLike[str],
    options: Options | None = None,
    *,
    started: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve a library over HTTP until the process is interrupted.

    Args:
        library_folder: the library.
        options: where to listen, who may ask.
        started: called with the address for a browser when requests are taken.

    Raises:
        InvalidValue: nothing can listen there.
        NotFound, LibraryError: as of :func:`create_app`.
    """
    options = options or Options()
    app = create_app(library_folder, options)
    listening = _listen(options)
    port = listening.getsockname()[1]
    host = f"[{options.host}]" if ":" in options.host else options.host
    started(f"http://{host}:{port}/" + (f"?token={options.token}" if options.token else ""))
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=_PATIENCE,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])
    if any(pool.inside for pool in app.state.service.pools):
        os._exit(0)  # a video that is being converted would hold the process up for minutes


def _listen(options: Options) -> socket.socket:
    """A socket that listens; made here, so that port 0 can be named before the first request."""
    try:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((options.host, options.port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidValue(
            f"{options.host}:{options.port}: cannot listen there ({reason}); choose another --port or --host"
        ) from error
    listening.listen(256)
    return listening
