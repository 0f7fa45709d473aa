"""Files that are sent: streamed into a folder from which they may be brought in, whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from moviola.errors import InvalidValue
from moviola.media import VIDEO_SUFFIXES

__all__ = ["receive"]

# Bytes of a disk that no upload takes.
_SPARE = 1 << 30
_LONGEST_NAME = 200


async def receive(chunks: AsyncIterator[bytes], name: str, folder: Path, announced: int) -> Path:
    """Write a file; where the name is taken, a number is added to it.

    Args:
        chunks: its bytes.
        name: of a video, without folders.
        folder: where it goes.
        announced: number of bytes; 0 where it is not known.

    Raises:
        InvalidValue: no name of a video, no room for it, or a folder that cannot be written to.
    """
    _require_name(name)
    if announced > (room := shutil.disk_usage(folder).free - _SPARE):
        raise InvalidValue(f"{name}: {announced:,} bytes, but there is room for {max(room, 0):,}; make room")
    part = folder / f".{secrets.token_hex(8)}.part"
    try:
        async with await anyio.open_file(part, "wb") as file:
            async for chunk in chunks:
                await file.write(chunk)
        return await anyio.to_thread.run_sync(_put, part, folder, name)
    except OSError as error:
        raise InvalidValue(f"{name}: cannot be written to {folder} ({error.strerror})") from error
    finally:
        part.unlink(missing_ok=True)


def _require_name(name: str) -> None:
    odd = not name.isprintable() or name.startswith(".") or set(name) & set('/\\:*?"<>|')
    if odd or len(name.encode("utf-8", "replace")) > _LONGEST_NAME or name != name.strip():
        raise InvalidValue(f"name {name!r:.200}: give the name of a file alone, such as beach.mp4")
    if Path(name).suffix.lower() not in VIDEO_SUFFIXES:
        raise InvalidValue(
            f"name {name!r:.200}: not a video by its suffix; videos are brought in, no other files"
        )


def _put(part: Path, folder: Path, name: str) -> Path:
    """Give a file its name, over no other file."""
    stem, suffix = Path(name).stem, Path(name).suffix
    number = 1
    while True:
        out = folder / (name if number == 1 else f"{stem} ({number}){suffix}")
        try:
            out.touch(exist_ok=False)  # the name is ours from now on
        except FileExistsError:
            number += 1
        else:
            part.replace(out)
            return out
