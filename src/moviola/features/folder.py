"""A folder of features: what ``moviola features`` writes from a library or from published files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, NotFound
from moviola.features.queries import QueryFeatures
from moviola.features.shards import KeyedShards
from moviola.features.source import SourceFacts
from moviola.features.videos import FeatureRows, VideoFeatures
from moviola.files.rows import read_json
from moviola.files.writing import write_json

__all__ = ["FeatureFolder", "describe_folder", "has_length"]

DESCRIPTION = "features.json"
# Format of the description; without a number it is 1.
_FORMAT = 1
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class FeatureFolder:
    """A :class:`moviola.features.source.FeatureSource` on disk::

        FOLDER/visual/     one array per video, see :class:`moviola.features.shards.KeyedShards`
        FOLDER/subtitles/  the same, with as many rows; not there without subtitles
        FOLDER/queries/    one array per query text
        FOLDER/features.json  the facts and what follows, written last

    Attributes:
        durations: seconds by video id.
        shots: start times of the shots of the videos that are cut, by video id, see :class:`VideoFeatures`.
    """

    folder: Path
    facts: SourceFacts
    durations: Mapping[str, float]
    shots: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: str | Path) -> FeatureFolder:
        """Open a folder of features. Raises NotFound: there is none; DataError: a file of it is damaged."""
        folder = Path(folder)
        path = folder / DESCRIPTION
        if not path.is_file():
            raise NotFound(
                f"{path}: no such file; give a library, or a folder that `moviola features from-library` or "
                "`from-files` wrote"
            )
        about = read_json(path)
        try:
            if about.get("format", 1) != _FORMAT:
                raise DataError(
                    f"{path}: format {about['format']!r:.40}, but this moviola reads {_FORMAT}; update "
                    "moviola, or write the folder again"
                )
            durations = {name: float(seconds) for name, seconds in about["durations"].items()}
            for name, seconds in durations.items():
                if not has_length(seconds):
                    raise DataError(
                        f"{path}: {name}: a duration of {seconds:g} s; correct it there, or write the folder "
                        "again without the video"
                    )
            shots = {name: _rising(starts) for name, starts in about.get("shots", {}).items()}
            parts = ["visual", "queries", *(["subtitles"] if (folder / "subtitles").is_dir() else [])]
            dims = {part: KeyedShards(folder / part).dim for part in parts}
            facts = SourceFacts(
                str(about["encoder"]), str(about["encoder_revision"]),
                _above_0(float(about["clip_seconds"])), _above_0(int(about["segment_clips"])),
                bool(about.get("unit", True)),
                visual_dim=dims["visual"], subtitle_dim=dims.get("subtitles", 0), query_dim=dims["queries"],
            )  # fmt: skip
        except DataError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise DataError(f"{path}: damaged ({error!r}); write the folder again") from error
        return cls(folder, facts, durations, shots)

    @cached_property
    def _all(self) -> VideoFeatures:
        visual = KeyedShards(self.folder / "visual")
        names = tuple(self.durations)
        if absent := [name for name in names if name not in visual]:
            raise DataError(
                f"{self.folder}: lists {absent[0]!r}, but has no features of it; write the folder again"
            )
        subtitles = KeyedShards(self.folder / "subtitles") if self.facts.subtitle_dim else None
        return VideoFeatures(
            video_ids=names,
            durations=np.array([self.durations[name] for name in names]),
            clip_seconds=self.facts.clip_seconds,
            counts=np.array([visual.shape(name)[0] for name in names], dtype=np.int64),
            visual=_stored(visual, names),
            subtitles=_stored(subtitles, names) if subtitles else None,
            unit=self.facts.unit,
            shots=self._shots_of if self.shots else None,
        )

    def _shots_of(self, keys: Sequence[int]) -> list[NDArray[np.float64]]:
        """Start times of the shots of some videos by place."""
        return [np.array(self.shots.get(self._all.video_ids[key], ()), np.float64) for key in keys]

    def videos(self, video_ids: Sequence[str] | None = None) -> VideoFeatures:
        """Features of some videos, of all by default. Raises NotFound: a video has no features."""
        return self._all if video_ids is None else self._all.named(video_ids)

    @cached_property
    def _queries(self) -> KeyedShards:
        return KeyedShards(self.folder / "queries")

    def queries(self, query_ids: Sequence[str], texts: Sequence[str]) -> QueryFeatures:
        """Features of queries, found by their texts. Raises NotFound: a query has no features."""
        stored = self._queries
        missing = [text for text in texts if text not in stored]
        if missing:
            raise NotFound(
                f"{self.folder}: {len(missing):,} of {len(texts):,} queries without features, the first "
                f"{missing[0]!r}; write the folder again with their annotation file"
            )
        rows = tuple(stored.mapped(text) for text in texts)
        return QueryFeatures(tuple(query_ids), tuple(texts), rows, unit=self.facts.unit)


def has_length(seconds: float) -> bool:
    """Whether a duration can be that of a video with features: above 0, and finite."""
    return 0 < seconds < math.inf


def _above_0(number: Number) -> Number:
    """The number; ValueError: it is not above 0, or not finite."""
    if not has_length(number):
        raise ValueError(f"{number} is not above 0, or not finite")
    return number


def _rising(starts: Sequence[float]) -> Sequence[float]:
    """Start times of shots; ValueError, TypeError: they are no finite numbers that rise from 0."""
    if not starts or starts[0] or not all(a < b for a, b in pairwise([*starts, math.inf])):
        raise ValueError(f"shots begin at {starts!r:.60}")
    return starts


def _stored(shards: KeyedShards, names: Sequence[str]) -> FeatureRows:
    return FeatureRows.stored(shards.shards, tuple(shards.extent(name) for name in names))


def describe_folder(
    folder: Path,
    facts: SourceFacts,
    durations: Mapping[str, float],
    shots: Mapping[str, Sequence[float]] | None = None,
) -> FeatureFolder:
    """Write ``features.json``, which completes a folder of features, and open it.

    Args:
        durations: seconds by video id.
        shots: start times in seconds, rising from 0, of the shots of the videos that are cut, by video id.
    """
    about: dict[str, Any] = asdict(facts)
    for size in ("visual_dim", "subtitle_dim", "query_dim"):
        del about[size]  # known from the arrays
    about = {"format": _FORMAT, **about, "durations": dict(durations)}
    write_json(folder / DESCRIPTION, about | ({"shots": dict(shots)} if shots else {}), indent=1)
    return FeatureFolder.open(folder)
