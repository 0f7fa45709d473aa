"""The tables of ``catalogue.sqlite``, and a row of its videos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moviola.features import Extent

__all__ = [
    "ADDED", "CHANGED_BY_GENERATION", "COLUMNS", "CUES", "CUES_BY_VIDEO", "CUES_OF", "ENCODING", "OF_LIBRARY",
    "SCHEMA", "UNREAD", "VIDEO_TYPES", "State", "VideoRow", "encoding_of", "with_encoding",
]  # fmt: skip

ADDED = {
    "shots": """
CREATE TABLE IF NOT EXISTS shots (
    video INTEGER NOT NULL, number INTEGER NOT NULL, start REAL NOT NULL, opening TEXT NOT NULL,
    PRIMARY KEY (video, number)
) WITHOUT ROWID
""",
    "readings": """
CREATE TABLE IF NOT EXISTS readings (
    video INTEGER NOT NULL, kind TEXT NOT NULL, reader TEXT NOT NULL, revision TEXT NOT NULL,
    language TEXT NOT NULL,
    PRIMARY KEY (video, kind)
) WITHOUT ROWID
""",
    # A note on what a reader could not read of a video, by the kind of its cues; no row: nothing.
    "unread": """
CREATE TABLE IF NOT EXISTS unread (
    video INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (video, kind)
) WITHOUT ROWID
""",
    # Sounds, patch by patch (library.disk.sounds), by the revision of their reader.
    "sounds": """
CREATE TABLE IF NOT EXISTS sounds (video INTEGER PRIMARY KEY, revision TEXT NOT NULL, heard TEXT NOT NULL)
""",
    # Frames whose features are copies of an earlier frame's (library.ingest.unchanged_frames); no row: none.
    "repeats": "CREATE TABLE IF NOT EXISTS repeats (video INTEGER PRIMARY KEY, frames INTEGER NOT NULL)",
    # Of cues that were recognised; a cue without a row here is a subtitle.
    "recognised": """
CREATE TABLE IF NOT EXISTS recognised (
    video INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, details TEXT NOT NULL,
    PRIMARY KEY (video, number)
) WITHOUT ROWID
""",
    # Further paths at which the bytes of a video lie.
    "copies": """
CREATE TABLE IF NOT EXISTS copies (
    video INTEGER NOT NULL, path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL
) WITHOUT ROWID
""",
    # When, where and with what a video was taken, as far as its file says; empty or null where it does not.
    "captures": """
CREATE TABLE IF NOT EXISTS captures (
    video INTEGER PRIMARY KEY, taken TEXT NOT NULL, source TEXT NOT NULL, latitude REAL, longitude REAL,
    make TEXT NOT NULL, model TEXT NOT NULL
)
""",
    # Where a camera was while it recorded, as JSON of seconds, degrees north and east; no row: not known.
    "routes": "CREATE TABLE IF NOT EXISTS routes (video INTEGER PRIMARY KEY, points TEXT NOT NULL)",
    # What a file says of its film as a whole, as JSON, whether it is the film of a Live Photo, and with which
    # edition of what is looked for (library.disk.accounts).
    "facts": """
CREATE TABLE IF NOT EXISTS facts (
    video INTEGER PRIMARY KEY, edition INTEGER NOT NULL, sayings TEXT NOT NULL, live INTEGER NOT NULL
)
""",
    # A checksum of all that was read of a file; no row: of a library older than these.
    "checksums": "CREATE TABLE IF NOT EXISTS checksums (video INTEGER PRIMARY KEY, checksum TEXT NOT NULL)",
    # Tracks of cues: how many are of a kind, a language (a tag of BCP 47, empty: unknown) and a form.
    "cue_tracks": """
CREATE TABLE IF NOT EXISTS cue_tracks (
    video INTEGER NOT NULL, kind TEXT NOT NULL, language TEXT NOT NULL, form TEXT NOT NULL, cues INTEGER NOT
    NULL, PRIMARY KEY (video, kind, language, form)
) WITHOUT ROWID
""",
    # Features of a video's frames by another encoder than the library's (library.disk.other_frames).
    "other_frames": """
