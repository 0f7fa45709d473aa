"""The answer that was printed last, kept so that its moments can be named by rank: `moviola open 2`.

It lies in the library's own ``cache/last-answer.json``, or, where that cannot be written, in the user's cache
folder under a name made of the library's path. It may be deleted at any time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from moviola.errors import DataError, InvalidValue, NotFound
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.types import Moment

__all__ = ["keep_answer", "kept_answer", "kept_moment", "moment_row"]

_NAME = "last-answer.json"


def moment_row(moment: Moment, sources: Mapping[str, str]) -> dict[str, Any]:
    """A moment as JSON has it, with the path of its video.

    Args:
        moment: of an answer.
        sources: paths by video id.
    """
    return {**asdict(moment), "path": sources[moment.video_id]}


def keep_answer(library: Path, moments: Sequence[Moment], sources: Mapping[str, str]) -> Path:
    """Keep an answer in place of the one before.

    Args:
        library: its folder.
        moments: ranked.
        sources: paths by video id.

    Returns:
        where it lies.

    Raises:
        InvalidValue: neither the library's cache nor the user's can be written.
    """
    rows = [moment_row(moment, sources) for moment in moments]
    own, users = _places(library)
    try:
        write_json(own, rows)
    except InvalidValue:
        write_json(users, rows)
        return users
    users.unlink(missing_ok=True)  # an older answer must not hide this one
    return own


def kept_answer(library: Path) -> tuple[list[Moment], dict[str, str]]:
    """The moments of the last answer, ranked, and the paths of their videos by id.

    Args:
        library: its folder.

    Raises:
        NotFound: nothing was searched yet.
        DataError: the kept answer is damaged.
    """
    own, users = _places(library)
    place = next((path for path in (users, own) if path.is_file()), None)
    if place is None:
        raise NotFound(f"{library}: no answer is kept; `moviola search` something first")
    names = ("video_id", "start", "end", "score", "rank", "source", "snippet")
    try:
        rows = read_json(place)
        moments = [Moment(**{name: row[name] for name in names}) for row in rows]
        return moments, {row["video_id"]: str(row["path"]) for row in rows}
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(f"{place}: damaged; search again, or delete it") from error


def kept_moment(library: Path, rank: int) -> tuple[Moment, Path]:
    """A moment of the last answer, and its video's file.

    Args:
        library: its folder.
        rank: from 1.

    Raises:
        NotFound: nothing was searched yet, the answer has no such rank, or the file is gone.
        DataError: the kept answer is damaged.
    """
    moments, paths = kept_answer(library)
    moment = next((moment for moment in moments if moment.rank == rank), None)
    if moment is None:
        raise NotFound(f"rank {rank}: the last answer has {len(moments)} moments; take one of their ranks")
    path = Path(paths[moment.video_id])
    if not path.is_file():
        raise NotFound(f"{path}: the video's file is gone; index the folder where it lies now")
    return moment, path


def _places(library: Path) -> tuple[Path, Path]:
    """In the library, and for this user."""
    from platformdirs import user_cache_path

    name = hashlib.blake2b(str(library.resolve()).encode(), digest_size=8).hexdigest()
    return library / "cache" / _NAME, user_cache_path("moviola") / f"{name}-{_NAME}"
