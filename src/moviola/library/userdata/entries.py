"""What people keep in a library: saved searches, collections of moments, tags and ratings.

Stored in ``kept.sqlite``, apart from the catalogue, since it cannot be recomputed. Every entry has a version,
which rises with each change: a change names the version that it is based on, and is refused if the entry has
changed since. Readers and writers need no lock of the library. Entries name videos by id, and stay when a
video is removed.

A saved search is the JSON of a question (:mod:`moviola.search.asked`). Its pictures are kept with it, by the
digest of their bytes, for as long as a saved search has them.

:mod:`moviola.library.userdata.formats` has the formats of the file, and of the lines of JSON which
:meth:`UserData.export` writes and :meth:`UserData.take` reads.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import BaseModel, ValidationError

from moviola.errors import DataError, InvalidValue, NotFound, OutOfDate
from moviola.files.names import composed, folded, nearest
from moviola.files.writing import draft_of
from moviola.library.disk.database import LateDatabase
from moviola.library.userdata.formats import FORMAT, entry_of_line, line_of, of_today
from moviola.library.userdata.pictures import picture_name
from moviola.library.userdata.values import (
    Entry,
    Kind,
    Mark,
    SavedSearch,
    checked_kind,
    complaint,
    entry_of,
    spans_of,
)
from moviola.types import several

__all__ = ["UserData", "saved_picture"]

# Of a version: as JSON has numbers, with room for the changes to come. Clocks differ by no more.
_LARGEST = 2**52
_CLOCKS = timedelta(days=1)

_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    kind TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, changed TEXT NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
-- What saved searches have reported: up to which row of the catalogue, which contents to all receivers, and
-- which to one of them while another has not had it.
CREATE TABLE IF NOT EXISTS alerts (name TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reported (name TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (name, content))
WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reported_to (
    name TEXT NOT NULL, content TEXT NOT NULL, receiver TEXT NOT NULL, PRIMARY KEY (name, content, receiver)
) WITHOUT ROWID;
-- The newest row of the catalogue when a saved search was opened last, by anybody.
CREATE TABLE IF NOT EXISTS opened (name TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID;
-- Pictures of saved searches, by a digest of their bytes.
CREATE TABLE IF NOT EXISTS pictures (name TEXT PRIMARY KEY, content BLOB NOT NULL)
"""


