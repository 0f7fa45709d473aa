"""Files over HTTP with byte ranges (RFC 9110, section 14)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from email.utils import formatdate
from pathlib import Path

import anyio
from fastapi.responses import Response, StreamingResponse

__all__ = ["ranged_file"]

_CHUNK = 256 * 1024
# One range of bytes; longer numbers than any file size do not count as numbers.
_RANGE = re.compile(r"bytes=\s*(\d{0,18})-(\d{0,18})\s*", re.IGNORECASE | re.ASCII)


def ranged_file(path: Path, media_type: str, method: str, request_headers: Mapping[str, str]) -> Response:
    """Respond 200, 206, 304 or 416 with a file.

    Several ranges at once, and invalid ones, are ignored, as the RFC allows: the response is the whole file.

    Args:
        path: the file.
        media_type: its media type.
        method: of the request; ``HEAD`` gets no bytes.
        request_headers: headers of the request: ``Range``, ``If-Range``, ``If-None-Match``.
    """
    status = path.stat()
    size = status.st_size
    etag = f'"{hashlib.sha256(f"{status.st_mtime_ns}-{size}-{path}".encode()).hexdigest()[:32]}"'
    changed = formatdate(status.st_mtime, usegmt=True)
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": etag,
        "Last-Modified": changed,
        "Cache-Control": "private, no-cache",
    }
    if etag in request_headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    wanted = _RANGE.fullmatch(request_headers.get("range", ""))
    if (
        wanted is None
        or not any(wanted.groups())
        or request_headers.get("if-range", etag) not in (etag, changed)
    ):
        code, start, stop = 200, 0, size
    else:
        code, (start, stop) = 206, _bounds(*wanted.groups(), size=size)
        if start >= stop:
            return Response(status_code=416, headers={**headers, "Content-Range": f"bytes */{size}"})
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    headers["Content-Length"] = str(stop - start)
    if method == "HEAD":
        return Response(status_code=code, headers=headers, media_type=media_type)
    return StreamingResponse(_bytes(path, start, stop), code, headers, media_type)


def _bounds(first: str, last: str, *, size: int) -> tuple[int, int]:
    """Start and end, the end excluded; ``-500`` are the last 500 bytes, ``500-`` those from there on."""
    if not first:
        return max(size - int(last), 0), size
    return int(first), min(int(last) + 1, size) if last else size


async def _bytes(path: Path, start: int, stop: int) -> AsyncIterator[bytes]:
    async with await anyio.open_file(path, "rb") as file:
        await file.seek(start)
        while start < stop:
            chunk = await file.read(min(_CHUNK, stop - start))
            if not chunk:
                return  # it was cut short while it was read; the client sees that bytes are missing
            start += len(chunk)
            yield chunk
