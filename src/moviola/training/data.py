"""What training reads: clip features of videos, features of queries, and pairs of queries and moments.

Features stay in their shards, memory-mapped; only what a batch needs is copied, padded to its own longest
member. Every clip and token is brought to length 1, x / (|x| + 1e-5), as the releases of XML and ReLoCLNet do
it, unless the folder says that its rows are to be taken raw, as those of SPR's stage 1 and CONQUER do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from moviola.datasets.features import ShardFeatures
from moviola.datasets.readers import ranked_rows
from moviola.errors import DataError, InvalidValue, NotFound
from moviola.files.rows import number, read_json, span, text
from moviola.measures import Qrels
from moviola.models.spans import normalise_rows

__all__ = [
    "Clips", "FeatureFolder", "Pairs", "Queries", "batches_by_length", "padded", "read_videos", "widened",
]  # fmt: skip

Rows = NDArray[np.int64]
Array = NDArray[np.float32]


def padded(arrays: Sequence[Array]) -> tuple[Tensor, Tensor]:
    """Arrays (n_i, d) as one (B, L, d) float32 with zeros behind, and the mask (B, L) of what is there."""
    longest = max(map(len, arrays))
    out = torch.zeros(len(arrays), longest, arrays[0].shape[1])
    mask = torch.zeros(len(arrays), longest)
    for row, array in enumerate(arrays):
        out[row, : len(array)] = torch.from_numpy(array)
        mask[row, : len(array)] = 1
    return out, mask


def widened(
    length: int, visual: Tensor, mask: Tensor, heard: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """A batch (B, L, d) with more zeros behind, for ``length`` clips; for models to which padding matters."""
    more = length - mask.shape[1]
    wider = None if heard is None else F.pad(heard, (0, 0, 0, more))
    return F.pad(visual, (0, 0, 0, more)), F.pad(mask, (0, more)), wider


@dataclass(frozen=True)
class Clips:
    """Some videos with the features of their clips.

    Attributes:
        videos: ids.
        durations: (V,) float64 seconds.
        clip_seconds: length of a clip.
        visual: features of the clips by id; ``subtitles`` likewise, None without that stream.
        unit: bring each row to length 1.
    """

    videos: tuple[str, ...]
    durations: NDArray[np.float64]
    clip_seconds: float
    visual: ShardFeatures
    subtitles: ShardFeatures | None
    unit: bool = True

    @cached_property
    def counts(self) -> Rows:
        """(V,) int64, clips of each video."""
        return np.array([self.visual.shape(video)[0] for video in self.videos], dtype=np.int64)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row of each video by its id."""
        return {video: row for row, video in enumerate(self.videos)}

    def read(self, row: int, first: int = 0, stop: int | None = None) -> Array:
        """(n, d) float32, features of some clips of a video, of length 1 each unless raw."""
        return _floats(self.visual.mapped(self.videos[row])[first:stop], self.unit)

    def heard(self, row: int, first: int = 0, stop: int | None = None) -> Array | None:
        """The same of the subtitles."""
        if self.subtitles is None:
            return None
        return _floats(self.subtitles.mapped(self.videos[row])[first:stop], self.unit)

    def batch(
        self, rows: Rows, first: Rows | None = None, stop: Rows | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Whole videos, or of each the clips from ``first`` to ``stop``: visual, mask and subtitles."""
        begin = np.zeros_like(rows) if first is None else first
        until = self.counts[rows] if stop is None else stop
        places = list(zip(rows.tolist(), begin.tolist(), until.tolist(), strict=True))
        visual, mask = padded([self.read(*place) for place in places])
        if self.subtitles is None:
            return visual, mask, None
        heard, _ = padded([array for place in places if (array := self.heard(*place)) is not None])
        return visual, mask, heard


def _floats(halves: NDArray[np.float16], unit: bool) -> Array:
    rows = halves.astype(np.float32)
    return normalise_rows(rows) if unit else rows


@dataclass(frozen=True)
class Queries:
    """Queries with the features of their tokens; the last token stands for the whole sentence.

    ``longest``: tokens of a query that are kept; ``unit``: bring each row to length 1.
    """

    query_ids: tuple[str, ...]
    texts: tuple[str, ...]
    features: ShardFeatures
    longest: int
    unit: bool = True

    def __len__(self) -> int:
        return len(self.query_ids)

    @cached_property
    def _tokens(self) -> list[Array]:
        return [_floats(self.features.mapped(text), self.unit) for text in self.texts]

    def tokens(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """(B, Lq, d) float32 and its mask; of a longer query the first tokens and the last one are kept."""
        return padded([self._cut(self._tokens[row]) for row in rows.tolist()])

    def _cut(self, tokens: Array) -> Array:
        return (
            tokens
            if len(tokens) <= self.longest
            else np.concatenate([tokens[: self.longest - 1], tokens[-1:]])
        )

    @cached_property
    def vectors(self) -> Tensor:
        """(Q, d) float32, one vector a query, of length 1 unless raw."""
        return torch.from_numpy(np.stack([tokens[-1] for tokens in self._tokens]))


@dataclass(frozen=True)
class FeatureFolder:
    """A folder that `moviola features from-library` or `from-files` wrote.

    Attributes:
        visual, queries, subtitles: its shards.
        clip_seconds: length of a clip.
        segment_clips: clips of a segment (T of SPR).
        durations: seconds by video id.
        encoder: whose features these are, with its revision.
        unit: rows are brought to length 1 when read; False for models that take them raw.
    """

    visual: ShardFeatures
    queries: ShardFeatures
    subtitles: ShardFeatures | None
    clip_seconds: float
    segment_clips: int
    durations: dict[str, float]
    encoder: tuple[str, str]
    unit: bool = True

    @classmethod
    def open(cls, folder: Path) -> FeatureFolder:
        """Open a folder of features.

        Raises:
            NotFound: there is none.
            DataError: its description is damaged.
        """
        path = folder / "features.json"
        if not path.is_file():
            raise NotFound(
                f"{path}: no such file; `moviola features from-library` or `from-files` makes the folder"
            )
        try:
            about = json.loads(path.read_text())
            return cls(
                visual=ShardFeatures(folder / "visual"),
                queries=ShardFeatures(folder / "queries"),
                subtitles=ShardFeatures(folder / "subtitles") if (folder / "subtitles").is_dir() else None,
                clip_seconds=float(about["clip_seconds"]),
                segment_clips=int(about["segment_clips"]),
                durations={name: float(seconds) for name, seconds in about["durations"].items()},
                encoder=(str(about["encoder"]), str(about["encoder_revision"])),
                unit=bool(about.get("unit", True)),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: damaged ({error!r}); write the folder anew") from error

    def clips(self, videos: Sequence[str] | None = None) -> Clips:
        """The clips of some videos, of all by default.

        Raises:
            DataError: a video has no features.
        """
        names = tuple(self.durations) if videos is None else tuple(videos)
        missing = [name for name in names if name not in self.durations]
        if missing:
            raise DataError(
                f"{len(missing)} videos without features, the first {missing[0]!r}; export them too"
            )
        durations = np.array([self.durations[name] for name in names])
        return Clips(names, durations, self.clip_seconds, self.visual, self.subtitles, self.unit)

    def encoded(self, pairs: Pairs, longest: int = 30) -> Queries:
        """The queries of some pairs, cut to ``longest`` tokens.

        Raises:
            DataError: a query has no features.
        """
        known = set(self.queries.keys())
        missing = [query for query in pairs.texts if query not in known]
        if missing:
            raise DataError(
                f"{len(missing):,} of {len(pairs.texts):,} queries without features, the first "
                f"{missing[0]!r}; export them with their annotation file"
            )
        return Queries(pairs.query_ids, pairs.texts, self.queries, longest, self.unit)


@dataclass(frozen=True)
class Pairs:
    """Pairs of a query and a moment, as columns; every query and every moment is held once.

    Attributes:
        query_ids, texts: of Q queries.
        video: (M,) int64, the moment's row in ``videos``.
        start, end: (M,) float64 seconds.
        captions: of the M moments.
        query, moment: (P,) int64 rows.
        similarity: (P,) float32 in [0, 1], 1 where the file does not say.
        relevance: (P,) float64, 1 where the file does not say.
        left_out: how many pairs of the file are about other videos.
    """

    query_ids: tuple[str, ...]
    texts: tuple[str, ...]
    videos: tuple[str, ...]
    video: Rows
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    captions: tuple[str, ...]
    query: Rows
    moment: Rows
    similarity: Array
    relevance: NDArray[np.float64]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.query)

    @classmethod
    def read(cls, path: Path, videos: Sequence[str], *, top: int | None = None) -> Pairs:
        """Read a TVR-Ranking pair file; moments of other videos are left out.

        Args:
            path: the file.
            videos: ids, in the order of the rows that ``video`` refers to.
            top: at most so many moments a query, the first in the file; None for all.

        Raises:
            InvalidValue: no pair is left.
            DataError: a moment is malformed; file, row and field are named.
        """
        row_of = {name: row for row, name in enumerate(videos)}
        queries: dict[str, tuple[int, str]] = {}
        moments: dict[tuple[str, float, float, str], int] = {}
        taken: dict[str, int] = {}
        table: list[tuple[int, int, float, float]] = []
        left_out = 0
        for where, query_id, asked, moment in ranked_rows(path):
            row, _ = queries.setdefault(query_id, (len(queries), asked))
            name = text(moment, "video_name", where)
            if name not in row_of:
                left_out += 1
                continue
            if taken.get(query_id, 0) == top:
                continue
            taken[query_id] = taken.get(query_id, 0) + 1
            start, end = span(moment.get("timestamp"), "timestamp", where)
            if end < start:
                raise DataError(f"{where}: timestamp: [{start}, {end}] ends before it starts; correct it")
            key = (name, start, end, str(moment.get("caption", "")))
            place = moments.setdefault(key, len(moments))
            similarity = number(moment.get("similarity", 1), "similarity", where)
            relevance = number(moment.get("relevance", 1), "relevance", where)
            table.append((row, place, min(similarity, 1.0), relevance))
        if not table:
            raise InvalidValue(f"{path}: no moment of the {len(videos)} videos; are these its videos?")
        query, moment_rows, similarities, relevances = zip(*table, strict=True)
        return cls(
            query_ids=tuple(queries),
            texts=tuple(asked for _, asked in queries.values()),
            videos=tuple(videos),
            video=np.array([row_of[name] for name, *_ in moments], dtype=np.int64),
            start=np.array([start for _, start, _, _ in moments]),
            end=np.array([end for _, _, end, _ in moments]),
            captions=tuple(caption for *_, caption in moments),
            query=np.array(query, dtype=np.int64),
            moment=np.array(moment_rows, dtype=np.int64),
            similarity=np.array(similarities, dtype=np.float32),
            relevance=np.array(relevances, dtype=np.float64),
            left_out=left_out,
        )

    def of_own_videos(self) -> Pairs:
        """The same with the videos that hold a moment here alone, in their old order."""
        own, video = np.unique(self.video, return_inverse=True)
        return replace(self, videos=tuple(self.videos[row] for row in own), video=video)

    @cached_property
    def answers(self) -> sparse.csr_array:
        """(Q, M) bool, which moments answer which query."""
        ones = np.ones(len(self), dtype=bool)
        shape = (len(self.query_ids), len(self.video))
        return sparse.csr_array((ones, (self.query, self.moment)), shape=shape)

    def positives(self, rows: Rows) -> Tensor:
        """(B, B) bool: whether the moment of pair j answers the query of pair i, for B pairs."""
        chosen = self.answers[self.query[rows]][:, self.moment[rows]]
        return torch.from_numpy(chosen.toarray())

    @property
    def qrels(self) -> Qrels:
        """The same as judgements; queries without a moment here are in it, with none.

        A moment of zero length overlaps nothing, but counts as one to be found, as in the release.
        """
        return Qrels.from_columns(
            [self.query_ids[q] for q in self.query],
            [self.videos[v] for v in self.video[self.moment]],
            self.start[self.moment],
            self.end[self.moment],
            self.relevance,
            queries=list(self.query_ids),
            zero_length=True,
        )


def read_videos(choice: str) -> list[str]:
    """Ids of videos: all of a file, or ``FILE:SPLIT`` for one split of it.

    The file is a JSON list of ids; or an object whose keys are ids (video_corpus.json); or an object of
    splits, each a list of ids (gridhouse's splits.json) or an object whose keys are ids.

    Raises:
        NotFound: no such file, or no such split in it.
        DataError: the file is damaged, or names no video.
    """
    whole, colon, split = choice.rpartition(":")
    chosen = bool(colon) and not Path(choice).is_file()
    path = Path(whole if chosen else choice)
    content = read_json(path)
    if not isinstance(content, list | dict):
        raise DataError(f"{path}: a list of video ids is expected, or an object of videos")
    items = content.items() if isinstance(content, dict) else ()
    splits = {name: list(part) for name, part in items if _is_split(part)}
    if chosen and split not in splits:
        raise NotFound(f"{path}: no split {split!r}; it has {', '.join(splits) or 'none'}")
    parts = [splits[split]] if chosen else list(splits.values()) or [list(content)]
    names = list(dict.fromkeys(name for part in parts for name in part))
    if not names:
        raise DataError(f"{choice}: names no video; list the ids of those to use")
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"{path}: a list of video ids is expected, each a text")
    return names


def _is_split(part: object) -> bool:
    """Whether it holds videos, rather than ``[duration, index]`` of one."""
    return isinstance(part, dict) or (isinstance(part, list) and all(isinstance(name, str) for name in part))


def batches_by_length(lengths: Rows, size: int, draw: Generator, *, pool: int = 8) -> Iterator[Rows]:
    """Shuffled batches of rows whose lengths are alike, so that little is padded.

    Rows are shuffled, cut into pools of ``pool`` batches, sorted by length within a pool and cut into
    batches, which are shuffled again. Every row is in one batch; the last ones may be smaller.

    Args:
        lengths: (N,) int64.
        size: rows a batch.
        draw: the only source of chance.
        pool: batches a pool; 1 only shuffles.
    """
    order = draw.permutation(len(lengths))
    batches: list[Rows] = []
    for begin in range(0, len(order), pool * size):
        chunk = order[begin : begin + pool * size]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        batches += [chunk[at : at + size] for at in range(0, len(chunk), size)]
    for place in draw.permutation(len(batches)):
        yield batches[place]
