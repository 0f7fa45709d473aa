"""Features of videos, one row per clip, independent of their storage.

A *clip* here is a model's time step: ``clip_seconds`` of a video, one row of features. Rows are half
precision and mostly memory-mapped; only requested rows are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import NotFound, counted
from moviola.features.cache import EncodingCache, MemoryCache
from moviola.features.shards import Extent, FeatureShards

__all__ = ["FeatureRows", "Integers", "VideoFeatures", "clips_by_video", "normalise_rows", "place_in"]

Integers = NDArray[np.int64]

# Distance, in clips, within which a time is the beginning of a clip: dividing may miss the whole number.
_ROUNDING = 1e-6


def clips_by_video(video: Integers, clip: Integers) -> tuple[list[tuple[int, Integers]], Integers]:
    """Clips grouped by video, without duplicates, so that the rows of each video are read once.

    Args:
        video, clip: (n,) place of a video, and number of one of its clips.

    Returns:
        Pairs of a video's place, rising, and its clips, rising; and (n,) int64, the place of each given clip
        among the clips of all pairs.
    """
    most = int(clip.max(initial=0)) + 1
    wanted, place = np.unique(video * most + clip, return_inverse=True)
    videos, begin = np.unique(wanted // most, return_index=True)
    clips = np.split(wanted % most, begin[1:])
    return list(zip(videos.tolist(), clips, strict=True)), place


def place_in(numbers: NDArray[Any], wanted: Any) -> int | None:
    """The place of a number among rising ones (n,); None where it is not among them."""
    place = int(np.searchsorted(numbers, wanted))
    return place if place < len(numbers) and numbers[place] == wanted else None


def normalise_rows(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row (n, d) divided by its Euclidean length plus 1e-5, as in XML and ReLoCLNet: zeros stay
    zeros.
    """
    lengths: NDArray[np.float32] = np.linalg.norm(features, axis=-1, keepdims=True)
    return np.asarray(features / (lengths + np.float32(1e-5)))


def floats(rows: NDArray[np.float16], unit: bool) -> NDArray[np.float32]:
    """Rows (n, d) as float32, by :func:`normalise_rows` if ``unit``."""
    values = rows.astype(np.float32)
    return normalise_rows(values) if unit else values


@dataclass(frozen=True)
class FeatureRows:
    """One kind of features of some videos, read or computed on access.

    Attributes:
        dim: numbers in a row.
        keys: what ``make`` is called with for each video: its number, or the place of its rows.
        make: returns the rows of a video, (n, ``dim``) float16.
    """

    dim: int
    keys: Sequence[Any] | Integers
    make: Callable[[Any], NDArray[np.float16]]

    @classmethod
    def stored(
        cls, shards: FeatureShards, extents: Sequence[Extent], columns: slice = slice(None)
    ) -> FeatureRows:
        """Rows in shards, as views of the memory map: the extent of each video, and the used columns."""
        dim = len(range(*columns.indices(shards.dim)))
        return cls(dim, extents, lambda extent: shards.checked(extent)[:, columns])

    def read(self, video: int) -> NDArray[np.float16]:
        """(n, dim) float16, all rows of a video, by its place among the videos."""
        return self.make(self.keys[video])

    def select(self, videos: Sequence[int]) -> FeatureRows:
        """The same of some of the videos, in the order given."""
        return replace(self, keys=tuple(self.keys[video] for video in videos))


