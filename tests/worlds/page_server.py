"""``moviola serve`` in a process of its own, as a visitor of the page meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

__all__ = ["Served"]


@dataclass
class Served:
    """A library and the server on it.

    Attributes:
        folder: holds the library, ``photographs``.
        port: 0 takes a free one; the one it got, once it runs.
        options: more of ``moviola serve``.
    """

    folder: Path
    port: int = 0
    options: tuple[str, ...] = ()
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Of the page, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def incoming(self) -> Path:
        """A folder from which videos may be brought in."""
        return self.folder / "incoming"

    def start(self) -> None:
        """Begin, and wait until requests are taken."""
        self.incoming.mkdir(exist_ok=True)
        command = [
            sys.executable, "-m", "moviola", "serve", "-l", self.folder / "photographs",
            "--port", str(self.port), "--allow-ingest", self.incoming, "--json", *self.options,
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if said := self.process.stdout.readline():
            self.port = urlsplit(json.loads(said)["url"]).port or 0
            return
        self.stop()
        raise RuntimeError(f"the server has ended: {' '.join(map(str, command))}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it, and wait for that."""
        if self.process is not None:
            assert self.process.stdout is not None
            self.process.terminate()
            self.process.wait()
            self.process.stdout.close()
            self.process = None
