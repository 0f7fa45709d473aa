"""States of uploads, in a folder of the server's own: others may write where videos are sent to.

``ID.json`` says what an upload is to be. Its bytes lie in the folder that it goes to, as
``.moviola-ID.part``, so that it gets its name in one step. Nothing there is believed: a part is opened only
as a regular file of one name, and no link is followed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moviola.errors import InvalidValue, LibraryError
from moviola.files.presence import is_folder
from moviola.files.regular import open_regular, read_regular
from moviola.files.writing import write_json
from moviola.media import VIDEO_SUFFIXES

__all__ = ["Upload", "UploadStates", "require_name"]

KEPT_SECONDS = 48 * 3600.0
"""After its last part, in which an upload can be resumed, and is known when it is whole."""
_LONGEST_NAME = 200
_ID = re.compile(r"[0-9a-f]{32}")
# Parts, and what earlier versions noted beside them.
_LEFT = re.compile(r"\.moviola-([0-9a-f]{32})\.(?:part|json)")
_LONGEST_STATE = 1 << 16  # bytes
_REMEMBERED = 1000  # whole uploads, for clients that have missed the last answer


@dataclass(frozen=True, slots=True)
class Upload:
    """A video that is being sent.

    Attributes:
        folder: where it goes.
        length: bytes of the whole.
        named, number: its name in the folder once that is chosen, and the number (inode) of its file then.
        whole: whether it has that name, and is a video.
        offset: bytes that are here.
        changed: seconds since the epoch at which the last part came.
    """

    upload: str
    folder: Path
    name: str = ""
    length: int = 0
    named: str = ""
    number: int = 0
    whole: bool = False
    offset: int = 0
    changed: float = field(default_factory=time.time)

    @property
    def expires(self) -> datetime:
        """Time at which it is deleted if no part comes before."""
        return datetime.fromtimestamp(self.changed + KEPT_SECONDS, UTC)

    @property
    def part(self) -> Path:
        return self.folder / f".moviola-{self.upload}.part"

    @property
    def path(self) -> Path | None:
        """Where it lies; None until it is whole."""
        return self.folder / self.named if self.whole else None


class _State(BaseModel):
    """The content of a state file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    length: int = Field(ge=1, lt=2**63)
    folder: str
    named: str
    number: int
    whole: bool


class UploadStates:
    """State files of uploads into some folders, in a folder of their own, which the first one makes.

    Args:
        place: that folder.
        folders: where uploads go; others are not believed.
        home: folder of the library; while it is away, nothing is made in its place, and nothing is known:
            every method raises :class:`LibraryError`.
    """

    def __init__(self, place: Path, folders: Sequence[Path], home: Path) -> None:
        self._place, self._folders, self._home = place, folders, home

    def write(self, upload: Upload) -> None:
        """Note an upload in one step; errors as in :func:`moviola.files.writing.write_json`."""
        state = _State(
            name=upload.name, length=upload.length, folder=str(upload.folder), named=upload.named,
            number=upload.number, whole=upload.whole,
        )  # fmt: skip
        write_json(self._path(upload.upload), state.model_dump(), follow=False)

    def read(self, upload: str) -> Upload | None:
        """An upload by its id, as it is now; None where none is known, or its bytes are gone."""
        try:
            path = self._path(upload)
            state = _State.model_validate_json(read_regular(path, _LONGEST_STATE, follow=False))
            for name in filter(None, (state.name, state.named)):
                require_name(name)
            known = Upload(
                upload, Path(state.folder), state.name, state.length, state.named, state.number, state.whole,
                changed=path.lstat().st_mtime,
            )  # fmt: skip
        except (OSError, ValueError, ValidationError, InvalidValue):
            return None
        return _with_bytes(known) if known.folder in self._folders else None

    def all(self) -> Iterator[Upload]:
        """All uploads that are known."""
        for path in sorted(self._own.glob("*.json")):
            if upload := self.read(path.stem):
                yield upload

    def delete(self, upload: Upload) -> None:
        """Forget an upload, and delete its part, or a name that it has taken and not filled."""
        if not upload.whole:
            _unlink(upload.part)
            if upload.named and is_empty(upload.folder / upload.named):
                _unlink(upload.folder / upload.named)
        _unlink(self._path(upload.upload))

    def sweep(self, keep: set[str]) -> None:
        """Delete what has expired, also what a server had just begun when it was killed; not ``keep``."""
        known = {path.stem: self.read(path.stem) for path in self._own.glob("*.json")}
        for name, upload in known.items():
            if name in keep or not _ID.fullmatch(name):
                continue
            if upload is None and _is_old(self._path(name)):
                _unlink(self._path(name))
            elif upload is not None and upload.changed + KEPT_SECONDS < time.time():
                self.delete(upload)
        whole = sorted((one for one in known.values() if one and one.whole), key=lambda one: one.changed)
        for upload in whole[:-_REMEMBERED]:
            self.delete(upload)
        for draft in self._own.glob(".*.tmp"):
            if _is_old(draft):
                _unlink(draft)
        for folder in self._folders:
            for path in folder.glob(".moviola-*"):
                found = _LEFT.fullmatch(path.name)
                if found and known.get(found[1]) is None and found[1] not in keep and _is_old(path):
                    _unlink(path)

    def _path(self, upload: str) -> Path:
        if not _ID.fullmatch(upload):
            raise InvalidValue(f"upload {upload:.40}: no id of one")
        return self._own / f"{upload}.json"

    @property
    def _own(self) -> Path:
        if not is_folder(self._home):
            raise LibraryError(f"{self._home}: gone; put the library back, or serve it at its new place")
        return self._place


def is_empty(path: Path) -> bool:
    """Whether a file is there, no link, without content."""
    try:
        file = open_regular(path, follow=False)
    except OSError:
        return False
    try:
        return os.fstat(file).st_size == 0
    finally:
        os.close(file)


def _with_bytes(known: Upload) -> Upload | None:
    """An upload with the bytes that are here; None where they are gone."""
    if known.whole:
        return replace(known, offset=known.length)
    for path in filter(None, (known.part, known.folder / known.named if known.named else None)):
        try:
            file = open_regular(path, follow=False, alone=path == known.part)
        except OSError:
            continue
        try:
            status = os.fstat(file)
        finally:
            os.close(file)
        # Its name may be another file's by now.
        if path == known.part or (status.st_ino, status.st_size) == (known.number, known.length):
            return replace(known, offset=status.st_size, changed=status.st_mtime)
    return None


def _unlink(path: Path) -> None:
    with suppress(OSError):  # a folder of that name is nobody's
        path.unlink(missing_ok=True)


def _is_old(path: Path) -> bool:
    try:
        return path.lstat().st_mtime + KEPT_SECONDS < time.time()
    except OSError:  # gone meanwhile
        return False


def require_name(name: str) -> None:
    """Refuse what is no name of a video on every system, as :class:`InvalidValue`."""
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
