"""Conversion of videos that browsers do not play: made once, with progress and the reason of a failure."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from pathlib import Path

from moviola.errors import MoviolaError, NotFound
from moviola.media import make_playable
from moviola.server.pools import Pool
from moviola.server.problems import Busy
from moviola.server.progress import Progress
from moviola.server.stills import FileCache

__all__ = ["Conversions"]

# Seconds that a request waits for a video to be converted: long enough for what is only copied.
_PATIENCE = 3.0
_MOST = 100  # failures that are remembered
_Failed = tuple[tuple[int, int], MoviolaError]


class Conversions:
    """Videos converted by a pool, by name in a cache. For one event loop."""

    def __init__(self, files: FileCache, pool: Pool) -> None:
        self.files, self._pool = files, pool
        self._progress: dict[str, Progress] = {}
        self._failed: OrderedDict[str, _Failed] = OrderedDict()

    async def get(self, source: Path, name: str, duration: float, track: int | None = None) -> Path:
        """The converted video of a name, made if missing; it goes on when its clients have gone.

        Args:
            source: the video's file.
            name: of the MP4 in the cache.
            duration: seconds.
            track: number of a sound track, from 1 on; None: the default one.

        Raises:
            Busy: it is not done yet; says how far it is. Or too many are waiting.
            MediaError: it cannot be converted. It is not tried again until its file changes.
            NotFound: its file is gone.
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
