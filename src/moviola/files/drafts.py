"""Names of drafts: each says which process writes it, so that what a killed process has left is known from
what is being written, also by a process that holds no lock.

A draft of ``film.json`` is ``.film.json.MACHINE-BOOT-PROCESS-START-RANDOM.tmp``.

Examples:
    >>> from pathlib import Path
    >>> from moviola.files.drafts import draft_beside, is_abandoned
    >>> draft = draft_beside(Path("film.json"))
    >>> draft.write_text("{")
    1
    >>> is_abandoned(draft)
    False
"""

from __future__ import annotations

import os
import platform
import re
import time
import zlib
from functools import cache
from pathlib import Path

__all__ = ["DRAFTS", "draft_beside", "is_abandoned"]

DRAFTS = ".*.tmp"
"""Pattern of their names."""

_WRITER = re.compile(r"\.(?P<machine>[0-9a-f]{8})-(?P<boot>\w+)-(?P<process>\d+)-(?P<start>\d+)-\w+\.tmp$")
_UNKNOWN = "0"
_DAY = 86_400


def draft_beside(path: Path) -> Path:
    """A new name beside ``path`` for a draft of this process; nothing is made."""
    process = os.getpid()
    writer = f"{_machine()}-{_boot()}-{process}-{_started(process) or _UNKNOWN}-{os.urandom(4).hex()}"
    # Shortened, since the name may be as long as the file system allows.
    return path.with_name(f".{path.name[:40]}.{writer}.tmp")


def is_abandoned(draft: Path) -> bool:
    """Whether the process that began a draft, a file or a folder, has ended.

    Of a process on another machine, in another container, or on a system that does not show its processes,
    this is not known, nor where the name says nothing of one: then a draft counts as left after a day without
    a change. One that is gone does not.
    """
    found = _WRITER.search(draft.name)
    if found and found["machine"] == _machine() and _UNKNOWN not in (found["boot"], found["start"]):
        return found["boot"] != _boot() or _started(int(found["process"])) != found["start"]
    try:
        return draft.lstat().st_mtime + _DAY < time.time()
    except OSError:
        return False


@cache
def _machine() -> str:
    """This machine; containers on one that number their processes apart count as several."""
    try:
        numbered = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        numbered = ""
    return f"{zlib.crc32(f'{platform.node()} {numbered}'.encode()):08x}"


@cache
def _boot() -> str:
    """Which run of the machine this is: after another one, no process of before is left."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    except OSError:
        return _UNKNOWN


def _started(process: int) -> str | None:
    """When a process started, in ticks of the system's clock: numbers of processes are given again. None if
    there is no such process, or it has ended and nobody has asked how.
    """
    try:
        # The name of the program comes before, in brackets, and may hold any characters.
        state, *numbers = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if state in (b"Z", b"X") else numbers[18].decode()
