"""A copy of the settings in the catalogue, to compare ``moviola.toml`` with, and to write it again; and those
that it had before its encoders were changed, which ``moviola.toml`` may still have.
"""

from __future__ import annotations

import json
from pathlib import Path

from moviola.errors import DamagedSettings, InvalidValue
from moviola.library.disk.database import Database
from moviola.library.disk.schema import OF_LIBRARY
from moviola.library.disk.settings import Settings

__all__ = ["NotedSettings"]


class NotedSettings(Database):
    """The ``settings`` table of a catalogue, which those before format 4 lack."""

    def noted_settings(self) -> Settings | None:
        """The noted settings; None where there are none.

        Raises:
            DamagedSettings: they are damaged.
            LibraryError: of a later format.
        """
        rows = self._rows_of("settings", "SELECT content FROM settings")
        if not rows:
            return None
        try:
            return Settings.unsealed(json.loads(rows[0][0]), str(self.path))
        except (InvalidValue, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedSettings(
                f"{self.path}: the settings that are noted in it are damaged; `moviola repair` notes those "
                "of moviola.toml again"
            ) from error

    def followed(self, folder: Path, settings: Settings) -> Settings:
        """Settings of ``moviola.toml`` with what the catalogue knows better: a process that was killed has
        changed it first.

        Raises:
            DamagedSettings: they are of another library.
        """
        noted = self.noted_settings()
        if noted is None:
            return settings
        if settings.built_with == noted.built_with:
            return settings.with_sentences_of(noted)
        if _key_of(settings) in {
            key for (key,) in self._rows_of("former_settings", "SELECT built_with FROM former_settings")
        }:
            return noted
        settings.require_built_as(folder, noted)
        return settings

    @property
    def has_former(self) -> bool:
        """Whether the library was built with something else before."""
        return bool(self._rows_of("former_settings", "SELECT 1 FROM former_settings LIMIT 1"))

    def put_former(self, settings: Settings) -> None:
        """Note settings that the library is to have no longer, inside a transaction."""
        self._put_all("former_settings (built_with)", [(_key_of(settings),)])

    def note_settings(self, settings: Settings) -> None:
        """Note settings in place of others; no new generation, since no video changes."""
        with self._changing():
            self.put_settings(settings)

    def put_settings(self, settings: Settings) -> None:
        """:meth:`note_settings` inside a transaction."""
        self._rows(OF_LIBRARY["settings"])
        self._put_all("settings (only_row, content)", [(1, json.dumps(settings.sealed()))])


def _key_of(settings: Settings) -> str:
    return json.dumps(settings.built_with, sort_keys=True)
