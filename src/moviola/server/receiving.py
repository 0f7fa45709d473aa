"""Videos that are sent in parts, and go on after a broken connection or a restart of the server.

An upload is two hidden files in the folder that it goes to: ``.moviola-ID.part``, which becomes the video by
a rename, and what is known of it in ``.moviola-ID.json``.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from threading import Lock

import anyio
from starlette.exceptions import HTTPException

from moviola.errors import InvalidValue, MediaError, NotFound
from moviola.files.writing import write_json
from moviola.media import VIDEO_SUFFIXES, probe
from moviola.server.problems import Busy, TooLarge

__all__ = ["ALGORITHMS", "Receiving", "Upload"]

ALGORITHMS = ("md5", "sha1", "sha256")
"""Supported checksums of a part."""
KEPT_SECONDS = 48 * 3600.0  # after its last part, in which an upload can be resumed
_SPARE = 1 << 30  # bytes of a disk that no upload takes
_LONGEST_NAME = 200
_ID = re.compile(r"[0-9a-f]{32}")
_FILE = re.compile(r"\.moviola-([0-9a-f]{32})\.(?:part|json)")
# Whole uploads whose place is remembered for clients that have missed the last answer.
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Upload:
    """A video that is being sent.

    Attributes:
        folder: where it goes.
        length: bytes of the whole.
        offset: bytes that are here.
        path: where it lies; None until it is whole.
        changed: seconds since the epoch at which the last part came.
    """

    upload: str
    folder: Path
    name: str = ""
    length: int = 0
    offset: int = 0
    path: Path | None = None
    changed: float = field(default_factory=time.time)

    @property
    def expires(self) -> datetime:
        """Time at which it is deleted if no part comes before."""
        return datetime.fromtimestamp(self.changed + KEPT_SECONDS, UTC)

    @property
    def part(self) -> Path:
        return self.folder / f".moviola-{self.upload}.part"

    @property
    def about(self) -> Path:
        return self.folder / f".moviola-{self.upload}.json"


class Receiving:
    """Uploads into some folders. For one event loop.

    Args:
        folders: where videos may go; the first is the default.
        most_bytes: of a video.
        most: number of unfinished uploads.
    """

    def __init__(self, folders: Iterable[Path], most_bytes: int, most: int) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.most_bytes, self._most = most_bytes, most
        self._taking: set[str] = set()
        self._beginning = Lock()  # each counts those that were begun before it
        self._finishing = Lock()
        self._whole: OrderedDict[str, Upload] = OrderedDict()

    def begin(self, name: str, length: int, folder: str = "") -> Upload:
        """Make room for a video of ``length`` bytes in one of ``folders``, by default the first.

        Uploads that have expired are deleted first.

        Raises:
            InvalidValue: no name of a video, no bytes, no room for them, or an unwritable folder.
            NotFound: not one of the folders.
            TooLarge: more bytes than are allowed.
            Busy: too many unfinished uploads.
        """
        _require_name(name)
        place = next((place for place in self.folders if folder in ("", str(place))), None)
        if place is None:
            known = ", ".join(map(str, self.folders))
            raise NotFound(f"folder {folder:.200}: not one to bring videos in from ({known})")
        if length > self.most_bytes:
            raise TooLarge(self.most_bytes)
        if length < 1:
            raise InvalidValue(f"{name}: an empty file; send one that has something in it")
        upload = Upload(secrets.token_hex(16), place, name, length)
        with self._beginning:
            self.sweep()
            self._require_room(upload)
            try:
                with _writing(upload):
                    upload.part.touch(exist_ok=False)
                    write_json(upload.about, {"name": name, "length": length})
            except BaseException:
                _delete(upload)
                raise
        return upload

    def _require_room(self, new: Upload) -> None:
        """Refuse an upload for which there is no room beside the unfinished ones."""
        unfinished = [about for folder in self.folders for about in folder.glob(".moviola-*.json")]
        if len(unfinished) >= self._most:
            raise Busy(f"{self._most} uploads are unfinished; finish or cancel one")
        begun = (_read(about.parent, about.stem.removeprefix(".moviola-")) for about in unfinished)
        promised = sum(upload.length - upload.offset for upload in begun if upload)
        if new.length > (room := shutil.disk_usage(new.folder).free - _SPARE - promised):
            raise InvalidValue(
                f"{new.name}: {new.length:,} bytes, but there is room for {max(room, 0):,}; make room"
            )

    def find(self, upload: str) -> Upload:
        """An upload as it stands. One of a server that was killed after the last byte gets its name now.

        Raises:
            NotFound: never begun, cancelled or expired.
            InvalidValue: it cannot get its name, or is no video.
        """
        if whole := self._whole.get(upload):
            return whole
        for folder in self.folders if _ID.fullmatch(upload) else ():
            if found := _read(folder, upload):
                # A request that is sending to it finishes it itself.
                return found if upload in self._taking else self._finished(found)
        raise NotFound(f"upload {upload[:40]}: not here, or expired; begin again")

    async def take(
        self, name: str, offset: int, parts: AsyncIterator[bytes], checksum: str | None = None
    ) -> Upload:
        """Append bytes to an upload; what has arrived stays if the connection breaks off.

        Args:
            name: id of the upload.
            offset: where they begin: as many bytes as are here.
            checksum: algorithm and digest in base64, as ``"sha256 …"``: all of the bytes count, or none.

        Raises:
            HTTPException: 409, another offset; 413, more bytes than were announced; 460, another checksum.
        """
        digest, expected = _expected(checksum)
        if name in self._taking:
            raise Busy(f"upload {name}: another request is sending to it; try again when that is done")
        self._taking.add(name)
        try:
            upload = await anyio.to_thread.run_sync(self.find, name)
            if offset != upload.offset:
                raise HTTPException(
                    409, f"Upload-Offset {offset}: {upload.offset} bytes are here; go on there"
                )
            if upload.path is not None:
                return upload
            written = offset
            with _writing(upload):
                async with await anyio.open_file(upload.part, "r+b", buffering=0) as file:
                    await file.seek(offset)
                    try:
                        async for part in parts:
                            written += len(part)
                            if written > upload.length:
                                raise TooLarge(upload.length - offset)
                            if await file.write(part) < len(part):
                                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                            if digest is not None:
                                digest.update(part)
                        if digest is not None and digest.digest() != expected:
                            raise HTTPException(
                                460, f"Upload-Checksum: not that of the bytes from {offset} on"
                            )
                    except BaseException as error:
                        if digest is not None or isinstance(error, HTTPException):
                            await file.truncate(offset)
                        raise
            upload = replace(upload, offset=written, changed=time.time())
            return await anyio.to_thread.run_sync(self._finished, upload)
        finally:
            self._taking.discard(name)

    def _finished(self, upload: Upload) -> Upload:
        """The upload with its name as a video where it is whole."""
        if upload.offset < upload.length:
            return upload
        with self._finishing, _writing(upload):
            if known := self._whole.get(upload.upload):
                return known
            path = _put(upload.part, upload.folder, upload.name)
            upload.about.unlink(missing_ok=True)
            try:
                probe(path)
            except MediaError as error:  # the library would refuse it, and who sent it cannot take it out
                path.unlink()
                raise InvalidValue(f"{upload.name}: {error.reason}; mend it and send it again") from error
            whole = replace(upload, path=path)
            self._whole[whole.upload] = whole
            while len(self._whole) > _REMEMBERED:
                self._whole.popitem(last=False)
            return whole

    def discard(self, name: str) -> None:
        """Cancel an upload; a video that is whole stays where it lies. Busy where a request sends to it."""
        if name in self._taking:
            raise Busy(f"upload {name}: a request is sending to it; end that first")
        _delete(self.find(name))

    def sweep(self) -> None:
        """Delete what has expired, also what a server had just begun when it was killed."""
        now = time.time()
        for folder in self.folders:
            latest: dict[str, float] = {}
            for path in folder.glob(".moviola-*"):
                with suppress(OSError):  # gone meanwhile
                    found = _FILE.fullmatch(path.name)
                    if found and (path.suffix == ".part" or found[1] not in latest):
                        latest[found[1]] = path.stat().st_mtime
            for name, changed in latest.items():
                if changed + KEPT_SECONDS < now and name not in self._taking:
                    _delete(Upload(name, folder))


def _read(folder: Path, name: str) -> Upload | None:
    """An unfinished upload in a folder; None where there is none that can be read."""
    upload = Upload(name, folder)
    try:
        about, here = json.loads(upload.about.read_text(encoding="utf-8")), upload.part.stat()
        return Upload(name, folder, about["name"], about["length"], here.st_size, None, here.st_mtime)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _delete(upload: Upload) -> None:
    for path in (upload.part, upload.about):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _expected(checksum: str | None) -> tuple[hashlib._Hash | None, bytes]:
    """What computes a checksum, and the digest that it should come to."""
    if checksum is None:
        return None, b""
    algorithm, _, text = checksum.partition(" ")
    if algorithm not in ALGORITHMS:
        raise InvalidValue(f"Upload-Checksum {algorithm[:40]!r}: use one of {', '.join(ALGORITHMS)}")
    try:
        return hashlib.new(algorithm, usedforsecurity=False), base64.b64decode(text, validate=True)
    except ValueError as error:  # of letters that are not ASCII, too
        raise InvalidValue(f"Upload-Checksum: no base64 ({error})") from error


@contextmanager
def _writing(upload: Upload) -> Iterator[None]:
    """Errors of the disk as those of the upload."""
    try:
        yield
    except OSError as error:
        raise InvalidValue(
            f"{upload.name}: cannot be written to {upload.folder} ({error.strerror}); make room, or "
            "name a folder that can be written to in --allow-ingest"
        ) from error


def _require_name(name: str) -> None:
    length = len(name.encode("utf-8", "replace"))
    odd = "".join(sign for sign in dict.fromkeys(name) if sign in '/\\:*?"<>|')
    wrong = {
        f"{length} bytes of UTF-8, more than {_LONGEST_NAME}": length > _LONGEST_NAME,
        f"{odd} in it, which not every system takes": bool(odd),
        "letters that cannot be printed": not name.isprintable(),
        "a hidden file": name.startswith("."),
        "spaces around it": name != name.strip(),
    }
    if reasons := "; ".join(reason for reason, applies in wrong.items() if applies):
        raise InvalidValue(f"name {name!r:.200}: {reasons}; rename the file, for instance to beach.mp4")
    if Path(name).suffix.lower() not in VIDEO_SUFFIXES:
        raise InvalidValue(
            f"name {name!r:.200}: not a video by its suffix; videos are brought in, no other files"
        )


def _put(part: Path, folder: Path, name: str) -> Path:
    """Give a file its name, over no other file."""
    stem, suffix = Path(name).stem, Path(name).suffix
    names = chain([name], (f"{stem} ({number}){suffix}" for number in count(2)))
    while True:
        out = folder / next(names)
        with suppress(FileExistsError):
            out.touch(exist_ok=False)  # the name is ours from now on
            return part.replace(out)
