"""When and where videos were taken, as a library keeps it and searches by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from made_films import Pictures, make_film
from moviola.errors import InvalidValue
from moviola.library import VideoRow, taken_of
from moviola.search import Filter, Library
from moviola.search.filters import Near
from moviola.types import Capture


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine's zone."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


CAPTURES = {
    "a": Capture("2023-05-01T23:30:00-07:00", "tags", 37.77, -122.42, "Apple", "iPhone 15"),
    "b": Capture("2023-12-31T23:30:00+00:00", "container", 52.52, 13.405, "Samsung", "SM-S911B"),
    "d": Capture("2019-07-04", "name"),
}


@pytest.fixture
def dated(library: Library) -> Library:
    """The library with dates and places; the file of ``deep/c`` says nothing."""
    rows = {video.video_id: video.row for video in library.catalogue.videos()}
    with library.catalogue.transaction():
        library.catalogue.put_captures({rows[name]: capture for name, capture in CAPTURES.items()})
    return library


def chosen(library: Library, **wanted: str) -> list[str]:
    found = Filter.parse(**wanted).rows(library.store.searchable(), library.catalogue)  # type: ignore[arg-type]
    names = {video.row: video.video_id for video in library.catalogue.videos()}
    return sorted(names[row] for row in names if found is None or row in found)


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("taken", "found"),
    [
        ("2021..2023-05", ["a"]),
        ("2023-05-01", ["a"]),
        ("2023-05-02", []),
        ("2023-05-02T06:30+00:00..2023-05-02T06:31+00:00", ["a"]),
        ("2024-01-01", ["b"]),
        ("..2019", ["d"]),
        ("2019-07..2024", ["a", "b", "d"]),
    ],
)
def test_times_are_those_on_the_spot(dated: Library, taken: str, found: list[str]) -> None:
    assert [video for video in chosen(dated, taken=taken) if video != "deep/c"] == found


def test_a_file_that_says_nothing_has_the_time_of_its_change(dated: Library) -> None:
    video = dated.catalogue.video("deep/c")
    taken = taken_of(video, Capture())
    assert (taken.source, taken.zone) == ("file", "utc")
    assert taken.instant.timestamp() == pytest.approx(video.mtime_ns / 1e9)
    assert chosen(dated, taken=taken.wall.strftime("%Y-%m-%dT%H:%M:%S.%f")) == ["deep/c"]


@pytest.mark.usefixtures("berlin")
def test_zones_are_said() -> None:
    video = VideoRow(1, "a", "/a.mp4", 1, 0, "", "", "ready")
    assert str(taken_of(video, CAPTURES["a"])) == "2023-05-01T23:30:00-07:00"
    assert str(taken_of(video, CAPTURES["b"])) == "2024-01-01T00:30:00+01:00"
    assert str(taken_of(video, CAPTURES["d"])) == "2019-07-04T00:00:00"
    meeting = Capture("2023-05-01T23:30:00+00:00", "name")
    assert str(taken_of(video, meeting)) == "2023-05-02T01:30:00+02:00"
    assert str(taken_of(video, Capture())) == "1970-01-01T01:00:00+01:00"


def test_places_and_cameras(dated: Library) -> None:
    assert chosen(dated, near="52.5,13.4,5km") == ["b"]
    assert chosen(dated, near="52.5,13.4") == []
    assert chosen(dated, near="52.52,13.405,10m") == ["b"]
    assert chosen(dated, near="0,0,20016km") == ["a", "b"]
    assert chosen(dated, camera="IPHONE") == ["a"]
    assert chosen(dated, camera="samsung*") == ["b"]
    assert chosen(dated, camera="iphone", near="52.5,13.4,5km") == []
    found = dated.search("a wall", filter=Filter.parse(camera="iphone"))
    assert {moment.video_id for moment in found} == {"a"}


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("near", "Berlin"), ("near", "91,0,1km"), ("near", "1,2,0km"), ("taken", "2023-13"),
        ("taken", "yesterday"), ("taken", "2023..2021"), ("taken", "2023-02-30"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(field: str, text: str) -> None:
    with pytest.raises(InvalidValue, match=field):
        Filter.parse(**{field: text})


TELEMETRY = """{n}
00:00:{n:02},000 --> 00:00:{n:02},900
<font size="28">FrameCnt: {n}, DiffTime: 33ms
2024-05-21 14:23:{n:02}.000
[iso: 100] [shutter: 1/1000.0] [fnum: 1.7] [latitude: {north}] [longitude: {east}] [abs_alt: 2.0] </font>

