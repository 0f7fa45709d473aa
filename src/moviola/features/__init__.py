"""The feature store: memory-mapped half-precision rows, with one interface for all readers.

:class:`FeatureShards` holds rows on disk; a library writes them (``moviola.library``), and :func:`convert`
makes them from published files. Retrieval and training read :class:`VideoFeatures` and
:class:`QueryFeatures`; their source is a :class:`FeatureSource`: a library, or a :class:`FeatureFolder`.

Examples:
    >>> import numpy as np
    >>> from moviola.features import Computed, convert
    >>> rows = {"beach": np.eye(3, 4, dtype=np.float32), "harbour": np.ones((2, 4), np.float32)}
    >>> stored = convert(Computed(tuple(rows), rows.__getitem__), "features")
    >>> stored.keys(), stored.read("beach").shape
    (('beach', 'harbour'), (3, 4))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.first_use import on_first_use

if TYPE_CHECKING:
    from moviola.features.cache import EncodingCache, MemoryCache
    from moviola.features.folder import FeatureFolder, describe_folder
    from moviola.features.published import Computed, FeatureFiles, convert, new_folder, open_features
    from moviola.features.queries import MAX_TOKENS, QueryFeatures
    from moviola.features.shards import Extent, FeatureShards, KeyedShards, MappedShard
    from moviola.features.source import FeatureSource, SourceFacts
    from moviola.features.videos import (
        FeatureRows,
        Integers,
        VideoFeatures,
        clips_by_video,
        normalise_rows,
        place_in,
    )

__all__ = [
    "MAX_TOKENS", "Computed", "EncodingCache", "Extent", "FeatureFiles", "FeatureFolder", "FeatureRows",
    "FeatureShards", "FeatureSource", "Integers", "KeyedShards", "MappedShard", "MemoryCache",
    "QueryFeatures", "SourceFacts", "VideoFeatures", "clips_by_video", "convert", "describe_folder",
    "new_folder", "normalise_rows", "open_features", "place_in",
]  # fmt: skip

__getattr__ = on_first_use(
    __name__,
    {
        "cache": ("EncodingCache", "MemoryCache"),
        "folder": ("FeatureFolder", "describe_folder"),
        "published": ("Computed", "FeatureFiles", "convert", "new_folder", "open_features"),
        "queries": ("MAX_TOKENS", "QueryFeatures"),
        "shards": ("Extent", "FeatureShards", "KeyedShards", "MappedShard"),
        "source": ("FeatureSource", "SourceFacts"),
        "videos": (
            "FeatureRows", "Integers", "VideoFeatures", "clips_by_video", "normalise_rows", "place_in",
        ),
    },
)  # fmt: skip
