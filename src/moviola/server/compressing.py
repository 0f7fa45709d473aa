"""Answers in gzip, where a client takes it and it makes them smaller."""

from __future__ import annotations

import gzip

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Compressed"]

_KINDS = ("application/json", "application/jsonl", "text/", "image/svg+xml")
_LEAST = 600  # bytes: below them an answer is one packet in any case
_LEVEL = 5


class Compressed:
    """Compresses texts that are sent in one piece; pictures and videos are so already, and have ranges."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        taken = Headers(scope=scope).get("accept-encoding", "") if scope["type"] == "http" else ""
        if "gzip" not in taken or scope["method"] == "HEAD":
            await self.app(scope, receive, send)
            return
        start: Message = {}

        async def compressed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            if start:
                body = message.get("body", b"")
                whole = message["type"] == "http.response.body" and not message.get("more_body")
                if whole and len(body) >= _LEAST and _is_text(start):
                    headers = MutableHeaders(scope=start)
                    message = {**message, "body": (body := gzip.compress(body, _LEVEL, mtime=0))}
                    headers["content-encoding"], headers["content-length"] = "gzip", str(len(body))
                    headers.add_vary_header("Accept-Encoding")
                begun, start = start, {}
                await send(begun)
            await send(message)

        await self.app(scope, receive, compressed)


def _is_text(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    plain = not {"content-encoding", "content-range"}.intersection(headers) and start["status"] != 206
    return plain and headers.get("content-type", "").startswith(_KINDS)
