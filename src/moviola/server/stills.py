"""Caches of files made of videos: each is made once, appears complete, and the oldest are deleted first."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from moviola.errors import LibraryError
from moviola.files.presence import is_folder
from moviola.files.writing import atomic_write
from moviola.media import frame_at, read_small_still, sample_stills
from moviola.server.pools import Pool

__all__ = ["FileCache", "write_still", "write_strip"]

_QUALITY = 80
_TOUCH = 3600  # seconds between two updates of a file's time of use
_KEEP = 0.8  # share of a full cache that is kept
_PAGE, _ENTRY = 1 << 12, 1 << 10  # minimum bytes on disk of a file with its name and inode
_Kept = Callable[[float], bytes | None]


class FileCache:
    """Files by name in a folder that may be deleted at any time. Safe for threads.

    Args:
        library: nothing is made while this folder is gone: a new one would be in its way when it comes back.
        most_bytes: of all files together, as the disk counts; the least recently used ones are deleted first.
    """

    def __init__(self, folder: Path, library: Path, most_bytes: int) -> None:
        self.folder, self._library, self._most = folder, library, most_bytes
        self._making: dict[str, asyncio.Task[Path]] = {}
        self._bytes: int | None = None
        self._lock = Lock()

    def find(self, name: str) -> Path | None:
        """The file of a name, if it exists."""
        path = self.folder / name
        try:
            used = path.stat().st_mtime
        except OSError:
            return None
        if time.time() - used > _TOUCH:
            with suppress(OSError):  # it then counts as older than it is
                os.utime(path)
        return path

    async def get(self, pool: Pool, name: str, make: Callable[[Path], None]) -> Path:
        """The file of a name, made by ``make(path)`` in a thread if missing.

        Requests for the same file share one making, which continues even if all clients have gone.

        Raises:
            Busy: the file is missing, and the pool is full.
            LibraryError: the file is missing, and the library is gone.
        """
        if ready := self.find(name):
            return ready
        if name not in self._making:
            task = self._making[name] = asyncio.ensure_future(pool.run(self._made, name, make))
            task.add_done_callback(lambda done: self._forget(name, done))
        return await asyncio.shield(self._making[name])

    def _forget(self, name: str, task: asyncio.Task[Path]) -> None:
        del self._making[name]
        if not task.cancelled():
            task.exception()  # clients that wait get it; without one it is ignored

    def _made(self, name: str, make: Callable[[Path], None]) -> Path:
        if not is_folder(self._library):
            raise LibraryError(f"{self._library}: gone; put the library back, or serve it at its new place")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
        with self._lock:
            if self._bytes is None:
                self._bytes = sum(size for _, size, _ in self._files())
            else:
                self._bytes += _taken(path.stat())
            if self._bytes > self._most:
                self._bytes = self._shrink(path)
        return path

    def _files(self) -> list[tuple[float, int, Path]]:
        """Time of last use, bytes and path of each file."""
        files = []
        for path in self.folder.rglob("*"):
            with suppress(OSError):
                if path.is_file():
                    about = path.stat()
                    files.append((about.st_mtime, _taken(about), path))
        return files

    def _shrink(self, newest: Path) -> int:
        """Delete the least recently used files; returns the bytes that are left."""
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= self._most * _KEEP:
                break
            if path != newest:
                path.unlink(missing_ok=True)
                total -= size
        return total


def _taken(about: os.stat_result) -> int:
    """Bytes on disk of a file with its entry; small files take far more than their content."""
    return -(-about.st_size // _PAGE) * _PAGE + _ENTRY


def write_still(video: Path, time: float, width: int, out: Path, kept: _Kept | None = None) -> None:
    """Write the frame at a time as a JPEG; errors as in :func:`moviola.media.frame_at`.

    ``kept`` returns a small still at a time, for a video that is away.
    """
    small = kept(time) if kept else None
    image = frame_at(video, time, width) if small is None else read_small_still(small, width)
    _write_jpeg(Image.fromarray(image), out)


def write_strip(
    video: Path,
    times: Sequence[float],
    tile: int,
    size: tuple[int, int],
    out: Path,
    *,
    kept: _Kept | None = None,
) -> None:
    """Write frames side by side as one JPEG; errors as in :func:`moviola.media.sample_stills`.

    Args:
        times: seconds, rising.
        tile: pixels between the middles of two neighbours.
        size: width and height of each in pixels, at most as wide as a tile.
        kept: returns a small still at a time, for a video that is away.
    """
    width, height = size
    strip = Image.new("RGB", (tile * len(times), height))
    for place, image in enumerate(_images(video, times, max(size), kept)):
        strip.paste(Image.fromarray(image).resize(size), (place * tile + (tile - width) // 2, 0))
    _write_jpeg(strip, out)


def _images(
    video: Path, times: Sequence[float], side: int, kept: _Kept | None
) -> Iterator[NDArray[np.uint8]]:
    small = [still for still in map(kept, times) if still is not None] if kept else []
    if small:
        yield from (read_small_still(still, side) for still in small)
        return
    # Stills are distinct by the millisecond: of a short span some are shown more than once.
    counts = Counter(round(time, 3) for time in times)
    with sample_stills(video, list(counts), longest_side=side) as stills:
        for still, count in zip(stills, counts.values(), strict=True):
            yield from repeat(still.image, count)


def _write_jpeg(image: Image.Image, out: Path) -> None:
    with atomic_write(out, "wb", follow=False) as file:
        image.save(file, "JPEG", quality=_QUALITY)
