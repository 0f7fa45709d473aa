"""Sealed files: a digest of the content at the end shows whether they are complete.

A seal is eight bytes that name the form and the SHA-256 of everything before them. It is for files that can
be made again (a library's ``cache/``): a reader ignores a file with a broken seal, and the next writer makes
it again. Formats that are read from the beginning or have a directory (``.npy``, ``.npz``, arrays on pages)
are not disturbed by the seal.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from moviola.errors import DataError
from moviola.files.regular import open_regular
from moviola.files.writing import draft_of

__all__ = ["SEAL_BYTES", "is_sealed", "opened_sealed", "seal", "sealed_draft_of"]

_MARK = b"sealed\x00\x01"
SEAL_BYTES = len(_MARK) + hashlib.sha256().digest_size
"""Length of a seal in bytes."""

_AT_ONCE = 1 << 20


@contextmanager
def sealed_draft_of(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Like :func:`moviola.files.writing.draft_of`, errors too, in place of a link; the file is sealed when
    the block ends.
    """
    with draft_of(path, follow=False) as draft:
        yield draft
        seal(draft)


def seal(path: Path) -> None:
    """Seal a new file that has no reader yet."""
    with path.open("r+b") as file:
        digest = _digest(file, os.fstat(file.fileno()).st_size)
        file.write(_MARK + digest)


@contextmanager
def opened_sealed(path: Path) -> Iterator[IO[bytes]]:
    """A sealed file, checked against its digest and open at its beginning.

    Raises:
        DataError: no such file, no regular one (a pipe is never waited for), or a missing or broken seal.
    """
    try:
        # With its name, which what maps the file takes from it.
        opened = open(path, "rb", opener=lambda name, _: open_regular(name))  # noqa: SIM115
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read ({reason}); delete it, it is made again") from error
    with opened as file:
        try:
            whole = _is_whole(file)
        except OSError as error:
            raise DataError(
                f"{path}: cannot be read ({error.strerror}); delete it, it is made again"
            ) from error
        if not whole:
            raise DataError(f"{path}: damaged (it does not match its digest); delete it, it is made again")
        file.seek(0)
        yield file


def is_sealed(path: Path) -> bool:
    """Whether a file exists and matches its digest."""
    try:
        with opened_sealed(path):
            return True
    except DataError:
        return False


def _is_whole(file: IO[bytes]) -> bool:
    length = os.fstat(file.fileno()).st_size - SEAL_BYTES
    return length >= 0 and _MARK + _digest(file, length) == file.read(SEAL_BYTES)


def _digest(file: IO[bytes], length: int) -> bytes:
    """Digest of the first ``length`` bytes of an open file, which is then positioned after them."""
    digest, left = hashlib.sha256(), length
    while left and (part := file.read(min(left, _AT_ONCE))):
        digest.update(part)
        left -= len(part)
    return digest.digest()
