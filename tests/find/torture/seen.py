"""All that a library is, as a user sees who opens it: two are compared part by part."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moviola.errors import EncoderMismatch
from moviola.features.shards import Extent
from moviola.library import read_concept, verify
from moviola.search import Library
from sample import Answers, answers_of

__all__ = ["Parts", "Seen", "dumped", "seen"]

Parts = dict[str, Any]
"""What there is of a kind, by its key."""


@dataclass(frozen=True)
class Seen:
    """What a user sees who opens a library.

    Attributes:
        answers: to all queries.
        problems: what ``verify`` says.
        damages: those of them that concern a video, or that cannot be repaired.
        parts: all that is stored, by kind: ``videos`` (paths, states, durations, features by their digests,
            cues, shots, readings), ``features by other encoders``, ``removed`` ones with all of that,
            ``copies``, ``captures``, ``roots``, ``stills``, ``kept`` entries, ``alerts``, ``concepts``,
            ``settings``.
        beside: content of each file beside the library.
    """

    answers: Answers
    problems: list[str]
    damages: list[str]
    parts: dict[str, Parts]
    beside: Parts

    @property
    def known(self) -> set[str]:
        """Ids of the videos, and of the removed ones."""
        return {*self.parts["videos"], *self.parts["removed"]}


def seen(folder: Path, beside: Parts | None = None) -> Seen:
    """All of a library, opened again and read-only."""
    with Library(folder, read_only=True) as library:
        problems = verify(library.store)
        damages = [one.message for one in problems if one.video_id or not one.repairable]
        return Seen(
            answers_of(library),
            [one.message for one in problems],
            damages,
            dict(_parts(library)),
            beside or {},
        )


def _parts(library: Library) -> Iterator[tuple[str, Parts]]:
    catalogue, folder = library.catalogue, library.folder
    videos = catalogue.videos()
    named = {video.row: video.video_id for video in videos}
    yield "videos", {video.video_id: _video(library, video) for video in videos}
    others = {key: one for key, one in catalogue.other_frames().items() if not _is_of_change(library, key[1])}
    yield (
        "features by other encoders",
        {
            (named[row], key): library.store.features_in("frames", one.dim).intact(one.extent)
            for (row, key), one in others.items()
            if row in named
        },
    )
    removed: Parts = {}
    for one in catalogue.removed():
        content = catalogue.removed_content(one.row)
        removed.setdefault(one.video_id, []).append(
            (one.path, one.hash, _without_rows(content), _features_of(library, content))
        )
    yield "removed", {name: sorted(ones, key=repr) for name, ones in removed.items()}
    yield "copies", {copy.path: (named.get(copy.video), copy.size) for copy in catalogue.copies()}
    captures, hashes = catalogue.captures(), {video.row: video.hash for video in videos}
    yield "captures", {(named[row], hashes[row]): one for row, one in captures.items() if row in named}
    yield "roots", {root.path: (root.patterns, root.defaults) for root in catalogue.roots()}
    yield "stills", _stills(folder)
    userdata = library.userdata
    yield "kept", {(e.kind, e.name): (e.version, e.value.model_dump_json()) for e in userdata.entries()}
    yield "alerts", _alerts(library, named)
    yield "concepts", {name: _concept(library, name) for name in (one.name for one in library.concepts.all())}
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
    """Rows of a removed video, but for numbers of rows and places of features, which moves change."""
    own = {"row", "video", "rowid", "frame_shard", "frame_offset", "cue_shard", "cue_offset", "mtime_ns"}
    of_others = {"shard", "offset"}
    return {
        table: [
            {
                name: value
                for name, value in row.items()
                if name not in own and not (table == "other_frames" and name in of_others)
            }
            for row in rows
        ]
        for table, rows in content.items()
        if rows and table != "roots"
    }


def _features_of(library: Library, content: dict[str, list[dict[str, Any]]]) -> list[bool]:
    """Whether the features of a removed video are there and whole, those by another encoder, too."""
    store, (video,) = library.store, content["videos"]
    others = [
        store.features_in("frames", one["dim"]).intact(
            Extent(*(one[name] for name in ("shard", "offset", "count", "crc")))
        )
        for one in content.get("other_frames", [])
    ]
    return others + [
        shards.intact(Extent(*(video[f"{kind}_{name}"] for name in ("shard", "offset", "count", "crc"))))
        for kind, shards in (("frame", store.frame_features), ("cue", store.cue_features))
        if video[f"{kind}_shard"] is not None
    ]


def dumped(catalogue: Path) -> list[str]:
    """All of a catalogue, as statements."""
    with closing(sqlite3.connect(f"{catalogue.resolve().as_uri()}?mode=ro", uri=True)) as database:
        return list(database.iterdump())


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
                except sqlite3.DatabaseError:  # not made yet, or damaged
                    continue
                for content, *values in rows:
                    digest = hashlib.sha256(repr(values).encode()).hexdigest()
                    found.setdefault((table, content), []).append(digest)
    return found


def _alerts(library: Library, named: dict[int, str]) -> Parts:
    """Videos up to which searches were looked at, by search, and what was delivered to whom."""
    userdata = library.userdata
    found: Parts = {
        name: sorted(video_id for row, video_id in named.items() if row <= last)
        for name, last in userdata.alerted().items()
    }
    for table in ("reported", "reported_to"):
        found |= {(table, *row): True for row in userdata._rows_of(table, f"SELECT * FROM {table}")}
    return found


def _is_of_change(library: Library, key: str) -> bool:
    """Whether features by a key are those that a change of encoder is making, which come one by one."""
    target = library.catalogue.change()
    return target is not None and target.pictures_key == key


def _concept(library: Library, name: str) -> object:
    """Its moments and what they have taught; of one that cannot be looked at, why."""
    try:
        one = read_concept(library.folder, library.settings, name)
    except EncoderMismatch as error:
        return str(error)
    return one.title, one.right.tobytes(), one.wrong.tobytes(), one.moments
