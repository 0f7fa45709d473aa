"""Watching folders beside a server, in a process that ends with it and is restarted if it fails."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from moviola.search.alerts import AlertOptions
from moviola.server.jobs import ended

__all__ = ["Watched"]

# Seconds before a failed process is restarted.
_PAUSE = 10.0

log = logging.getLogger("moviola.server")


class Watched:
    """Keeps a library in step with folders; see :mod:`moviola.library.ingest.watching`.

    Args:
        library: its folder.
        folders: the folders; none: nothing happens.
        alerts: reports of new findings of saved searches.
    """

    def __init__(self, library: Path, folders: Sequence[Path], alerts: AlertOptions) -> None:
        self._order = {
            "library": str(library), "watch": [str(folder) for folder in folders], "alerts": asdict(alerts),
        }  # fmt: skip
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        if self._order["watch"]:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """End the process."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "moviola.server.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(json.dumps(self._order).encode() + b"\n")
                async for line in process.stdout:
                    self._tell(json.loads(line))
                await process.wait()
            finally:
                await ended(process)
            log.warning("watching ended; it restarts in %g s", _PAUSE)
            await asyncio.sleep(_PAUSE)

    def _tell(self, line: dict[str, object]) -> None:
        for kind, what in line.items():
            (log.info if kind == "watched" else log.warning)("%s: %s", kind, what)
