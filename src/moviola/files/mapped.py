"""Files that are mapped into memory, and whether they are still as long as they were.

Who reads a page of a mapped file that was cut short, or whose disk does not answer, is ended by the system
(SIGBUS); no error can be caught. So who reads a mapped file asks before, and what a digest is compared with
is read through :meth:`MappedFile.parts_from`, whose errors can.
"""

from __future__ import annotations

import errno
import mmap
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from moviola.files.file_rows import read_at
from moviola.files.regular import open_regular

__all__ = ["MappedFile", "all_whole"]

_MAPPED: weakref.WeakSet[MappedFile] = weakref.WeakSet()
"""Every mapped file that is still in use."""
_AT_ONCE = 1 << 18  # bytes, which stay in the processor's cache until they are compared


class MappedFile(mmap.mmap):
    """The bytes of a regular file, by its path or open, for as long as an array of them is in use.

    Args:
        source: the file; it is not empty.
        private: whether the memory can be written to; the file never changes by that.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is empty.
    """

    path: Path
    _file: int
    _private: bool

    def __new__(cls, source: Path | IO[bytes], *, private: bool = False) -> Self:
        path = source if isinstance(source, Path) else Path(source.name)
        file = open_regular(source) if isinstance(source, Path) else os.dup(source.fileno())
        try:
            access = mmap.ACCESS_COPY if private else mmap.ACCESS_READ
            self = super().__new__(cls, file, 0, access=access)
        except BaseException:
            os.close(file)
            raise
        self.path, self._file, self._private = path, file, private
        weakref.finalize(self, os.close, file)
        _MAPPED.add(self)
        return self

    @property
    def array(self) -> NDArray[np.uint8]:
        """(n,) uint8, all of them, none of which is read before it is used."""
        return np.frombuffer(self, np.uint8)

    @property
    def whole(self) -> bool:
        """Whether the file is as long as when it was mapped."""
        return os.fstat(self._file).st_size >= len(self)

    def give_back(self) -> None:
        """Have what was read of the file no longer count as memory of the process, where the system can.

        It is read again when it is used.
        """
        if not self._private and hasattr(mmap, "MADV_DONTNEED"):
            self.madvise(mmap.MADV_DONTNEED)

    def parts_from(self, begin: int, count: int) -> Iterator[memoryview]:
        """Bytes from a place of the file on, in parts that are not read through memory; each is overwritten
        by the next one.

        Raises:
            OSError: they cannot be read, or the file has become shorter.
        """
        buffer, done = memoryview(bytearray(min(count, _AT_ONCE))), 0
        while done < count:
            read = read_at(self._file, buffer[: count - done], begin + done)
            if not read:
                raise OSError(errno.EIO, "shorter than it was", str(self.path))
            yield buffer[:read]
            done += read


def all_whole(folder: Path) -> bool:
    """Whether the files of a folder, and of those in it, that are mapped are as long as when they were."""
    return all(file.whole for file in list(_MAPPED) if file.path.is_relative_to(folder))
