"""A server in a process of its own, as the command starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["served"]


@contextmanager
def served(library: Path) -> Iterator[str]:
    """The address of `moviola serve` on a library."""
    command = [sys.executable, "-m", "moviola", "serve", "--library", str(library), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["url"])
        finally:
            process.terminate()
