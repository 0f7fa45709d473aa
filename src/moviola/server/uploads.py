"""Uploaded pictures, in a folder that is deleted with the server, or by what sweeps the temporary one."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import time
from collections import OrderedDict
from contextlib import ExitStack, suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from threading import Lock

from PIL import Image

from moviola.errors import InvalidValue, MoviolaError, NotFound
from moviola.files.locks import exclusive
from moviola.media import PICTURE_FORMATS

__all__ = ["Uploads"]

_MOST = 100  # number of pictures kept; the least recently used one is dropped first
_PREFIX, _LOCK = "moviola-pictures-", ".lock"
_MAKING = 60  # seconds after which an unlocked folder is certainly abandoned


class Uploads:
    """Uploaded pictures of at most ``most_pixels`` by the hash of their bytes. Safe for threads."""

    def __init__(self, most_pixels: int) -> None:
        self._most_pixels = most_pixels
        self._folder: Path | None = None
        self._number = 0  # of the folder, of which another one may have the name after a sweep
        self._held = ExitStack()
        self._paths: OrderedDict[str, Path] = OrderedDict()
        self._lock = Lock()

    def add(self, data: bytes) -> tuple[str, int, int]:
        """Store a picture; returns its id, width and height.

        Raises:
            InvalidValue: an unreadable picture, one of too many pixels, or a full disk.
        """
        width, height = self._size(data)
        name = hashlib.sha256(data).hexdigest()[:32]
        with self._lock:
            if self._stored(name) is None:
                self._paths[name] = self._written(name, data)
            self._paths.move_to_end(name)
            while len(self._paths) > _MOST:
                self._paths.popitem(last=False)[1].unlink(missing_ok=True)
        return name, width, height

    def _written(self, name: str, data: bytes) -> Path:
        path = None
        try:
            if self._folder is None or _number_of(self._folder) != self._number:
                self._paths.clear()
                self._folder = self._made()
                self._number = _number_of(self._folder)
            path = self._folder / name
            path.write_bytes(data)
        except OSError as error:
            if path is not None:
                path.unlink(missing_ok=True)
            raise InvalidValue(
                f"picture: cannot be stored on the server ({error.strerror}); make room in its temporary "
                f"folder, {gettempdir()}, or make that folder"
            ) from error
        return path

    def _stored(self, name: str) -> Path | None:
        """The file of a picture; None where it was never sent, was dropped, or was swept away."""
        path = self._paths.get(name)
        if (
            path is None
            or self._folder is None
            or _number_of(self._folder) != self._number
            or not path.is_file()
        ):
            return None
        return path

    def _made(self) -> Path:
        """This server's own folder, locked; those of killed servers are deleted."""
        for left in Path(gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError, MoviolaError):
                about = left.lstat()
                is_ours = stat.S_ISDIR(about.st_mode) and about.st_uid == getattr(os, "getuid", lambda: 0)()
                if is_ours and time.time() - about.st_mtime > _MAKING:
                    with exclusive(left / _LOCK):
                        shutil.rmtree(left)
        made = TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
        folder = Path(self._held.enter_context(made))
        self._held.enter_context(exclusive(folder / _LOCK))
        return folder

    def _size(self, data: bytes) -> tuple[int, int]:
        try:
            with Image.open(BytesIO(data), formats=PICTURE_FORMATS) as image:
                width, height = image.size
                if width * height <= self._most_pixels:
                    image.load()
        except Exception:  # Pillow's decoders raise nearly anything where a file is damaged
            raise InvalidValue(f"picture: cannot be read; send one of {', '.join(PICTURE_FORMATS)}") from None
        if width * height > self._most_pixels:
            raise InvalidValue(
                f"picture of {width} x {height} pixels: at most {self._most_pixels:,} are accepted; "
                "make it smaller"
            )
        return width, height

    def path(self, name: str) -> Path:
        """Path of a picture; NotFound where it was never uploaded, or dropped for later ones."""
        with self._lock:
            stored = self._stored(name)
            if stored is None:
                raise NotFound(f"picture {name}: no longer here; send it again")
            self._paths.move_to_end(name)
            return stored

    def named(self, text: str) -> str:
        """A text with the paths of uploaded pictures removed."""
        return text if self._folder is None else text.replace(f"{self._folder}{os.sep}", "picture ")

    def close(self) -> None:
        self._held.close()


def _number_of(folder: Path) -> int:
    """The number of a folder, no link; 0 where there is none."""
    try:
        about = folder.lstat()
    except OSError:
        return 0
    return about.st_ino if stat.S_ISDIR(about.st_mode) else 0
