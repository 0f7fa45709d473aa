"""Files that appear complete or not at all: written to a draft beside them, synced, then renamed.

The folder is synced too: else, after a power failure, what was written later may be there and this not.

Examples:
    >>> from pathlib import Path
    >>> from moviola.files.writing import draft_of, write_json
    >>> write_json("found.json", {"moments": 3})
    >>> try:
    ...     with draft_of(Path("found.json")) as draft:
    ...         _ = draft.write_text("half of")
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     print(Path("found.json").read_text(), end="")
    {"moments": 3}
"""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Literal, overload

from moviola.errors import InvalidValue
from moviola.files.drafts import draft_beside

__all__ = [
    "atomic_write", "draft_folder_of", "draft_of", "make_folders", "require_unread", "sync_folder",
    "write_csv", "write_json", "write_text",
]  # fmt: skip


@contextmanager
def draft_of(path: str | os.PathLike[str], *, follow: bool = True) -> Iterator[Path]:
    """A path beside ``path`` to write to, for libraries that take a name and no open file.

    When the block ends, the draft is synced and renamed to ``path``; when it raises, the draft is removed and
    ``path`` stays as it was. Missing parent folders are made. A symbolic link is written through if
    ``follow``, else it is replaced: in a folder of moviola's own nobody else says what is written over. A
    file that is replaced keeps who may read and write it.

    Raises:
        InvalidValue: the place cannot be written, or the disk is full; the message names path, reason and
            remedy.
    """
    target = Path(os.path.realpath(path)) if follow else Path(path)
    draft = draft_beside(target)
    with _explained(path):
        if target.exists() and not target.is_file() and (follow or not target.is_symlink()):
            raise InvalidValue(f"{path}: cannot be written (it is no regular file); name a file")
        make_folders(target.parent)
    try:
        with _explained(path, only=draft):
            yield draft
        with _explained(path):
            _flush(draft)
            with suppress(OSError):  # a new file, or a drive without rights
                draft.chmod(stat.S_IMODE(target.stat(follow_symlinks=follow).st_mode))
            draft.replace(target)
            sync_folder(target.parent)
    finally:
        with suppress(OSError):  # an unwritable place has no draft either
            draft.unlink()


@contextmanager
def draft_folder_of(path: Path) -> Iterator[Path]:
    """A folder beside ``path`` to fill with files.

    When the block ends, its files are synced and it is renamed to ``path``, unless another process was
    faster, whose folder stays; when the block raises, the draft is removed. Missing parent folders are made.
    Errors as in :func:`draft_of`.
    """
    draft = draft_beside(path)
    with _explained(path):
        make_folders(path.parent)
        draft.mkdir()
    try:
        yield draft
        with _explained(path):
            for file in draft.rglob("*"):
                if file.is_file():
                    _flush(file)
            try:
                if not path.is_dir():
                    draft.rename(path)
            except OSError:
                if not path.is_dir():  # else another process was just faster
                    raise
            sync_folder(path.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _explained(path: str | os.PathLike[str], only: Path | None = None) -> Iterator[None]:
    """File system errors as errors that name ``path``; ``only``: those of that file alone, its draft."""
    try:
        yield
    except InvalidValue as error:  # of a draft that is itself written by way of a draft
        if only is None or not str(error).startswith(f"{only}: "):
            raise
        raise InvalidValue(f"{path}{str(error).removeprefix(str(only))}") from error
    except OSError as error:
        if only is not None and error.filename not in (None, str(only)):
            raise
        reason = error.strerror or str(error)
        raise InvalidValue(
            f"{path}: cannot be written ({reason}); name a place that can be written and has room"
        ) from error
    except UnicodeEncodeError as error:
        held = error.object[error.start : error.end]
        raise InvalidValue(f"{path}: cannot be written ({held!r} is not Unicode text)") from error


@overload
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["w"] = "w", *, follow: bool = True
) -> AbstractContextManager[IO[str]]: ...
@overload
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["wb"], *, follow: bool = True
) -> AbstractContextManager[IO[bytes]]: ...
@contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["w", "wb"] = "w", *, follow: bool = True
) -> Iterator[IO[Any]]:
    """An open file that becomes ``path`` when the block ends, see :func:`draft_of`, also for errors.

    Its text is UTF-8, with ``\\n`` on every system, as ``csv`` expects.
    """
    with draft_of(path, follow=follow) as draft:
        opened: IO[Any] = draft.open("wb") if mode == "wb" else draft.open("w", encoding="utf-8", newline="")
        with opened as file:
            yield file


def write_text(path: str | os.PathLike[str], text: str, *, follow: bool = True) -> None:
    """Write a text file (UTF-8) in one step; links and errors as in :func:`draft_of`."""
    with atomic_write(path, follow=follow) as file:
        file.write(text)


def write_csv(path: str | os.PathLike[str], header: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file (UTF-8, lines end in ``\\n``) in one step; errors as in :func:`draft_of`."""
    with atomic_write(path) as file:
        # It quotes the letters of its own line end: of "\r\n" also a lone "\r", at which readers end a row.
        lines: Any = SimpleNamespace(write=lambda row: file.write(row.removesuffix("\r\n") + "\n"))
        writer = csv.writer(lines, lineterminator="\r\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_json(
    path: str | os.PathLike[str], value: Any, indent: int | None = None, *, follow: bool = True
) -> None:
    """Write one JSON document (UTF-8, unescaped letters of all scripts) in one step; links as in
    :func:`draft_of`.

    Raises:
        InvalidValue: the file cannot be written.
        TypeError: ``value`` is not serialisable.
    """
    write_text(path, json.dumps(value, ensure_ascii=False, indent=indent) + "\n", follow=follow)


def require_unread(out: str | Path, *read: str | Path | None) -> None:
    """Refuse to write over a file that the same command reads; None is no file.

    Raises:
        InvalidValue: ``out`` is one of ``read``, by this name or through a link.
    """
    target = os.path.realpath(out)
    if any(path is not None and os.path.realpath(path) == target for path in read):
        raise InvalidValue(f"{out}: is read by the command, and would be written over; name another file")


def _flush(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())


def make_folders(path: Path) -> None:
    """Make a folder, and those above it that are missing, with their names on disk: what is synced in a
    folder whose own name is not is lost when the power fails.
    """
    missing = [*takewhile(lambda folder: not folder.is_dir(), (path, *path.parents))]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


def sync_folder(path: Path) -> None:
    """Sync the names in a folder to disk, where that is possible: Windows and some network drives cannot."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # it may be written, but not read
        return
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(folder)
