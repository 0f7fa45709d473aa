"""``catalogue.sqlite``: the videos of a library, where their features are stored, and their cues.

A row of ``videos`` appears, changes and disappears in one transaction together with its cues, after its
features were synced to disk: a video is wholly in or not in. Row numbers are never used twice, so a row
number stands for one state of one video for ever: indexes compare row numbers to see what they lack.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from moviola.errors import LibraryError, NotFound
from moviola.features import Extent
from moviola.files.names import composed, nearest
from moviola.library.disk import schema
from moviola.library.disk.accounts import Accounts
from moviola.library.disk.captures import Captures
from moviola.library.disk.changes import Changes
from moviola.library.disk.cue_words import MEMBERS, CueRow, CueTrack, CueWords
from moviola.library.disk.database import REMEDY, Database, among, run_script
from moviola.library.disk.other_frames import OtherFrames
from moviola.library.disk.places import Places
from moviola.library.disk.removed import RemovedVideos
from moviola.library.disk.schema import VideoRow
from moviola.library.disk.sounds import Sounds
from moviola.library.disk.unfinished import Unfinished
from moviola.types import CUE_KINDS, Box, Cue, CueKind, Word, require_kind, several

__all__ = ["CATALOGUE_FILE", "Catalogue", "CueRow", "CueTrack", "Job", "Reading", "ShotRow", "VideoRow"]

CATALOGUE_FILE = "catalogue.sqlite"


@dataclass(frozen=True, slots=True)
class ShotRow:
    """The second at which a shot begins, and how: ``"start"``, ``"cut"``, ``"dissolve"``, ``"fade"``,
    ``"wipe"``.
    """

    start: float
    opening: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A finished reading of one video: the kind of cues, the reader's name, its revision, which changes with
    its weights, the recognised language, empty if none, and what is said of what it could not read.
    """

    kind: CueKind
    reader: str
    revision: str
    language: str = ""
    unread: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """The latest indexing job: its kind, its progress and its end (``running`` may mean killed)."""

    kind: str
    total: int
    done: int
    state: str
    started: str


