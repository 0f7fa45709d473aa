"""Upgrade of a library from an earlier format, in place, by the first writer.

===== ======================================================================================================
1     the first; tables of the catalogue and fields of the settings were added to it as time went by
2     files of the cache bear digests (:mod:`moviola.files.sealed`), and every later change has a number
3     roots, further paths of videos, what was removed, when and where videos were taken: tables of the
      catalogue. A moviola before it would compact away what can still be brought back.
===== ======================================================================================================

Libraries of all formats can be read. The first writer copies the old settings and catalogue to
``backups/format-N``, and deletes the cache of format 1. Features and models stay. The number changes last, so
a killed process leaves a library of the earlier format, and the next writer starts again. To go back, copy
both files over the present ones and delete ``index`` and ``cache``: this restores the library until the next
`moviola compact`, which moves features. A library that went back and was changed is copied to
``backups/format-N-2`` when it is upgraded again, and so on; no earlier backup is written over.
"""

from __future__ import annotations

import filecmp
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

from moviola.files.writing import draft_folder_of
from moviola.library.disk.catalogue import CATALOGUE_FILE, Catalogue
from moviola.library.disk.disk_cache import damaged_in_cache
from moviola.library.disk.settings import FORMAT_VERSION, SETTINGS_FILE, Settings

__all__ = ["backup_folder", "upgraded"]


def backup_folder(library: Path, format_version: int) -> Path:
    """Folder of the settings and catalogue of an earlier format, as they were when it was first upgraded."""
    return library / "backups" / f"format-{format_version}"


def upgraded(library: Path, catalogue: Catalogue, settings: Settings) -> Settings:
    """Upgrade a library with settings of an earlier format, under its write lock; returns the present ones.

    Raises:
        InvalidValue, LibraryError: the backup cannot be written; the library is as it was.
    """
    _back_up(library, catalogue, backup_folder(library, settings.format_version))
    for path in damaged_in_cache(library):
        path.unlink(missing_ok=True)
    catalogue.add_tables()
    now = replace(settings, format_version=FORMAT_VERSION)
    now.write(library)
    return now


def _back_up(library: Path, catalogue: Catalogue, first: Path) -> None:
    """Copy settings and catalogue to a folder of their own, unless the latest backup holds this state: an
    upgrade that was interrupted has made it.
    """
    numbered = (first.with_name(f"{first.name}-{number}") for number in count(2))
    place, latest = first, None
    while place.exists():
        place, latest = next(numbered), place
    if latest is None or not _holds(latest, library, catalogue.generation):
        with draft_folder_of(place) as draft:
            shutil.copyfile(library / SETTINGS_FILE, draft / SETTINGS_FILE)
            catalogue.copy_to(draft / CATALOGUE_FILE)


def _holds(backup: Path, library: Path, generation: int) -> bool:
    """Whether a backup is of a library's present settings, and of a generation of its catalogue."""
    # Immutable: opened otherwise, it would get a journal.
    uri = f"{(backup / CATALOGUE_FILE).resolve().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as db:
            kept = db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
        same = filecmp.cmp(backup / SETTINGS_FILE, library / SETTINGS_FILE, shallow=False)
    except (OSError, sqlite3.Error):
        return False
    return same and kept == (generation,)
