"""Opening files that others may have put there: never a pipe that blocks, a device that never ends, or a link
where none is expected.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["open_regular", "read_regular"]

_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}


def open_regular(
    path: str | os.PathLike[str], flags: int = os.O_RDONLY, *, follow: bool = True, alone: bool = False
) -> int:
    """A descriptor of a regular file that exists.

    Args:
        flags: those of ``os.open``.
        follow: whether the file may be a link to one.
        alone: whether it must have no other name: by another one it could lie elsewhere.

    Raises:
        OSError: there is none, it is no regular file, or not as it must be; the message says which.
    """
    # Without O_NONBLOCK a pipe would block until its other end is opened.
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        file = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    except OSError as error:
        if not follow and error.errno in (errno.ELOOP, errno.EMLINK):
            raise OSError(error.errno, "a link, not a file", os.fspath(path)) from None
        if error.errno == errno.ENXIO:  # a socket, or a pipe that was to be written to
            raise OSError(error.errno, "a pipe or socket, not a file", os.fspath(path)) from None
        raise
    status = os.fstat(file)
    wrong = ""
    if not stat.S_ISREG(status.st_mode):
        wrong = f"{_KINDS.get(stat.S_IFMT(status.st_mode), 'a device')}, not a file"
    elif alone and status.st_nlink > 1:
        wrong = "a file of several names"
    if wrong:
        os.close(file)
        raise OSError(errno.EINVAL, wrong, os.fspath(path))
    return file


def read_regular(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> bytes:
    """The content of a regular file of at most ``most`` bytes; ``OSError`` as from :func:`open_regular`, and
    for a longer one.
    """
    with os.fdopen(open_regular(Path(path), follow=follow), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes", os.fspath(path))
    return data
