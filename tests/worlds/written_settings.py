"""Settings of a library with other values, as moviola writes them, or as an earlier one did."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from moviola.files.toml import read_toml, write_toml
from moviola.library import Catalogue, Settings
from moviola.library.disk.settings import DIGEST, digest_of

__all__ = ["in_format", "of_later_format", "resealed"]


def resealed(folder: Path, **changes: Any) -> None:
    """Other values, with a digest, and the same in the catalogue."""
    settings = replace(Settings.read(folder), **changes)
    settings.write(folder)
    with closing(Catalogue(folder)) as catalogue:
        catalogue.note_settings(settings)


def in_format(folder: Path, version: int, **changes: Any) -> None:
    """Settings as in a format before 4: without a digest and a copy in the catalogue; None: not there."""
    values = {**read_toml(folder / "moviola.toml"), "format_version": version, **changes}
    del values["digest"]
    write_toml(folder / "moviola.toml", {name: value for name, value in values.items() if value is not None})
    with closing(Catalogue(folder)) as catalogue:
        catalogue._rows("DROP TABLE settings")


def of_later_format(folder: Path, version: int) -> None:
    """As a later moviola may write them."""
    values = {**read_toml(folder / "moviola.toml"), "format_version": version}
    del values[DIGEST]
    values[DIGEST] = digest_of(values)
    write_toml(folder / "moviola.toml", values)
    with closing(Catalogue(folder)) as catalogue:
        catalogue._rows("UPDATE settings SET content = ?", (json.dumps(values),))
