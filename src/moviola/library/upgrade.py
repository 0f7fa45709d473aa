"""From an earlier format of libraries to today's: in place, by the first writer.

===== ======================================================================================================
1     the first; tables of the catalogue and fields of the settings were added to it as time went by
2     files of the cache bear digests (:mod:`moviola.files.sealed`), and every later change has a number
3     roots, further paths of videos, what was removed, when and where videos were taken: tables of the
      catalogue. A moviola before it would compact away what can still be brought back.
===== ======================================================================================================

Libraries of all formats are read as they are. The first writer puts the settings and the catalogue as they
were into ``backups/format-N``, and deletes what format 1 kept in the cache. Features and models stay.
The number changes last, so that a process that is killed before leaves a library of the earlier format, and
the next writer begins again. To go back, copy both files over the present ones and delete ``index`` and
``cache``: that is as the library was then, until the first `moviola compact` after it, which moves
features.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from moviola.files.writing import draft_folder_of
from moviola.library.cache import damaged_in_cache
from moviola.library.catalogue import CATALOGUE_FILE, Catalogue
from moviola.library.settings import FORMAT_VERSION, SETTINGS_FILE, Settings

__all__ = ["backup_folder", "upgraded"]


def backup_folder(library: Path, format_version: int) -> Path:
    """Where settings and catalogue of an earlier format are kept."""
    return library / "backups" / f"format-{format_version}"


def upgraded(library: Path, catalogue: Catalogue, settings: Settings) -> Settings:
    """Make a library one of today's format; under its write lock.

    Args:
        library: its folder.
        catalogue: of it.
        settings: of an earlier format.

    Returns:
        what is written as its settings now.

    Raises:
        InvalidValue, LibraryError: the backup cannot be written; the library is as it was.
    """
    backup = backup_folder(library, settings.format_version)
    if not backup.is_dir():
        with draft_folder_of(backup) as draft:
            shutil.copyfile(library / SETTINGS_FILE, draft / SETTINGS_FILE)
            catalogue.copy_to(draft / CATALOGUE_FILE)
    for path in damaged_in_cache(library):
        path.unlink()
    with catalogue.transaction():
        pass  # which makes the tables that came later
    now = settings.model_copy(update={"format_version": FORMAT_VERSION})
    now.write(library)
    return now
