"""Which files below an indexed folder are left out: patterns as ``.gitignore`` has them.

Patterns come from :data:`DEFAULTS`, from the root itself (``moviola index --exclude``) and from files
called ``.moviolaignore``, each for the folder that it lies in and all below; what is written deeper counts
more, and ``!pattern`` takes in again. A folder with a file ``.nomedia`` is left out like the defaults are.
The folder that was named itself is always looked into.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from moviola.errors import InvalidValue, printable

__all__ = ["DEFAULTS", "IGNORE_FILE", "NO_MEDIA", "LeavingOut"]

IGNORE_FILE = ".moviolaignore"
NO_MEDIA = ".nomedia"

DEFAULTS = (
    ".*",  # hidden ones, .Trash and .Trash-1000, .thumbnails, .git
    "@eaDir/",  # previews of Synology's
    "\\#recycle/",
    "$RECYCLE.BIN/",
    "System Volume Information/",
    "lost+found/",
    "node_modules/",
    "thumbnails/",
    "trickplay/",
    "*.trickplay/",  # Jellyfin's
)
"""What is left out unless somebody switches it off."""

_Rules = list[tuple[str, GitIgnoreSpec]]
"""Folders without links, and what holds in and below them; from the top down."""


class LeavingOut:
    """What is left out of a folder.

    Args:
        root: the folder, without links.
        patterns: of its own.
        defaults: whether :data:`DEFAULTS` and ``.nomedia`` count.

    Attributes:
        folders, files: what was left out by :meth:`walk`.

    Raises:
        InvalidValue: a pattern that cannot be read.
    """

    def __init__(self, root: Path, patterns: Sequence[str] = (), *, defaults: bool = True) -> None:
        self.root, self._defaults = root, defaults
        own = [*(DEFAULTS if defaults else ()), *patterns]
        self._rules: _Rules = [(str(root), _spec(own, "--exclude"))]
        self.folders: list[str] = []
        self.files: set[str] = set()

    def walk(self, on_error: Callable[[OSError], None]) -> Iterator[Path]:
        """All files that are not left out, in no order; links to folders are not followed.

        Args:
            on_error: called with the error for each folder that cannot be read.
        """
        rules = {str(self.root): self._rules}
        for directory, folders, names in os.walk(self.root, onerror=on_error):
            here = rules.pop(directory)
            if self._defaults and NO_MEDIA in names and directory != str(self.root):
                self.folders.append(directory)
                folders.clear()
                continue
            if IGNORE_FILE in names:
                here = [*here, (directory, _read(Path(directory, IGNORE_FILE)))]
            kept = []
            for name in folders:
                path = os.path.join(directory, name)  # noqa: PTH118 - a million of them
                if _left_out(here, path, folder=True):
                    self.folders.append(path)
                else:
                    kept.append(name)
                    rules[path] = here
            folders[:] = kept
            for name in names:
                path = os.path.join(directory, name)  # noqa: PTH118
                if _left_out(here, path, folder=False):
                    self.files.add(path)
                else:
                    yield Path(path)

    def holds(self, path: Path) -> bool:
        """Whether a file was left out by the last walk, itself or with a folder above it."""
        text = str(path)
        return text in self.files or any(text.startswith(folder + os.sep) for folder in self.folders)


def _left_out(rules: _Rules, path: str, *, folder: bool) -> bool:
    for base, spec in reversed(rules):
        relative = path[len(base.rstrip(os.sep)) + 1 :] + ("/" if folder else "")
        verdict = spec.check_file(relative).include
        if verdict is not None:
            return verdict
    return False


def _read(path: Path) -> GitIgnoreSpec:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(f"{printable(path)}: cannot be read ({error}); write UTF-8 text") from error
    return _spec(text.splitlines(), printable(path))


def _spec(patterns: Sequence[str], where: str) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise InvalidValue(f"{where}: {error}; write patterns as .gitignore has them") from error
