"""TOML files: settings of a library or of a training."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moviola.errors import DataError
from moviola.files.rows import read_text
from moviola.files.writing import write_text

__all__ = ["read_toml", "write_toml"]

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        NotFound: no such file.
        DataError: not UTF-8 or not TOML; the message names file and line.
    """
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise DataError(f"{path}: not usable TOML (nested too deeply)") from None
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place and place[1] else text.count("\n") + 1
        column = f", column {place[2]}" if place and place[2] else ""
        reason = _PLACE.sub("", str(error))
        raise DataError(f"{path}: line {line}: not valid TOML ({reason}{column})") from None


def write_toml(path: Path, values: Mapping[str, Any], head: str = "") -> None:
    """Write tables, as :func:`read_toml` gives them, in one step, below a comment of lines without ``#``; a
    link is replaced.

    Raises:
        InvalidValue: the file cannot be written.
        TypeError: a value that TOML cannot hold, such as None.
    """
    import tomli_w

    comment = "".join(f"# {line}".rstrip() + "\n" for line in head.splitlines())
    write_text(path, comment + ("\n" if comment else "") + tomli_w.dumps(values), follow=False)
