"""Consistent views of a library for searching."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock

from moviola.features import MappedShard, VideoFeatures
from moviola.files.mapped import all_whole
from moviola.index import Index
from moviola.library.derived.indexes import INDEXES, current_index
from moviola.library.derived.name_table import NameTable, descriptions_in, names_in
from moviola.library.disk.columns import Columns
from moviola.library.disk.encoders_in_use import LibraryEncoders
from moviola.library.disk.other_frames import OtherExtent
from moviola.library.disk.searching_models import ModelsInUse
from moviola.library.disk.settings import Settings
from moviola.library.disk.store import LibraryStore
from moviola.library.disk.unfinished import how_far, minutes_in
from moviola.library.disk.video_table import VideoTable

__all__ = ["View", "Viewer"]


@dataclass(frozen=True)
class View:
    """A consistent state of a library.

    Attributes:
        store: the library.
        generation: that of its catalogue.
        models: in use at that time, for which the indexes were made.
        encoders: in use at that time.
        videos: the searchable ones.
        features: of the videos with frames, by rising row number, which are its ``keys``.
        picture_features: the same with the features of likeness appended.
        segments, pictures, cues: :data:`moviola.library.derived.indexes.INDEXES`; None without an encoder.
        held: features as they were then, which a compaction may delete meanwhile.
        by_key_frames: of videos that are known by their key frames alone, the second from which on, by row
            number.
    """

    store: LibraryStore
    generation: int
    models: ModelsInUse
    encoders: LibraryEncoders
    videos: VideoTable
    features: VideoFeatures
    picture_features: VideoFeatures
    segments: Index | None
    pictures: Index | None
    cues: Index | None
    held: tuple[MappedShard, ...]
    by_key_frames: Mapping[int, float]

    @property
    def settings(self) -> Settings:
        return self.models.settings

    @cached_property
    def columns(self) -> Columns:
        """What filters choose by."""
        return self.store.columns_of(self.videos, self.generation)

    @cached_property
    def unfinished(self) -> dict[int, tuple[str, ...]]:
        """Of the videos of which only some parts are in, by row number: minutes that are in, and all."""
        known = self.store.catalogue.unfinished()
        rows = self.store.catalogue.rows_with(known)
        return {
            row: minutes_in(*known[content])
            for content, own in rows.items()
            for row in own
            if row in self.videos and self.videos[row].error == how_far(*known[content])
        }

    @cached_property
    def names(self) -> NameTable:
        """Words and meanings of the names of the videos' files."""
        return names_in(self.store, self.generation, self.videos)

    @cached_property
    def descriptions(self) -> NameTable:
        """Words of what the files say of their videos beside titles."""
        return descriptions_in(self.store, self.generation, self.videos)


class Viewer:
    """The present view of a library, renewed when the library has changed. Safe for threads."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._lock = RLock()
        self._view: View | None = None
        self._next: tuple[LibraryStore, Mapping[int, OtherExtent], View, View] | None = None

    def view(self) -> View:
        """The library as it is now. Indexes that lag behind the catalogue are completed in memory."""
        with self._lock:
            store, view = self._store, self._view
            now = store.catalogue.generation, store.settings
            # What was cut short is opened again, and then refused, or left out where it can be made again.
            if view is None or (view.generation, view.settings) != now or not all_whole(store.folder):
                view = self._view = self._made()
            return view

    def next_view(self, view: View) -> View | None:
        """A view as the library will be when a change of encoder is done, with pictures of the videos that
        have features by the new encoder; None where searches answer by the one in use alone.
        """
        with self._lock:
            found = self._store.catalogue.made_for_both()
            if found is None:
                self._next = None
                return None
            target, made = found
            store, known, beside, shown = self._next or (None, {}, None, None)
            if store is None or store.settings.pictures_key != target.pictures_key:
                store, shown = self._store.with_pictures_of(target), None
            if shown is None or known != made or beside is not view:
                shown = _with_pictures(view, store, made, shown)
            self._next = None if shown is None else (store, made, view, shown)
            return shown

    def shows(self, view: View) -> bool:
        """Whether a view is one of the present ones."""
        return view is self._view or (self._next is not None and view is self._next[3])

    def forget(self) -> None:
        """Drop the views, which map files of the library."""
        with self._lock:
            self._view = self._next = None

    def _made(self) -> View:
        store = self._store
        while True:
            with store.catalogue.snapshot():
                generation, videos = store.catalogue.generation, store.searchable()
                by_key_frames = store.catalogue.by_key_frames()
                store.follow_encoders()
                models, encoders = store.models, store.encoders
            held = store.frame_features.hold(videos.frames), store.cue_features.hold(videos.cues)
            # A compaction may just have moved what is missing; if none has, it is damage.
            if None in held and store.catalogue.generation != generation:
                continue
            segments, pictures, cues = (current_index(store, name, videos)[0] for name in INDEXES)
            features, picture_features = (store.features_of(videos, pictures=both) for both in (False, True))
            mapped = tuple(rows for maps in held for rows in maps or ())
            view = View(
                store,
                generation,
                models,
                encoders,
                videos,
                features,
                picture_features,
                segments,
                pictures,
                cues,
                mapped,
                by_key_frames,
            )
            # Other models may have come into use meanwhile, for which some of the indexes are then.
            if view.settings == store.settings:
                return view


def _with_pictures(
    view: View, store: LibraryStore, made: Mapping[int, OtherExtent], before: View | None
) -> View | None:
    """A view with other pictures, those of ``made``, and with nothing else changed; None where the features
    cannot be read. Its indexes are copies of those of the view before, completed.
    """
    shown = (
        replace(video, frames=made[row].extent if row in made else None) for row, video in view.videos.items()
    )
    videos = VideoTable.of(shown)
    held = store.frame_features.hold(videos.frames)
    if held is None:  # a change that has just been given up
        return None
    # Copies, since searches of other threads go on in those of the view before.
    known = (None, None) if before is None else deepcopy((before.segments, before.pictures))
    segments, pictures = (
        current_index(store, name, videos, index=index, published=False)[0]
        for name, index in zip(("segments", "pictures"), known, strict=True)
    )
    features, picture_features = (store.features_of(videos, pictures=both) for both in (False, True))
    return replace(
        view, models=store.models, encoders=store.encoders, videos=videos, features=features,
        picture_features=picture_features, segments=segments, pictures=pictures, held=(*view.held, *held),
    )  # fmt: skip
