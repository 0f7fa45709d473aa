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
`moviola compact`, which moves features.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from moviola.files.writing import draft_folder_of
from moviola.library.disk.catalogue import CATALOGUE_FILE, Catalogue
from moviola.library.disk.disk_cache import damaged_in_cache
from moviola.library.disk.settings import FORMAT_VERSION, SETTINGS_FILE, Settings

__all__ = ["backup_folder", "upgraded"]


def backup_folder(library: Path, format_version: int) -> Path:
    """Folder of the settings and catalogue of an earlier format."""
    return library / "backups" / f"format-{format_version}"


def upgraded(library: Path, catalogue: Catalogue, settings: Settings) -> Settings:
    """Upgrade a library with settings of an earlier format, under its write lock; returns the present ones.

    Raises:
        InvalidValue, LibraryError: the backup cannot be written; the library is as it was.
    """
    backup = backup_folder(library, settings.format_version)
    if not backup.is_dir():
        with draft_folder_of(backup) as draft:
            shutil.copyfile(library / SETTINGS_FILE, draft / SETTINGS_FILE)
            catalogue.copy_to(draft / CATALOGUE_FILE)
    for path in damaged_in_cache(library):
        path.unlink(missing_ok=True)
    with catalogue.transaction():
        pass  # opening creates the later tables
    now = replace(settings, format_version=FORMAT_VERSION)
    now.write(library)
    return now
