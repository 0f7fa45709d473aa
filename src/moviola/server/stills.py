"""Files made of videos, each once: stills, strips, playable videos; least recently used ones go first."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from moviola.errors import LibraryError, MoviolaError, NotFound
from moviola.files.presence import is_folder
from moviola.files.writing import atomic_write
from moviola.media import frame_at, make_playable, read_small_still, sample_stills
from moviola.server.pools import Pool
from moviola.server.problems import Busy
from moviola.server.progress import Progress

__all__ = ["Conversions", "FileCache", "write_still", "write_strip"]

_QUALITY = 80
_TOUCH = 3600  # seconds between two updates of a file's time of use
_KEEP = 0.8  # share of a full cache that is kept
_PAGE, _ENTRY = 1 << 12, 1 << 10  # minimum bytes on disk of a file with its name and inode
# Seconds that a request waits for a video to be converted: long enough for what is only copied.
_PATIENCE = 3.0
_MOST = 100  # failures that are remembered
_Failed = tuple[tuple[int, int], MoviolaError]
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


class Conversions:
    """Videos converted by a pool, by name in a cache. For one event loop."""

    def __init__(self, files: FileCache, pool: Pool) -> None:
        self.files, self._pool = files, pool
        self._progress: dict[str, Progress] = {}
        self._failed: OrderedDict[str, _Failed] = OrderedDict()

    async def get(self, source: Path, name: str, duration: float, track: int | None = None) -> Path:
        """The converted video of a name, made if missing; it goes on when its clients have gone.

        ``track`` is the number of a sound track, from 1 on. Busy says how far it is; what cannot be converted
        is not tried again until its file changes.
        """
        try:
            about = source.stat()
        except OSError as error:
            raise NotFound(
                f"{source.name}: its file is not there ({error.strerror}); plug its drive in, or index its "
                "new place"
            ) from error
        state = (about.st_mtime_ns, about.st_size)
        if (failed := self._failed.get(name)) and failed[0] == state:
            raise failed[1].with_traceback(None)
        progress = self._progress.setdefault(name, Progress())

        def make(out: Path) -> None:
            try:
                progress.at(0)
                make_playable(source, out, track, lambda seconds: progress.at(seconds / max(duration, 0.1)))
            except MoviolaError as error:
                self._failed[name] = (state, error)
                while len(self._failed) > _MOST:
                    self._failed.popitem(last=False)
                raise
            finally:  # whether or not anybody waits: another conversion starts at nothing
                self._progress.pop(name, None)

        try:
            return await asyncio.wait_for(self.files.get(self._pool, name, make), _PATIENCE)
        except TimeoutError:
            waits = "waits to be converted" if progress.share is None else "being converted"
            raise Busy(
                f"{source.name}: {waits} for browsers, once; it plays when that is done", progress
            ) from None
        except BaseException:
            self._progress.pop(name, None)
            raise


def write_still(video: Path, time: float, width: int, out: Path, kept: _Kept | None = None) -> None:
    """Write the frame at a time as a JPEG; errors as in :func:`moviola.media.frame_at`.

    ``kept`` returns a small still at a time, for a video that is away.
    """
    small = kept(time) if kept else None
    image = frame_at(video, time, width) if small is None else read_small_still(small, width)
    _write_jpeg(Image.fromarray(image), out)


def write_strip(
    video: Path, times: Sequence[float], tile: int, size: tuple[int, int], out: Path, *,
    kept: _Kept | None = None,
) -> None:  # fmt: skip
    """Write frames at rising times side by side as one JPEG; ``kept`` as of :func:`write_still`.

    ``tile`` are the pixels between the middles of two neighbours, ``size`` width and height of each, at most
    as wide as a tile. Errors as in :func:`moviola.media.sample_stills`.
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
    with atomic_write(out, "wb") as file:
        image.save(file, "JPEG", quality=_QUALITY)
