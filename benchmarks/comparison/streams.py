"""Features of two streams, pictures and the lines of a narrator, small enough for two cores.

Pictures and the tokens of queries are the library's encoder's. Lines are a sentence encoder's, brought
to as many numbers by the principal axes of the lines of the training films. A query begins with one row more:
what the sentence encoder makes of its text, on the same axes. So a query has a row in the space of each, as
queries and subtitles of TVR are both RoBERTa's; and its last row, the whole text for the pictures, is what
stage 1 and SPR_CLIP read, which know no subtitles.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.features import Computed, FeatureFolder, KeyedShards, convert, describe_folder
from moviola.library import LibrarySource
from moviola.library.disk.store import LibraryStore

__all__ = ["export_two_streams", "principal_axes", "scramble_texts"]


def export_two_streams(
    store: LibraryStore, texts: Sequence[str], out: Path, *, fitted_on: Sequence[str]
) -> FeatureFolder:
    """Write a library's features of both streams, and those of some queries, to a folder.

    Args:
        store: a library with a visual encoder and a sentence encoder, of films with subtitles.
        texts: of the queries.
        out: a new folder, see :class:`moviola.features.FeatureFolder`.
        fitted_on: ids of the videos whose lines the axes are fitted on: those for training.

    Raises:
        InvalidValue: no subtitles in its videos, or in those to fit on, or ``out`` cannot be written.
    """
    source, sentences = LibrarySource(store), store.encoders.sentences
    videos, different = source.videos(), list(dict.fromkeys(texts))
    subtitles = videos.subtitles
    if subtitles is None or sentences is None:
        raise InvalidValue(f"{store.folder}: no subtitles in its videos; film them with a narrator")
    place = videos.row_of
    rows = [subtitles.read(place[video]).astype(np.float64) for video in fitted_on]
    if not any(own.any() for own in rows):
        raise InvalidValue(
            f"{store.folder}: no subtitles in the {len(rows)} videos to fit on; give the training videos"
        )
    axes = principal_axes(rows, source.facts.query_dim)
    queries, meanings = source.queries(different, different), sentences.encode_text(different) @ axes
    row = {text: number for number, text in enumerate(different)}

    def tokens(text: str) -> NDArray[np.float32]:
        return np.concatenate([meanings[row[text]][None], queries.rows[row[text]].astype(np.float32)])

    def pictures(video: str) -> NDArray[np.float32]:
        return videos.visual.read(place[video]).astype(np.float32)

    def lines(video: str) -> NDArray[np.float32]:
        return subtitles.read(place[video]).astype(np.float32) @ axes

    convert(Computed(tuple(videos.video_ids), pictures), out / "visual")
    convert(Computed(tuple(different), tokens), out / "queries")
    convert(Computed(tuple(videos.video_ids), lines), out / "subtitles")
    durations = dict(zip(videos.video_ids, videos.durations.tolist(), strict=True))
    return describe_folder(out, source.facts, durations)


def principal_axes(subtitles: Iterable[NDArray[np.float64]], most: int) -> NDArray[np.float32]:
    """(d, most) float32, orthonormal: the directions in which lines are longest, the first the longest.

    Args:
        subtitles: (n, d) of each video, zeros where nobody speaks.
        most: axes, at most d.
    """
    gram = sum(own.T @ own for own in subtitles)
    axes: NDArray[np.float32] = np.linalg.eigh(gram)[1][:, ::-1][:, :most].astype(np.float32)
    return axes


def scramble_texts(features: FeatureFolder, out: Path, seed: int = 0) -> FeatureFolder:
    """The same features with the rows of queries turned by one rotation at random, in a new folder.

    Texts are as alike among each other as before, and as far from pictures as chance has it: what an encoder
    knows of which words go with which pictures is gone. What a sentence encoder makes of a query, its first
    row where there are subtitles, stays, as do all videos.
    """
    queries, own = KeyedShards(features.folder / "queries"), int(features.facts.subtitle_dim > 0)
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(queries.dim, queries.dim)))

    def turned(key: str) -> NDArray[np.float32]:
        rows = queries.read(key).astype(np.float32)
        rows[own:] = rows[own:] @ turn.astype(np.float32)
        return rows

    convert(Computed(queries.keys(), turned), out / "queries")
    for stream in ("visual", "subtitles")[: 1 + own]:
        shutil.copytree(features.folder / stream, out / stream, copy_function=_linked)
    return describe_folder(out, features.facts, features.durations, features.shots)


def _linked(first: str, second: str) -> None:
    Path(second).hardlink_to(first)
