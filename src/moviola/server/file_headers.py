"""Headers of requests for files: Range and If-None-Match."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moviola.server.problems import problem

__all__ = ["Ranges", "has_already"]

# No file has more bytes than nineteen digits can count.
_RANGE = re.compile("([0-9]{0,19})-([0-9]{0,19})")


def has_already(request: Request, etag: str) -> bool:
    """Whether the client has a file as it is now; ``*`` stands for any state of it."""
    known = request.headers.get("if-none-match", "")
    return etag in known or known.strip() == "*"


class Ranges:
    """Passes over a ``Range`` that names no bytes, as RFC 9110 (14.2) has it, and refuses bytes past the end
    with an error in JSON.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = Headers(scope=scope).get("range") if scope["type"] == "http" else None
        if wanted is None:
            await self.app(scope, receive, send)
            return
        if not _names_bytes(wanted):
            scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"range"]
        refused = False

        async def worded(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start" and message["status"] == 416:
                refused = True
                size = Headers(raw=message["headers"]).get("content-range", "")
                await _refusal(wanted, size)(scope, receive, send)
            elif not refused:
                await send(message)

        await self.app(scope, receive, worded)


def _refusal(wanted: str, size: str) -> ASGIApp:
    ends = f"the file has {size.rpartition('/')[2]} bytes"
    return problem("range", f"Range {wanted!r:.100}: {ends}; ask for some of these", {"Content-Range": size})


def _names_bytes(header: str) -> bool:
    unit, _, listed = header.partition("=")
    ranges = [one.strip() for one in listed.split(",") if one.strip()]
    return unit.strip().lower() == "bytes" and bool(ranges) and all(map(_is_range, ranges))


def _is_range(text: str) -> bool:
    found = _RANGE.fullmatch(text)
    if found is None:
        return False
    first, last = found.groups()
    return int(first) <= int(last) if first and last else bool(first or last)
