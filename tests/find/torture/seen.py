"""All that a library is, as somebody sees who opens it: two are compared part by part."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moviola.library import read_concept
from moviola.search import Library
from sample import QUERIES

__all__ = ["Answers", "Parts", "Seen", "answers_of", "seen"]

Answers = list[tuple[str, float, float, float, str]]
"""Of all queries: video, start, end, score and source of each moment, to the last digit."""

Parts = dict[str, Any]
"""What there is of a kind, by its key."""


@dataclass(frozen=True)
class Seen:
    """What somebody sees who opens a library.

    Attributes:
        answers: to all queries.
        problems: what ``verify`` says.
        parts: all that is stored, by kind: ``videos`` (paths, states, durations, features by their digests,
            cues, shots, readings), ``removed`` ones with all of that, ``copies``, ``captures``, ``roots``,
            ``stills``, ``kept`` entries, ``alerts``, ``concepts``, ``settings``.
        beside: content of each file beside the library.
    """

    answers: Answers
    problems: list[str]
    parts: dict[str, Parts]
    beside: Parts

    @property
    def held(self) -> set[str]:
        """Ids of the videos."""
        return set(self.parts["videos"])


def answers_of(library: Library) -> Answers:
    """What an open library answers to the queries."""
    return [
        (m.video_id, m.start, m.end, m.score, m.source)
        for query in QUERIES
        for m in library.search(query, top_k=10)
    ]


def seen(folder: Path, beside: Parts | None = None) -> Seen:
    """All of a library, opened anew and read-only."""
    with Library(folder, read_only=True) as library:
        problems = [problem.message for problem in library.verify()]
        return Seen(answers_of(library), problems, dict(_parts(library)), beside or {})


def _parts(library: Library) -> Iterator[tuple[str, Parts]]:
    catalogue, folder = library.catalogue, library.folder
    videos = catalogue.videos()
    named = {video.row: video.video_id for video in videos}
    yield "videos", {video.video_id: _video(library, video) for video in videos}
    removed: Parts = {}
    for one in catalogue.removed():
        content = catalogue.removed_content(one.row)
        removed.setdefault(one.video_id, []).append((one.path, one.hash, _without_rows(content)))
    yield "removed", {name: sorted(ones, key=repr) for name, ones in removed.items()}
    yield "copies", {copy.path: (named.get(copy.video), copy.size) for copy in catalogue.copies()}
    yield "captures", {named[row]: one for row, one in catalogue.captures().items() if row in named}
    yield "roots", {root.path: (root.patterns, root.defaults) for root in catalogue.roots()}
    yield "stills", _stills(folder)
    kept = library.kept
    yield "kept", {(e.kind, e.name): (e.version, e.value.model_dump_json()) for e in kept.entries()}
    yield "alerts", _alerts(library, named)
    yield "concepts", {name: _concept(library, name) for name in (one.name for one in library.concepts())}
    settings = asdict(library.settings)
    del settings["format_version"]
    yield "settings", settings


def _video(library: Library, video: Any) -> tuple[object, ...]:
    catalogue, store = library.catalogue, library.store
    extents = [video.frames, video.cues]
    features = [(one.count, one.crc) if one else None for one in extents]
    whole = [
        one is None or shards.intact(one)
        for one, shards in zip(extents, (store.frame_features, store.cue_features), strict=True)
    ]
    return (
        video.path, video.size, video.hash, video.state, video.error, video.duration, video.codec, features,
        whole, catalogue.cues(video.row), catalogue.shots(video.row), catalogue.readings(video.row),
        catalogue.repeats(video.row), video.sidecars == "?",
    )  # fmt: skip


def _without_rows(content: dict[str, list[dict[str, Any]]]) -> object:
    """What is kept of a removed video, but for numbers of rows and places of features, which moves change."""
    own = {"row", "video", "rowid", "frame_shard", "frame_offset", "cue_shard", "cue_offset", "mtime_ns"}
    return {
        table: [{name: value for name, value in row.items() if name not in own} for row in rows]
        for table, rows in content.items()
        if rows and table != "roots"
    }


def _stills(folder: Path) -> Parts:
    """Digests of the stills and fingerprints of each content."""
    found: dict[str, Any] = {}
    if (path := folder / "stills.sqlite").is_file():
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            for table, columns in (("stills", "time, picture"), ("timed_fingerprints", "times, frames")):
                try:
                    rows = database.execute(
                        f"SELECT content, {columns} FROM {table} ORDER BY 1, 2"
                    ).fetchall()
                except sqlite3.OperationalError:  # not made yet
                    continue
                for content, *values in rows:
                    digest = hashlib.sha256(repr(values).encode()).hexdigest()
                    found.setdefault(content, []).append(digest)
    return found


def _alerts(library: Library, named: dict[int, str]) -> Parts:
    """Videos up to which searches were looked at, by search, and what was delivered to whom."""
    kept = library.kept
    found: Parts = {
        name: sorted(video_id for row, video_id in named.items() if row <= last)
        for name, last in kept.alerted().items()
    }
    for table in ("reported", "reported_to"):
        found |= {(table, *row): True for row in kept._rows_of(table, f"SELECT * FROM {table}")}
    return found


def _concept(library: Library, name: str) -> tuple[object, ...]:
    one = read_concept(library.folder, library.settings, name)
    return one.title, one.right.tobytes(), one.wrong.tobytes(), one.moments
