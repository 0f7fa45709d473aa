"""Films of which some parts are in (:mod:`moviola.library.ingest.film_parts`), and what is needed to go on.

Rows are keyed by content. Their features lie in the shards, where those of the next part follow; the
searchable video with these features, if there is one, is a row of ``videos`` like any other.

A film that is known by its key frames (:mod:`moviola.library.ingest.first_pass`) is a row of ``videos``, too,
which says so. Its features lie in a shard of their own, which is deleted once no video has any there: so the
other shards are in the end as if it had never been.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from moviola.features import Extent
from moviola.files.reasons import reason
from moviola.library.disk.database import Database
from moviola.library.disk.other_frames import KEY_FRAMES

if TYPE_CHECKING:
    from moviola.library.disk.fingerprints import Fingerprint

__all__ = ["Unfinished", "UnfinishedFilm", "how_far", "minutes_in"]

_MINUTE = 60.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class UnfinishedFilm:
    """A film of which the first ``moments`` sampled frames are in.

    Attributes:
        content, size, mtime_ns: of its file, which is to be the same when it is continued.
        made: how its frames are encoded, in words that are compared.
        seconds, promised: of film that are in, and of all by the file's header; 0 where it does not say.
        frames: features of what is in, of which ``repeats`` are copies of others.
        state: arrays and values of JSON.
    """

    content: str
    size: int
    mtime_ns: int
    made: str
    moments: int
    seconds: float
    promised: float
    frames: Extent
    repeats: int
    state: Mapping[str, Any]


def minutes_in(seconds: float, promised: float) -> tuple[str, ...]:
    """Whole minutes of a film that are in, and of all of it; these are left out where its header is wrong."""
    known = [seconds] if promised <= seconds else [seconds, promised]
    return tuple(f"{one // _MINUTE:.0f}" for one in known)


def how_far(seconds: float, promised: float, *, key_frames: bool = False) -> str:
    """How much of a film is in, in words: "12 of 58 min in"; with ``key_frames`` these stand for the rest."""
    minutes, *whole = minutes_in(seconds, promised)
    if key_frames and not seconds:
        return reason("by key frames")
    if whole:
        return reason("rest by key frames" if key_frames else "in part", minutes=minutes, all=whole[0])
    return reason("in part of some", minutes=minutes)


class Unfinished(Database):
    """The tables ``unfinished`` and ``unfinished_fingerprints`` of a catalogue."""

    def unfinished(self) -> dict[str, tuple[float, float]]:
        """Seconds of the unfinished films that are in, and of all by their headers, by content."""
        rows = self._rows_of("unfinished", "SELECT content, seconds, promised FROM unfinished")
        return {content: (seconds, promised) for content, seconds, promised in rows}

    def unfinished_film(self, content: str) -> UnfinishedFilm | None:
        """An unfinished film; None where there is none of this content, or it cannot be continued."""
        statement = f"SELECT {', '.join(_COLUMNS)} FROM unfinished WHERE content = ?"
        for row in self._rows_of("unfinished", statement, (content,)):
            with suppress(ValueError, TypeError, KeyError, OSError, BadZipFile):
                known = dict(zip(_COLUMNS[:7], row[:7], strict=True))
                return UnfinishedFilm(
                    **known, frames=Extent(*row[7:11]), repeats=row[11], state=_unpacked(row[12])
                )
        return None

    def put_unfinished(self, film: UnfinishedFilm, fingerprint: Fingerprint) -> None:
        """Store how far a film is, with the fingerprint of its latest part."""
        frames = film.frames
        values = (
            film.content, film.size, film.mtime_ns, film.made, film.moments, film.seconds, film.promised,
            frames.shard, frames.offset, frames.count, frames.crc, film.repeats, _packed(film.state),
        )  # fmt: skip
        self._put_all(f"unfinished ({', '.join(_COLUMNS)})", [values])
        times, pictures = fingerprint.times.astype("<f8").tobytes(), fingerprint.frames.tobytes()
        piece = (film.content, film.moments, times, pictures)
        self._put_all("unfinished_fingerprints (content, moments, times, frames)", [piece])

    def unfinished_fingerprint(self, content: str) -> Fingerprint:
        """The fingerprint of the parts that are in."""
        from moviola.library.disk.fingerprints import SIDE, Fingerprint

        pieces = self._rows_of(
            "unfinished_fingerprints",
            "SELECT times, frames FROM unfinished_fingerprints WHERE content = ? ORDER BY moments",
            (content,),
        )
        times = np.frombuffer(b"".join(times for times, _ in pieces), "<f8")
        frames = np.frombuffer(b"".join(frames for _, frames in pieces), np.uint8)
        return Fingerprint(times, frames.reshape(-1, SIDE, SIDE))

    def unfinished_extents(self) -> dict[str, Extent]:
        """Where the features of unfinished films lie, by content."""
        columns = "content, shard, start, number, crc"
        rows = self._rows_of("unfinished", f"SELECT {columns} FROM unfinished")
        return {content: Extent(*place) for content, *place in rows}

    def relocate_unfinished(self, content: str, frames: Extent) -> None:
        """Store the new place of an unfinished film's features (compaction)."""
        self._rows(
            "UPDATE unfinished SET shard = ?, start = ?, number = ?, crc = ? WHERE content = ?",
            (frames.shard, frames.offset, frames.count, frames.crc, content),
        )

    def by_key_frames(self) -> dict[int, float]:
        """Of the videos that are known by their key frames alone, the second from which on, by row number."""
        return dict(self._rows_of("key_frames", "SELECT video, since FROM key_frames"))

    def put_by_key_frames(self, row: int, since: float, frames: Extent) -> None:
        """Store that a video is known by its key frames alone from a second on, and that its features are the
        last ones of their shard, inside a transaction.
        """
        self._put_all("key_frames (video, since)", [(row, since)])
        end = (KEY_FRAMES, frames.shard, frames.offset + frames.count)
        self._put_all("feature_ends (kind, shard, rows)", [end])

    def forget_by_key_frames(self, row: int) -> None:
        """Forget that a video is known by its key frames alone, inside a transaction."""
        self._rows_of("key_frames", "DELETE FROM key_frames WHERE video = ?", (row,))

    def key_frames_end(self) -> tuple[int, int] | None:
        """Shard and row behind the last features of key frames; None where there never were any."""
        rows = self._rows("SELECT shard, rows FROM feature_ends WHERE kind = ?", (KEY_FRAMES,))
        return (int(rows[0][0]), int(rows[0][1])) if rows else None

    def begin_key_frames(self, shard: int) -> None:
        """Note the shard that the next features of key frames go to; no new generation."""
        with self._changing():
            self._put_all("feature_ends (kind, shard, rows)", [(KEY_FRAMES, shard, 0)])

    def forget_unfinished(self, contents: Collection[str]) -> None:
        """Delete what is known of unfinished films; the searchable videos stay."""
        for table in ("unfinished", "unfinished_fingerprints"):
            statement = f"DELETE FROM {table} WHERE content IN (SELECT value FROM json_each(?))"
            self._rows_of(table, statement, (json.dumps([*contents]),))


_COLUMNS = (
    "content", "size", "mtime_ns", "made", "moments", "seconds", "promised", "shard", "start", "number",
    "crc", "repeats", "state",
)  # fmt: skip


def _packed(state: Mapping[str, Any]) -> bytes:
    """Arrays and values of JSON, nested in dicts, as the bytes of an archive of NumPy."""
    arrays: dict[str, Any] = {}
    values = _without_arrays(state, "", arrays)
    file = BytesIO()
    np.savez(file, values=np.frombuffer(json.dumps(values).encode(), np.uint8), **arrays)
    return file.getvalue()


def _without_arrays(value: Any, place: str, arrays: dict[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_arrays(one, f"{place}.{name}", arrays) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        arrays[place] = value
        return {"array": place}
    return value


def _unpacked(data: bytes) -> Mapping[str, Any]:
    with np.load(BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}

    def whole(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if value.keys() == {"array"}:
            return arrays[value["array"]]
        return {name: whole(one) for name, one in value.items()}

    state: Mapping[str, Any] = whole(json.loads(arrays["values"].tobytes()))
    return state
