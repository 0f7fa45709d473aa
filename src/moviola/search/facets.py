"""Facets: how the videos of a library are spread over what filters choose by.

Each value is written so that :class:`moviola.search.Filter` takes it: a folder's path, a day, a camera after
``=``, a tag. Counts are of videos that can be searched, and do not depend on a query.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.features import Integers
from moviola.library import LibraryStore, descriptions_in, names_in
from moviola.search.clocks import days
from moviola.search.options import KINDS, By

if TYPE_CHECKING:
    from moviola.library.disk.columns import Columns
    from moviola.library.disk.kinds import Routes, TextValues
    from moviola.library.disk.video_table import VideoTable

__all__ = ["LENGTHS", "FacetCounts", "FolderCount", "PlaceCount", "count_facets", "with_tags"]

LENGTHS = (0, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
"""Lengths in seconds at which classes of videos begin."""
# Digits behind the point of degrees, from some hundred metres to some hundred kilometres; and how many places
# are listed before they are joined.
_DIGITS, _MOST_PLACES = (3, 2, 1, 0), 2_000


@dataclass(frozen=True, slots=True)
class FolderCount:
    """A folder of videos.

    Attributes:
        parent: path of the folder above it that is listed; empty at the top.
        videos: number in it and below.
    """

    path: str
    parent: str
    videos: int


@dataclass(frozen=True, slots=True)
class PlaceCount:
    """Videos by place: degrees north and east, rounded to a thousandth, to less where there are thousands."""

    latitude: float
    longitude: float
    videos: int


@dataclass(frozen=True, slots=True)
class FacetCounts:
    """Numbers of videos by what filters choose by.

    Attributes:
        folders: by path. A folder that holds nothing but one folder is left out.
        days: by the local day on which they were taken, ``2024-05-01``, in order.
        lengths: in the classes of :data:`LENGTHS`.
        cameras: by make and model, most videos first; unknown ones are not counted.
        places: most videos first; unknown ones are not counted.
        tags: by tag, also those on moments; most videos first.
        evidence: by kind of evidence that a search can go by, as far as the library has it.
    """

    videos: int
    folders: tuple[FolderCount, ...]
    days: Mapping[str, int]
    lengths: tuple[int, ...]
    cameras: Mapping[str, int]
    places: tuple[PlaceCount, ...]
    tags: Mapping[str, int]
    evidence: Mapping[By, int]


def count_facets(store: LibraryStore) -> tuple[FacetCounts, TextValues]:
    """The facets of a library without tags, and the ids of its searchable videos."""
    with store.catalogue.snapshot():
        generation, videos = store.catalogue.generation, store.searchable()
        columns = store.columns_of(videos, generation)
        return _count(store, videos, generation, columns), columns["tag"]


def with_tags(counts: FacetCounts, ids: TextValues, tagged: Mapping[str, Collection[str]]) -> FacetCounts:
    """Facets with the numbers of videos, of these ids, that bear each tag; ``tagged``: ids by tag."""
    return replace(counts, tags=_most_first(+ids.tagged(tagged).counts()))


def _count(store: LibraryStore, videos: VideoTable, generation: int, columns: Columns) -> FacetCounts:
    # Of equally frequent ones the first in the order of ids.
    by_id = columns["tag"].videos
    classes = np.searchsorted(LENGTHS, columns["video_length"], side="right") - 1
    return FacetCounts(
        videos=len(videos),
        folders=_folder_counts(columns["folder"]),
        days=days(columns["taken"]),
        lengths=tuple(np.bincount(classes, minlength=len(LENGTHS)).tolist()),
        cameras=_most_first(_without_case(columns["camera"].counts(by_id))),
        places=_place_counts(columns["near"], by_id),
        tags={},
        evidence=_evidence(store, videos, generation),
    )


def _place_counts(routes: Routes, by_id: Integers) -> tuple[PlaceCount, ...]:
    turns = np.argsort(by_id)[routes.videos]
    order = np.argsort(turns, kind="stable")
    known = [
        (turn, *point)
        for turn, point in zip(turns[order].tolist(), routes.points[order].tolist(), strict=True)
    ]
    for digits in _DIGITS:  # a film that moves counts once at each place
        passed = dict.fromkeys(
            (turn, round(north, digits), round(east, digits)) for turn, north, east in known
        )
        places = Counter((north, east) for _, north, east in passed)
        if len(places) <= _MOST_PLACES:
            break
    return tuple(PlaceCount(*place, count) for place, count in places.most_common())


def _evidence(store: LibraryStore, videos: VideoTable, generation: int) -> dict[By, int]:
    """Number of videos by kind of evidence, without ``all`` and what no video has."""
    cues = store.catalogue.videos_with_cues()
    counts: dict[By, int] = {"visual": len(videos.with_frames) if store.settings.encoder else 0}
    counts |= {by: cues[kinds[0]] for by, kinds in KINDS.items() if len(kinds) == 1}
    counts["sound"] = len(store.catalogue.sounds_read()) if store.settings.sentence_encoder else 0
    tables = names_in(store, generation, videos), descriptions_in(store, generation, videos)
    counts["named"] = len(set().union(*(table.distinguished() for table in tables)))
    return {by: count for by, count in counts.items() if count}


def _without_case(counts: Counter[str]) -> Counter[str]:
    """Counts under the most frequent spelling of each name: filters ignore case."""
    spelling: dict[str, str] = {}
    joined: Counter[str] = Counter()
    for name, count in counts.most_common():
        joined[spelling.setdefault(name.casefold(), name)] += count
    return joined


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0].casefold())))


def _folder_counts(paths: TextValues) -> tuple[FolderCount, ...]:
    """Folders that hold videos or several folders, each with its videos; one video may lie in several."""
    names = list(map(os.path.dirname, paths.texts))
    number = {name: place for place, name in enumerate(dict.fromkeys(names))}
    folders = np.array([number[name] for name in names], np.int64)[paths.numbers]
    ends = np.cumsum(np.bincount(folders, minlength=len(number)))
    own = np.split(paths.videos[np.argsort(folders, kind="stable")], ends[:-1])
    below: dict[PurePath, list[NDArray[np.int32]]] = defaultdict(list)
    for folder, videos in zip(map(PurePath, number), own, strict=False):
        for above in (folder, *folder.parents):
            below[above].append(videos)
    holding = set(map(PurePath, number))
    children = Counter(folder.parent for folder in below if folder != folder.parent)
    listed = {folder for folder in below if folder in holding or children[folder] > 1}
    found = []
    for folder in sorted(listed):
        parent = next((str(one) for one in folder.parents if one in listed and one != folder), "")
        found.append(FolderCount(str(folder), parent, len(np.unique(np.concatenate(below[folder])))))
    return tuple(found)