CREATE TABLE IF NOT EXISTS other_frames (
    video INTEGER NOT NULL, made_with TEXT NOT NULL, dim INTEGER NOT NULL, shard INTEGER NOT NULL,
    offset INTEGER NOT NULL, count INTEGER NOT NULL, crc INTEGER NOT NULL, repeats INTEGER NOT NULL,
    PRIMARY KEY (video, made_with)
) WITHOUT ROWID
""",
    # Videos that are known by their key frames alone from a second on (library.disk.unfinished).
    "key_frames": "CREATE TABLE IF NOT EXISTS key_frames (video INTEGER PRIMARY KEY, since REAL NOT NULL)",
    # Videos whose subtitles were read with what files and tracks say of their language.
    "tracks_read": "CREATE TABLE IF NOT EXISTS tracks_read (video INTEGER PRIMARY KEY)",
    # Languages that were said by hand, by kind and by that which was read or guessed.
    "said_languages": """
CREATE TABLE IF NOT EXISTS said_languages (
    video INTEGER NOT NULL, kind TEXT NOT NULL, found TEXT NOT NULL, language TEXT NOT NULL,
    PRIMARY KEY (video, kind, found)
) WITHOUT ROWID
""",
    # Whether subtitles are of files beside a video; as JSON, what its file holds, null before it was looked
    # at, and how subtitles were read.
    "accounts": """
CREATE TABLE IF NOT EXISTS accounts (
    video INTEGER PRIMARY KEY, beside INTEGER NOT NULL, holdings TEXT, problems TEXT NOT NULL,
    notes TEXT NOT NULL
)
""",
}
"""Tables on single videos that came later: an older library has them from its next change on."""

OF_LIBRARY = {
    # Folders that were indexed, and what lies mounted below them.
    "roots": """
CREATE TABLE IF NOT EXISTS roots (
    path TEXT PRIMARY KEY, volume TEXT NOT NULL, patterns TEXT NOT NULL, defaults INTEGER NOT NULL
) WITHOUT ROWID
""",
    # Videos that were taken out, with all that is known of them, until the next compaction.
    "removed": """
CREATE TABLE IF NOT EXISTS removed (
    row INTEGER PRIMARY KEY, video_id TEXT NOT NULL, path TEXT NOT NULL, hash TEXT NOT NULL,
    since TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, content TEXT NOT NULL
)
""",
    # Names of the classes of sounds, as JSON, by the revision of their reader.
    "sound_classes": """
CREATE TABLE IF NOT EXISTS sound_classes (revision TEXT PRIMARY KEY, names TEXT NOT NULL) WITHOUT ROWID
""",
    # Films of which some parts are in, and the fingerprints of these (library.disk.unfinished).
    "unfinished": """
CREATE TABLE IF NOT EXISTS unfinished (
    content TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, made TEXT NOT NULL,
    moments INTEGER NOT NULL, seconds REAL NOT NULL, promised REAL NOT NULL, shard INTEGER NOT NULL,
    start INTEGER NOT NULL, number INTEGER NOT NULL, crc INTEGER NOT NULL, repeats INTEGER NOT NULL,
    state BLOB NOT NULL
)
""",
    "unfinished_fingerprints": """
CREATE TABLE IF NOT EXISTS unfinished_fingerprints (
    content TEXT NOT NULL, moments INTEGER NOT NULL, times BLOB NOT NULL, frames BLOB NOT NULL,
    PRIMARY KEY (content, moments)
)
""",
    # Zones of cameras' clocks that were given (library.disk.camera_zones).
    "camera_zones": """
CREATE TABLE IF NOT EXISTS camera_zones (camera TEXT PRIMARY KEY, zone TEXT NOT NULL) WITHOUT ROWID
""",
    # The last generation in which each video changed (library.disk.changes).
    "changed": """
CREATE TABLE IF NOT EXISTS changed (video INTEGER PRIMARY KEY, generation INTEGER NOT NULL)
""",
    # Settings that the library is to have when a change of its encoder is done, as JSON.
    "encoder_change": """
CREATE TABLE IF NOT EXISTS encoder_change (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1), content TEXT NOT NULL
)
""",
    # What the library was built with before its encoder was changed, as JSON.
    "former_settings": """
CREATE TABLE IF NOT EXISTS former_settings (built_with TEXT PRIMARY KEY) WITHOUT ROWID
""",
    # A copy of moviola.toml, as JSON with its digest.
    "settings": """
