"""Upgrade of a library from an earlier format, in place, by the first writer.

===== ======================================================================================================
1     the first; tables of the catalogue and fields of the settings were added to it as time went by
2     files of the cache bear digests (:mod:`moviola.files.sealed`), and every later change has a number
3     roots, further paths of videos, what was removed, when and where videos were taken: tables of the
      catalogue. A moviola before it would compact away what can still be brought back.
4     ``moviola.toml`` bears a digest, and the catalogue a copy of the settings. Settings of an earlier format
      are sealed only if the features that are stored are whole with them.
5     cues of a further kind, ``"chapter"``, which a moviola before it would take for damage.
6     cues have a language, and the index of their words holds terms by language. Languages are detected by
      the texts; the next indexing reads subtitles again, for what names and tracks say.
===== ======================================================================================================

Libraries of all formats can be read. The first writer copies the old settings and catalogue to
``backups/format-N``, and deletes the cache of format 1. Features and models stay. The number changes last, so
a killed process leaves a library of the earlier format, and the next writer starts again. To go back, copy
both files over the present ones and delete ``index`` and ``cache``: this restores the library until the next
`moviola compact`, which moves features. A library that went back and was changed is copied to
``backups/format-N-2`` when it is upgraded again, and so on; no earlier backup is written over.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

from moviola.errors import DamagedSettings, counted
from moviola.features import FeatureShards
from moviola.files.writing import draft_folder_of
from moviola.library.disk.catalogue import CATALOGUE_FILE, Catalogue, VideoRow
from moviola.library.disk.disk_cache import damaged_in_cache
from moviola.library.disk.settings import FORMAT_VERSION, SETTINGS_FILE, Settings

__all__ = ["backup_folder", "require_fitting", "shards_in_backup", "upgraded"]


def backup_folder(library: Path, format_version: int) -> Path:
    """Folder of the settings and catalogue of an earlier format, as they were when it was first upgraded."""
    return library / "backups" / f"format-{format_version}"


def upgraded(library: Path, catalogue: Catalogue, settings: Settings) -> Settings:
    """Upgrade a library with settings of an earlier format, under its write lock; returns the present ones.

    Raises:
        DamagedSettings: they do not fit the features that are stored; the library is as it was.
        InvalidValue, LibraryError: the backup cannot be written, or features are away; the library is as it
            was.
    """
    require_fitting(library, catalogue, settings)
    _back_up(library, catalogue, backup_folder(library, settings.format_version))
    for path in damaged_in_cache(library):
        path.unlink(missing_ok=True)
    catalogue.make_terms()
    now = replace(settings, format_version=FORMAT_VERSION)
    catalogue.note_settings(now)
    now.write(library)
    return now


def require_fitting(library: Path, catalogue: Catalogue, settings: Settings) -> None:
    """Refuse settings with which no stored features of a kind are whole, or no video has the frames of its
    duration: one wrong digit does that.

    Raises:
        DamagedSettings: they do not fit the features that are stored.
        FeaturesAway: features cannot be read now, so that nothing can be said.
    """
    videos = [video for video in catalogue.videos() if video.state != "refused"]
    sizes = {"frames": settings.frame_dim, "cues": settings.sentence_dim}
    path, remedy = library / SETTINGS_FILE, "one of its numbers is wrong; restore it from a copy"
    for kind, dim in sizes.items():
        extents = [extent for video in videos if (extent := getattr(video, kind)) is not None]
        shards = FeatureShards(library / "features", kind, dim)
        try:
            if extents and not any(dim and shards.intact(extent) for extent in extents):
                raise DamagedSettings(
                    f"{path}: with {dim} numbers per vector none of the features of {kind} of "
                    f"{counted(len(extents), 'video')} is whole; {remedy}"
                )
        finally:
            shards.close()
    timed = [video for video in videos if video.frames is not None and video.state == "ready"]
    if timed and not any(_as_many_frames(video, settings.frame_rate) for video in timed):
        raise DamagedSettings(
            f"{path}: at {settings.frame_rate:g} frames a second no video has as many as are stored; {remedy}"
        )


def _as_many_frames(video: VideoRow, rate: float) -> bool:
    """Whether a video has about as many frames as a rate gives."""
    assert video.frames is not None
    wanted = video.duration * rate
    return abs(video.frames.count - wanted) <= 2 + wanted / 3


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


def shards_in_backup(backup: Path) -> set[str]:
    """Shards that the catalogue of a backup names, as ``"frame 0"`` and ``"cue 0"``; none where it has no
    readable catalogue.
    """
    found = set()
    try:
        with closing(_opened(backup)) as db:
            for kind in ("frame", "cue"):
                rows = db.execute(f"SELECT DISTINCT {kind}_shard FROM videos WHERE {kind}_count > 0")
                found |= {f"{kind} {number}" for (number,) in rows}
    except (OSError, sqlite3.Error):
        return set()
    return found


def _opened(backup: Path) -> sqlite3.Connection:
    # Immutable: if opened in any other way, it would get a journal.
    uri = f"{(backup / CATALOGUE_FILE).resolve().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True)


def _holds(backup: Path, library: Path, generation: int) -> bool:
    """Whether a backup is of a library's present settings, and of a generation of its catalogue."""
    import filecmp

    try:
        with closing(_opened(backup)) as db:
            kept = db.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
        same = filecmp.cmp(backup / SETTINGS_FILE, library / SETTINGS_FILE, shallow=False)
    except (OSError, sqlite3.Error):
        return False
    return same and kept == (generation,)
