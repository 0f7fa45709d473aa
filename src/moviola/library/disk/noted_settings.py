"""A copy of the settings in the catalogue, to compare ``moviola.toml`` with, and to write it again."""

from __future__ import annotations

import json

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

    def note_settings(self, settings: Settings) -> None:
        """Note settings in place of others; no new generation, since no video changes."""
        with self._changing():
            self.put_settings(settings)

    def put_settings(self, settings: Settings) -> None:
        """:meth:`note_settings` inside a transaction."""
        self._rows(OF_LIBRARY["settings"])
        self._put_all("settings (only_row, content)", [(1, json.dumps(settings.sealed()))])