class UserData(LateDatabase):
    """The entries of a library; for any number of threads and processes. Where its folder cannot be written,
    they can be read.

    Args:
        folder: the library.
        check: is called with the JSON of a saved search, and raises :class:`InvalidValue` for one that can
            never run, which is then not stored.
        lengths: seconds of the videos of some ids, by id, of those that are known; a moment past the end of
            one of them is not stored.

    Raises:
        LibraryError: the file is damaged, or of a later format.
    """

    holds, remedy = "collection of what people keep", "restore a copy, or rename it to start an empty one"
    script, format = _TABLES, FORMAT
    tables = ("entries", "alerts", "reported", "reported_to", "pictures", "opened")

    def __init__(
        self,
        folder: Path,
        check: Callable[[Mapping[str, Any]], object] = lambda _: None,
        lengths: Callable[[set[str]], Mapping[str, float]] = lambda _: {},
    ) -> None:
        super().__init__(folder / "kept.sqlite", read_only=not os.access(folder, os.W_OK))
        # SQLite lets threads that wait for each other look again and again, and gives up after five seconds.
        self._turn, self._check, self._lengths = Lock(), check, lengths
        self._is_there()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._make()
        with self._turn, self._changing():
            yield

    def entries(self, kind: Kind | None = None) -> list[Entry]:
        """All entries, or those of one kind, by kind and name."""
        return self._entries() if kind is None else self._entries(" WHERE kind = ?", checked_kind(kind))

    def _entries(self, where: str = "", *values: str) -> list[Entry]:
        # With the number of the file's format: another process may upgrade it between two reads.
        columns, tables = "kind, name, version, changed, value, user_version", "entries, pragma_user_version"
        statement = f"SELECT {columns} FROM {tables}{where} ORDER BY kind, name"
        return [self._entry(row) for row in self._rows_of("entries", statement, values)]

    def entry(self, kind: Kind, name: str) -> Entry:
        """One entry, whose name may have its accents in another form; :class:`NotFound` if there is none."""
        found = self._entries(" WHERE kind = ? AND name = ?", checked_kind(kind), self._as_stored(kind, name))
        if not found:
            near = nearest(name, [entry.name for entry in self.entries(kind)])
            hint = f"did you mean {', '.join(near)}?" if near else "`moviola kept list` shows all"
            raise NotFound(f"{kind} {name!r}: no such entry; {hint}")
        return found[0]

    def _as_stored(self, kind: str, name: str) -> str:
        """The name of an entry as it is stored, see :mod:`moviola.files.names`; that itself where none is."""
        if name.isascii():
            return name
        rows = self._rows_of("entries", "SELECT name FROM entries WHERE kind = ?", (kind,))
        same = [stored for (stored,) in rows if composed(stored) == composed(name)]
        return same[0] if len(same) == 1 else name

    def tagged(self) -> dict[str, frozenset[str]]:
        """Ids of the videos that bear a tag, as a whole or on a moment, by tag. Tags that differ only in case
        or in the form of their accents are one, in the spelling of most videos.
        """
        statement = (
            "SELECT tag.value, json_extract(entries.value, '$.video_id') "
            "FROM entries, json_each(entries.value, '$.tags') AS tag WHERE kind = 'mark'"
        )
        spelt: dict[str, dict[str, set[str]]] = {}
        for tag, video_id in self._rows_of("entries", statement):
            spelt.setdefault(folded(tag), {}).setdefault(tag, set()).add(video_id)
        joined = {
            max(sorted(videos), key=lambda tag: len(videos[tag])): frozenset().union(*videos.values())
            for videos in spelt.values()
        }
        return dict(sorted(joined.items()))

    def _entry(self, row: tuple[Any, ...]) -> Entry:
        kind, name, version, changed, value, format = row
        try:
            value = of_today(kind, json.loads(value), max(format, 1))
            return Entry(kind=kind, name=name, version=version, changed=changed, value=value)
        except (ValueError, TypeError, AttributeError) as error:
            raise self._damaged(repr(name)) from error

    def put(
        self,
        kind: Kind,
        name: str,
        value: Mapping[str, Any] | BaseModel,
        version: int | None = None,
        pictures: Mapping[str, bytes] = {},
    ) -> Entry:
        """Store an entry of a value of :data:`moviola.library.userdata.values.KINDS`, or its JSON form,
        replacing the one of that name. The change is based on ``version``, 0 for a new entry, None for any.
        ``pictures`` are those of a search, by their names, but for those that are kept already.

        Raises:
            InvalidValue: no such kind, a value outside its range, a search that can never run or of whose
                pictures one is missing, or a moment past the end of its video.
            OutOfDate: another version is stored.
            LibraryError: the file cannot be written.
        """
        if kind != "mark":  # whose name has the id of a video, as the library has it
            name = self._as_stored(kind, name)
        made = entry_of(kind, name, value)
        try:
            self._require_runnable(made)
            self._require_within_videos(made)
        except InvalidValue as error:
            raise InvalidValue(f"{kind} {name!r}: {error}") from error
        with self._writing():
            before = self._version_of(kind, name)
            _require_version(kind, name, before, version)
            stored = self._store(made.at(_after(before)), pictures)
            self._sweep()
            return stored

    def _require_runnable(self, entry: Entry) -> None:
        if isinstance(entry.value, SavedSearch):
            self._check(entry.value.root)

    def _require_within_videos(self, entry: Entry) -> None:
        """Refuse new moments past the ends of their videos; stored ones stay, since files may get shorter."""
        stored = self._entries(" WHERE kind = ? AND name = ?", entry.kind, entry.name)
        new = spans_of(entry.value).difference(*(spans_of(one.value) for one in stored))
        lengths = self._lengths({video_id for video_id, _ in new}) if new else {}
        for video_id, span in sorted(new):
            span.within(video_id, lengths.get(video_id, math.inf))

    def delete(self, kind: Kind, name: str, version: int | None = None) -> None:
        """Delete an entry; :class:`NotFound` where there is none, :class:`OutOfDate` for another version."""
        name = self.entry(kind, name).name
        with self._writing():
            _require_version(kind, name, self._version_of(kind, name), version)
            self._rows("DELETE FROM entries WHERE kind = ? AND name = ?", (kind, name))
            self._sweep()

    def mark(
        self,
        mark: Mark,
        *,
        add: Iterable[str] = (),
        remove: Iterable[str] = (),
        rating: int | None = None,
    ) -> Entry | None:
        """Change tags and rating (1 to 5, 0 for none, None: unchanged) of the video or moment that a mark
        names; its own do not count. A tag that it bears in another spelling, see :meth:`tagged`, is not
        added again. An empty mark is deleted; else the stored one is returned.

        Raises:
            InvalidValue: a tag that is empty or too long, a rating out of range, one text as ``add``, or a
                moment past the end of its video.
        """
        added, gone = several("add", add), set(map(folded, several("remove", remove)))
        self._require_within_videos(entry_of("mark", mark.name, mark))
        with self._writing():
            version = self._version_of("mark", mark.name)
            before = (
                self.entry("mark", mark.name).value
                if version
                else mark.model_copy(update={"tags": [], "rating": 0})
            )
            assert isinstance(before, Mark)
            spelt: dict[str, str] = {}
            for tag in (*before.tags, *added):
                spelt.setdefault(folded(tag), tag)
            tags = [tag for form, tag in spelt.items() if form not in gone]
            value = {
                **before.model_dump(), "tags": tags, "rating": before.rating if rating is None else rating,
            }  # fmt: skip
            made = entry_of("mark", mark.name, value)
            if tags or value["rating"]:
                return self._store(made.at(_after(version)))
            self._rows("DELETE FROM entries WHERE kind = 'mark' AND name = ?", (mark.name,))
            return None

    def _version_of(self, kind: Kind, name: str) -> int:
        rows = self._rows("SELECT version FROM entries WHERE kind = ? AND name = ?", (kind, name))
        return int(rows[0][0]) if rows else 0

    def _store(self, entry: Entry, pictures: Mapping[str, bytes] = {}) -> Entry:
        if isinstance(entry.value, SavedSearch):
            new = self._require_pictures(entry, pictures)
            self._put_all("pictures (name, content)", [(name, pictures[name]) for name in sorted(new)])
        row = (entry.kind, entry.name, entry.version, entry.changed, json.dumps(entry.value.model_dump()))
        self._put_all("entries (kind, name, version, changed, value)", [row])
        return entry

    # -- pictures ------------------------------------------------------------------------------------------

    def _require_pictures(self, entry: Entry, given: Mapping[str, bytes]) -> set[str]:
        """Names of the pictures of a search that are not kept yet; refused if one is not given either."""
        new = entry.value.pictures - self.pictures().keys() if isinstance(entry.value, SavedSearch) else set()
        if missing := new - given.keys():
            raise InvalidValue(
                f"{entry.kind} {entry.name!r}: picture {min(missing)}: not kept in this library; give it "
                "with the search"
            )
        return new

    def pictures(self) -> dict[str, int]:
        """Sizes in bytes of the pictures of saved searches, by name."""
        return dict(self._rows_of("pictures", "SELECT name, length(content) FROM pictures ORDER BY name"))

    def picture(self, name: str) -> bytes:
        """A picture of a saved search.

        Raises:
            NotFound: no saved search has it.
            LibraryError: it is damaged.
        """
        found = self._rows_of("pictures", "SELECT content FROM pictures WHERE name = ?", (name,))
        if not found:
            raise NotFound(
                f"picture {name}: no saved search has it, or no longer; give the file, or send it again"
            )
        content = bytes(found[0][0])
        if picture_name(content) != name:
            raise self._damaged(f"picture {name}")
        return content

    def _sweep(self) -> None:
        """Delete the pictures that no saved search has, inside a transaction."""
        values = [entry.value for entry in self.entries("search")]
        wanted = {name for value in values if isinstance(value, SavedSearch) for name in value.pictures}
        for name in self.pictures().keys() - wanted:
            self._rows("DELETE FROM pictures WHERE name = ?", (name,))

    # -- formats -------------------------------------------------------------------------------------------

    def _back_up(self) -> None:
        first = self.path.parent / "backups" / f"kept-format-{self._version}.sqlite"
        others = (first.with_stem(f"{first.stem}-{number}") for number in count(2))
        with draft_of(next(place for place in chain([first], others) if not place.exists())) as draft:
            self.copy_to(draft)

    def _upgrade(self, version: int) -> None:
        for name, value in self._rows("SELECT name, value FROM entries WHERE kind = 'search'"):
            try:
                value = json.dumps(of_today("search", json.loads(value), max(version, 1)))
            except (ValueError, TypeError, AttributeError) as error:
                raise self._damaged(repr(name)) from error
            self._rows("UPDATE entries SET value = ? WHERE kind = 'search' AND name = ?", (value, name))

    # -- alerts --------------------------------------------------------------------------------------------

    def alerted(self) -> dict[str, int]:
        """By name of a saved search, the row of the catalogue up to which it was checked for new videos."""
        return dict(self._rows_of("alerts", "SELECT name, row FROM alerts"))

    def alert_to(self, name: str, row: int) -> None:
        """A search was checked up to a row."""
        with self._writing():
            self._rows("INSERT OR REPLACE INTO alerts VALUES (?, ?)", (name, row))

    def was_reported(self, name: str, content: str) -> bool:
        """Whether every receiver has had some content that answers a search."""
        statement = "SELECT 1 FROM reported WHERE name = ? AND content = ?"
        return bool(self._rows_of("reported", statement, (name, content)))

    def set_reported(self, name: str, content: str) -> None:
        """Every receiver has had some content; notes of single receivers are dropped."""
        with self._writing():
            self._rows("INSERT OR IGNORE INTO reported VALUES (?, ?)", (name, content))
            self._rows("DELETE FROM reported_to WHERE name = ? AND content = ?", (name, content))

    def was_reported_to(self, name: str, content: str, receiver: str) -> bool:
        """Whether one receiver has had some content."""
        statement = "SELECT 1 FROM reported_to WHERE name = ? AND content = ? AND receiver = ?"
        return bool(self._rows_of("reported_to", statement, (name, content, receiver)))

    def remember_alert(self, name: str, content: str, receiver: str) -> None:
        """Note that one receiver has had some content."""
        with self._writing():
            self._rows("INSERT OR IGNORE INTO reported_to VALUES (?, ?, ?)", (name, content, receiver))

    # -- what is new -----------------------------------------------------------------------------------------

    def opened(self) -> dict[str, int]:
        """The newest rows of the catalogue when searches were opened last, by name."""
        return dict(self._rows_of("opened", "SELECT name, row FROM opened"))

    def open_to(self, name: str, row: int) -> None:
        """Note that a search was opened when a row was the newest; an earlier row changes nothing.

        Raises:
            NotFound: no such search.
        """
        name = self.entry("search", name).name
        later = "ON CONFLICT (name) DO UPDATE SET row = max(row, excluded.row)"
        with self._writing():
            self._rows(f"INSERT INTO opened VALUES (?, ?) {later}", (name, row))

    # -- lines ---------------------------------------------------------------------------------------------

    def export(self) -> Iterator[str]:
        """All entries as lines of JSON, without line ends."""
        for entry in self.entries():
            yield line_of(entry, self.picture)

    def take(self, lines: Iterable[str], where: str = "line") -> list[Entry]:
        """Store entries from lines of JSON, all or nothing, and return those that are new or later than what
        was stored. Moments past the end of a video are taken too: their lines may be older than its file. Of
        a time of change that is still to come only the version counts, and that of now is stored.

        Raises:
            DataError: a damaged line, a version that no number of changes makes, or a search that can never
                run, named in the message after ``where`` it comes from.
        """
        read: list[Entry] = []
        pictures: dict[str, bytes] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                entry, own = entry_of_line(line)
                pictures |= own
                if entry.version > _LARGEST:
                    raise InvalidValue(f"version {entry.version}: at most {_LARGEST:,}")
                self._require_runnable(entry)
                self._require_pictures(entry, pictures)
            except ValidationError as error:
                raise DataError(f"{where} {number}: {complaint(error)}") from error
            except (DataError, InvalidValue) as error:
                raise DataError(f"{where} {number}: {error}") from error
            read.append(entry)
        latest: dict[tuple[Kind, str], Entry] = {}
        for entry in read:
            key = entry.kind, entry.name
            if key not in latest or entry.changed > latest[key].changed:
                latest[key] = entry
        with self._writing():
            known = {(entry.kind, entry.name): entry for entry in self.entries()}
            now = datetime.now(UTC)
            later = [entry for key, entry in latest.items() if _is_later(entry, known.get(key), now)]
            taken = [
                self._store(_taken_in(one, known.get((one.kind, one.name)), now), pictures) for one in later
            ]
            self._sweep()
            return taken


