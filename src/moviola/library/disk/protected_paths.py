"""What must not be written over: the files of a library, its videos, and the subtitles beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path

from moviola.errors import InvalidValue, printable
from moviola.files.presence import is_file
from moviola.library.disk.catalogue import Catalogue
from moviola.library.disk.settings import SETTINGS_FILE
from moviola.types import require_kind

__all__ = ["library_around", "require_no_library", "require_outside", "require_sources"]


def require_outside(out: str | Path, folder: str | Path, catalogue: Catalogue) -> None:
    """Refuse to write over a video of a library, subtitles of one, or anything in the library's folder:
    nothing could bring it back.

    Raises:
        InvalidValue: ``out`` is one of these, by this name or another one.
    """
    out = Path(out)
    # A link is written through; it may also be itself what lies beside a video.
    names = {Path(os.path.realpath(out.parent), out.name), Path(os.path.realpath(out))}
    if any(name.is_relative_to(os.path.realpath(folder)) for name in names):
        raise _inside(out, folder)
    videos = {video.path: video.size for video in catalogue.videos()}
    videos |= {copy.path: copy.size for copy in catalogue.copies()}
    if any(str(name) in videos for name in names) or _same_file(out, videos):
        raise InvalidValue(f"{out}: is a video of the library {folder}; name another file")
    for path in map(Path, videos):
        beside = any(name.parent == path.parent and name.stem.startswith(path.stem) for name in names)
        if beside and not names.isdisjoint(_subtitles(path)):
            raise InvalidValue(f"{out}: has subtitles of {path}, a video of the library; name another file")


def require_no_library(out: str | Path) -> None:
    """Refuse to write into the folder of any library, for what is written without opening one.

    Raises:
        InvalidValue: ``out`` is, or lies in, such a folder.
    """
    if folder := library_around(out):
        raise _inside(out, folder)


def library_around(path: str | Path) -> Path | None:
    """The folder of the library that a path leads to or into, without links; None if to no library."""
    place = Path(os.path.realpath(path))
    return next((folder for folder in (place, *place.parents) if is_file(folder / SETTINGS_FILE)), None)


def _inside(out: str | Path, folder: str | Path) -> InvalidValue:
    return InvalidValue(f"{out}: lies in the folder of the library {folder}; name a place outside of it")


def _same_file(out: Path, videos: dict[str, int]) -> bool:
    """Whether a file is one of the videos by another name; only those of its size are looked at."""
    try:
        size = out.stat().st_size
    except OSError:  # there is none
        return False
    for path, known in videos.items():
        with suppress(OSError):
            if known == size and out.samefile(path):
                return True
    return False


def _subtitles(video: Path) -> tuple[Path, ...]:
    from moviola.media import sidecars  # with PyAV, which a search does without

    try:
        return sidecars(video)
    except OSError:  # its folder is away
        return ()


def require_sources(sources: Sequence[str | PathLike[str]]) -> None:
    """Refuse to index nothing, what is no path, and what lies in a library."""
    if not sources:
        raise InvalidValue("nothing to index: name at least one video file or folder")
    for source in sources:
        require_kind("source", source, (str, PathLike), "a path; several go one by one, as index(*paths)")
        if "\0" in str(source):
            raise InvalidValue(
                f"source {str(source)!r}: no path has the character NUL; name a file or folder"
            )
        if not os.fspath(source):  # which as a path would be the current folder
            raise InvalidValue("source '': name a video file or a folder; `.` is the current folder")
        if library := library_around(Path(source)):
            raise InvalidValue(
                f"{printable(source)}: in the folder of the library {printable(library)}, "
                "which is always left out; name the folder of the videos"
            )
