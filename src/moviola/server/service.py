"""Shared state of all routes: the library, threads, caches."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Self, TypeVar
from urllib.parse import unquote

from fastapi import Depends, Request
from fastapi import Path as PathParameter

from moviola.errors import InvalidValue, MoviolaError
from moviola.files.caches import cache_of
from moviola.judging import JudgingTask
from moviola.library import VideoRow, there
from moviola.search import Library
from moviola.server.converting import Conversions
from moviola.server.dres import Dres
from moviola.server.exporting import Exports
from moviola.server.jobs import Jobs, Watched
from moviola.server.options import Options
from moviola.server.pools import Pool
from moviola.server.receiving import Receiving
from moviola.server.stills import FileCache
from moviola.server.uploads import Uploads

__all__ = ["Service", "ServiceOf", "VideoOf", "decoded"]

# Seconds that threads have to finish.
_PATIENCE = 3.0

log = logging.getLogger("moviola.server")
T = TypeVar("T")


@dataclass
class Service:
    """Shared state of all routes.

    Attributes:
        library: opened read-only; it follows the changes of writers.
        options: of this server.
        searching: threads for queries.
        media: threads for stills and clips.
        converting, exporting: one thread for conversions, one for exports.
        exports: exports that take long.
        stills: cache of pictures made of videos.
        converted: videos made for browsers.
        uploads: uploaded pictures.
        receiving: videos that are being sent.
        jobs: indexing jobs.
        watched: watched folders.
        task: judging task, if any.
        dres: account on an evaluation server, if any.
        unready: why queries cannot be answered yet, or at all; empty when they can.
    """

    library: Library
    options: Options
    searching: Pool
    media: Pool
    converting: Pool
    exporting: Pool
    exports: Exports
    stills: FileCache
    converted: Conversions
    uploads: Uploads
    receiving: Receiving
    jobs: Jobs
    watched: Watched
    task: JudgingTask | None = None
    dres: Dres | None = None
    unready: str = "the encoder is being loaded"
    warming: asyncio.Task[None] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, folder: str | os.PathLike[str], options: Options) -> Self:
        """Open a library."""
        library = Library(folder, read_only=True)
        task = None if options.judge is None else _task_on(library, options.judge)
        limits, cache = options.limits, cache_of(library.folder)
        exporting = Pool("export", threads=1, waiting=limits.jobs)
        converting = Pool("convert", threads=1, waiting=limits.jobs)
        return cls(
            library,
            options,
            searching=Pool("search", threads=options.threads, waiting=limits.waiting),
            media=Pool("media", threads=options.threads, waiting=limits.waiting),
            converting=converting,
            exporting=exporting,
            exports=Exports(exporting),
            stills=FileCache(cache / "stills", library.folder, limits.cache_bytes // 4),
            converted=Conversions(
                FileCache(cache / "converted", library.folder, limits.cache_bytes), converting
            ),
            uploads=Uploads(limits.picture_pixels),
            receiving=Receiving(options.allow_ingest, limits.upload_bytes, limits.uploads),
            jobs=Jobs(library.folder, options.allow_ingest, limits.jobs, patient=bool(options.watch)),
            watched=Watched(library.folder, options.watch, options.alerts),
            task=task,
            dres=options.dres and Dres(*options.dres),
        )

    @property
    def pools(self) -> tuple[Pool, ...]:
        """All thread pools."""
        return self.searching, self.media, self.converting, self.exporting

    async def warm(self) -> None:
        """Answer a first query, so that encoder and index are in memory before a user's."""
        try:
            if len(self.library):
                await self.searching.run(self.library.search, "a first query", top_k=1)
            self.unready = ""
        except MoviolaError as error:
            self.unready = str(error)
            log.warning("no query can be answered: %s", error)

    async def change(self, work: Callable[[Library], T], pool: Pool | None = None) -> T:
        """Do something to the library as its writer, in a thread of ``media`` or another pool.

        Raises:
            LibraryLocked: another process is writing.
        """

        def run() -> T:
            with Library(self.library.folder) as library:
                done = work(library)
            self.library.store.refresh()
            return done

        return await (pool or self.media).run(run)

    async def close(self) -> None:
        """Release everything."""
        if self.warming is not None:
            self.warming.cancel()
        await self.watched.close()
        await self.jobs.close()
        self.exports.close()
        ended = await asyncio.gather(*(asyncio.to_thread(pool.close, _PATIENCE) for pool in self.pools))
        self.uploads.close()
        if self.dres is not None:
            self.dres.close()
        if self.task is not None:
            self.task.close()
        if all(ended):
            self.library.close()  # not under a thread that reads from it


def _task_on(library: Library, path: Path) -> JudgingTask:
    """A judging task whose videos are all in the library."""
    task = JudgingTask(path)
    lacking = {pair.video_name for pair in task.pairs} - {video.video_id for video in library.videos()}
    if lacking:
        raise InvalidValue(
            f"{path}: judges {len(lacking)} videos that {library.folder} lacks ({min(lacking)}, …); serve "
            "the library that the task was made on"
        )
    return task


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceOf = Annotated[Service, Depends(_service)]
"""The service of a route's app."""


def decoded(segment: str, what: str) -> str:
    """A name in a path, which comes percent-encoded, see :class:`moviola.server.security.RawPaths`.

    Raises:
        InvalidValue: it is not UTF-8.
    """
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{what} {segment:.200}: not UTF-8 after percent-decoding") from error


def _video(
    service: ServiceOf,
    video_id: Annotated[
        str,
        PathParameter(
            description="The video's id as one segment: `/` in it is written `%2F`.",
            examples=["holiday%2Fbeach"],
            max_length=12_000,
        ),
    ],
) -> VideoRow:
    """The video in a path."""
    name = decoded(video_id, "video")
    return there(service.library.catalogue.video(name), service.library.catalogue)


VideoOf = Annotated[VideoRow, Depends(_video)]
"""The video in the path of a request."""
