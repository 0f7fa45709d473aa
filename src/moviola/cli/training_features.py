"""The folder that training reads: from a library and its encoders, or from published feature files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moviola.errors import DataError, InvalidValue, LibraryError, NotFound

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from moviola.datasets.features import Features

__all__ = ["KEYS", "Source", "Sources", "export_features", "gather_features"]


def export_features(library: Path, annotations: Sequence[Path], out: Path) -> dict[str, Any]:
    """Write ``visual``, ``queries`` and, where there are sentence embeddings, ``subtitles`` under ``out``.

    ``queries`` holds a row a token; its last row is the query's vector in the space of the frames. A row of
    ``subtitles`` is the mean of the sentences that are spoken during its frame, zeros where nobody speaks.

    Raises:
        InvalidValue: ``out`` holds something.
        LibraryError: the library has no visual encoder.
    """
    import numpy as np

    from moviola.datasets.features import Computed, convert
    from moviola.datasets.readers import ranked_rows
    from moviola.library import LibraryStore

    _require_new(out)
    queries = list(dict.fromkeys(text for path in annotations for _, _, text, _ in ranked_rows(path)))
    with LibraryStore(library, read_only=True) as store:
        encoder = store.encoder
        if encoder is None:
            raise LibraryError(f"{library}: built without a visual encoder; there are no frames to train on")
        videos = {v.video_id: v for v in store.catalogue.videos() if v.state != "refused"}
        visual = convert(
            Computed(tuple(videos), lambda key: store.frame_rows(videos[key]).astype(np.float32)),
            out / "visual",
        )
        tokens = dict(zip(queries, encoder.encode_tokens(queries), strict=True))
        convert(Computed(tuple(queries), tokens.__getitem__), out / "queries")
        spoken = store.settings.sentence_dim if store.catalogue.cue_count() else 0
        if spoken:
            convert(Computed(tuple(videos), lambda key: store.heard_rows(videos[key])), out / "subtitles")
        about = {
            "clip_seconds": 1 / store.settings.frame_rate,
            "segment_clips": store.settings.frames_per_segment,
            "encoder": store.settings.encoder,
            "encoder_revision": store.settings.encoder_revision,
            "durations": {name: video.duration for name, video in videos.items()},
        }
    _describe(out, about)
    return {
        "videos": len(videos), "frames": sum(visual.shape(name)[0] for name in videos), "dim": visual.dim,
        "queries": len(queries), "subtitles": spoken, "clip_seconds": about["clip_seconds"], "out": str(out),
    }  # fmt: skip


def _require_new(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidValue(f"{out}: not empty; give a new folder")


def _describe(out: Path, about: Mapping[str, Any]) -> None:
    """Written last, so that it marks a whole folder."""
    (out / "features.json").write_text(json.dumps(about, indent=1) + "\n")


# ---- published feature files -----------------------------------------------------------------------------


def _by_text(path: Path) -> Iterator[tuple[str, str]]:
    from moviola.datasets.readers import ranked_rows

    yield from ((text, text) for _, _, text, _ in ranked_rows(path))


def _by_query_id(path: Path) -> Iterator[tuple[str, str]]:
    from moviola.datasets.readers import ranked_rows

    yield from ((query_id, text) for _, query_id, text, _ in ranked_rows(path))


def _by_desc_id(path: Path) -> Iterator[tuple[str, str]]:
    from moviola.files.rows import read_json_lines, text

    for where, row in read_json_lines(path):
        yield text(row, "desc_id", where), text(row, "desc", where)


KEYS: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
    "query_id": _by_query_id,
    "desc_id": _by_desc_id,
    "text": _by_text,
}
"""How queries are named in a file of features: keys and texts of an annotation file.

