"""Facets: how the videos of a library are spread over what filters choose by.

Each value is written so that :class:`moviola.search.Filter` takes it: a folder's path, a day, a camera after
``=``, a tag. Counts are of videos that can be searched, and do not depend on a query.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from moviola.library import LibraryStore, VideoRow, names_in, taken_of
from moviola.search.options import KINDS, By
from moviola.types import Capture

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
        places: likewise.
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


def count_facets(store: LibraryStore) -> tuple[FacetCounts, frozenset[str]]:
    """The facets of a library without tags, and the ids of its searchable videos."""
    with store.catalogue.snapshot():
        videos = [video for video in store.catalogue.videos() if video.state != "refused"]
        return _count(store, videos), frozenset(video.video_id for video in videos)


def with_tags(counts: FacetCounts, ids: Collection[str], tagged: Mapping[str, Iterable[str]]) -> FacetCounts:
    """Facets with the numbers of videos, of these ids, that bear each tag; ``tagged``: ids by tag."""
    tags = {tag: sum(video in ids for video in videos) for tag, videos in tagged.items()}
    return replace(counts, tags=_most_first({tag: count for tag, count in tags.items() if count}))


def _count(store: LibraryStore, videos: Sequence[VideoRow]) -> FacetCounts:
    captures = store.catalogue.captures()
    folders = {video.row: {PurePath(video.path).parent} for video in videos}
    for copy in store.catalogue.copies():
        if copy.video in folders:
            folders[copy.video].add(PurePath(copy.path).parent)
    days: Counter[str] = Counter()
    cameras: Counter[str] = Counter()
    points: list[tuple[float, float]] = []
    lengths = [0] * len(LENGTHS)
    for video in videos:
        capture = captures.get(video.row, Capture())
        days[taken_of(video, capture).wall.date().isoformat()] += 1
        lengths[bisect_right(LENGTHS, video.duration) - 1] += 1
        cameras[capture.camera] += 1
        if capture.latitude is not None and capture.longitude is not None:
            points.append((capture.latitude, capture.longitude))
    del cameras[""]
    for digits in _DIGITS:
        places = Counter((round(north, digits), round(east, digits)) for north, east in points)
        if len(places) <= _MOST_PLACES:
            break
    return FacetCounts(
        videos=len(videos),
        folders=_folder_counts(folders.values()),
        days=dict(sorted(days.items())),
        lengths=tuple(lengths),
        cameras=_most_first(_without_case(cameras)),
        places=tuple(PlaceCount(*place, count) for place, count in places.most_common()),
        tags={},
        evidence=_evidence(store, videos),
    )


def _evidence(store: LibraryStore, videos: Sequence[VideoRow]) -> dict[By, int]:
    """Number of videos by kind of evidence, without ``all`` and what no video has."""
    cues = store.catalogue.videos_with_cues()
    pictured = sum(video.frames is not None for video in videos)
    counts: dict[By, int] = {"visual": pictured if store.settings.encoder else 0}
    counts |= {by: cues[kinds[0]] for by, kinds in KINDS.items() if len(kinds) == 1}
    names = names_in(store, store.catalogue.generation, {one.row: one for one in videos})
    counts["named"] = names.distinguishable
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


def _folder_counts(places: Iterable[Iterable[PurePath]]) -> tuple[FolderCount, ...]:
    """Folders that hold videos or several folders, each with its videos; one video may lie in several."""
    counts: Counter[PurePath] = Counter()
    own: set[PurePath] = set()
    for folders in places:
        own.update(folders)
        counts.update({above for folder in folders for above in (folder, *folder.parents)})
    children = Counter(folder.parent for folder in counts if folder != folder.parent)
    listed = {folder for folder in counts if folder in own or children[folder] > 1}
    found = []
    for folder in sorted(listed):
        above = (str(one) for one in folder.parents if one in listed and one != folder)
        found.append(FolderCount(str(folder), next(above, ""), counts[folder]))
    return tuple(found)
