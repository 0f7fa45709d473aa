"""Names of files and videos beside what people type.

Some systems write a letter with its accent as one character, others (macOS) as a letter and a mark. People
see no difference, and a keyboard gives them one of the two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path, PurePath

from moviola.errors import printable

__all__ = ["composed", "folded", "name_now", "nearest", "no_such"]


def composed(name: str) -> str:
    """The name with each letter and its marks as one character (Unicode's normal form C)."""
    return unicodedata.normalize("NFC", name)


def folded(name: str) -> str:
    """:func:`composed`, without a difference between capital and small letters."""
    return composed(name).casefold()


def name_now(video_id: str, path: str | PathLike[str], *, suffix: bool = True) -> str:
    """The id of a video, which keeps the name that its file first had; with the name that the file has now
    where that is another one. By its suffix it differs from the id of another video, which it may equal.

    >>> name_now("trips/beach", "/films/trips/beach.mp4"), name_now("trips/beach", "/films/trips/Sylt.mp4")
    ('trips/beach', 'trips/Sylt.mp4')
    """
    file, (folder, slash, name) = PurePath(composed(fspath(path))), video_id.rpartition("/")
    if not file.name or composed(name) in (file.name, file.stem):
        return video_id
    return f"{folder}{slash}{file.name if suffix else file.stem}"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """At most three known names that are like a name, the likest first; differences that :func:`folded`
    removes do not count.
    """
    from difflib import get_close_matches  # for errors only

    by_form = {folded(one): one for one in known}
    return [by_form[form] for form in get_close_matches(folded(name[:200]), by_form, n=3)]


def no_such(path: str | PathLike[str], what: str = "file") -> str:
    """What an error says of a path where nothing is: names beside it that are like its own, or what else may
    be the reason.
    """
    there = Path(path)
    said, folder = f"{printable(path)}: no such {what}", there.parent
    try:
        near = nearest(there.name, [one.name for one in folder.iterdir()])
    except FileNotFoundError:
        return f"{said}, nor is its folder there; check the path, or plug its drive in"
    except (OSError, ValueError):
        near = []
    if not near:
        return f"{said}; check its name"
    return f"{said}; did you mean {' or '.join(printable(folder / one) for one in near)}?"
