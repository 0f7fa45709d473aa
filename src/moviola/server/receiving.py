"""Videos that are sent in parts, and go on after a broken connection or a restart of the server."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from threading import Lock

import anyio
from starlette.exceptions import HTTPException

from moviola.errors import InvalidValue, MediaError, NotFound
from moviola.files.regular import open_regular
from moviola.files.writing import sync_folder
from moviola.media import probe
from moviola.server.problems import Busy, TooLarge
from moviola.server.upload_state import Upload, UploadStates, is_empty, require_name

__all__ = ["ALGORITHMS", "Receiving"]

ALGORITHMS = ("md5", "sha1", "sha256")
"""Supported checksums of a part."""
_SPARE = 1 << 30  # bytes of a disk that no upload takes
# Errors of disks on which a file has one name only.
_ONE_NAME = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}


class Receiving:
    """Uploads into some folders. For one event loop.

    Args:
        folders: where videos may go; the first is the default.
        most_bytes: of a video.
        most: number of unfinished uploads.
        states: folder of the server's own for what is known of uploads, in the cache of a library.
        home: folder of that library.
    """

    def __init__(
        self, folders: Iterable[Path], most_bytes: int, most: int, *, states: Path, home: Path
    ) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.most_bytes, self._most = most_bytes, most
        self._states = UploadStates(states, self.folders, home)
        self._taking: set[str] = set()
        self._beginning = Lock()  # each counts those that were begun before it
        self._finishing = Lock()

    def begin(self, name: str, length: int, folder: str = "") -> Upload:
        """Make room for a video of ``length`` bytes in one of ``folders``, by default the first.

        Uploads that have expired are deleted first.

        Raises:
            InvalidValue: no name of a video, no bytes, no room for them, or an unwritable folder.
            NotFound: not one of the folders.
            TooLarge: more bytes than are allowed.
            Busy: too many unfinished uploads.
        """
        require_name(name)
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
                    upload.part.touch(exist_ok=False)  # by O_EXCL, which follows no link
                    self._states.write(upload)
            except BaseException:
                self._states.delete(upload)
                raise
        return upload

    def _require_room(self, new: Upload) -> None:
        """Refuse an upload for which there is no room beside the unfinished ones."""
        unfinished = [upload for upload in self._states.all() if not upload.whole]
        if len(unfinished) >= self._most:
            raise Busy(f"{self._most} uploads are unfinished; finish or cancel one")
        promised = sum(upload.length - upload.offset for upload in unfinished)
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
        if found := self._states.read(upload):
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
            if upload.whole:
                return upload
            written = offset
            with _writing(upload):
                opened = await anyio.to_thread.run_sync(_open_part, upload)
                async with await anyio.open_file(opened, "r+b", buffering=0) as file:
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
            now = self._states.read(upload.upload)
            if now is None or now.whole:  # another request has done it, or cancelled it
                return now or upload
            named = self._named(now)
            path = named.folder / named.named
            try:
                probe(path)
            except MediaError as error:  # the library would refuse it, and who sent it cannot take it out
                path.unlink()
                self._states.delete(named)
                raise InvalidValue(f"{upload.name}: {error.reason}; mend it and send it again") from error
            whole = replace(named, whole=True)
            self._states.write(whole)
            return whole

    def _named(self, upload: Upload) -> Upload:
        """Give an upload that is whole its name, over no other file; also one that was killed in between."""
        if upload.named and (done := self._named_before(upload)):
            return done
        part = _open_part(upload)
        try:
            os.fsync(part)
            number = os.fstat(part).st_ino
        finally:
            os.close(part)
        stem, suffix = Path(upload.name).stem, Path(upload.name).suffix
        for name in chain([upload.name], (f"{stem} ({copy}){suffix}" for copy in count(2))):
            out = upload.folder / name
            if os.path.lexists(out):
                continue
            named = replace(upload, named=name, number=number)
            self._states.write(named)  # before: else the name would be a riddle after a kill
            if _take_name(upload.part, out, number):
                return named
        raise AssertionError("numbers do not end")

    def _named_before(self, upload: Upload) -> Upload | None:
        """The upload where its file has the noted name already, or has taken it and not filled it."""
        out = upload.folder / upload.named
        try:
            if out.lstat().st_ino != upload.number:
                if not is_empty(out):
                    return None
                _open_part(upload, then_close=True)
                upload.part.replace(out)
        except FileNotFoundError:
            return None
        sync_folder(upload.folder)
        upload.part.unlink(missing_ok=True)
        return upload

    def discard(self, name: str) -> None:
        """Cancel an upload; a video that is whole stays where it lies. Busy where a request sends to it."""
        if name in self._taking:
            raise Busy(f"upload {name}: a request is sending to it; end that first")
        self._states.delete(self.find(name))

    def sweep(self) -> None:
        """Delete what has expired, also what a server had just begun when it was killed."""
        self._states.sweep(self._taking)


def _open_part(upload: Upload, *, then_close: bool = False) -> int:
    """A descriptor of the bytes that are here, to read and write."""
    file = open_regular(upload.part, os.O_RDWR, follow=False, alone=True)
    if then_close:
        os.close(file)
    return file


def _take_name(part: Path, out: Path, number: int) -> bool:
    """Give the file of a number its name, over no other file; False where another one has it by now."""
    follow = {"follow_symlinks": False} if os.link in os.supports_follow_symlinks else {}
    try:
        os.link(part, out, **follow)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _ONE_NAME:
            raise
        try:
            out.touch(exist_ok=False)  # the name is ours from now on
        except FileExistsError:
            return False
        part.replace(out)
    if out.lstat().st_ino != number:
        out.unlink()
        raise OSError(errno.ESTALE, "its bytes were replaced by another file")
    sync_folder(out.parent)  # before: a power failure must leave it one of both names
    part.unlink(missing_ok=True)
    return True


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
            f"{upload.name}: cannot be written to {upload.folder} ({error.strerror}); make room, begin "
            "again, or name a folder that can be written to in --allow-ingest"
        ) from error