``query_id`` and ``text`` are of TVR-Ranking pair files, ``desc_id`` of TVR's JSON lines.
"""


@dataclass(frozen=True)
class Source:
    """A file or folder of features, opened."""

    path: Path
    features: Features

    @classmethod
    def open(cls, path: Path) -> Source:
        """See :func:`moviola.datasets.features.open_features`."""
        from moviola.datasets.features import open_features

        return cls(path, open_features(path))

    def require(self, keys: Sequence[str], what: str) -> None:
        """Raises :class:`NotFound` if some keys are missing; names the first."""
        known = set(self.features.keys())
        missing = [key for key in keys if key not in known]
        if missing:
            raise NotFound(
                f"{self.path}: no features of {len(missing):,} of {len(keys):,} {what}, the first "
                f"{missing[0]!r}; give the file that has them, or leave them out"
            )


@dataclass(frozen=True)
class Sources:
    """What a folder of features is gathered from.

    Attributes:
        visual: one or more sources by video id; the rows of several are brought to length 1 each and joined.
        subtitles: by video id.
        queries: rows a token, by ``key`` (a name in :data:`KEYS`) of the annotation files.
        query_vectors: one row a query, appended to its tokens as the last one.
    """

    visual: tuple[Source, ...]
    queries: Source
    key: str
    subtitles: Source | None = None
    query_vectors: Source | None = None

    @property
    def streams(self) -> tuple[Source, ...]:
        """All that have rows a clip."""
        return self.visual if self.subtitles is None else (*self.visual, self.subtitles)


def gather_features(
    sources: Sources,
    out: Path,
    *,
    annotations: Sequence[Path],
    durations: Path,
    videos: Sequence[str] | None,
    clip_seconds: float,
    segment_clips: int,
    encoder: tuple[str, str],
    raw: bool = False,
    tokens: int | None = None,
    slack: int = 0,
) -> dict[str, Any]:
    """Write ``visual``, ``queries`` and, where there are any, ``subtitles`` under ``out``.

    Arrays are read and written one at a time; all keys and lengths are checked before. The last row of a
    query is its sentence vector, which stage 1 of SPR and SPR_CLIP take: the file's own last row (as in files
    of CLIP's tokens), or that of ``sources.query_vectors``. Models that read tokens take it for one more.

    Args:
        sources: the files.
        out: a new folder.
        annotations: files whose queries are taken.
        durations: of videos, in seconds; see :func:`moviola.datasets.readers.read_video_corpus`.
        videos: ids; None takes all that have a duration.
        clip_seconds: length of a clip, one row of features.
        segment_clips: clips of a segment.
        encoder: name and revision of what the features are; models trained on others are refused.
        raw: models take the rows as they are; else each is brought to length 1 when it is read.
        tokens: most rows of a query, with its vector; None keeps all.
        slack: most rows by which streams may differ in one video, which is cut to the shortest.

    Raises:
        InvalidValue: ``out`` holds something, or the lengths are not of clips of ``clip_seconds``.
        NotFound: videos or queries have no features; the first is named with how many there are.
        DataError: a video's streams differ in length, it has no rows, or one key stands for two texts.
    """
    import numpy as np

    from moviola.datasets.features import Computed, convert
    from moviola.datasets.readers import read_video_corpus
    from moviola.models.spans import normalise_rows

    _require_new(out)
    seconds = read_video_corpus(durations)
    names = tuple(seconds if videos is None else videos)
    unknown = [name for name in names if name not in seconds]
    if unknown:
        raise NotFound(f"{durations}: no duration of {len(unknown):,} videos, the first {unknown[0]!r}")
    for source in sources.streams:
        source.require(names, "videos")
    counts = _clip_counts(sources.streams, names, slack)
    odd = _odd_lengths(counts, {name: seconds[name] for name in names}, clip_seconds)
    asked = _keys_of(annotations, sources.key)
    for asking in (sources.queries, sources.query_vectors):
        if asking is not None:
            asking.require(list(asked.values()), f"queries (by {sources.key})")
    if sources.query_vectors is not None:
        _require_one_row(sources.query_vectors, sources.queries, asked.values())

    def seen(name: str) -> NDArray[np.float32]:
        parts = [source.features.read(name)[: counts[name]] for source in sources.visual]
        return parts[0] if len(parts) == 1 else np.concatenate([normalise_rows(x) for x in parts], axis=1)

    def query(text: str) -> NDArray[np.float32]:
        rows = sources.queries.features.read(asked[text])
        if sources.query_vectors is None:
            return rows[:tokens]
        vector = sources.query_vectors.features.read(asked[text])
        return np.concatenate([rows[: None if tokens is None else tokens - 1], vector])

    visual = convert(Computed(names, seen), out / "visual")
    queries = convert(Computed(tuple(asked), query), out / "queries")
    if sources.subtitles is not None:
        heard = sources.subtitles.features
        convert(Computed(names, lambda name: heard.read(name)[: counts[name]]), out / "subtitles")
    subtitles = 0 if sources.subtitles is None else sources.subtitles.features.shape(names[0])[1]
    _describe(
        out,
        {
            "clip_seconds": clip_seconds,
            "segment_clips": segment_clips,
            "encoder": encoder[0],
            "encoder_revision": encoder[1],
            "unit": not raw,
            "durations": {name: seconds[name] for name in names},
        },
    )
    return {
        "videos": len(names), "frames": sum(counts.values()), "dim": visual.dim, "queries": len(asked),
        "query_dim": queries.dim, "subtitles": subtitles, "clip_seconds": clip_seconds, "odd": odd,
        "out": str(out),
    }  # fmt: skip


def _clip_counts(streams: Sequence[Source], names: Sequence[str], slack: int) -> dict[str, int]:
    """Clips of each video, which all streams have."""
    counts = {}
    for name in names:
        rows = [source.features.shape(name)[0] for source in streams]
        if min(rows) == 0:
            raise DataError(f"{streams[rows.index(0)].path}: {name}: no rows; leave the video out (--videos)")
        if max(rows) - min(rows) > slack:
            said = ", ".join(f"{n} in {source.path}" for n, source in zip(rows, streams, strict=True))
            raise DataError(
                f"{name}: {said}: streams of one length are needed; --slack {max(rows) - min(rows)} cuts "
                "videos to the shorter one"
            )
        counts[name] = min(rows)
    return counts


def _odd_lengths(counts: Mapping[str, int], seconds: Mapping[str, float], clip_seconds: float) -> list[str]:
    """Videos with over two clips more or less than their duration asks for; an error if most are."""
    odd = [name for name, count in counts.items() if abs(count - seconds[name] / clip_seconds) > 2]
    if 2 * len(odd) > len(counts):
        name = odd[0]
        raise InvalidValue(
            f"clips of {clip_seconds:g} s: {len(odd):,} of {len(counts):,} videos have other lengths, the "
            f"first {name!r} with {counts[name]} rows for {seconds[name]:g} s; give the seconds of a row"
        )
    return odd


def _keys_of(annotations: Sequence[Path], key: str) -> dict[str, str]:
    """Key of each query by its text; of queries with the same text, the first one's."""
    if key not in KEYS:
        raise InvalidValue(f"key {key!r}: unknown; there are {', '.join(KEYS)}")
    texts: dict[str, str] = {}
    keys: dict[str, str] = {}
    for path in annotations:
        for name, text in KEYS[key](path):
            if texts.setdefault(name, text) != text:
                raise DataError(
                    f"{path}: {key} {name} is {text!r}, but was {texts[name]!r} before; give annotation "
                    "files that belong to one file of features"
                )
            keys.setdefault(text, name)
    if not keys:
        raise DataError(f"{', '.join(map(str, annotations))}: no queries; give annotation files")
    return keys


def _require_one_row(vectors: Source, queries: Source, keys: Iterable[str]) -> None:
    """Raises :class:`DataError` if a vector cannot be appended to its query's tokens."""
    for key in keys:
        shape, dim = vectors.features.shape(key), queries.features.shape(key)[1]
        if shape != (1, dim):
            raise DataError(f"{vectors.path}: {key}: shape {shape}; one row of {dim} is expected")
