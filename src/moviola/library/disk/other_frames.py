"""Features of frames by another encoder than the library's: those that a change of encoder has made so far,
and those of videos that it could not encode, kept for a change back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moviola.features import Extent
from moviola.library.disk.noted_settings import NotedSettings
from moviola.library.disk.schema import ADDED, OF_LIBRARY
from moviola.library.disk.settings import Settings

__all__ = ["FRAMES", "KEY_FRAMES", "OTHER_FRAMES", "OtherExtent", "OtherFrames"]

FRAMES, OTHER_FRAMES, KEY_FRAMES = "frames", "other frames", "key frames"
"""Kinds of features whose shards are numbered together."""

_WHOLE = 1_000_000  # of a share that is stored as a whole number
_PARTS = ("shard", "offset", "count", "crc")
_COLUMNS = f"video, made_with, dim, {', '.join(_PARTS)}, repeats"


@dataclass(frozen=True, slots=True)
class OtherExtent:
    """Where features of a video's frames by another encoder lie, ``dim`` numbers each, of which ``repeats``
    are copies of others.
    """

    extent: Extent
    dim: int
    repeats: int


class OtherFrames(NotedSettings):
    """The tables ``other_frames`` and ``encoder_change`` of a catalogue."""

    def change(self) -> Settings | None:
        """The settings that the library is to have when a change of encoder that was begun is done."""
        rows = self._rows_of("encoder_change", "SELECT content FROM encoder_change")
        return Settings.unsealed(json.loads(rows[0][0]), str(self.path)) if rows else None

    def begin_change(self, target: Settings) -> None:
        """Note what the library is to have. Searches go on, since no video changes."""
        with self._changing():
            self._rows(ADDED["other_frames"])
            self._rows(OF_LIBRARY["encoder_change"])
            self._put_all("encoder_change (only_row, content)", [(1, json.dumps(target.sealed()))])
            self._put_all("feature_ends (kind, shard, rows)", [(OTHER_FRAMES, self.last_shard() + 1, 0)])

    def end_change(self) -> None:
        """Forget that a change was begun, inside a transaction."""
        self._rows_of("encoder_change", "DELETE FROM encoder_change")
        self._put_all("meta (key, value)", [("both_from", 0)])

    def answer_by_both_from(self, share: float) -> None:
        """Note the share of videos, from 0 to 1, from which on searches answer by both encoders while a
        change is under way; 0: never.
        """
        with self._changing():
            self._put_all("meta (key, value)", [("both_from", math.floor(_WHOLE * share))])

    def made_for_both(self) -> tuple[Settings, dict[int, OtherExtent]] | None:
        """What a change of encoder will give the library, and features by it by row number, where searches
        answer by both encoders now; else None.
        """
        found = self._rows("SELECT value FROM meta WHERE key = 'both_from' AND value > 0")
        target = self.change() if found else None
        if target is None:
            return None
        key = target.pictures_key
        made = {row: one for (row, other), one in self.other_frames().items() if other == key}
        ((total,),) = self._rows("SELECT count(*) FROM videos WHERE state != 'refused'")
        return (target, made) if made and _WHOLE * len(made) >= found[0][0] * total else None

    def last_shard(self) -> int:
        """The highest number of a shard of frames, by this or another encoder, that was ever written to."""
        statement = "SELECT max(shard) FROM feature_ends WHERE kind IN (?, ?, ?)"
        return int(self._rows(statement, (FRAMES, OTHER_FRAMES, KEY_FRAMES))[0][0])

    def add_other_frames(self, row: int, key: str, found: OtherExtent) -> None:
        """Store where features of a video by the next encoder lie, and that they are the last ones; no new
        generation, since searches do not read them.
        """
        with self._changing():
            self.put_other_frames(row, key, found)
            extent = found.extent
            end = (extent.shard, extent.offset + extent.count, OTHER_FRAMES)
            self._rows("UPDATE feature_ends SET shard = ?, rows = ? WHERE kind = ?", end)

    def put_other_frames(self, row: int, key: str, found: OtherExtent) -> None:
        """Store where features of a video by another encoder lie, inside a transaction."""
        values = (*(getattr(found.extent, part) for part in _PARTS), found.repeats)
        self._put_all(f"other_frames ({_COLUMNS})", [(row, key, found.dim, *values)])

    def other_frames(self) -> dict[tuple[int, str], OtherExtent]:
        """All of them, by row number of their video and by :attr:`Settings.pictures_key`."""
        rows = self._rows_of("other_frames", f"SELECT {_COLUMNS} FROM other_frames")
        return {
            (row, key): OtherExtent(Extent(*place), dim, repeats) for row, key, dim, *place, repeats in rows
        }

    def relocate_other_frames(self, row: int, key: str, extent: Extent) -> None:
        """Store a new place, inside a transaction."""
        values = (*(getattr(extent, part) for part in _PARTS), row, key)
        changes = ", ".join(f"{part} = ?" for part in _PARTS)
        self._rows(f"UPDATE other_frames SET {changes} WHERE video = ? AND made_with = ?", values)

    def drop_other_frames(self, key: str, row: int) -> None:
        """Forget features of one video by a key, inside a transaction."""
        self._rows_of(
            "other_frames", "DELETE FROM other_frames WHERE made_with = ? AND video = ?", (key, row)
        )

    def drop_given_up(self, key: str) -> None:
        """Forget features by a key, but for those of videos and removed ones that have no others, inside a
        transaction.
        """
        of_seen = "video IN (SELECT row FROM videos WHERE frame_count IS NOT NULL)"
        self._rows_of("other_frames", f"DELETE FROM other_frames WHERE made_with = ? AND {of_seen}", (key,))
        for row, content in self._removed_contents():
            others = content.get("other_frames", [])
            kept = [one for one in others if one["made_with"] != key]
            if content["videos"][0]["frame_shard"] is not None and len(kept) < len(others):
                self._put_removed_content(row, {**content, "other_frames": kept})

    def frames_of_removed(self) -> dict[int, Extent]:
        """Where features of the frames of removed videos lie, by their former row number."""
        found = {}
        for row, content in self._removed_contents():
            (video,) = content["videos"]
            if video["frame_shard"] is not None:
                found[row] = Extent(*(video[f"frame_{part}"] for part in _PARTS))
        return found

    def change_frames_of_removed(self, old: Settings, target: Settings, kept: Mapping[int, Extent]) -> None:
        """Give removed videos the features that were made by the encoder of a library's new settings, and
        keep those by its old ones where they are, inside a transaction.

        Args:
            kept: new places of old features, by row number.
        """
        for row, content in self._removed_contents():
            (video,) = content["videos"]
            others = content.get("other_frames", [])
            new = next((one for one in others if one["made_with"] == target.pictures_key), None)
            others = [one for one in others if one is not new]
            if new is None and row in kept:
                others.append({
                    "video": row, "made_with": old.pictures_key, "dim": old.frame_dim,
                    **{part: getattr(kept[row], part) for part in _PARTS},
                    "repeats": sum(one["frames"] for one in content.get("repeats", [])),
                })  # fmt: skip
            for part in _PARTS:
                video[f"frame_{part}"] = new and new[part]
            content["repeats"] = (
                [{"video": row, "frames": new["repeats"]}] if new is not None and new["repeats"] else []
            )
            content["other_frames"] = others
            self._put_removed_content(row, content)

    def shards_in_use(self) -> set[int]:
        """Numbers of the shards of frames that any video has features in, or a removed one."""
        videos = self._rows("SELECT DISTINCT frame_shard FROM videos WHERE frame_count > 0")
        others = self._rows_of("other_frames", "SELECT DISTINCT shard FROM other_frames")
        found = {number for (number,) in (*videos, *others)}
        found |= {extent.shard for extent in self.frames_of_removed().values()}
        for _, content in self._removed_contents():
            found |= {one["shard"] for one in content.get("other_frames", [])}
        return found

    @property
    def is_unsettled(self) -> bool:
        """Whether a change of encoder is done, and what it replaced not yet cleared away."""
        return bool(self._rows("SELECT 1 FROM meta WHERE key = 'unsettled' AND value > 0"))

    def note_unsettled(self) -> None:
        """Note that, inside a transaction."""
        self._put_all("meta (key, value)", [("unsettled", 1)])

    def note_settled(self) -> None:
        """Note that it is cleared away."""
        with self._changing():
            self._put_all("meta (key, value)", [("unsettled", 0)])

    def _removed_contents(self) -> list[tuple[int, dict[str, list[dict[str, Any]]]]]:
        rows = self._rows_of("removed", "SELECT row, content FROM removed")
        return [(row, json.loads(content)) for row, content in rows]

    def _put_removed_content(self, row: int, content: Mapping[str, Any]) -> None:
        self._rows("UPDATE removed SET content = ? WHERE row = ?", (json.dumps(content), row))
