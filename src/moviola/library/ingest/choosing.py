"""Another choice of what a library that exists is searched by: trained models, and the sentence encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from moviola.errors import InvalidValue
from moviola.features import Extent, FeatureShards
from moviola.library.disk.encoders_in_use import LibraryEncoders, settings_of_sentences
from moviola.library.disk.models_in_use import (
    ROLES,
    check_fits,
    copy_into,
    discard_others,
    reads_subtitles,
    source_of,
)
from moviola.library.disk.settings import Settings
from moviola.library.disk.store import LibraryStore

__all__ = ["use_models", "use_sentences"]


def use_models(store: LibraryStore, chosen: Mapping[str, str | PathLike[str]], *, force: bool) -> None:
    """Put trained models in use, by role, under the write lock; see :meth:`moviola.library.Indexer.use`."""
    sources = {role: source_of(role, source) for role, source in chosen.items()}
    trained = {role: source for role, source in sources.items() if source is not None}
    for role, source in trained.items():
        check_fits(role, source, store.settings, force=force)
    changes: dict[str, Any] = {key: "" for role in chosen for key in (role, f"{role}_revision")}
    for role, source in trained.items():
        changes |= copy_into(store.folder, role, source)
    store.choose(replace(store.settings, **changes))
    discard_others(store.folder, store.settings)


def use_sentences(store: LibraryStore, name: str) -> int:
    """Encode all cues by another sentence encoder, under the write lock; returns how many. Nothing where it
    is in use. See :meth:`moviola.library.Indexer.use_sentence_encoder`.

    The vectors go to new shards. Extents, settings and what is kept of removed videos change in one
    transaction, before ``moviola.toml``, which follows the catalogue in this; readers that have the old
    shards open keep them.
    """
    settings = replace(store.settings, **settings_of_sentences(name, store.encoders.device))
    if settings == store.settings:
        return 0
    _require_no_reader_of_subtitles(store)
    catalogue = store.catalogue
    # Numbers are never used again: readers may still have the shards that bore them.
    old = store.cue_features
    first = max([*old.shards(), catalogue.feature_end("cues")[0]]) + 1
    try:
        extents, end, count = _encoded(store, settings, first)
        with catalogue.transaction():
            for video in catalogue.videos():
                catalogue.relocate(video.row, video.frames, extents.get(video.row))
            catalogue.set_feature_end("cues", *end)
            catalogue.leave_cues_of_removed()
            catalogue.put_settings(settings)
        store.choose(settings)
    finally:
        old.delete_unused(first, catalogue.feature_end("cues")[0])
    return count


def _encoded(
    store: LibraryStore, settings: Settings, shard: int
) -> tuple[dict[int, Extent], tuple[int, int], int]:
    """Vectors of the cues of all videos in shards from a number on: places by row number, the end of the
    last, and how many.
    """
    extents: dict[int, Extent] = {}
    end, count = (shard, 0), 0
    if not settings.sentence_encoder:
        return extents, end, count
    encoders = LibraryEncoders(store.folder, settings, store.encoders.device, "auto", resident=False)
    shards = FeatureShards(store.folder / "features", "cues", settings.sentence_dim)
    try:
        for video in store.catalogue.videos():
            store.require_in_place()
            rows = encoders.sentence_rows(store.catalogue.cues(video.row))
            if rows is not None:
                extents[video.row] = extent = shards.append(rows, end)
                end, count = (extent.shard, extent.offset + extent.count), count + len(rows)
    finally:
        shards.close()
    return extents, end, count


def _require_no_reader_of_subtitles(store: LibraryStore) -> None:
    for role in ROLES:
        if reads_subtitles(Path(store.folder), role, store.settings):
            raise InvalidValue(
                f"{store.folder}: the {role} in use reads subtitles as {store.settings.sentence_encoder} "
                f"encodes them; `moviola library use --{role} none` first"
            )
