"""``config.toml``: a user's own defaults of options, so that commands need not repeat them.

The file lies in the user's configuration folder; ``MOVIOLA_CONFIG`` names another one, or none if it is
empty. A key is the default of every option with an environment variable of its name: ``library`` of those
that read ``MOVIOLA_LIBRARY``. The command line comes before the environment, the environment before the file.
``device`` counts for commands without such an option, too, such as searches and servers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from moviola.devices import require_device_name
from moviola.errors import DataError, InvalidValue
from moviola.files.toml import read_toml

KEYS: dict[str, type] = {
    "library": str, "encoder": str, "sentence_encoder": str, "ocr": bool, "ocr_reader": str, "speech": str,
    "speech_language": str, "device": str, "log": str,
}  # fmt: skip
"""Types of the values by key."""


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
    for key, value in values.items():
        if key not in KEYS:
            raise DataError(f"{path}: {key}: unknown key; there are {', '.join(KEYS)}")
        if type(value) is not KEYS[key]:
            right = "true or false" if KEYS[key] is bool else "a text in quotes"
            raise DataError(f"{path}: {key} = {value!r:.100}: write {right}")
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
    return values


def usual_device() -> str:
    """The device of commands without an option for it: the environment's, the file's, else ``auto``."""
    return os.environ.get(_variable("device")) or str(read_config().get("device", "auto"))


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
        option.name: values[key]
        for option in command.params
        for key in values
        if option.envvar == _variable(key)
    }


def _variable(key: str) -> str:
    return f"MOVIOLA_{key.upper()}"
