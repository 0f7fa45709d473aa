"""The folder of a library, before it is one: whether there is one, and whether one may be made."""

from __future__ import annotations

import shlex
from pathlib import Path

from moviola.errors import InvalidValue, LibraryError, NotFound, printable
from moviola.files.caches import used_lately
from moviola.files.presence import is_file
from moviola.files.writing import make_folders
from moviola.library.disk.catalogue import CATALOGUE_FILE
from moviola.library.disk.lock import LOCK
from moviola.library.disk.settings import SETTINGS_FILE

__all__ = ["holds_library", "make_folder", "refuse_to_create", "require_unicode"]


def require_unicode(folder: Path) -> None:
    """Refuse a folder name that the libraries underneath could not open (InvalidValue)."""
    if "\0" in str(folder):
        raise InvalidValue(f"{str(folder)!r}: no name has the character NUL; name another folder")
    try:
        str(folder.absolute()).encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"{printable(folder.absolute())}: its name is not UTF-8; rename the folder, or name another one"
        ) from error


def make_folder(folder: Path) -> None:
    """Make the folder of a new library, and those above it; LibraryError where that cannot be."""
    try:
        make_folders(folder)
    except OSError as error:
        raise LibraryError(
            f"{folder}: no library can be made there ({error.strerror}); name a folder that can be written"
        ) from error


def holds_library(folder: Path) -> bool:
    """Whether a folder has the settings of a library; LibraryError where it cannot be read."""
    try:
        return (folder / SETTINGS_FILE).is_file()
    except OSError as error:
        raise LibraryError(
            f"{folder}: cannot be read ({error.strerror}); give this user the right to read it, or name "
            "another library"
        ) from error


def refuse_to_create(folder: Path, encoder: str | None, read_only: bool) -> None:
    """Refuse a folder with other files, or one that is only to be opened, for a new library (NotFound)."""
    only_opened = read_only or encoder is None
    # A process killed while it created a library leaves a catalogue, drafts and its lock.
    if folder.exists() and not (
        folder.is_dir()
        and all(p.name.startswith((CATALOGUE_FILE, LOCK)) or p.suffix == ".tmp" for p in folder.iterdir())
    ):
        wanted = "the folder of a library" + ("" if only_opened else ", or an empty one")
        lost = ""
        if is_file(folder / CATALOGUE_FILE):
            place = shlex.quote(str(folder))
            lost = f"; if it was one, `moviola repair --library {place}` writes that file again"
        raise NotFound(f"{folder}: not a moviola library (no {SETTINGS_FILE}); name {wanted}{lost}")
    if only_opened:
        place, used = shlex.quote(str(folder)), ", ".join(shlex.quote(str(one)) for one in used_lately())
        raise NotFound(
            f"{folder}: no library there; "
            + (f"used lately, to be given as --library: {used}; " if used else "")
            + f"`moviola index FOLDER --library {place}` makes one of a folder with videos"
        )
