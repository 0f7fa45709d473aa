"""What the file of a video and the subtitle files beside it hold, what of it was not used, and what the file
says of the film as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

from moviola.library.disk.database import Database, among
from moviola.types import HeldAs, Holding, Saying

__all__ = ["Account", "Accounts", "has_sound"]

EDITION = 3
"""Number of what is looked for in files: those that were looked at with a lower one are looked at again."""


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


def has_sound(account: Account | None) -> bool:
    """Whether a video has sound, as far as is known of its file."""
    held = None if account is None else account.holdings
    return held is None or any(one.held_as == "sound" for one in held)


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
        """Note how the subtitles of a video were read; what its file holds stays."""
        self._rows("INSERT OR IGNORE INTO accounts VALUES (?, 0, NULL, '[]', '[]')", (row,))
        values = (int(beside), json.dumps([*problems]), json.dumps([*notes]), row)
        self._rows("UPDATE accounts SET beside = ?, problems = ?, notes = ? WHERE video = ?", values)
        self._put_all("tracks_read (video)", [(row,)])

    def put_holdings(self, row: int, beside: bool, holdings: Sequence[Holding]) -> None:
        """Store what the file of a video holds; ``beside`` counts where nothing is noted yet."""
        self._rows("INSERT OR IGNORE INTO accounts VALUES (?, ?, NULL, '[]', '[]')", (row, int(beside)))
        said = json.dumps([astuple(one) for one in holdings])
        self._rows("UPDATE accounts SET holdings = ? WHERE video = ?", (said, row))

    def put_sayings(self, row: int, sayings: Iterable[Saying], *, live: bool) -> None:
        """Store what a file says of its film, and whether that is of a Live Photo; it was looked at now."""
        said = json.dumps([astuple(one) for one in sayings])
        self._put_all("facts (video, edition, sayings, live)", [(row, EDITION, said, int(live))])

    def forget_facts(self, row: int) -> None:
        """Have the file of a video looked at again with the next indexing."""
        self._rows_of("facts", "DELETE FROM facts WHERE video = ?", (row,))

    def looked_at(self) -> set[int]:
        """Row numbers of the videos whose files were looked at for all that is looked for now."""
        rows = self._rows_of("facts", "SELECT video FROM facts WHERE edition >= ?", (EDITION,))
        return {row for (row,) in rows}

    def sayings(self, rows: Collection[int] | None = None) -> Mapping[int, tuple[Saying, ...]]:
        """What files say of their films, of all or some videos by row number, where they say anything."""
        where, values = among("video", rows)
        query = f"SELECT video, sayings FROM facts WHERE sayings <> '[]' AND {where}"
        return {video: self._sayings(video, said) for video, said in self._rows_of("facts", query, values)}

    def live_photos(self, rows: Collection[int] | None = None) -> set[int]:
        """Row numbers of the films of Live Photos, of all or some videos."""
        where, values = among("video", rows)
        found = self._rows_of("facts", f"SELECT video FROM facts WHERE live <> 0 AND {where}", values)
        return {row for (row,) in found}

    def _sayings(self, row: int, said: str) -> tuple[Saying, ...]:
        try:
            return tuple(Saying(str(kind), str(text)) for kind, text in json.loads(said))
        except (TypeError, ValueError) as error:
            raise self._damaged(f"what the file of video {row} says") from error

    def _account(self, row: int, beside: int, holdings: str | None, problems: str, notes: str) -> Account:
        # Text in a file is not read where there is a subtitle file, which may come and go.
        read: HeldAs = "beside" if beside else "subtitles"
        try:
            held = None if holdings is None else tuple(Holding(*one) for one in json.loads(holdings))
            if held is not None:
                texts = ("beside", "subtitles")
                held = tuple(replace(one, held_as=read) if one.held_as in texts else one for one in held)
            said = (tuple(map(str, json.loads(texts))) for texts in (problems, notes))
            return Account(bool(beside), held, *said)
        except (TypeError, ValueError) as error:
            raise self._damaged(f"account of video {row}") from error
