"""The log of a command: a file of JSON lines, for ``moviola --log FILE``.

Each line is an object with ``time`` (UTC), ``level``, ``logger``, ``event`` and the fields of the event. A
command logs its beginning, its end and its error; a server also each request and job. Arguments, queries and
tokens are not logged, but for the value that an error names.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from typer import Exit

from moviola.errors import InvalidValue, MoviolaError

_BEGINNING = b'{"time": "'  # of each line


class LogFile(logging.Handler):
    """A handler of all loggers that appends to a file; warnings are still shown on standard error.

    Several processes may append to the same file, which is made if it does not exist, but not its folder.
    When it cannot be written any more, that is said once, and the command goes on.

    Raises:
        InvalidValue: it cannot be written, is no file, or one of something else, which would be damaged.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._failed = path, False
        # Opening a pipe would wait for a reader.
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
        try:
            self._file = os.open(path, flags, 0o666)
            if complaint := _complaint(self._file):
                os.close(self._file)
                raise OSError(complaint)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidValue(
                f"--log {path}: cannot be written ({reason}); name a file in a folder that exists"
            ) from error

    def attach(self, command: str) -> None:
        """Take what all loggers log until the command ends: warnings, and of moviola's what is none, too."""
        self._command, self._began = command, perf_counter()
        root = logging.getLogger()
        root.addHandler(self)
        if logging.lastResort is not None:
            root.addHandler(logging.lastResort)  # else it would be silent beside another handler
        logging.getLogger("moviola").setLevel(logging.INFO)
        from importlib.metadata import version  # its import takes a twentieth of a cold search

        self._say(logging.INFO, "command", command=command, version=version("moviola"))

    def end(self) -> None:
        """Log how the command ends, by the exception that ends it, if any, and close the file."""
        error = sys.exc_info()[1]
        code, level, said = getattr(error, "exit_code", 1), logging.INFO, ""
        if error is None or isinstance(error, BrokenPipeError):  # `| head` has read enough
            code = 0
        elif isinstance(error, KeyboardInterrupt):
            code, said = 130, "interrupted"
        elif not isinstance(error, Exit):
            level, said = logging.ERROR, _words(error)
        taken = round(1000 * (perf_counter() - self._began))
        self._say(level, "end", command=self._command, code=code, milliseconds=taken, error=said)
        root = logging.getLogger()
        root.removeHandler(self)
        if logging.lastResort is not None:
            root.removeHandler(logging.lastResort)
        logging.getLogger("moviola").setLevel(logging.NOTSET)
        os.close(self._file)
        self.close()

    def _say(self, level: int, event: str, **fields: object) -> None:
        """Log past the loggers: what ends a command is shown on standard error already."""
        self.emit(logging.makeLogRecord({
            "name": "moviola.cli", "levelno": level, "levelname": logging.getLevelName(level), "msg": event,
            "fields": fields,
        }))  # fmt: skip

    def emit(self, record: logging.LogRecord) -> None:
        """Append one line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = logging.Formatter().formatException(record.exc_info)
        try:
            os.write(self._file, json.dumps(line, default=str).encode() + b"\n")
        except OSError as error:
            if not self._failed:
                self._failed = True
                sys.stderr.write(f"--log {self._path}: cannot be written any more ({error.strerror})\n")


def _words(error: BaseException) -> str:
    """What an error says; the class alone of a defect, whose words may hold anything."""
    if isinstance(error, MoviolaError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror}"
    return type(error).__name__


def _complaint(file: int) -> str:
    """Why an open file is no log; empty where it is one, or a new one."""
    about = os.fstat(file)
    if stat.S_ISCHR(about.st_mode):
        return ""
    if not stat.S_ISREG(about.st_mode):
        return "it is no file"
    if about.st_size and os.read(file, len(_BEGINNING)) != _BEGINNING:
        return "it is there, and no log"
    return ""
