"""What somebody decides who starts a server."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from moviola.errors import InvalidValue
from moviola.search.alerts import AlertOptions
from moviola.threads import available_cores

__all__ = ["Limits", "Options", "is_loopback"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask for, and how much goes on at once.

    Attributes:
        query_characters: of all texts of a query together.
        top_k: moments of an answer.
        body_bytes: of a request, but for a picture.
        picture_bytes, picture_pixels: of a picture that is searched with.
        clip_seconds: of one moment that is cut out.
        waiting: requests that may wait for a thread of a pool before others are sent away.
        jobs: ingest jobs that are queued or run.
        cache_bytes: stills and converted videos on disk.
    """

    query_characters: int = 2_000
    top_k: int = 500
    body_bytes: int = 2**20
    picture_bytes: int = 20 * 2**20
    picture_pixels: int = 50_000_000
    clip_seconds: float = 3600.0
    waiting: int = 200
    jobs: int = 8
    cache_bytes: int = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Options:
    """How a library is served.

    Attributes:
        host: address to listen on; anything but this machine's own needs a token.
        port: to listen on; 0 takes a free one.
        token: what a client has to show; empty for none.
        allow_ingest: folders below which files may be brought into the library; none by default.
        allow_hosts: names by which the server may be addressed, besides ``localhost`` and numeric addresses.
        watch: folders as which the library is kept, see :mod:`moviola.library.watching`; none by default.
        alerts: who is told when a saved search finds something new in what is watched; nobody by default.
        judge: a judging task about the library's videos, of ``moviola judge new``; None for none.
        threads: that search at once, and that read videos at once; by default one per core.
        limits: see :class:`Limits`.

    Raises:
        InvalidValue: another host without a token, a token that no header can carry, or a folder to ingest
            from that is none.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str = ""
    allow_ingest: tuple[Path, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    watch: tuple[Path, ...] = ()
    alerts: AlertOptions = field(default_factory=AlertOptions)
    judge: Path | None = None
    threads: int = field(default_factory=available_cores)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.host):
            raise InvalidValue(
                f"host {self.host}: others on the network could reach the library; give a token "
                "(--token, or MOVIOLA_TOKEN), or listen on 127.0.0.1"
            )
        if self.token and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise InvalidValue("token: use ASCII letters, digits and signs without spaces")
        if self.threads < 1:
            raise InvalidValue(f"threads {self.threads}: give at least 1")
        for folder in self.allow_ingest:
            if not folder.is_dir():
                raise InvalidValue(f"--allow-ingest {folder}: no such folder; name one that exists")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
