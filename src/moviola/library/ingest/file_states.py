"""States of files and of their paths, read before anything is planned for them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from moviola.errors import InvalidValue, UnreadableMedia, printable
from moviola.files.reasons import reason
from moviola.media import SUBTITLE_SUFFIXES

__all__ = ["changed_at", "require_unicode", "resolved", "signature", "suffix_of"]


def resolved(path: Path) -> Path:
    """The path without links; unchanged where a link is broken, which opening the file will report."""
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError):
        return path.absolute()


def suffix_of(given: str) -> str:
    """A suffix as files have it, in small letters with the dot; InvalidValue: none, or that of subtitles."""
    suffix = f".{given.strip().lower().removeprefix('.')}"
    if not re.fullmatch(r"\.[^./\\\s]{1,20}", suffix):
        raise InvalidValue(f"suffix {given!r:.60}: give one such as .dat")
    if suffix in SUBTITLE_SUFFIXES:
        raise InvalidValue(f"suffix {given!r}: files with it are read as subtitles; give one of videos")
    return suffix


def require_unicode(*paths: Path) -> None:
    """Refuse a path that is not UTF-8: ids and paths are stored and printed as text."""
    for path in paths:
        if printable(path) != str(path):
            raise UnreadableMedia(path, reason("no name", path=printable(path)))


def changed_at(status: os.stat_result) -> int:
    """Modification time in nanoseconds, 2262 at the latest: a wrong clock writes what SQLite cannot hold."""
    return min(status.st_mtime_ns, 2**63 - 1)


def signature(video: Path, paths: Iterable[Path]) -> str:
    """Names, sizes and times of the subtitle files of a video: a change means reading them again."""
    parts = []
    for path in paths:
        try:
            status = path.stat()
            state = f"{status.st_size}:{status.st_mtime_ns}"
        except OSError:
            state = "unreadable"
        parts.append(f"{printable(os.path.relpath(path, video.parent))}:{state}")
    return "|".join(parts)
