"""The server process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from urllib.parse import quote

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from moviola.errors import InvalidValue
from moviola.server.app import create_app
from moviola.server.options import Options

__all__ = ["serve"]

_PATIENCE = 3  # seconds that streams may continue after the server begins to end
HEAD_SECONDS = 20.0  # that the head of a request may take
BODY_SECONDS, BODY_BYTES = 20.0, 1 << 14  # for each such piece of a body: slower clients are cut off
CONNECTIONS = 1000  # that are open at once; further ones are closed unheard


class Impatient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """Closes connections that do not say what they want; uvicorn waits for the rest of a request for ever."""

    _waiting: asyncio.TimerHandle | None = None
    _arrived = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Wait for the first head."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.close()
        else:
            self._wait(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Stop waiting where a request is whole, wait for its rest or for the next one where it is not."""
        was_answering = self._is_answering
        super().data_received(data)
        if not self._is_answering:
            if was_answering or self._waiting is None:
                self._wait(HEAD_SECONDS)
        elif not self.cycle.more_body:
            self._stop()
        else:
            self._arrived += len(data)
            if not was_answering or self._arrived >= BODY_BYTES:
                self._wait(BODY_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self, seconds: float) -> None:
        self._stop()
        self._waiting = self.loop.call_later(seconds, self._lose_patience)

    def _lose_patience(self) -> None:
        if self.flow.read_paused and self._is_answering:  # we are the slow ones: the body waits to be read
            self._wait(BODY_SECONDS)
        else:
            self.transport.close()

    def _stop(self) -> None:
        self._arrived = 0
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def serve(
    library_folder: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    options: Options | None = None,
    *,
    started: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve a library, or several as one, over HTTP until the process is interrupted.

    Args:
        started: called with the address for a browser when the server accepts requests.

    Raises:
        InvalidValue: the address or port cannot be used; or see :func:`create_app`.
        NotFound, LibraryError: see :func:`create_app`.
    """
    options = options or Options()
    app = create_app(library_folder, options)
    listening = _listen(options)
    port = listening.getsockname()[1]
    started(_address(options, port))
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=_PATIENCE,
        http=Impatient,
    )  # fmt: skip
    if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
        # Closing the terminal ends the server like Ctrl-C: uploads are deleted.
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    uvicorn.Server(config).run(sockets=[listening])
    if any(pool.inside for pool in app.state.service.pools):
        os._exit(0)  # a conversion at work would delay the process by minutes


def _address(options: Options, port: int) -> str:
    host = f"[{options.host}]" if ":" in options.host else options.host
    token = quote(options.token or options.read_token, safe="")
    return f"http://{host}:{port}{options.root_path}/" + (f"?token={token}" if token else "")


def _listen(options: Options) -> socket.socket:
    """A listening socket; made here, so that the number of port 0 is known before the first request."""
    listening = None
    try:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((options.host, options.port))
        listening.listen(256)
    except (OSError, OverflowError) as error:
        if listening is not None:  # a machine without IPv6 gives none
            listening.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidValue(
            f"{options.host}:{options.port}: cannot listen there ({reason}); choose another --port or --host"
        ) from error
    return listening
