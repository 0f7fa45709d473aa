"""Facets: what is counted, and that filters find what the counts promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from moviola.errors import NotFound
from moviola.library import VideoRow
from moviola.library.userdata.values import Mark
from moviola.search import LENGTHS, Filter, Library
from moviola.types import Capture, Cue

VIDEOS = {
    "holiday/beach/a": (8.0, Capture("2023-05-01T23:30:00-07:00", "tags", 52.52, 13.4, "Apple", "iPhone 15")),
    "holiday/beach/b": (30.0, Capture("2023-05-02T10:00:00", "tags", 52.52, 13.4, "Apple", "iPhone 15 Pro")),
    "holiday/city/c": (90.0, Capture("2024-01-01T00:30:00", "tags", -33.9, 151.2, "APPLE", "iPhone 15")),
    "work/deep/d": (9000.0, Capture("2019-07-04T12:00:00", "name")),
}  # fmt: skip


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library(tmp_path / "library", encoder="demo", sentence_encoder="none")
    catalogue = library.catalogue
    with library.store.writing(), catalogue.transaction():
        for place, (name, (seconds, capture)) in enumerate(VIDEOS.items()):
            cues = (
                [Cue(1.0, 2.0, "the sea")]
                if place == 0
                else [Cue(1.0, 2.0, "SEA", "text")]
                if place == 1
                else []
            )
            row = VideoRow(0, name, f"/srv/films/{name}.mp4", 1, 0, name, "", "ready", duration=seconds)
            catalogue.put_captures({catalogue.put(row, cues).row: capture})
        catalogue.put(VideoRow(0, "broken", "/srv/films/broken.mp4", 1, 0, "x", "", "refused"), [])
    return library


def chosen(library: Library, **texts: str) -> set[str]:
    videos = {video.row: video for video in library.catalogue.videos() if video.state != "refused"}
    rows = Filter.parse(**texts).rows(videos, library.catalogue, library.userdata.tagged)
    return {videos[row].video_id for row in (videos if rows is None else rows)}


def test_each_count_is_what_its_filter_finds(library: Library) -> None:
    library.userdata.mark(Mark(video_id="work/deep/d"), add=["favourite"])
    library.userdata.mark(Mark(video_id="holiday/beach/a", start=1, end=2), add=["favourite", "sea"])
    library.userdata.mark(Mark(video_id="gone"), add=["favourite", "lost"])
    counts = library.facets()
    assert counts.videos == 4
    assert counts.tags == {"favourite": 2, "sea": 1}
    for tag, number in counts.tags.items():
        assert len(chosen(library, tag=tag)) == number
    assert [(one.path, one.parent, one.videos) for one in counts.folders] == [
        ("/srv/films", "", 4),
        ("/srv/films/holiday", "/srv/films", 3),
        ("/srv/films/holiday/beach", "/srv/films/holiday", 2),
        ("/srv/films/holiday/city", "/srv/films/holiday", 1),
        ("/srv/films/work/deep", "/srv/films", 1),
    ]
    for folder in counts.folders:
        assert len(chosen(library, folder=folder.path)) == folder.videos
    assert counts.days == {"2019-07-04": 1, "2023-05-01": 1, "2023-05-02": 1, "2024-01-01": 1}
    for day, number in counts.days.items():
        assert len(chosen(library, taken=day)) == number
    assert counts.cameras == {"Apple iPhone 15": 2, "Apple iPhone 15 Pro": 1}
    for camera, number in counts.cameras.items():
        assert len(chosen(library, camera=f"={camera}")) == number
    assert [one.videos for one in counts.places] == [2, 1]
    for place in counts.places:
        near = f"{place.latitude},{place.longitude},1km"
        assert len(chosen(library, near=near)) == place.videos
    assert sum(counts.lengths) == 4 and dict(zip(LENGTHS, counts.lengths, strict=True))[30] == 1
    assert counts.evidence == {"subtitles": 1, "text": 1}


def test_several_are_any_of_them(library: Library) -> None:
    library.userdata.mark(Mark(video_id="work/deep/d"), add=["one"])
    library.userdata.mark(Mark(video_id="holiday/city/c"), add=["two"])
    assert chosen(library, tag="one\ntwo\nthree") == {"work/deep/d", "holiday/city/c"}
    assert chosen(library, tag="ONE") == {"work/deep/d"}
    folders = "/srv/films/work\n/srv/films/holiday/c*"
    assert chosen(library, folder=folders) == {"work/deep/d", "holiday/city/c"}
    with pytest.raises(NotFound, match="no video of this library"):
        chosen(library, folder="/srv/nowhere\n*.avi")
    assert chosen(library, camera="=apple iphone 15 pro\nnokia") == {"holiday/beach/b"}


def test_unknown_ones_are_named_beside_those_that_are_known(library: Library) -> None:
    with pytest.raises(
        NotFound, match=r"tag 'Beech': no video of this library bears it; no tag is known yet"
    ):
        chosen(library, tag="Beech")
    library.userdata.mark(Mark(video_id="work/deep/d"), add=["Beach", *(f"n{n:02}" for n in range(12))])
    with pytest.raises(NotFound, match=r"tag 'beech': .*; did you mean Beach\?$"):
        chosen(library, tag="beech")
    with pytest.raises(NotFound, match=r"; known ones are Beach, n00, .*, n08, 3 more$"):
        chosen(library, tag="x")
    with pytest.raises(NotFound, match=r"camera 'nokia': .* taken with it; known ones are Apple iPhone 15, "):
        chosen(library, camera="nokia")
    with pytest.raises(NotFound, match=r"camera 'aple iphone 15': .*; did you mean Apple iPhone 15, "):
        chosen(library, camera="aple iphone 15")


def test_they_follow_the_library(library: Library) -> None:
    before = library.facets()
    assert library.facets().folders is before.folders, "read once"
    library.userdata.mark(Mark(video_id="work/deep/d"), add=["new"])
    assert library.facets().tags == {"new": 1}
    library.indexer.remove(["work/deep/d"])
    after = library.facets()
    assert (after.videos, after.tags) == (3, {})


def test_thousands_of_places_are_joined(library: Library) -> None:
    catalogue = library.catalogue
    with library.store.writing(), catalogue.transaction():
        for place in range(2_500):
            row = catalogue.put(VideoRow(0, f"v{place}", f"/p/{place}", 1, 0, f"{place}", "", "ready"), [])
            catalogue.put_captures({row.row: Capture("", "", place * 0.002 - 2.5, 10.0)})
    places = library.facets().places
    assert len(places) <= 2_000 and sum(one.videos for one in places) == 2_503


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("the sea in July 2024", {"date": ("July 2024", "2024-07")}),
        ("a tram in Berlin", {"place": ("Berlin",)}),
        ("sea", {}),
        ("A tram", {}),
        ("747", {}),
    ],
)
def test_what_filters_know_better_is_said(
    library: Library, query: str, said: dict[str, tuple[str, ...]]
) -> None:
    """Dates and places are in no picture. Nothing is said of what a filter already chooses, or where no place
    is known.
    """

    def noted(**filters: str) -> dict[str, tuple[str, ...]]:
        notes = library.search(query, by="said", filter=Filter.parse(**filters)).notes
        return {note.kind: (note.about, *note.others) for note in notes if note.kind in ("date", "place")}

    assert noted() == said
    assert noted(taken="2023", near="52.52,13.4,5km") == {}
    with library.store.writing(), library.catalogue.transaction():
        library.catalogue.put_captures({video.row: Capture() for video in library.catalogue.videos()})
    assert noted() == {kind: value for kind, value in said.items() if kind != "place"}