def _is_later(entry: Entry, before: Entry | None, now: datetime) -> bool:
    """Whether an entry from elsewhere replaces the stored one."""
    if before is None or _past(entry.changed, now):
        return before is None or _past(entry.changed, now) > _past(before.changed, now)
    return entry.changed > before.changed and entry.version >= before.version and entry.value != before.value


def _taken_in(entry: Entry, before: Entry | None, now: datetime) -> Entry:
    version = max(entry.version, _after(before.version) if before else 1)
    has_time = _past(entry.changed, now) == entry.changed
    changed = entry.changed if has_time else now.isoformat(timespec="seconds")
    return entry.model_copy(update={"version": version, "changed": changed})


def saved_picture(folder: Path, name: str) -> bytes:
    """A picture of a saved search of the library in a folder; errors as in :meth:`UserData.picture`."""
    with closing(UserData(folder)) as userdata:
        return userdata.picture(name)


def _past(changed: str, now: datetime) -> str:
    """A time of change; empty where it is still to come, but for what clocks differ by."""
    return changed if changed <= (now + _CLOCKS).isoformat(timespec="seconds") else ""


def _after(version: int) -> int:
    """The next version; beyond what any number of changes makes, an earlier moviola has taken it in."""
    return version + 1 if version < _LARGEST else 1


def _require_version(kind: Kind, name: str, kept: int, wanted: int | None) -> None:
    if wanted is not None and wanted != kept:
        raise OutOfDate(
            f"{kind} {name!r}: version {kept} is stored, the change is based on {wanted}; read it again first"
        )