class Catalogue(
    CueWords, Places, Captures, Accounts, Sounds, RemovedVideos, OtherFrames, Unfinished, Changes, Database
):
    """The catalogue of an existing library; :class:`LibraryError` also where it holds other tables."""

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        super().__init__(Path(folder) / CATALOGUE_FILE, read_only=read_only)
        self._require_schema()

    @classmethod
    def create(cls, folder: Path) -> None:
        """Make an empty catalogue; one that is there already, whole or unfinished, keeps its content."""
        run_script(folder / CATALOGUE_FILE, schema.SCHEMA)

    def _require_schema(self) -> None:
        """Refuse a file that lacks a table, a column or a counter, or that has triggers or views."""
        foreign = self._rows("SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')")
        if foreign:
            kind, name = foreign[0]
            raise LibraryError(
                f"{self.path}: holds a {kind} {name!r:.100}, which moviola never makes; {REMEDY}"
            )
        for table, columns in schema.COLUMNS.items():
            self._rows(f"SELECT {columns} FROM {table} LIMIT 0")
        counters = {key for (key,) in self._rows("SELECT key FROM meta")}
        kinds = {kind for (kind,) in self._rows("SELECT kind FROM feature_ends")}
        if "generation" not in counters or not kinds >= {"frames", "cues"}:
            raise self._damaged("a counter is missing")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: all changes inside happen, or none; ends by raising the generation."""
        with self._changing():
            self._add_tables()
            with self._noting_changes():
                yield
                self._rows("UPDATE meta SET value = value + 1 WHERE key = 'generation'")

    def _add_tables(self) -> None:
        indexes = schema.CUES_BY_VIDEO, schema.CHANGED_BY_GENERATION
        for missing in (*schema.ADDED.values(), *schema.OF_LIBRARY.values(), *indexes):
            self._rows(missing)

    @property
    def generation(self) -> int:
        """Number that rises with every change; a reader that sees a new one reads the catalogue again."""
        rows = self._rows("SELECT value FROM meta WHERE key = 'generation'")
        if len(rows) != 1 or type(rows[0][0]) is not int:
            raise self._damaged("its generation is no number")
        return int(rows[0][0])

    def videos(self) -> list[VideoRow]:
        """All videos, refused ones included, by video id."""
        return [self._video(row) for row in self._rows(_SELECT + " ORDER BY video_id")]

    def video_ids(self) -> list[str]:
        """The ids of all videos, refused ones included."""
        return [video_id for (video_id,) in self._rows("SELECT video_id FROM videos ORDER BY video_id")]

    def searchable(self, rows: Collection[int] | None = None) -> list[VideoRow]:
        """The searchable videos, or those of some row numbers, by row number."""
        where, values = among("row", rows)
        found = self._rows(f"{_SELECT} WHERE state <> 'refused' AND {where} ORDER BY row", values)
        return [self._video(row) for row in found]

    def searchable_rows(self) -> list[int]:
        """Row numbers of the searchable videos, rising."""
        return [row for (row,) in self._rows("SELECT row FROM videos WHERE state <> 'refused' ORDER BY row")]

    def contents(self) -> list[tuple[int, str, float]]:
        """Row number, content and seconds of the searchable videos."""
        return self._rows("SELECT row, hash, duration FROM videos WHERE state <> 'refused' ORDER BY row")

    def videos_as_read(self) -> list[VideoRow]:
        """All videos; those with subtitles whose tracks were not asked for their languages as to be read
        again, and those of which some parts are in, or key frames alone, as if their files had been written
        to since.
        """
        read = {row for (row,) in self._rows_of("tracks_read", "SELECT video FROM tracks_read")}
        rows = self._rows_of("cue_tracks", "SELECT DISTINCT video FROM cue_tracks WHERE kind = 'subtitle'")
        again = {row for (row,) in rows} - read
        unfinished, rough = self.unfinished(), self.by_key_frames()

        def unfinished_as_written_to(video: VideoRow) -> VideoRow:
            if video.state != "partial" or not (video.hash in unfinished or video.row in rough):
                return video
            return replace(video, mtime_ns=video.mtime_ns - 1)

        return [
            replace(video, sidecars=schema.with_encoding(schema.UNREAD, schema.encoding_of(video.sidecars)))
            if video.row in again else video
            for video in map(unfinished_as_written_to, self.videos())
        ]  # fmt: skip

    def video(self, video_id: str) -> VideoRow:
        """One video by id, which may have its accents in another form (:mod:`moviola.files.names`), or by the
        name or the path that its file or a copy has now; :class:`NotFound` offers near names.
        """
        require_kind("video", video_id, str, "the id of a video")
        for row in self._rows(_SELECT + " WHERE video_id = ?", (video_id,)):
            return self._video(row)
        videos, wanted = self.videos(), composed(video_id)
        same = [video for video in videos if composed(video.video_id) == wanted]
        same = same or self._called(videos, wanted)
        if len(same) == 1:
            return same[0]
        if same:
            ids = ", ".join(video.video_id for video in same[:5])
            raise NotFound(f"{video_id:.200}: {len(same)} videos are called so; name one: {ids}")
        near = nearest(video_id, [video.video_id for video in videos])
        hint = f"; did you mean {', '.join(near)}?" if near else "; `moviola list` shows what is there"
        raise NotFound(f"{video_id:.200}: no such video in this library{hint}")

    def _called(self, videos: Sequence[VideoRow], name: str) -> list[VideoRow]:
        """The videos with a file of a name, or a path or the end of one; with its suffix or without."""
        paths = [(video.row, video.path) for video in videos]
        paths += [(copy.video, copy.path) for copy in self.copies()]
        wanted = Path(name).parts
        if not wanted:
            return []
        rows = set()
        for row, path in paths:
            *folders, file = Path(composed(path)).parts[-len(wanted) :]
            if (*folders, file) == wanted or (*folders, Path(file).stem) == wanted:
                rows.add(row)
        return [video for video in videos if video.row in rows]

    def listed(self, video_ids: Iterable[str]) -> list[VideoRow]:
        """The videos of some ids, each once, in their order; errors as in :meth:`video`."""
        return [self.video(video_id) for video_id in dict.fromkeys(several("video_ids", video_ids))]

    def videos_named(self, video_ids: Collection[str]) -> dict[str, VideoRow]:
        """The videos of some ids, those that exist."""
        rows = self._rows(f"{_SELECT} WHERE video_id IN ({MEMBERS})", (json.dumps([*video_ids]),))
        return {video.video_id: video for video in map(self._video, rows)}

    def lengths_of(self, video_ids: Collection[str]) -> dict[str, float]:
        """Seconds of videos by id; a refused one has none."""
        named = self.videos_named(video_ids)
        return {video_id: video.duration for video_id, video in named.items() if video.duration}

    def rows_with(self, contents: Collection[str]) -> dict[str, list[int]]:
        """Row numbers, rising, of the searchable videos of some contents, by content."""
        rows = f"SELECT hash, row FROM videos WHERE hash IN ({MEMBERS}) AND state <> 'refused' ORDER BY row"
        found: dict[str, list[int]] = {}
        for content, row in self._rows(rows, (json.dumps([*contents]),)):
            found.setdefault(content, []).append(row)
        return found

    def put(
        self,
        video: VideoRow,
        cues: Sequence[Cue],
        shots: Sequence[ShotRow] = (),
        readings: Iterable[Reading] = (),
        repeats: int = 0,
        *,
        by_key_frames: float | None = None,
    ) -> VideoRow:
        """Store a video with its features, shots and cues, replacing the one of the same id or path; returns
        it with its row number. From the second ``by_key_frames`` on its features are those of key frames, and
        all of them lie with such.
        """
        same = "SELECT row, hash FROM videos WHERE video_id = ? OR path = ?"
        kept: list[tuple[str, dict[str, Any]]] = []
        for old, content in self._rows(same, (video.video_id, video.path)):
            if content == video.hash:  # these belong to the bytes
                of_bytes = (
                    "copies", "captures", "routes", "accounts", "facts", "checksums", "said_languages",
                    "tracks_read", "sounds", "other_frames",
                )  # fmt: skip
                kept += [(table, one) for table in of_bytes for one in self._rows_on(old, table)]
            self.drop(old)
        columns = {name: getattr(video, name) for name in _NAMES[1 : len(schema.VIDEO_TYPES)]}
        row = self._insert_row("videos", columns | _extent_columns(video.frames, video.cues))
        said = {(one["kind"], one["found"]): one["language"] for of, one in kept if of == "said_languages"}
        self.put_cues(row, cues, said)
        recognised = [(n, cue) for n, cue in enumerate(cues) if cue.kind != "subtitle"]
        details = [(row, number, cue.kind, _details(cue)) for number, cue in recognised]
        self._put_all("recognised (video, number, kind, details)", details)
        self.set_readings(row, readings)
        self.set_shots(row, shots)
        for table, values in kept:
            self._insert_row(table, {**values, "video": row})
        self.drop_copy(video.path)  # as one that came back may have it
        self.set_repeats(row, repeats)
        if by_key_frames is None:
            self.raise_feature_end("frames", video.frames)
        elif video.frames is not None:
            self.put_by_key_frames(row, by_key_frames, video.frames)
        self.raise_feature_end("cues", video.cues)
        return replace(video, row=row)

    def feature_end(self, kind: str) -> tuple[int, int]:
        """Shard and row behind the last committed feature of a kind."""
        ((shard, rows),) = self._rows("SELECT shard, rows FROM feature_ends WHERE kind = ?", (kind,))
        return int(shard), int(rows)

    def raise_feature_end(self, kind: str, extent: Extent | None) -> None:
        """Move the end of a kind behind an extent: never down, since a video whose subtitles are read again
        keeps rows before those of others.
        """
        if extent is not None:
            end = extent.shard, extent.offset + extent.count
            self.set_feature_end(kind, *max(self.feature_end(kind), end))

    def set_feature_end(self, kind: str, shard: int, rows: int) -> None:
        self._rows("UPDATE feature_ends SET shard = ?, rows = ? WHERE kind = ?", (shard, rows, kind))

    def moved(self, row: int, path: str, size: int, mtime_ns: int, sidecars: str) -> None:
        """Store the new path of a video whose content moved, or was only touched."""
        statement = "UPDATE videos SET path = ?, size = ?, mtime_ns = ?, sidecars = ? WHERE row = ?"
        self._rows(statement, (path, size, mtime_ns, sidecars, row))

    def encode_again(self, row: int) -> None:
        """Mark a video to be encoded again when its file is indexed the next time; until then it stays as it
        is. Refused files are tried again in any case.
        """
        # The time differs from the file's, but by so little that filters and orders by date stay right.
        changes = "state = 'partial', error = 'waits to be encoded again', mtime_ns = mtime_ns - 1"
        self.forget_unfinished([content for (content,) in self._rows(_HASH, (row,))])
        self._rows(f"UPDATE videos SET {changes} WHERE row = ? AND state <> 'refused'", (row,))

    def read_again(self, row: int) -> None:
        """Mark a video whose subtitles and text in pictures are to be read again with the next indexing."""
        kept = "CASE WHEN sidecars GLOB ? THEN substr(sidecars, 1, instr(sidecars, '|')) ELSE '' END"
        statement = f"UPDATE videos SET sidecars = {kept} || ? WHERE row = ?"
        self._rows(statement, (f"{schema.ENCODING}*", schema.UNREAD, row))
        self._rows_of("readings", "DELETE FROM readings WHERE video = ? AND kind = 'text'", (row,))

    def relocate(self, row: int, frames: Extent | None, cues: Extent | None) -> None:
        """Store the new places of a video's features (compaction)."""
        columns = _extent_columns(frames, cues)
        assignments = ", ".join(f"{name} = ?" for name in columns)
        self._rows(f"UPDATE videos SET {assignments} WHERE row = ?", (*columns.values(), row))

    def take_out(self, video: VideoRow) -> bool:
        """Remove a video so that it can be restored; False for a refused one, of which there is nothing to
        keep.
        """
        has_data = video.state != "refused"
        if has_data:
            self.keep_removed(video.row)
        self.drop(video.row)
        return has_data

    def drop(self, row: int) -> None:
        """Delete a video and its data."""
        self._rows(f"DELETE FROM cues WHERE {schema.CUES_OF}", (row,))
        for table in schema.ADDED:
            self._rows(f"DELETE FROM {table} WHERE video = ?", (row,))
        self._rows("DELETE FROM videos WHERE row = ?", (row,))

    def cues(self, row: int) -> list[Cue]:
        """The cues of a video, in the order in which their text features lie."""
        known = "language, form" if self.has_terms else "'', ''"
        rows = self._rows(
            f"SELECT start, stop, text, {known} FROM cues WHERE {schema.CUES_OF} ORDER BY number", (row,)
        )
        recognised = self._rows_of(
            "recognised", "SELECT number, kind, details FROM recognised WHERE video = ?", (row,)
        )
        details = {number: about for number, *about in recognised}
        return [self._cue(cue, *details.get(number, ())) for number, cue in enumerate(rows)]

    def set_readings(self, row: int, readings: Iterable[Reading]) -> None:
        """Store which readers have read a video; readings of other kinds stay."""
        readings = [*readings]
        rows = [(row, *astuple(reading)[:-1]) for reading in readings]
        self._put_all("readings (video, kind, reader, revision, language)", rows)
        for one in readings:
            self._rows("DELETE FROM unread WHERE video = ? AND kind = ?", (row, one.kind))
        said = [(row, one.kind, one.unread) for one in readings if one.unread]
        self._put_all("unread (video, kind, reason)", said)

    def readings(self, row: int) -> dict[CueKind, Reading]:
        """Readings of a video, by the kind of their cues."""
        columns = "kind, reader, revision, language"
        rows = self._rows_of("readings", f"SELECT {columns} FROM readings WHERE video = ?", (row,))
        said = dict(self._rows_of("unread", "SELECT kind, reason FROM unread WHERE video = ?", (row,)))
        return {
            kind: Reading(kind, reader, revision, language, said.get(kind, ""))
            for kind, reader, revision, language in rows
        }

    def readers(self) -> dict[CueKind, list[str]]:
        """Names of the readers that have read any video, by the kind of their cues."""
        found: dict[CueKind, list[str]] = {}
        statement = "SELECT DISTINCT kind, reader FROM readings ORDER BY kind, reader"
        for kind, reader in self._rows_of("readings", statement):
            found.setdefault(kind, []).append(reader)
        return found

    def set_shots(self, row: int, shots: Sequence[ShotRow]) -> None:
        """Store the shots of a video, replacing earlier ones."""
        self._rows("DELETE FROM shots WHERE video = ?", (row,))
        rows = [(row, number, shot.start, shot.opening) for number, shot in enumerate(shots)]
        self._put_all("shots (video, number, start, opening)", rows)

    def shots(self, row: int) -> list[ShotRow]:
        """The shots of a video in order; empty where they were never searched for."""
        return self.shots_of([row]).get(row, [])

    def shots_of(self, videos: Collection[int]) -> dict[int, list[ShotRow]]:
        """The shots of some videos by row number, where they were searched for."""
        wanted = f"SELECT video, start, opening FROM shots WHERE video IN ({MEMBERS}) ORDER BY video, number"
        shots: dict[int, list[ShotRow]] = {}
        for row, start, opening in self._rows_of("shots", wanted, (json.dumps([*videos]),)):
            if not (type(start) is float and 0 <= start < math.inf and type(opening) is str):
                raise self._damaged(f"shots of video {row}")
            shots.setdefault(row, []).append(ShotRow(start, opening))
        return shots

    def videos_with_shots(self) -> set[int]:
        """Row numbers of the videos whose shots were searched for."""
        return {row for (row,) in self._rows_of("shots", "SELECT DISTINCT video FROM shots")}

    def repeats(self, row: int | None = None) -> int:
        """Number of frames of a video, or of all, that share the features of an earlier one; see
        :mod:`moviola.library.ingest.unchanged_frames`.
        """
        where, values = ("", ()) if row is None else (" WHERE video = ?", (row,))
        rows = self._rows_of("repeats", f"SELECT coalesce(sum(frames), 0) FROM repeats{where}", values)
        return int(rows[0][0]) if rows else 0

    def set_repeats(self, row: int, frames: int) -> None:
        """Store how many frames of a video repeat an earlier one."""
        self._rows("DELETE FROM repeats WHERE video = ?", (row,))
        if frames:
            self._rows("INSERT INTO repeats (video, frames) VALUES (?, ?)", (row, frames))

    def set_state(self, row: int, state: schema.State, error: str) -> None:
        """Store the state of a video, and what is said of it."""
        self._rows("UPDATE videos SET state = ?, error = ? WHERE row = ?", (state, error, row))

    def put_checksum(self, row: int, checksum: str) -> None:
        """Store the checksum of all that was read of a video's file."""
        self._put_all("checksums (video, checksum)", [(row, checksum)])

    def checksums(self) -> dict[int, str]:
        """Checksums of :func:`moviola.media.read_through` by row number, where they are known."""
        return dict(self._rows_of("checksums", "SELECT video, checksum FROM checksums"))

    def videos_with_cues(self) -> dict[CueKind, int]:
        """Number of videos that have cues of a kind, by kind."""
        counts: dict[CueKind, int] = dict.fromkeys(CUE_KINDS, 0)
        recognised: Counter[int] = Counter()
        of_videos = "SELECT kind, video, count(*) FROM recognised GROUP BY kind, video"
        for kind, video, cues in self._rows_of("recognised", of_videos):
            counts[kind] += 1
            recognised[video] += cues
        rows = self._rows("SELECT video, count(*) FROM cues GROUP BY video")
        counts["subtitle"] = sum(cues > recognised[video] for video, cues in rows)
        return counts

    @contextmanager
    def job(self, kind: str, total: int) -> Iterator[Callable[[], object]]:
        """Record a job, which stays ``running`` if the process is killed; yields a function that counts one
        more item as done.
        """
        job = self._insert_row("jobs", {"kind": kind, "total": total})
        ending = "UPDATE jobs SET state = ?, ended = CURRENT_TIMESTAMP WHERE job = ?"
        try:
            yield lambda: self._rows("UPDATE jobs SET done = done + 1 WHERE job = ?", (job,))
        except BaseException:
            with suppress(LibraryError):  # it would hide the error that ended the job
                self._rows(ending, ("interrupted", job))
            raise
        self._rows(ending, ("done", job))

    def last_job(self) -> Job | None:
        rows = self._rows("SELECT kind, total, done, state, started FROM jobs ORDER BY job DESC LIMIT 1")
        return Job(*rows[0]) if rows else None

    def _cue(self, stored: Sequence[Any], kind: Any = "subtitle", details: Any = None) -> Cue:
        start, stop, text, language, form = stored
        try:
            if not all(isinstance(at, float | int) for at in (start, stop)):
                raise TypeError(start)
            if not all(isinstance(one, str) for one in (text, language, form)):
                raise TypeError(text)
            if details is None:
                return Cue(start, stop, text, language=language, form=form)
            if kind not in CUE_KINDS:
                raise ValueError(kind)
            known = json.loads(details)
            confidence = None if known["confidence"] is None else float(known["confidence"])
            box = None if known["box"] is None else Box(*map(float, known["box"]))
            words = tuple(
                Word(float(begun), float(ended), str(word)) for begun, ended, word in known["words"]
            )
            return Cue(start, stop, text, kind, confidence, box, words, language, form)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self._damaged(f"a cue at {start!r}") from error

    def _video(self, row: Sequence[Any]) -> VideoRow:
        """A row of ``videos`` as a value; SQLite does not check the types of damaged columns."""
        extents = [row[13:17], row[17:21]]
        sound = all(
            type(value) is kind for value, kind in zip(row, schema.VIDEO_TYPES, strict=False)
        ) and all(
            set(map(type, extent)) == {type(None)} or all(type(n) is int and n >= 0 for n in extent)
            for extent in extents
        )
        if not (sound and 0 <= row[9] < math.inf):
            raise self._damaged(f"video {row[0]!r}")
        return VideoRow(*row[:13], *(None if e[0] is None else Extent(*e) for e in extents))


# The row, as many as there are types of, and the extents of frames and cues.
_NAMES = schema.COLUMNS["videos"].split(", ")
_SELECT = f"SELECT {', '.join(_NAMES)} FROM videos"
_HASH = "SELECT hash FROM videos WHERE row = ?"


def _details(cue: Cue) -> str:
    """Details of a recognised cue besides its time and text, as JSON."""
    box = None if cue.box is None else astuple(cue.box)
    details = {"confidence": cue.confidence, "box": box, "words": [astuple(word) for word in cue.words]}
    return json.dumps(details, ensure_ascii=False, separators=(",", ":"))


def _extent_columns(*extents: Extent | None) -> dict[str, int | None]:
    values = [value for extent in extents for value in (astuple(extent) if extent else (None,) * 4)]
    return dict(zip(_NAMES[len(schema.VIDEO_TYPES) :], values, strict=True))
