"""Feature folders made from published feature files, as released by the papers' authors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue, NotFound, counted
from moviola.features.folder import FeatureFolder, describe_folder, has_length
from moviola.features.published import Computed, FeatureFiles, convert, new_folder, open_features
from moviola.features.source import SourceFacts
from moviola.features.videos import normalise_rows

__all__ = ["Gathered", "Published", "PublishedFiles", "gather_features"]

# Allowed difference between a video's rows and its duration.
_ODD_ROWS = 2


@dataclass(frozen=True)
class Published:
    """A file or folder of features, opened."""

    path: Path
    features: FeatureFiles

    @classmethod
    def open(cls, path: Path, inner: str | None = None) -> Published:
        """Open features of any form; arguments and errors as in :func:`moviola.features.open_features`."""
        return cls(path, open_features(path, inner))

    def require(self, keys: Sequence[str], what: str) -> None:
        """Raise :class:`NotFound` if some keys are missing; names the first."""
        known = set(self.features.keys())
        missing = [key for key in keys if key not in known]
        if missing:
            raise NotFound(
                f"{self.path}: no features of {len(missing):,} of {len(keys):,} {what}, the first "
                f"{missing[0]!r}; give the file that has them, or leave them out"
            )


@dataclass(frozen=True)
class PublishedFiles:
    """Source files of a folder of features.

    Attributes:
        visual: one or more files by video id; rows of several are normalised and concatenated.
        queries: one row per token, by key of the query.
        subtitles: by video id.
        query_vectors: one row per query, appended to its tokens as the last one.
    """

    visual: tuple[Published, ...]
    queries: Published
    subtitles: Published | None = None
    query_vectors: Published | None = None

    @property
    def streams(self) -> tuple[Published, ...]:
        """All files with one row per clip."""
        return self.visual if self.subtitles is None else (*self.visual, self.subtitles)


@dataclass(frozen=True)
class Gathered:
    """A folder of features, its clips, and the videos whose rows and duration differ by more than two."""

    folder: FeatureFolder
    clips: int
    odd: tuple[str, ...]


def gather_features(
    files: PublishedFiles,
    out: Path,
    *,
    queries: Mapping[str, str],
    key: str,
    durations: Mapping[str, float],
    clip_seconds: float,
    segment_clips: int,
    encoder: tuple[str, str],
    raw: bool = False,
    max_tokens: int | None = None,
    slack: int = 0,
) -> Gathered:
    """Write a folder of features (:class:`moviola.features.FeatureFolder`), one array at a time.

    All keys and lengths are checked before. The last row of a query is its sentence vector, which stage 1 of
    SPR and SPR_CLIP use: the file's own last row (as in files of CLIP's tokens), or that of
    ``files.query_vectors``. Models that read tokens treat it as one more.

    Args:
        out: a new folder.
        queries: the key of each query in ``files`` by its text.
        key: name of these keys, for messages: "query_id", "text", …
        durations: seconds by video id, of the videos to write.
        clip_seconds: length of a clip, one row of features.
        segment_clips: clips of a segment.
        encoder: name and revision of the features' encoder; models trained on others are refused.
        raw: models use the rows unchanged; else each is normalised when read.
        max_tokens: maximum rows of a query, >= 1, with its vector, which is always kept; None keeps all.
        slack: maximum difference of the streams of a video, which is cut to the shortest.

    Raises:
        InvalidValue: ``out`` is not empty, a duration is not above 0, or the lengths do not fit
            ``clip_seconds``.
        NotFound: missing features of videos or queries; the message names the first and their number.
        DataError: a video's streams differ in length, a video or a query has no rows, or a query's vector is
            not one row.
    """
    _require_lengths(durations)
    with new_folder(out):
        names = tuple(durations)
        for stream in files.streams:
            stream.require(names, "videos")
        counts = _clip_counts(files.streams, names, slack)
        odd = _odd_lengths(counts, durations, clip_seconds)
        _require_queries(files, list(queries.values()), key)
        visual = convert(Computed(names, lambda name: _visual(files, name, counts[name])), out / "visual")
        texts = Computed(tuple(queries), lambda text: _query(files, queries[text], max_tokens))
        rows = convert(texts, out / "queries")
        subtitle_dim = 0
        if files.subtitles is not None:
            read = files.subtitles.features.read
            said = Computed(names, lambda name: read(name)[: counts[name]])
            subtitle_dim = convert(said, out / "subtitles").dim
        facts = SourceFacts(
            *encoder, clip_seconds, segment_clips, unit=not raw,
            visual_dim=visual.dim, subtitle_dim=subtitle_dim, query_dim=rows.dim,
        )  # fmt: skip
        return Gathered(describe_folder(out, facts, durations), sum(counts.values()), tuple(odd))


def _visual(files: PublishedFiles, name: str, count: int) -> NDArray[np.float32]:
    """Rows of a video (count, d), those of several files side by side."""
    parts = [file.features.read(name)[:count] for file in files.visual]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([normalise_rows(part) for part in parts], axis=1)


def _query(files: PublishedFiles, key: str, max_tokens: int | None) -> NDArray[np.float32]:
    """Rows of a query (n, d), its vector last."""
    rows = files.queries.features.read(key)
    if files.query_vectors is None:
        rows, vector = rows[:-1], rows[-1:]
    else:
        vector = files.query_vectors.features.read(key)
    return np.concatenate([rows[: None if max_tokens is None else max_tokens - 1], vector])


def _clip_counts(streams: Sequence[Published], names: Sequence[str], slack: int) -> dict[str, int]:
    counts = {}
    for name in names:
        rows = [stream.features.shape(name)[0] for stream in streams]
        if min(rows) == 0:
            raise DataError(f"{streams[rows.index(0)].path}: {name}: no rows; leave the video out (--videos)")
        if max(rows) - min(rows) > slack:
            said = ", ".join(f"{n} in {stream.path}" for n, stream in zip(rows, streams, strict=True))
            raise DataError(
                f"{name}: {said}: streams of one length are needed; --slack {max(rows) - min(rows)} cuts "
                "videos to the shorter one"
            )
        counts[name] = min(rows)
    return counts


def _require_lengths(durations: Mapping[str, float]) -> None:
    if wrong := [name for name, seconds in durations.items() if not has_length(seconds)]:
        raise InvalidValue(
            f"{counted(len(wrong), 'video')} with a duration that is not above 0 s, the first {wrong[0]!r} "
            f"with {durations[wrong[0]]:g} s; correct it in the file of durations, or leave the video out "
            "(--videos)"
        )


def _odd_lengths(counts: Mapping[str, int], seconds: Mapping[str, float], clip_seconds: float) -> list[str]:
    """Videos whose clips do not fit their duration; an error if most do not."""
    odd = [name for name, count in counts.items() if abs(count - seconds[name] / clip_seconds) > _ODD_ROWS]
    if 2 * len(odd) > len(counts):
        name = odd[0]
        raise InvalidValue(
            f"clips of {clip_seconds:g} s: {len(odd):,} of {len(counts):,} videos have other lengths, the "
            f"first {name!r} with {counts[name]} rows for {seconds[name]:g} s; give the seconds of a row"
        )
    return odd


def _require_queries(files: PublishedFiles, keys: Sequence[str], key: str) -> None:
    vectors = files.query_vectors
    for file in filter(None, (files.queries, vectors)):
        file.require(keys, f"queries (by {key})")
    for query in keys:
        count, dim = files.queries.features.shape(query)
        if vectors is None and not count:
            raise DataError(f"{files.queries.path}: {query}: no rows; leave the query out")
        if vectors is not None and (shape := vectors.features.shape(query)) != (1, dim):
            raise DataError(f"{vectors.path}: {query}: shape {shape}; one row of {dim} is expected")
