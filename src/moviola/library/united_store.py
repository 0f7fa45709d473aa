"""Several libraries as one store and one view, which are only read.

Features and indexes stay where they are: a question about a video goes to its library, nearest segments are
the nearest of all. What depends on all videos (how rare a word is in lines and names, what is near by chance)
is that of all, so an answer is the one of a single library that has the videos of the first, then those of
the second, and so on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from moviola.errors import EncoderMismatch, InvalidValue, LibraryError, NotFound
from moviola.features import FeatureRows, VideoFeatures
from moviola.index import Index
from moviola.index.several import SeveralIndexes
from moviola.library.derived.view import View, Viewer
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.columns import Columns, JoinedColumns
from moviola.library.disk.settings import Settings
from moviola.library.disk.store import LibraryStore
from moviola.library.disk.video_table import VideoTable
from moviola.library.near_copies import KnownCopies, NearCopies, by_certainty, known_copies, known_pairs
from moviola.library.united_catalogue import STRIDE, UnitedCatalogue, names_of
from moviola.library.userdata.concepts import Concept, concepts_of, read_concept
from moviola.retrieval.segments import segment_ids

__all__ = [
    "UnitedStore", "belongs_to_one", "concept_in", "concepts_in", "copies_in", "home_of", "near_copies_in",
    "saved_picture_in", "tags_in", "viewer_of",
]  # fmt: skip

# Settings in which libraries may differ: a format that is read all the same, how each keeps its index, and
# what its folder of a model is called, whose revision says which it is.
_OWN = {"format_version", "index", "stage1", "refiner"}


class UnitedStore(LibraryStore):
    """Libraries that are searched as one. The first gives the encoders, and the models in use.

    Args:
        parts: opened to be read, in the order in which their videos count.

    Raises:
        InvalidValue: one folder twice.
        EncoderMismatch: built with different encoders, models, segment lengths or frame rates.
    """

    catalogue: UnitedCatalogue

    def __init__(self, parts: Sequence[LibraryStore]) -> None:
        names = names_of([part.folder for part in parts])
        self.parts, first = tuple(parts), parts[0]
        self.folder, self.read_only = first.folder, True
        self._columns = first._columns
        self.catalogue = UnitedCatalogue([part.catalogue for part in parts], names)
        require_alike(self)
        self.stills, self.cache = first.stills, first.cache

    @property
    def settings(self) -> Settings:  # type: ignore[override]  # those of the first, which may be changed
        """The settings of the first, with the models in use."""
        return self.parts[0].settings

    @property
    def encoders(self) -> Any:  # type: ignore[override]
        """The encoders of the first."""
        return self.parts[0].encoders

    @property
    def models(self) -> Any:  # type: ignore[override]
        """The models in use of the first library."""
        return self.parts[0].models

    def close(self) -> None:
        """Close all."""
        for part in self.parts:
            part.close()

    def writing(self) -> NoReturn:
        """Refused: what is written belongs to one library."""
        raise InvalidValue(
            f"{', '.join(self.catalogue.names)}: searched as one, so nothing is written; open the one "
            "that is to be changed"
        )

    def refresh(self) -> None:
        """Follow what other processes have chosen since; errors as in the constructor."""
        for part in self.parts:
            part.refresh()
        require_alike(self)

    def kept_still(self, video_id: str, time: float) -> bytes | None:
        """The small still of a video; see :meth:`LibraryStore.kept_still`."""
        video = self.catalogue.video(video_id)
        return self.parts[self.catalogue.part_of(video.row)[0]].stills.nearest(video.hash, time)

    def require_outside(self, out: str | Path) -> None:
        """Refuse to write over what one of the libraries has."""
        for part in self.parts:
            part.require_outside(out)

    def searchable(self) -> VideoTable:
        """The searchable videos of all, by row number."""
        return self.united([part.searchable() for part in self.parts])

    def united(self, tables: Sequence[VideoTable]) -> VideoTable:
        """The videos of each as those of one store."""
        catalogue = self.catalogue
        named = [
            table.renamed({one: catalogue.id_of(place, one) for one in catalogue.clashes})
            for place, table in enumerate(tables)
        ]
        return VideoTable.joined({place * STRIDE: table for place, table in enumerate(named)})

    def columns_of(self, videos: VideoTable, generation: int) -> Columns:
        """The columns of the searchable videos of all."""
        parts = [part.columns_of(part.searchable(), part.catalogue.generation) for part in self.parts]
        return self.columns_among(videos, parts)

    def columns_among(self, videos: VideoTable, parts: Sequence[Columns]) -> Columns:
        """The columns of each as those of one store."""
        return JoinedColumns(self._columns, parts, videos.ids(np.arange(len(videos))))


def belongs_to_one(store: LibraryStore, what: str) -> LibraryError:
    """The error where something is asked of several libraries that only one can have; ``what``: in plural."""
    names = ", ".join(str(part.folder) for part in store.parts)
    return LibraryError(
        f"{names}: searched as one, but {what} belong to one library; open or serve that one alone"
    )


def home_of(store: LibraryStore, video: VideoRow) -> tuple[int, VideoRow]:
    """Place of the library of a video, 0 where there is one, and the video as that library has it; errors as
    in :meth:`UnitedCatalogue.own`.
    """
    return store.catalogue.own(video) if isinstance(store, UnitedStore) else (0, video)


def removed_from(store: LibraryStore, video_id: str) -> tuple[int, str]:
    """Place of the library from which a video was taken out, and its id there.

    Raises:
        NotFound: several libraries have taken out a video of that id, or none of several has.
    """
    if not isinstance(store, UnitedStore):
        return 0, video_id
    catalogue = store.catalogue
    given = {(place, video_id) for place in range(len(store.parts))}
    named = {
        (place, video_id.removeprefix(f"{name}:"))
        for place, name in enumerate(catalogue.names)
        if video_id.startswith(f"{name}:")
    }
    removed = [{one.video_id for one in part.catalogue.removed()} for part in store.parts]
    found = sorted((place, own) for place, own in given | named if own in removed[place])
    if len(found) == 1:
        return found[0]
    said = "several libraries have one" if found else "not among the removed videos"
    ids = ", ".join(f"{catalogue.names[place]}:{own}" for place, own in found)
    names = ", ".join(catalogue.names)
    raise NotFound(f"{video_id:.200}: {said}{f'; name one: {ids}' if ids else f' of {names}'}")


def require_alike(store: UnitedStore) -> None:
    """Raise :class:`EncoderMismatch` where a library differs from the first in what scores are made of."""
    first, ours = store.parts[0], store.parts[0].settings
    for part in store.parts[1:]:
        for name in (one.name for one in fields(Settings)):
            here, there = getattr(ours, name), getattr(part.settings, name)
            if name not in _OWN and here != there:
                raise EncoderMismatch(
                    f"{part.folder}: built with {name.replace('_', ' ')} {there!r}, but {first.folder} with "
                    f"{here!r}; what is searched as one has the same: `moviola library use` changes one of "
                    "them in place"
                )


def viewer_of(store: LibraryStore) -> Viewer:
    """Gives the present view of a library, or of several."""
    return UnitedViewer(store) if isinstance(store, UnitedStore) else Viewer(store)


def saved_picture_in(store: LibraryStore, name: str) -> bytes:
    """A picture of a saved search, of several libraries that of any; errors as in
    :meth:`moviola.library.userdata.entries.UserData.picture`.
    """
    from moviola.library.userdata.entries import saved_picture

    *others, last = store.parts if isinstance(store, UnitedStore) else [store]
    for part in others:
        with suppress(NotFound):
            return saved_picture(part.folder, name)
    return saved_picture(last.folder, name)


def tags_in(store: LibraryStore) -> dict[str, frozenset[str]]:
    """Ids of the videos that bear a tag, by tag; of several libraries, those of all."""
    if not isinstance(store, UnitedStore):
        from moviola.library.userdata.entries import UserData

        with closing(UserData(store.folder)) as userdata:
            return userdata.tagged()
    tagged: dict[str, frozenset[str]] = {}
    for place, part in enumerate(store.parts):
        for tag, ids in tags_in(part).items():
            own = frozenset(store.catalogue.id_of(place, one) for one in ids)
            tagged[tag] = tagged.get(tag, frozenset()) | own
    return tagged


def concepts_in(store: LibraryStore) -> list[str]:
    """Names of all concepts, of several libraries those of all, sorted."""
    return sorted({name for part in store.parts or (store,) for name in concepts_of(part.folder)})


def concept_in(
    store: LibraryStore, settings: Settings, name: str, *, of_any_encoder: bool = False
) -> Concept:
    """A concept, of several libraries that of the first which has one of its name, with the ids that videos
    have among all; errors as in :func:`moviola.library.read_concept`.
    """
    homes = store.parts or (store,)
    place = next((place for place, one in enumerate(homes) if name in concepts_of(one.folder)), 0)
    found = read_concept(homes[place].folder, settings, name, of_any_encoder=of_any_encoder)
    if not isinstance(store, UnitedStore):
        return found

    def named(moment: str) -> str:
        video_id, _, times = moment.rpartition("@")
        return f"{store.catalogue.id_of(place, video_id)}@{times}"

    wrong = None if found.wrong_moments is None else tuple(map(named, found.wrong_moments))
    return replace(found, moments=tuple(map(named, found.moments)), wrong_moments=wrong)


def copies_in(store: LibraryStore) -> KnownCopies:
    """Known copies: videos that show the same; of several libraries also those of one file."""
    if not isinstance(store, UnitedStore):
        return known_copies(store)
    by_content: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, part in enumerate(store.parts):
        for row, content, duration in part.catalogue.contents():
            by_content[content].append((row + place * STRIDE, duration))
    known = {place * STRIDE: known_copies(part) for place, part in enumerate(store.parts)}
    return KnownCopies.joined(known, (own for own in by_content.values() if len(own) > 1))


def near_copies_in(store: LibraryStore) -> list[NearCopies]:
    """Videos that are known to show the same, the surest first; of several libraries, those within each."""
    if not isinstance(store, UnitedStore):
        return known_pairs(store)
    id_of = store.catalogue.id_of
    found = []
    for place, part in enumerate(store.parts):
        for pair in known_pairs(part):
            one, other = pair.video_ids
            found.append(replace(pair, video_ids=(id_of(place, one), id_of(place, other))))
    return sorted(found, key=by_certainty)


@dataclass(frozen=True)
class UnitedView(View):
    """A consistent state of several libraries.

    Attributes:
        parts: of each.
    """

    parts: tuple[View, ...] = ()

    @cached_property
    def columns(self) -> Columns:
        assert isinstance(self.store, UnitedStore)
        return self.store.columns_among(self.videos, [part.columns for part in self.parts])

    @cached_property
    def unfinished(self) -> dict[int, tuple[str, ...]]:
        return {
            row + place * STRIDE: minutes
            for place, part in enumerate(self.parts)
            for row, minutes in part.unfinished.items()
        }


class UnitedViewer(Viewer):
    """The present view of several libraries, renewed when one has changed. Safe for threads."""

    def __init__(self, store: UnitedStore) -> None:
        super().__init__(store)
        self._united = store
        self._viewers = [Viewer(part) for part in store.parts]

    def view(self) -> View:
        """The libraries as they are now; an error of one is raised, since its videos would be missing."""
        with self._lock:
            parts = tuple(viewer.view() for viewer in self._viewers)
            view = self._view
            if not (isinstance(view, UnitedView) and all(map(_is, view.parts, parts))):
                require_alike(self._united)
                self._view = view = _united(self._united, parts)
            return view

    def next_view(self, _: View) -> None:
        """None: one that is being changed answers among others by the encoder that it has in use."""

    def forget(self) -> None:
        """Drop the views, which map files of the libraries."""
        with self._lock:
            for viewer in self._viewers:
                viewer.forget()
            self._view = None


def _is(one: object, other: object) -> bool:
    return one is other


def _united(store: UnitedStore, parts: tuple[View, ...]) -> UnitedView:
    first, videos = parts[0], store.united([part.videos for part in parts])
    features, pictures = (
        _joined_features([getattr(part, name) for part in parts], videos)
        for name in ("features", "picture_features")
    )
    segments, of_pictures, cues = (
        _joined_indexes([getattr(part, name) for part in parts]) for name in ("segments", "pictures", "cues")
    )
    return UnitedView(
        store,
        sum(part.generation for part in parts),
        first.models,
        first.encoders,
        videos,
        features,
        pictures,
        segments,
        of_pictures,
        cues,
        tuple(chain.from_iterable(part.held for part in parts)),
        {
            row + place * STRIDE: since
            for place, part in enumerate(parts)
            for row, since in part.by_key_frames.items()
        },
        parts,
    )


def _joined_indexes(indexes: Sequence[Index | None]) -> Index | None:
    there = [index for index in indexes if index is not None]
    if len(there) < len(indexes):
        return None  # none of them has its encoder
    keys = np.arange(len(there), dtype=np.int64) * STRIDE
    return SeveralIndexes(there, segment_ids(keys, np.zeros_like(keys)).tolist())


def _joined_features(parts: Sequence[VideoFeatures], videos: VideoTable) -> VideoFeatures:
    """Features of all videos with frames, of each library, read where they are."""
    ends = np.cumsum([len(part) for part in parts]).tolist()

    def rows_of(kind: str) -> Callable[[int], NDArray[np.float16]]:
        def rows(place: int) -> NDArray[np.float16]:
            part = bisect_right(ends, place)
            stored: FeatureRows = getattr(parts[part], kind)
            return stored.read(place - (ends[part - 1] if part else 0))

        return rows

    def shots(rows: Sequence[int]) -> Sequence[NDArray[np.float64]]:
        found: list[NDArray[np.float64]] = []
        for part, own in (divmod(row, STRIDE) for row in rows):
            known = parts[part].shots
            found += known([own]) if known else [np.empty(0)]
        return found

    every, subtitles = range(ends[-1]), parts[0].subtitles
    return VideoFeatures(
        video_ids=videos.ids(videos.with_frames),
        durations=np.concatenate([part.durations for part in parts]),
        clip_seconds=parts[0].clip_seconds,
        counts=np.concatenate([part.counts for part in parts]),
        visual=FeatureRows(parts[0].visual.dim, every, rows_of("visual")),
        subtitles=None if subtitles is None else FeatureRows(subtitles.dim, every, rows_of("subtitles")),
        keys=videos.rows[videos.with_frames],
        cache=_Caches(parts),
        shots=shots,
    )


@dataclass(frozen=True)
class _Caches:
    """Encodings of each library's videos in its own cache."""

    parts: Sequence[VideoFeatures]

    def get(
        self, revision: str, key: int, count: int, make: Callable[[], NDArray[np.float16]]
    ) -> NDArray[np.float16]:
        place, own = divmod(key, STRIDE)
        return self.parts[place].cache.get(revision, own, count, make)
