"""``config.toml``: a user's own defaults of options, so that commands need not repeat them.

The file lies in the user's configuration folder; ``MOVIOLA_CONFIG`` names another one, or none if it is
empty. A key is the default of every option with an environment variable of its name: ``library`` of those
that read ``MOVIOLA_LIBRARY``. The command line comes before the environment, the environment before the file.
``device`` and ``sentence_encoder`` count for commands without such an option, too, such as searches and the
building of data sets, and those of :data:`READING` for what a server or a watcher brings in. ``looker`` names
a server that looks at moments where a command wants that; its key stands in no file
(:data:`moviola.looker.KEY`). ``looker_right`` and ``looker_seconds`` have no options, nor have the
tables ``index`` and ``watch``, which tune these commands.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moviola.devices import require_device_name
from moviola.errors import DataError, InvalidValue
from moviola.files.toml import read_toml
from moviola.files.writing import write_text

KEYS: dict[str, type] = {
    "library": str, "encoder": str, "sentence_encoder": str, "ocr": bool, "ocr_reader": str,
    "ocr_language": str, "speech": str, "speech_language": str, "sounds": str, "device": str, "log": str,
    "looker": str, "looker_model": str, "looker_right": float, "looker_seconds": float,
}  # fmt: skip
"""Types of the values by key."""

READING = ("ocr", "ocr_reader", "ocr_language", "speech", "speech_language", "sounds")
"""Keys that are arguments of :meth:`moviola.library.Indexer.index`."""

TABLES: dict[str, dict[str, type]] = {
    "index": {"precision": str, "stills": bool, "every_frame": bool, "hwaccel": str},
    "watch": {"hours": str, "cores": int, "poll": float, "force_polling": bool, "settle": float},
}
"""Types of the values of each table, by key."""

_RIGHT = {bool: "true or false", int: "a whole number", float: "a number", str: "a text in quotes"}


def config_path() -> Path | None:
    """The file, which need not exist; None if ``MOVIOLA_CONFIG`` is empty."""
    if (named := os.environ.get("MOVIOLA_CONFIG")) is not None:
        return Path(named) if named else None
    from platformdirs import user_config_path

    return user_config_path("moviola", appauthor=False) / "config.toml"


def read_config() -> dict[str, Any]:
    """The user's values by key, checked; none without a file, unless ``MOVIOLA_CONFIG`` names one."""
    path = config_path()
    if path is None or not ("MOVIOLA_CONFIG" in os.environ or path.is_file()):
        return {}
    values = read_toml(path)
    tables = {name: values.pop(name) for name in TABLES if name in values}
    for name, table in tables.items():
        _require_table(path, name, table)
    for key, value in values.items():
        _require_type(path, key, value, KEYS, f"; the tables {', '.join(TABLES)}")
        if value == "":
            raise DataError(f"{path}: {key} = '': empty; write a value, or delete the line")
        if isinstance(value, str) and not value.isprintable():
            raise DataError(f"{path}: {key} = {value!r:.100}: letters that cannot be printed; write it again")
    try:
        require_device_name(values.get("device", "auto"))
    except InvalidValue as error:
        raise DataError(f"{path}: {error}") from None
    for key in {"library", "log"} & set(values):
        try:
            place = Path(values[key]).expanduser()
        except RuntimeError as error:  # the home of a user who is none
            raise DataError(f"{path}: {key} = {values[key]!r:.100}: {error}; write a full path") from None
        if not place.is_absolute():
            raise DataError(f"{path}: {key} = {values[key]!r}: write a full path, or one that begins with ~")
        values[key] = str(place)
    return values | tables


def _require_table(path: Path, name: str, table: object) -> None:
    kinds = {f"{name}.{key}": kind for key, kind in TABLES[name].items()}
    if not isinstance(table, dict):
        keys = ", ".join(TABLES[name])
        raise DataError(f"{path}: {name} = {table!r:.100}: write a table, [{name}], with {keys}")
    for key, value in table.items():
        _require_type(path, f"{name}.{key}", value, kinds)
        if kinds[f"{name}.{key}"] in (int, float) and not value > 0:
            raise DataError(f"{path}: {name}.{key} = {value!r}: write a number above 0")


def remember(key: str, value: str) -> Path:
    """Add a value to the file, which is made if need be; what is in it stays. Returns its path.

    Raises:
        InvalidValue: there is to be no file, or it has the key already.
        OSError: it cannot be written.
    """
    path = config_path()
    if path is None or key in read_config():
        raise InvalidValue(f"{path or 'MOVIOLA_CONFIG'}: {key} cannot be kept there")
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    write_text(path, f"{key} = {json.dumps(value)}\n{before}")  # before any table
    return path


def _require_type(path: Path, key: str, value: object, kinds: Mapping[str, type], more: str = "") -> None:
    if key not in kinds:
        raise DataError(f"{path}: {key}: unknown key; there are {', '.join(kinds)}{more}")
    if type(value) is not kinds[key] and not (kinds[key] is float and type(value) is int):
        raise DataError(f"{path}: {key} = {value!r:.100}: write {_RIGHT[kinds[key]]}")


def usual_device() -> str:
    """The device of commands without an option for it: the environment's, the file's, else ``auto``."""
    return _usual("device", "auto")


def usual_sentence_encoder() -> str:
    """The sentence encoder of commands without an option for it; by default MiniLM."""
    return _usual("sentence_encoder", "minilm")


def usual_number(key: str) -> float | None:
    """A number that no command has an option for: the environment's, the file's, else None."""
    given = os.environ.get(_variable(key)) or read_config().get(key)
    try:
        return None if given is None else float(given)
    except ValueError:
        raise InvalidValue(f"{_variable(key)} {given!r:.100}: give a number") from None


def usual_reading() -> dict[str, Any]:
    """How a server or a watcher reads videos that come in: those values of :data:`READING` that are given."""
    config = read_config()
    found = {key: os.environ.get(_variable(key)) or config.get(key) for key in READING}
    if isinstance(ocr := found["ocr"], str):
        from click import BOOL, BadParameter

        try:
            found["ocr"] = BOOL.convert(ocr, None, None)
        except BadParameter as error:
            raise InvalidValue(f"{_variable('ocr')}: {error.message} Give true or false.") from error
    return {key: value for key, value in found.items() if value is not None}


def table_of(name: str) -> dict[str, Any]:
    """The values of one of :data:`TABLES`."""
    return dict(read_config().get(name, {}))


def _usual(key: str, default: str) -> str:
    return os.environ.get(_variable(key)) or str(read_config().get(key, default))


def describe_config() -> str:
    """The file and its values in one line, with the environment variables that come before them."""
    path, values = config_path(), read_config()
    overridden = {key: f" ({_variable(key)} comes first)" for key in values if _variable(key) in os.environ}
    parts = [f"{key} = {value!r}{overridden.get(key, '')}" for key, value in values.items()]
    return f"{path or 'switched off by MOVIOLA_CONFIG'}: {', '.join(parts) or 'no values'}"


def nested_defaults(command: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Defaults of a command's options, or of those of the commands below it, as Click's ``default_map``."""
    if below := getattr(command, "commands", None):
        return {name: nested_defaults(one, values) for name, one in below.items()}
    return {
        option.name: [values[key]] if getattr(option, "multiple", False) else values[key]
        for option in command.params
        for key in values
        if option.envvar == _variable(key)
    }


def _variable(key: str) -> str:
    return f"MOVIOLA_{key.upper()}"
