"""The answer that was printed last, kept so that its moments can be named by rank: `moviola open 2`.

It lies in the library's own ``cache/last-answer.json``, or, where that cannot be written, in the user's cache
folder under a name made of the library's path. It may be deleted at any time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moviola.errors import DataError, InvalidValue, NotFound
from moviola.files.moments import moment_row, read_moment
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.search.queries import SearchQuery
from moviola.search.query_json import query_from_json, query_to_json
from moviola.types import Moment

__all__ = ["KeptAnswer", "keep_answer", "kept_answer", "kept_moment"]

_FORMAT = 3

_NAME = "last-answer.json"


@dataclass(frozen=True)
class KeptAnswer:
    """The answer that was printed last.

    Attributes:
        query: what was asked.
        options: how it was answered, by name, as far as the person said so.
        moments: ranked.
        paths: of their videos, by id.
    """

    query: SearchQuery
    moments: list[Moment]
    paths: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)


def keep_answer(library: Path, answer: KeptAnswer) -> Path:
    """Keep an answer in place of the one before.

    Args:
        library: its folder.
        answer: to be kept.

    Returns:
        where it lies.

    Raises:
        InvalidValue: neither the library's cache nor the user's can be written.
    """
    content = {
        "format": _FORMAT,
        "query": query_to_json(answer.query),
        "options": answer.options,
        "moments": [
            {**moment_row(moment), "path": answer.paths[moment.video_id]} for moment in answer.moments
        ],
    }
    own, users = _places(library)
    try:
        write_json(own, content)
    except InvalidValue:
        write_json(users, content)
        return users
    users.unlink(missing_ok=True)  # an older answer must not hide this one
    return own


def kept_answer(library: Path) -> KeptAnswer:
    """The last answer.

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
    try:
        content = read_json(place)
        if content["format"] != _FORMAT:
            raise ValueError(f"format {content['format']}")
        rows = content["moments"]
        moments = [read_moment(row, f"{place}: moment {at}") for at, row in enumerate(rows, 1)]
        paths = {row["video_id"]: str(row["path"]) for row in rows}
        return KeptAnswer(query_from_json(content["query"]), moments, paths, dict(content["options"]))
    except (TypeError, KeyError, ValueError, AttributeError, InvalidValue) as error:
        raise DataError(f"{place}: damaged, or of another version; search again, or delete it") from error


def kept_moment(library: Path, rank: int) -> tuple[Moment, Path]:
    """A moment of the last answer, and its video's file.

    Args:
        library: its folder.
        rank: from 1.

    Raises:
        NotFound: nothing was searched yet, the answer has no such rank, or the file is gone.
        DataError: the kept answer is damaged.
    """
    kept = kept_answer(library)
    moments, paths = kept.moments, kept.paths
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
