"""What the file of a video and the subtitle files beside it hold, and what of it was not used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from moviola.library.disk.database import Database
from moviola.types import Holding

__all__ = ["Account", "Accounts"]


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a video.

    Attributes:
        beside: whether its subtitles are of files beside it; None where that was not noted.
        holdings: the parts of its file; None where it was not looked at.
        problems: what is missing of its subtitles.
        notes: how subtitles were read where that is a guess, or not as they stand there.
    """

    beside: bool | None = None
    holdings: tuple[Holding, ...] | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unused(self) -> tuple[Holding, ...]:
        """Parts of the file that are not used."""
        return tuple(one for one in self.holdings or () if not one.used)


_ACCOUNTS = "SELECT video, beside, holdings, problems, notes FROM accounts"


class Accounts(Database):
    """The ``accounts`` table of a catalogue."""

    def accounts(self) -> dict[int, Account]:
        """Accounts by row number, of the videos that have one."""
        return {row: self._account(row, *values) for row, *values in self._rows_of("accounts", _ACCOUNTS)}

    def account(self, row: int) -> Account:
        """The account of one video; empty where there is none yet."""
        rows = self._rows_of("accounts", f"{_ACCOUNTS} WHERE video = ?", (row,))
        return self._account(*rows[0]) if rows else Account()

    def note_subtitles(
        self, row: int, problems: Sequence[str], notes: Sequence[str], *, beside: bool
    ) -> None:
        """Begin the account of a video with how its subtitles were read; its file is looked at next."""
        values = (row, int(beside), json.dumps([*problems]), json.dumps([*notes]))
        self._rows("INSERT OR REPLACE INTO accounts VALUES (?, ?, NULL, ?, ?)", values)

    def put_holdings(self, row: int, beside: bool, holdings: Sequence[Holding]) -> None:
        """Store what the file of a video holds; ``beside`` counts where nothing is noted yet."""
        self._rows("INSERT OR IGNORE INTO accounts VALUES (?, ?, NULL, '[]', '[]')", (row, int(beside)))
        said = json.dumps([astuple(one) for one in holdings])
        self._rows("UPDATE accounts SET holdings = ? WHERE video = ?", (said, row))

    def _account(self, row: int, beside: int, holdings: str | None, problems: str, notes: str) -> Account:
        try:
            held = None if holdings is None else tuple(Holding(*one) for one in json.loads(holdings))
            said = (tuple(map(str, json.loads(texts))) for texts in (problems, notes))
            return Account(bool(beside), held, *said)
        except (TypeError, ValueError) as error:
            raise self._damaged(f"account of video {row}") from error
