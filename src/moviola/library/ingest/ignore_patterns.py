"""Exclusion of files below an indexed folder, by patterns as in ``.gitignore``.

Patterns come from :data:`DEFAULTS`, from the root itself (``moviola index --exclude``) and from files
``.moviolaignore``, each valid in its folder and below; deeper ones take precedence, and ``!pattern`` includes
again. A folder with a file ``.nomedia`` is excluded like the defaults. The folder of a library always is: its
cache may hold converted videos. The named folder itself is always read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from moviola.errors import InvalidValue
from moviola.files.regular import read_regular
from moviola.library.disk.catalogue import CATALOGUE_FILE
from moviola.library.disk.settings import SETTINGS_FILE

__all__ = ["DEFAULTS", "NO_MEDIA", "LeavingOut"]

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
"""Default exclusions."""

_MOST_BYTES = 1 << 20  # of a file of patterns
_LIBRARY = frozenset({CATALOGUE_FILE, SETTINGS_FILE})

_Rules = list[tuple[str, GitIgnoreSpec]]
"""Folders without links, and the patterns that hold in and below them; from the top down."""


class LeavingOut:
    """The exclusions of a folder, without links: its own patterns, and :data:`DEFAULTS` and ``.nomedia``;
    :class:`InvalidValue` for a pattern that cannot be read.

    Attributes:
        folders, files: excluded by :meth:`walk`.
    """

    def __init__(self, root: Path, patterns: Sequence[str] = (), *, defaults: bool = True) -> None:
        self.root, self._defaults = root, defaults
        own = [*(DEFAULTS if defaults else ()), *patterns]
        self._rules: _Rules = [(str(root), _spec(own, "--exclude"))]
        self.folders: list[str] = []
        self.files: set[str] = set()

    def walk(self, on_error: Callable[[OSError], None]) -> Iterator[Path]:
        """All files that are not excluded, in no order; links to folders are excluded. ``on_error`` is called
        with the error of each folder that cannot be read, or whose own patterns cannot.
        """
        rules = {str(self.root): self._rules}
        for directory, folders, names in os.walk(self.root, onerror=on_error):
            here = rules.pop(directory)
            hidden = (self._defaults and NO_MEDIA in names) or _LIBRARY.issubset(names)
            if hidden and directory != str(self.root):
                self.folders.append(directory)
                folders.clear()
                continue
            if IGNORE_FILE in names:
                try:
                    here = [*here, (directory, _own_spec(Path(directory, IGNORE_FILE)))]
                except OSError as error:  # what it would exclude is not known
                    on_error(error)
                    folders.clear()
                    continue
            kept = []
            for name in folders:
                path = os.path.join(directory, name)  # noqa: PTH118 - a million of them
                if os.path.islink(path) or _left_out(here, path, folder=True):  # noqa: PTH114
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
        """Whether the last walk excluded a file, itself or with a folder above it."""
        text = str(path)
        return text in self.files or any(text.startswith(folder + os.sep) for folder in self.folders)


def _left_out(rules: _Rules, path: str, *, folder: bool) -> bool:
    for base, spec in reversed(rules):
        relative = path[len(base.rstrip(os.sep)) + 1 :] + ("/" if folder else "")
        verdict = spec.check_file(relative).include
        if verdict is not None:
            return verdict
    return False


def _own_spec(path: Path) -> GitIgnoreSpec:
    """The patterns in a file, which anybody may have put there; ``OSError``, too, where they are none."""
    try:
        return GitIgnoreSpec.from_lines(
            read_regular(path, _MOST_BYTES, follow=False).decode("utf-8-sig").splitlines()
        )
    except (TypeError, ValueError) as error:
        raise OSError(errno.EINVAL, "no patterns as in .gitignore, in UTF-8", str(path)) from error


def _spec(patterns: Sequence[str], where: str) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"{where}: {error}; write patterns as in .gitignore") from error
