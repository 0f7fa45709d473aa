"""A library as a source of features for training, and its export to a folder of features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.errors import LibraryError
from moviola.features import (
    Computed,
    FeatureFolder,
    FeatureSource,
    QueryFeatures,
    SourceFacts,
    VideoFeatures,
    convert,
    describe_folder,
    new_folder,
)
from moviola.library.disk.settings import SETTINGS_FILE
from moviola.library.disk.store import LibraryStore

__all__ = ["LibrarySource", "export_features", "open_features"]


class LibrarySource:
    """Features of a library, a :class:`moviola.features.FeatureSource`: nothing is copied, and queries are
    encoded by its own encoder.

    Raises:
        LibraryError: the library has no visual encoder.
    """

    def __init__(self, store: LibraryStore) -> None:
        if not store.settings.encoder:
            raise LibraryError(
                f"{store.folder}: built without a visual encoder; there are no frames to train on"
            )
        self._store = store

    @cached_property
    def _all(self) -> VideoFeatures:
        # Models come and go during training; their encodings do not belong in the library's cache.
        features = self._store.features_of(self._store.searchable()).with_fresh_cache()
        return features if self._store.has_said() else features.without_subtitles()

    @property
    def facts(self) -> SourceFacts:
        """What a model trained on this library records of it."""
        settings = self._store.settings
        return SourceFacts(
            encoder=settings.encoder,
            encoder_revision=settings.encoder_revision,
            clip_seconds=1 / settings.frame_rate,
            segment_clips=settings.frames_per_segment,
            unit=True,
            visual_dim=settings.encoder_dim,
            subtitle_dim=self._all.subtitles.dim if self._all.subtitles else 0,
            query_dim=settings.encoder_dim,
        )

    def videos(self, video_ids: Sequence[str] | None = None) -> VideoFeatures:
        """Features of some videos, of all by default; :class:`NotFound` if one is not in the library."""
        return self._all if video_ids is None else self._all.named(video_ids)

    def queries(self, query_ids: Sequence[str], texts: Sequence[str]) -> QueryFeatures:
        """Features of queries, one row per token; errors as in the library's encoder."""
        encoder = self._store.encoders.visual
        assert encoder is not None
        different = list(dict.fromkeys(texts))
        rows = dict(zip(different, encoder.encode_tokens(different), strict=True))
        return QueryFeatures.of(query_ids, texts, [rows[text] for text in texts])


def open_features(path: str | PathLike[str]) -> FeatureSource:
    """The library or folder of features at a path; :class:`NotFound` where neither is there,
    :class:`LibraryError` or :class:`DataError` where it is damaged.
    """
    folder = Path(path)
    if (folder / SETTINGS_FILE).is_file():
        return LibrarySource(LibraryStore(folder, read_only=True))
    return FeatureFolder.open(folder)


def export_features(store: LibraryStore, texts: Sequence[str], out: str | Path) -> FeatureFolder:
    """Export a library's features, and those of some queries by text, to a new folder independent of the
    library, see :class:`moviola.features.FeatureFolder`.

    Raises:
        InvalidValue: ``out`` holds something.
        LibraryError: the library has no visual encoder.
    """
    out = Path(out)
    with new_folder(out):
        source = LibrarySource(store)
        features, different = source.videos(), list(dict.fromkeys(texts))
        queries = source.queries(different, different)

        def export(name: str, keys: Sequence[str], read: Callable[[int], NDArray[np.float16]]) -> None:
            place = {key: number for number, key in enumerate(keys)}
            convert(Computed(tuple(keys), lambda key: read(place[key]).astype(np.float32)), out / name)

        export("visual", features.video_ids, features.visual.read)
        if features.subtitles is not None:
            export("subtitles", features.video_ids, features.subtitles.read)
        export("queries", different, queries.rows.__getitem__)
        durations = dict(zip(features.video_ids, features.durations.tolist(), strict=True))
        return describe_folder(out, source.facts, durations, _shots(features))


def _shots(features: VideoFeatures) -> dict[str, list[float]]:
    """Start times of the shots of each video that has several."""
    offsets, edges = features.shot_edges_of(np.arange(len(features)))
    bounds = zip(offsets[:-1].tolist(), (offsets[1:] - 1).tolist(), strict=True)
    starts = [edges[first:last].tolist() for first, last in bounds]
    return {name: own for name, own in zip(features.video_ids, starts, strict=True) if len(own) > 1}