"""


def test_what_a_drone_notes_is_when_and_where_a_film_was_taken(
    tmp_path: Path, opened: Callable[..., Library]
) -> None:
    """Its telemetry was known as such, and then forgotten; what the film itself says counts more."""
    said = "".join(
        TELEMETRY.format(n=n, north=[0.0, 48.2, 48.3][n], east=[0.0, 16.37, 16.38][n]) for n in range(3)
    )
    for name, tags in {"late": {}, "DJI_0001": {}, "tagged": {"location": "+10.0+020.0/"}}.items():
        make_film(tmp_path / "films" / f"{name}.mov", Pictures(3.0 + len(name) / 5), tags=tags)
        if name != "late":
            (tmp_path / "films" / f"{name}.SRT").write_text(said)
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(tmp_path / "films")
    (tmp_path / "films" / "late.SRT").write_text(said)
    library.index(tmp_path / "films")
    rows = {video.video_id: video.row for video in library.catalogue.videos()}
    for name in ("DJI_0001", "late"):
        noted = Capture("2024-05-21T14:23:00", "tags", 48.2, 16.37)
        assert library.catalogue.capture(rows[name]) == noted, name
    tagged = library.catalogue.capture(rows["tagged"])
    assert (tagged.taken, tagged.latitude, tagged.longitude) == ("2024-05-21T14:23:00", 10.0, 20.0)
    assert not any(library.catalogue.cues(row) for row in rows.values())


def test_distances_on_the_ground() -> None:
    """Paris to London: 343.5 km of great circle."""
    paris = Capture(latitude=48.8566, longitude=2.3522)
    assert Near(51.5074, -0.1278, 344_000).holds(paris) and not Near(51.5074, -0.1278, 343_000).holds(paris)
    assert Near(0, 179.999, 1000).holds(Capture(latitude=0.0, longitude=-179.999))
    assert not Near(0, 0, 1e6).holds(Capture())


def test_files_are_read_once_and_with_the_next_run(
    library: Library, films: Path, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of before gets what its files say without any encoding."""
    film(films / "IMG_20230501_143000.mp4", 3, seed=7)
    library.index(films)
    row = library.catalogue.video("IMG_20230501_143000").row
    assert library.catalogue.capture(row).taken == "2023-05-01T14:30:00"
    with library.catalogue.transaction():
        library.catalogue._rows("DELETE FROM captures")
    library.index(films)
    assert library.catalogue.capture(row).taken == "2023-05-01T14:30:00"
    monkeypatch.setattr("moviola.library.ingest.frame_features.read_facts", None)
    (films / "a.mp4").rename(films / "moved.mp4")
    library.index(films)
    (films / "d.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nOther words.\n")
    library.index(films)
    assert len(library.catalogue.captures()) == 5


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("zone", "taken"),
    [
        ("HERO9 Black=Asia/Tokyo", "2023-07-01T14:30:00+09:00"),
        ("gopro hero9 BLACK=-03:30", "2023-07-01T14:30:00-03:30"),
        ("HERO9 Black=America/New_York", "2023-07-01T14:30:00-04:00"),
        ("HERO9 Black=utc", "2023-07-01T14:30:00+00:00"),
        ("HERO8 Black=Asia/Tokyo", "2023-07-01T16:30:00+02:00"),
        ("HERO9=Asia/Tokyo", "2023-07-01T16:30:00+02:00"),
    ],
)
def test_the_clock_of_a_camera_has_the_zone_that_is_given(
    library: Library, films: Path, zone: str, taken: str
) -> None:
    """Cameras write their clock as if it were universal time. By the whole model: HERO9 is another camera."""
    row = library.catalogue.video("a").row
    hero = Capture("2023-07-01T14:30:00+00:00", "container", None, None, "GoPro", "HERO9 Black")
    with library.catalogue.transaction():
        library.catalogue.put_captures({row: hero})
    report = library.index(films, camera_zones=[zone])
    assert str(taken_of(library.catalogue.video("a"), library.catalogue.capture(row))) == taken
    assert report.unknown_cameras == ([] if "hero9 black" in zone.lower() else [zone.partition("=")[0]])


def test_a_zone_stays_for_later_videos_and_moves_filters(
    library: Library, films: Path, film: Callable[..., Path]
) -> None:
    """Times with a zone of their own, of satellites and days alone stay; an empty zone takes it back."""
    hero = Capture("2023-07-01T23:30:00+00:00", "container", None, None, "GoPro", "HERO9")
    captures = {
        "a": hero,
        "b": Capture("2023-07-01T23:30:00+02:00", "tags", None, None, "GoPro", "HERO9"),
        "d": Capture("2023-07-01T23:30:00+00:00", "satellites", None, None, "GoPro", "HERO9"),
        "deep/c": Capture("2023-07-01", "name", None, None, "GoPro", "HERO9"),
    }
    rows = {name: library.catalogue.video(name).row for name in captures}
    with library.catalogue.transaction():
        library.catalogue.put_captures({rows[name]: capture for name, capture in captures.items()})
    library.index(films, camera_zones=["hero9=Asia/Tokyo"])
    library.index(films)
    later = make_film(films / "later.mkv", Pictures(2.0), tags={"MAKE": "GoPro", "MODEL": "HERO9"})
    later.rename(films / "2023-07-01T23.30.00.mkv")
    library.index(films)
    row = library.catalogue.video("2023-07-01T23.30.00").row
    now = library.catalogue.captures()
    assert now[row] == Capture("2023-07-01T23:30:00+09:00", "zone", None, None, "GoPro", "HERO9")
    assert now[rows["a"]].taken == "2023-07-01T23:30:00+09:00"
    assert all(now[rows[name]] == captures[name] for name in ("b", "d", "deep/c"))
    assert chosen(library, taken="2023-07-01T14:29+00:00..2023-07-01T14:31+00:00") == [
        "2023-07-01T23.30.00", "a"
    ]  # fmt: skip
    assert library.facets().days["2023-07-01"] >= 3
    library.index(films, camera_zones=["HERO9="])
    assert library.catalogue.capture(rows["a"]) == hero and library.catalogue.camera_zones() == []


@pytest.mark.parametrize(
    "text",
    ["Europe/Berlin", "=Europe/Berlin", "HERO9=Europe/Atlantis", "HERO9=+25:00", "HERO9=../../etc/passwd"],
)
def test_a_zone_that_is_none_is_refused_by_name(library: Library, films: Path, text: str) -> None:
    with pytest.raises(InvalidValue, match="zone"):
        library.index(films, camera_zones=[text])
