"""Filters by columns: they say the same as a video at a time, as files of another state do not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from moviola.library import VideoRow, taken_of
from moviola.library.disk import store as store_module
from moviola.library.disk.captures import clock_of
from moviola.library.userdata.values import Mark
from moviola.search import Filter, Library, Position
from moviola.search.clocks import days, instants, microseconds, walls
from moviola.search.filters import COLUMNS
from moviola.search.forms import Near
from moviola.types import Capture, CaptureSource

QUERY = "a red square"
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe")

moments = st.datetimes(datetime(1985, 1, 1), datetime(2037, 12, 31))
offsets = st.none() | st.integers(-12 * 60, 14 * 60).map(lambda minutes: timedelta(minutes=minutes))
sources = st.sampled_from(["tags", "container", "name"])


@pytest.fixture(scope="module", params=ZONES)
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """This machine's zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = str(request.param)
    time.tzset()
    yield str(request.param)
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


def taken(moment: datetime, offset: timedelta | None, source: CaptureSource) -> Capture:
    if offset is None:
        return Capture(moment.isoformat(), source)
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    return Capture(
        f"{moment.isoformat()}{'-' if offset < timedelta() else '+'}{hours:02}:{minutes:02}", source
    )


def row(mtime_ns: int = 0) -> VideoRow:
    return VideoRow(1, "v", "/v.mp4", 1, mtime_ns, "", "", "ready", duration=1.0)


@pytest.mark.usefixtures("zone")
@given(
    st.lists(st.builds(taken, moments, offsets, sources) | st.just(Capture()), max_size=5),
    st.integers(0, 2 * 10**18),
)
# Clocks are put back, and forward, in one of the zones at these times.
@example(
    [Capture(f"2023-{day}T{at}", "name") for day in ("10-29", "03-26") for at in ("02:30:00", "01:00:00Z")], 0
)
def test_clocks_are_those_of_single_videos(captures: list[Capture], mtime_ns: int) -> None:
    """An offset from UTC that is looked up by the day must hold for the whole day."""
    video = row(mtime_ns)
    clocks = np.array([clock_of(video, capture) for capture in captures], np.int64).reshape(-1, 3)
    known = [taken_of(video, capture) for capture in captures]
    assert walls(clocks).tolist() == [microseconds(one.wall) for one in known]
    assert instants(clocks).tolist() == [microseconds(one.instant.astimezone(UTC)) for one in known]
    assert sum(days(clocks).values()) == len(captures)
    assert set(days(clocks)) == {one.wall.date().isoformat() for one in known}


@given(
    st.floats(-90, 90), st.floats(-180, 180), st.floats(1, 2.1e7), st.floats(-90, 90), st.floats(-180, 180)
)
@example(0.0, 0.0, 20_015_115.0, 0.0, 180.0)
def test_places_are_reached_as_one_by_one(
    north: float, east: float, metres: float, there: float, over: float
) -> None:
    points = np.array([[there, over], [np.nan, np.nan], [north, east]])
    expected = [Capture("", "", there, over), Capture(), Capture("", "", north, east)]
    near = Near(north, east, metres)
    assert near.reached(points).tolist() == [near.holds(one) for one in expected]


@given(
    st.lists(st.floats(0.1, 1e4), max_size=5),
    st.builds(Position, st.floats(-1, 1), st.just(True)) | st.builds(Position, st.floats(-1e4, 1e4)),
)
def test_positions_are_those_of_single_videos(lengths: list[float], position: Position) -> None:
    found = position.all_seconds(np.array(lengths, np.float64))
    assert found.tolist() == [position.seconds(length) for length in lengths]


# ---- in a library ------------------------------------------------------------------------------------------


def columns(library: Library) -> dict[str, object]:
    """The values of each column, with the videos' paths as texts."""
    store = library.store
    found = store.columns_of(store.searchable(), store.catalogue.generation)
    return {
        name: (column.texts, column.videos.tolist()) if hasattr(column, "texts") else column.tolist()
        for name, column in {**found, "near": found["near"].points}.items()
    }


def test_a_writer_leaves_columns_which_are_read_without_the_catalogue(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = columns(library)
    (file,) = (library.folder / "cache" / "facts").glob("columns-*.part")
    whole = file.read_bytes()
    file.write_bytes(whole[:-60] + bytes([whole[-60] ^ 1]) + whole[-59:])
    assert columns(library) == stored, "made again of the catalogue, where the file is damaged"
    file.write_bytes(whole)
    monkeypatch.setattr(store_module, "facts_of", lambda *_: pytest.fail("the catalogue was read"))
    assert columns(library) == stored
    assert library.search(QUERY, filter=Filter(video_length=(0.0, 30.0)))


def test_columns_that_no_file_has_are_made_of_one_reading(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 10,000 videos the facts were read again for each column: filters came after 1.8 s."""
    (library.folder / "cache" / "facts" / "columns.json").unlink()
    read = []
    facts_of = store_module.facts_of
    monkeypatch.setattr(store_module, "facts_of", lambda *of: read.append(1) or facts_of(*of))
    assert set(columns(library)) == set(COLUMNS)
    assert len(read) == 1


def test_a_column_whose_rule_has_changed_is_made_again(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    field = replace(COLUMNS["video_length"], of=lambda facts: -1.0, version=2)
    monkeypatch.setattr(library.store, "_columns", {**COLUMNS, "video_length": field})
    assert set(columns(library)["video_length"]) == {-1.0}  # type: ignore[call-overload]
    with library.store.writing():
        pass
    monkeypatch.setattr(store_module, "facts_of", lambda *_: pytest.fail("the catalogue was read"))
    assert set(columns(library)["video_length"]) == {-1.0}  # type: ignore[call-overload]


def test_a_set_is_kept_until_the_library_changes(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a set of an earlier state nor one of earlier tags answers."""
    short = Filter(video_length=(None, 30.0))
    found = {one.video_id for one in library.search(QUERY, top_k=100, filter=short)}
    passed = COLUMNS["video_length"].passes
    assert passed is not None
    monkeypatch.setattr(type(short), "passing", lambda *_: pytest.fail("the set was not kept"))
    assert {one.video_id for one in library.search("a blue wall", top_k=100, filter=short)} == found
    monkeypatch.undo()
    library.indexer.remove([min(found)])
    after = library.search(QUERY, top_k=100, filter=short)
    assert {one.video_id for one in after} == found - {min(found)}
    for there, video in enumerate((min(found), *(one.video_id for one in library.videos()))):
        library.userdata.mark(Mark(video_id=video), add=["blue"])
        assert library.search(QUERY, filter=Filter(tag="BLUE")).videos == there


def test_paths_of_any_letters_are_kept(tmp_path: Path) -> None:
    """Texts lie one behind the other as bytes: one that is no ASCII must not move the others."""
    with Library(tmp_path / "library", encoder="demo", sentence_encoder="none") as library:
        names = ("ä", "plain", "映画", "z")
        with library.store.writing(), library.catalogue.transaction():
            for number, name in enumerate(names):
                video = VideoRow(
                    0, name, f"/films/{name}/{number}.mp4", 1, 0, name, "", "ready", duration=9.0
                )
                library.catalogue.put(video, [])
        assert {one.path for one in library.facets().folders} == {
            "/films",
            *(f"/films/{one}" for one in names),
        }
        videos = library.store.searchable()
        for name in names:
            passing = Filter(folder=f"/films/{name}").passing(library.store.columns_of(videos, -1))
            assert passing is not None
            assert [videos[row].video_id for row in videos.rows[passing].tolist()] == [name]