CREATE TABLE IF NOT EXISTS settings (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), content TEXT NOT NULL)
""",
}
"""Later tables on the library as a whole, which an older library gets by its first change."""

# FTS5 keeps the columns of a row in a table of its own, the second one as ``c1``, and has no index on them:
# the cues of one video would be found by reading those of all.
CUES_BY_VIDEO = "CREATE INDEX IF NOT EXISTS cues_by_video ON cues_content (c1)"
"""A later index, which an older library gets by its first change."""

CHANGED_BY_GENERATION = "CREATE INDEX IF NOT EXISTS changed_by_generation ON changed (generation)"
"""Another one, which it gets in the same way."""

CUES_OF = "rowid IN (SELECT id FROM cues_content WHERE c1 = ?)"
"""Condition on a row of ``cues``: that it is of a video."""

CUES = """cues USING fts5 (
    text UNINDEXED, video UNINDEXED, number UNINDEXED, start UNINDEXED, stop UNINDEXED, language UNINDEXED,
    form UNINDEXED, terms, letters, tokenize = 'ascii', detail = 'column'
)"""
"""Cues, and the terms and letters of their texts (:mod:`moviola.words`), by which they are found."""

SCHEMA = f"""
{";".join([*ADDED.values(), *OF_LIBRARY.values()])};
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT OR IGNORE INTO meta VALUES ('generation', 0);
CREATE TABLE IF NOT EXISTS feature_ends (
    kind TEXT PRIMARY KEY, shard INTEGER NOT NULL, rows INTEGER NOT NULL
);
INSERT OR IGNORE INTO feature_ends VALUES ('frames', 0, 0), ('cues', 0, 0);
CREATE TABLE IF NOT EXISTS videos (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    video_id TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    hash TEXT NOT NULL,
    sidecars TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('ready', 'partial', 'refused')),
    error TEXT NOT NULL DEFAULT '',
    duration REAL NOT NULL DEFAULT 0,
    width INTEGER NOT NULL DEFAULT 0,
    height INTEGER NOT NULL DEFAULT 0,
    codec TEXT NOT NULL DEFAULT '',
    frame_shard INTEGER, frame_offset INTEGER, frame_count INTEGER, frame_crc INTEGER,
    cue_shard INTEGER, cue_offset INTEGER, cue_count INTEGER, cue_crc INTEGER
);
CREATE INDEX IF NOT EXISTS videos_by_hash ON videos (hash);
CREATE VIRTUAL TABLE IF NOT EXISTS {CUES};
CREATE TABLE IF NOT EXISTS jobs (
    job INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL, total INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'running', started TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, ended TEXT
);
{CUES_BY_VIDEO};
{CHANGED_BY_GENERATION};
"""
"""All tables, made where they are missing."""

COLUMNS = {
    "meta": "key, value",
    "feature_ends": "kind, shard, rows",
    "videos": "row, video_id, path, size, mtime_ns, hash, sidecars, state, error, duration, width, height,"
    " codec, frame_shard, frame_offset, frame_count, frame_crc, cue_shard, cue_offset, cue_count, cue_crc",
    "cues": "text, video, number, start, stop",
    "jobs": "job, kind, total, done, state, started, ended",
}
"""Columns that are read, by table."""

VIDEO_TYPES = (int, str, str, int, int, str, str, str, str, float, int, int, str)
"""Types of the columns of ``videos`` before the extents."""

UNREAD = "?"
"""``sidecars`` of a video whose cues are to be read again: no signature of subtitle files is like it."""

ENCODING = "/encoding="
"""Before the name of an encoding, with which ``sidecars`` begin where one was given; no file's name does."""


def with_encoding(sidecars: str, encoding: str | None) -> str:
    """A signature of subtitle files that are read in a given encoding; as it is without files, or without an
    encoding.
    """
    files = sidecars if encoding_of(sidecars) is None else sidecars.partition("|")[2]
    return f"{ENCODING}{encoding}|{files}" if files and encoding else files


def encoding_of(sidecars: str) -> str | None:
    """The encoding of a signature of :func:`with_encoding`; None without one."""
    first = sidecars.partition("|")[0]
    return first.removeprefix(ENCODING) if first.startswith(ENCODING) else None


State = Literal["ready", "partial", "refused"]


@dataclass(frozen=True, slots=True)
class VideoRow:
    """A video of a library; ``row`` is 0 before it is stored."""

    row: int
    video_id: str
    path: str
    size: int
    mtime_ns: int
    hash: str
    sidecars: str
    state: State
    error: str = ""
    duration: float = 0.0
    width: int = 0
    height: int = 0
    codec: str = ""
    frames: Extent | None = None
    cues: Extent | None = None

    @property
    def version(self) -> str:
        """``row-digest``: the number that grows with each video that comes in, and the beginning of the
        digest of what the file holds: no file of another library has the same.
        """
        return f"{self.row}-{self.hash[:12]}"
