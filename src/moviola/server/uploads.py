"""Pictures that were sent to be searched with, in a folder that goes with the server."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from PIL import Image

from moviola.errors import InvalidValue, NotFound

__all__ = ["Uploads"]

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
# Pictures that are kept; the one that was used longest ago goes first.
_MOST = 100


class Uploads:
    """Pictures by the hash of their bytes. Safe for threads.

    Args:
        most_pixels: of one picture.
    """

    def __init__(self, most_pixels: int) -> None:
        self._most_pixels = most_pixels
        self._folder: TemporaryDirectory[str] | None = None
        self._paths: OrderedDict[str, Path] = OrderedDict()
        self._lock = Lock()

    def add(self, data: bytes) -> tuple[str, int, int]:
        """Keep a picture; gives its id, width and height.

        Raises:
            InvalidValue: no picture that can be read, or one of too many pixels.
        """
        width, height = self._size(data)
        name = hashlib.sha256(data).hexdigest()[:32]
        with self._lock:
            if self._folder is None:
                self._folder = TemporaryDirectory(prefix="moviola-pictures-")
            path = Path(self._folder.name) / name
            if name not in self._paths:
                path.write_bytes(data)
            self._paths[name] = path
            self._paths.move_to_end(name)
            while len(self._paths) > _MOST:
                self._paths.popitem(last=False)[1].unlink(missing_ok=True)
        return name, width, height

    def _size(self, data: bytes) -> tuple[int, int]:
        try:
            with Image.open(BytesIO(data), formats=FORMATS) as image:
                if image.width * image.height > self._most_pixels:
                    raise InvalidValue(
                        f"picture of {image.width} x {image.height} pixels: at most {self._most_pixels:,} "
                        "are taken; make it smaller"
                    )
                image.load()
                return image.width, image.height
        except InvalidValue:
            raise
        except (
            OSError,
            SyntaxError,
            ValueError,
            Image.DecompressionBombError,
            Image.DecompressionBombWarning,
        ):
            raise InvalidValue(
                f"picture: not one that can be read; send one of {', '.join(FORMATS)}"
            ) from None

    def path(self, name: str) -> Path:
        """Where a picture lies.

        Raises:
            NotFound: it was not sent, or so many came later that it was dropped.
        """
        with self._lock:
            found = self._paths.get(name)
            if found is None:
                raise NotFound(f"picture {name}: not here any more; send it again")
            self._paths.move_to_end(name)
            return found

    def named(self, text: str) -> str:
        """A text in which a query names pictures by their paths, without the paths."""
        return text if self._folder is None else text.replace(f"{self._folder.name}{os.sep}", "picture ")

    def close(self) -> None:
        """Delete all of them."""
        if self._folder is not None:
            self._folder.cleanup()
