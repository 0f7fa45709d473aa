"""Shared state of all routes: the library, threads, caches."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import unquote

from fastapi import Depends, Request
from fastapi import Path as PathParameter

from moviola.errors import InvalidValue, MoviolaError, NotFound
from moviola.files.caches import cache_of
from moviola.library import LibraryStore, VideoRow, there
from moviola.library.ingest.watching import require_watchable
from moviola.library.united_catalogue import names_of
from moviola.library.united_store import belongs_to_one, home_of
from moviola.looker import Looker, Sending
from moviola.plugins import server_additions
from moviola.search import KeptPicture, Libraries, Library, LikePicture
from moviola.server.comparing import Comparing
from moviola.server.converting import Conversions
from moviola.server.exporting import Exports
from moviola.server.jobs import Jobs, watch
from moviola.server.options import Options
from moviola.server.pools import Pool
from moviola.server.problems import WrongField
from moviola.server.questions import Questions
from moviola.server.receiving import Receiving
from moviola.server.stills import FileCache
from moviola.server.uploads import Uploads

__all__ = ["Home", "Service", "ServiceOf", "VideoOf", "decoded"]

_PATIENCE = 3.0  # seconds that threads have to finish

log = logging.getLogger("moviola.server")
T = TypeVar("T")


@dataclass(frozen=True)
class Home:
    """One of the libraries that are served.

    Attributes:
        name: by which it differs from the others: that of its folder.
        stills, converted: what is made of its videos, by their numbers there; in its own cache, whichever
            libraries are served beside it.
    """

    name: str
    store: LibraryStore
    stills: FileCache
    converted: Conversions

    @property
    def folder(self) -> Path:
        """Path of the library."""
        return self.store.folder


class Service:
    """Shared state of all routes: what they work on, and limits of concurrent work.

    Args:
        folders: of the libraries, which are served as one.

    Raises:
        InvalidValue: several libraries, and folders to watch.
    """

    def __init__(self, folders: Sequence[str | os.PathLike[str]], options: Options) -> None:
        limits = options.limits
        self.options = options
        # It follows the changes of writers.
        self.library = (
            Library(folders[0], read_only=True, device=options.device, resident=True)
            if len(folders) == 1
            else Libraries(folders, device=options.device, resident=True)
        )
        if options.watch and self.library.store.parts:
            names = ", ".join(str(part.folder) for part in self.library.store.parts)
            raise InvalidValue(
                f"watch {options.watch[0]}: several libraries are served ({names}), and what comes in "
                "belongs to one; watch beside the server: `moviola watch FOLDER --library LIBRARY`"
            )
        if options.looker is not None:
            self.library.checker = Looker(
                self.library.store, options.looker, right=options.looker_right, announce=self.say
            )
        require_watchable(self.library.catalogue, options.watch)
        self.additions: dict[str, Any] = {
            name: server_additions()[name].opened(self.library, settings)
            for name, settings in options.additions.items()
        }
        """What plug-ins have opened, by name."""
        self.searching = Pool("search", threads=options.threads, waiting=limits.waiting)
        self.looking = Pool("look", threads=1, waiting=limits.looks)  # at another server's pace
        self.asking = Pool("ask", threads=1, waiting=limits.looks)  # in rounds, beside single looks
        self.media = Pool("media", threads=options.threads, waiting=limits.waiting)  # stills and clips
        self.converting = Pool("convert", threads=1, waiting=limits.jobs)
        self.exporting = Pool("export", threads=1, waiting=limits.jobs)
        self.exports = Exports(self.exporting)
        self.questions = Questions(self.asking)
        self.compare = Pool("compare", threads=1, waiting=0)
        self.comparing = Comparing()
        self.homes = self._homes_of(self.library.store)
        self.uploads = Uploads(limits.picture_pixels)
        first = self.library.folder
        self.receiving = Receiving(
            options.allow_ingest, limits.upload_bytes, limits.uploads, states=cache_of(first) / "uploads",
            home=first,
        )  # fmt: skip
        self.jobs = Jobs(
            options.allow_ingest, limits.jobs, patient=bool(options.watch), device=options.device
        )
        self.unready = "the encoder is being loaded"
        """Why queries cannot be answered yet, or at all; empty when they can."""
        self.warming: asyncio.Task[None] | None = None
        self.watching: asyncio.Task[None] | None = None

    def _homes_of(self, store: LibraryStore) -> tuple[Home, ...]:
        parts, most = store.parts or (store,), self.options.limits.cache_bytes
        homes = []
        for name, part in zip(names_of([part.folder for part in parts]), parts, strict=True):
            folder, cache = part.folder, cache_of(part.folder)
            stills = FileCache(cache / "stills", folder, most // 4 // len(parts))
            converted = Conversions(
                FileCache(cache / "converted", folder, most // len(parts)), self.converting
            )
            homes.append(Home(name, part, stills, converted))
        return tuple(homes)

    @property
    def name(self) -> str:
        """The names of the libraries that are served."""
        return ", ".join(home.name for home in self.homes)

    def home_of(self, video: VideoRow) -> tuple[Home, VideoRow]:
        """The library of a video, and the video as it is there; NotFound where it has just left."""
        place, own = home_of(self.library.store, video)
        return self.homes[place], own

    def only_home(self, what: str) -> Home:
        """The library, where one is served. Raises LibraryError: several are, and ``what`` belong to one."""
        if len(self.homes) > 1:
            raise belongs_to_one(self.library.store, what)
        return self.homes[0]

    def home_named(self, name: str | None) -> Home:
        """The library of a name; None: the only one.

        Raises:
            WrongField: no name among several, or another one; the field is ``library``.
        """
        if name is None and len(self.homes) == 1:
            return self.homes[0]
        if found := [home for home in self.homes if home.name == name]:
            return found[0]
        given = "not given, and several are served" if name is None else f"{name!r:.200}: none of these"
        raise WrongField("library", InvalidValue(f"library: {given}; name one of {self.name}"))

    def without_paths(self, message: str) -> str:
        """A message with the names of the libraries instead of their paths."""
        for home in self.homes:
            message = message.replace(str(home.folder.absolute()), home.name)
        return message

    @property
    def pools(self) -> tuple[Pool, ...]:
        others = self.converting, self.exporting, self.compare
        return self.searching, self.looking, self.asking, self.media, *others

    @staticmethod
    def say(sending: Sending) -> None:
        """Log what is sent to a model that looks, before it is."""
        log.info("%s", sending)

    def start(self) -> None:
        """Begin what goes on beside requests, in the running event loop."""
        options = self.options
        self.warming = asyncio.create_task(self.warm())
        if options.watch:
            self.watching = asyncio.create_task(
                watch(self.library.folder, options.watch, options.reading, options.alerts, options.device)
            )

    async def warm(self) -> None:
        """Answer a first query, so that encoder and index are in memory before a user's."""
        try:
            if len(self.library):
                await self.searching.run(self.library.search, "a first query", top_k=1)
            self.unready = ""
        except Exception as error:
            known = isinstance(error, MoviolaError)
            self.unready = str(error) if known else "a first query failed; the server's log says where"
            log.warning("no query can be answered: %s", error, exc_info=not known)

    async def change(self, home: Home, work: Callable[[Library], T], pool: Pool | None = None) -> T:
        """Do something to a library as its only writer, in a thread of ``media`` or another pool."""

        def run() -> T:
            with Library(home.folder, create=False, device=self.options.device) as library:
                done = work(library)
            self.library.store.refresh()
            return done

        return await (pool or self.media).run(run)

    def picture(self, name: str) -> LikePicture | KeptPicture:
        """The picture of a name that a question has: one that was uploaded, or that a saved search has.

        Raises:
            InvalidValue: no such name, a path for instance.
            NotFound: it is not here, or no longer.
        """
        kept = KeptPicture(name)
        try:
            return LikePicture(self.uploads.path(name))
        except NotFound:
            if name not in self.library.userdata.pictures():
                raise
            return kept

    async def close(self) -> None:
        for task in filter(None, (self.warming, self.watching)):
            task.cancel()
        if self.watching is not None:
            await asyncio.wait([self.watching])  # its process ends with it
        await self.jobs.close()
        self.exports.close()
        self.questions.close()
        self.comparing.cancel()
        ended = await asyncio.gather(*(asyncio.to_thread(pool.close, _PATIENCE) for pool in self.pools))
        self.uploads.close()
        for addition in self.additions.values():
            addition.close()
        if all(ended):
            self.library.close()  # not under a thread that reads from it


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


ServiceOf = Annotated[Service, Depends(_service)]
"""The service of a route's app."""


def decoded(segment: str, what: str) -> str:
    """A name in a path, which comes percent-encoded, see :class:`moviola.server.security.RawPaths`."""
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
    name = decoded(video_id, "video")
    return there(service.library.catalogue.video(name), service.library.catalogue)


VideoOf = Annotated[VideoRow, Depends(_video)]
"""The video in the path of a request."""