@dataclass(frozen=True)
class VideoFeatures:
    """Features of V videos.

    Attributes:
        durations: (V,) float64 seconds.
        clip_seconds: length of a clip in seconds.
        counts: (V,) int64, clips of each video, >= 1.
        visual: features of the pictures, one row per clip.
        subtitles: features of speech during each clip, zeros in silence; None without them.
        unit: normalise each row (:func:`normalise_rows`) when it is read. The releases of SPR's stage 1 and
            of CONQUER use unnormalised rows.
        keys: (V,) int64 rising, numbers of the videos in caches and indexes; 0, 1, … by default.
        cache: encodings of these videos by models.
        shots: returns the start times of the shots of some videos by key, (s,) float64 rising, the first 0;
            empty if unknown. None if unknown for all videos.
    """

    video_ids: Sequence[str]
    durations: NDArray[np.float64]
    clip_seconds: float
    counts: Integers
    visual: FeatureRows
    subtitles: FeatureRows | None = None
    unit: bool = True
    keys: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    cache: EncodingCache = field(default_factory=MemoryCache, compare=False)
    shots: Callable[[Sequence[int]], Sequence[NDArray[np.float64]]] | None = field(
        default=None, compare=False
    )

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.video_ids):
            object.__setattr__(self, "keys", np.arange(len(self.video_ids), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.video_ids)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Place of each video by its id."""
        return {video: row for row, video in enumerate(self.video_ids)}

    def place_of(self, key: int) -> int | None:
        """Place of the video with a number of :attr:`keys`; None without one."""
        return place_in(self.keys, key)

    def read(self, video: int, first: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        """(n, d) float32, the features of clips ``first`` to ``stop`` of a video."""
        return floats(self.visual.read(video)[first:stop], self.unit)

    def read_subtitles(
        self, video: int, first: int = 0, stop: int | None = None
    ) -> NDArray[np.float32] | None:
        """The same of the subtitles; None without them."""
        return None if self.subtitles is None else floats(self.subtitles.read(video)[first:stop], self.unit)

    def shot_edges_of(self, videos: Integers) -> tuple[Integers, NDArray[np.float64]]:
        """Where the shots of some videos (n,) begin and end, one shot if unknown: offsets (n + 1,) of the
        videos among (e,) float64 seconds, the start of each shot, rising, and the end of the video.
        """
        known = self.shots(self.keys[videos].tolist()) if self.shots else [np.empty(0)] * len(videos)
        edges = [
            np.append(starts if len(starts) else 0.0, end)
            for starts, end in zip(known, self.durations[videos], strict=True)
        ]
        offsets = np.cumsum([0, *map(len, edges)], dtype=np.int64)
        return offsets, np.concatenate(edges) if edges else np.empty(0)

    def cuts_of(self, videos: Integers) -> tuple[Integers, NDArray[np.float64]]:
        """The cuts of some videos (n,) by the clips that begin at them.

        Offsets (n + 1,) of the videos among (c,) float64, one per clip: the time in seconds of the cut to
        which the start of this clip is the nearest of all, of several cuts the nearest; NaN without one.
        """
        counts = self.counts[videos]
        offsets = np.cumsum([0, *counts], dtype=np.int64)
        times = np.full(offsets[-1], np.nan)
        shots, edges = self.shot_edges_of(videos)
        own = np.repeat(np.arange(len(videos)), np.diff(shots))
        clip = np.rint(edges / self.clip_seconds).astype(np.int64)
        is_cut = (clip > 0) & (clip < counts[own])
        is_cut[shots[1:] - 1] = False  # where a video ends
        away = np.abs(edges - clip * self.clip_seconds)[is_cut]
        nearest_last = np.argsort(-away, kind="stable")
        times[(offsets[own] + clip)[is_cut][nearest_last]] = edges[is_cut][nearest_last]
        return offsets, times

    def select(self, videos: Sequence[int] | Integers) -> VideoFeatures:
        """Some of the videos by place, in rising order; they share the cache."""
        rows = np.asarray(videos, dtype=np.int64)
        return replace(
            self,
            video_ids=tuple(self.video_ids[row] for row in rows.tolist()),
            durations=self.durations[rows],
            counts=self.counts[rows],
            visual=self.visual.select(rows.tolist()),
            subtitles=None if self.subtitles is None else self.subtitles.select(rows.tolist()),
            keys=self.keys[rows],
        )

    def named(self, video_ids: Sequence[str]) -> VideoFeatures:
        """Some of the videos by id, in this collection's order. Raises NotFound: one has no features here."""
        missing = [name for name in video_ids if name not in self.row_of]
        if missing:
            raise NotFound(
                f"{counted(len(missing), 'video')} without features, the first {missing[0]!r}; add their "
                "features, or leave them out"
            )
        return self.select(sorted(self.row_of[name] for name in set(video_ids)))

    def without_subtitles(self) -> VideoFeatures:
        """The same videos, pictures alone."""
        return replace(self, subtitles=None)

    def with_fresh_cache(self) -> VideoFeatures:
        """The same videos with an empty cache in memory, for a model whose weights change."""
        return replace(self, cache=MemoryCache(1 << 32))  # 4 GiB

    def clips_at(self, seconds: Any) -> Integers:
        """The clip (n,) during which each time (n,) of a video falls, also behind its end."""
        return np.floor(np.asarray(seconds) / self.clip_seconds + _ROUNDING).astype(np.int64)

    def clips_from(self, seconds: Any) -> Integers:
        """The first clip (n,) that begins at or after each time (n,) of a video, also behind its end."""
        return np.ceil(np.asarray(seconds) / self.clip_seconds - _ROUNDING).astype(np.int64)

    def clip_spans(
        self, video: int | Integers, start: Any, end: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Spans (n,) in seconds cut to a video, or to the videos (n,); none is shorter than 1 ms.

        Clips behind the end, where a video has more of them than its duration holds, become its last 1 ms.
        """
        duration = self.durations[video]
        begin = np.maximum(np.minimum(np.asarray(start, dtype=np.float64), duration - 1e-3), 0.0)
        stop = np.minimum(np.asarray(end, dtype=np.float64), duration)
        return begin, np.maximum(stop, begin + 1e-3)
