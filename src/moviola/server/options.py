"""Server options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from moviola.errors import InvalidValue
from moviola.library.ingest.recognition import Readers
from moviola.library.ingest.sounds import chosen_sound_reader
from moviola.looker import Endpoint
from moviola.search.alerts import AlertOptions
from moviola.threads import available_cores

__all__ = ["Limits", "Options", "is_loopback"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request, and of concurrent work.

    Attributes:
        query_characters: total length of the texts of a query.
        top_k: moments of an answer.
        body_bytes: size of a request, except for what follows.
        kept_bytes: size of what people keep (collections, saved searches, marks), one entry or all of them.
        picture_bytes, picture_pixels: size of an uploaded picture.
        upload_bytes: size of an uploaded video.
        uploads: unfinished uploads.
        clip_seconds: length of a clip.
        waiting: requests that may wait for a thread of a pool; others get 503.
        looks: searches that may wait for the model that looks, and questions that may wait for it.
        jobs: waiting and running indexing jobs.
        cache_bytes: stills and converted videos on disk.
    """

    query_characters: int = 2_000
    top_k: int = 500
    body_bytes: int = 2**20
    kept_bytes: int = 64 * 2**20
    picture_bytes: int = 20 * 2**20
    picture_pixels: int = 50_000_000
    upload_bytes: int = 64 * 2**30
    uploads: int = 100
    clip_seconds: float = 3600.0
    waiting: int = 200
    looks: int = 4
    jobs: int = 8
    cache_bytes: int = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a server.

    Attributes:
        host: address to listen on; any but this machine's own needs a token.
        port: 0 chooses a free one.
        token: secret of clients that may read and change; empty for none.
        read_token: secret of clients that may only read; empty for none. Without ``token`` beside it nobody
            may change anything. What reads: :func:`moviola.server.security.needed_right`.
        allow_ingest: folders from which videos may be indexed over HTTP; none by default.
        allow_hosts: further host names of the server, besides ``localhost`` and numeric addresses.
        root_path: path below which a proxy has the server, as ``/films``; empty at the root. Requests may
            come with it or without it.
        watch: folders to watch, see :mod:`moviola.library.ingest.watching`; none by default.
        reading: what is read of videos in watched folders: ``ocr``, ``ocr_reader``, ``ocr_language``,
            ``speech``, ``speech_language`` and ``sounds`` of
            :meth:`moviola.library.Indexer.index`; its defaults by default.
        alerts: reports of new findings of saved searches in watched folders; none by default.
        looker: a model that looks at moments where a client that may change something asks for it; None: no
            moment is sent anywhere.
        looker_right: share of its verdicts that are right, see :class:`moviola.looker.Looker`.
        additions: settings of what plug-ins add (:class:`moviola.plugins.ServerAddition`), by name.
        device: what encodes queries and videos: ``"cpu"``, ``"cuda"``, ``"cuda:N"``, ``"mps"`` or ``"auto"``.
        threads: searching threads, and threads that read videos; by default one per core.

    Raises:
        InvalidValue: another host without a token, a token that does not fit a header, one token for both
            rights, a folder that does not exist, a root path that is
            none, or what no reader can do.
        MissingDependency, MissingModel: a reader for watched folders is not on this machine.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str = ""
    read_token: str = ""
    allow_ingest: tuple[Path, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    root_path: str = ""
    watch: tuple[Path, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    alerts: AlertOptions = field(default_factory=AlertOptions)
    looker: Endpoint | None = None
    looker_right: float | None = None
    additions: Mapping[str, Any] = field(default_factory=dict, repr=False)
    device: str = "auto"
    threads: int = field(default_factory=available_cores)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not (self.token or self.read_token) and not is_loopback(self.host):
            raise InvalidValue(
                f"host {self.host}: reachable from the network without a token; give one "
                "(--token, or MOVIOLA_TOKEN), or listen on 127.0.0.1"
            )
        for name, token in (("token", self.token), ("read token", self.read_token)):
            if not (token.isascii() and token.isprintable() and " " not in token):
                raise InvalidValue(f"{name}: use ASCII letters, digits and signs without spaces")
        if self.token and self.token == self.read_token:
            raise InvalidValue("read token: the same as the token that may change; choose another one")
        if self.threads < 1:
            raise InvalidValue(f"threads {self.threads}: give at least 1")
        if not re.fullmatch(r"(/[\w.~-]+)*", self.root_path, re.ASCII):
            raise InvalidValue(
                f"root path {self.root_path!r}: give a path of letters, digits and -._~ that begins "
                "with / and does not end with one, as /films"
            )
        for folder in self.allow_ingest:
            if not folder.is_dir():
                raise InvalidValue(f"--allow-ingest {folder}: no such folder; name one that exists")
        if self.watch:  # the process that watches would fail again and again, where nobody looks
            unnamed = dict.fromkeys(("ocr", "ocr_reader", "speech"))
            named = unnamed | {name: value for name, value in self.reading.items() if name != "sounds"}
            Readers.require(**named, device=self.device)
            chosen_sound_reader(self.reading.get("sounds"))


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine only."""
    with suppress(ValueError):  # another name
        return host == "localhost" or ip_address(host).is_loopback
    return False
