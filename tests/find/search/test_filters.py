"""Filters against brute force, and how they are written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue, NotFound
from moviola.library import VideoRow
from moviola.search import Filter, Library, Position, SearchOptions
from moviola.search.filters import absolute_folders
from moviola.search.forms import Near
from moviola.search.times import parse_range, parse_seconds

QUERY = "a red square"


def video(row: int, path: str = "/films/a.mp4", seconds: float = 60.0, changed: float = 0.0) -> VideoRow:
    return VideoRow(row, f"v{row}", path, 1, int(changed * 1e9), "", "", "ready", duration=seconds)


lengths = st.lists(st.floats(0.5, 500), min_size=1, max_size=8)
bounds = st.tuples(st.none() | st.floats(0, 500), st.none() | st.floats(0, 500)).filter(
    lambda pair: None in pair or pair[0] <= pair[1]  # type: ignore[operator]
)


@given(lengths, bounds)
def test_video_lengths(seconds: list[float], limits: tuple[float | None, float | None]) -> None:
    videos = {row: video(row, seconds=length) for row, length in enumerate(seconds)}
    low, high = limits[0] or 0.0, math.inf if limits[1] is None else limits[1]
    expected = {row for row, length in enumerate(seconds) if low <= length <= high}
    found = Filter(video_length=limits).rows(videos)
    assert (set(videos) if found is None else found) == expected


def test_dates_have_whole_days() -> None:
    days = [datetime(2024, 5, day, 23, 59, 59).timestamp() for day in (1, 2, 3)]
    videos = {row: video(row, changed=at) for row, at in enumerate(days)}
    assert Filter.parse(modified="2024-05-02..2024-05-02").rows(videos) == {1}
    assert Filter.parse(modified="2024-05-02").rows(videos) == {1}
    assert Filter.parse(modified="2024-05-02..").rows(videos) == {1, 2}
    assert Filter.parse(modified="..2024-05-02T23:00").rows(videos) == {0}
    assert Filter.parse(modified="..2024-05-02 23:00").rows(videos) == {0}
    zone = datetime.fromtimestamp(days[1], UTC)
    assert Filter(modified=(zone, None)).rows(videos) == {1, 2}


def test_folders_and_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ("beach/a.mp4", "beach/deep/b.mov", "beachside/c.mp4")
    videos = {row: video(row, str(tmp_path.resolve() / path)) for row, path in enumerate(paths)}
    monkeypatch.chdir(tmp_path)
    assert Filter(folder="beach").rows(videos) == {0, 1}
    assert Filter(folder=str(tmp_path / "beach" / "deep")).rows(videos) == {1}
    assert Filter(folder="*/beach*/*.mp4").rows(videos) == {0, 2}
    assert Filter(folder="/").rows(videos) == {0, 1, 2}
    monkeypatch.chdir("/")  # names of folders, as ids of videos have them, mean the same everywhere
    assert Filter(folder="beach").rows(videos) == {0, 1}
    assert Filter(folder="beach/deep\nbeachside").rows(videos) == {1, 2}
    monkeypatch.chdir(tmp_path)
    for folder in ("street", "*.avi"):
        with pytest.raises(NotFound, match="no video of this library is in this folder"):
            Filter(folder=folder).rows(videos)


def test_folders_are_meant_where_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path.resolve()
    (here / "[2020] sea").mkdir()
    (here / "beach").mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(here / "home"))
    assert absolute_folders("beach\n/films\n~/own") == f"{here / 'beach'}\n/films\n{here / 'home' / 'own'}"
    assert absolute_folders("misc/deep\n..") == f"misc/deep\n{here.parent}"
    assert absolute_folders("*/beach/*.mov\n[2020] sea") == f"*/beach/*.mov\n{here / '[2020] sea'}"


def test_names_of_folders_may_look_like_patterns() -> None:
    paths = ("/films/[2020] sea/a.mp4", "/films/what?/b.mp4", "/films/whats/c.mp4")
    videos = {row: video(row, path) for row, path in enumerate(paths)}
    assert Filter(folder="/films/[2020] sea").rows(videos) == {0}
    assert Filter(folder="/films/what?\n/films/[2020] sea").rows(videos) == {0, 1}


def test_all_conditions_must_hold() -> None:
    videos = {row: video(row, seconds=10.0 * row, changed=row) for row in range(1, 6)}
    late = datetime.fromtimestamp(3, UTC)
    assert Filter(video_length=(20.0, 40.0), modified=(late, None)).rows(videos) == {3, 4}
    assert Filter().rows(videos) is None


@pytest.mark.parametrize(
    ("where", "duration", "stretch"),
    [
        ("0..10%", 200.0, (0.0, 20.0)),
        ("-1:00..", 200.0, (140.0, 200.0)),
        ("-50%..-10", 200.0, (100.0, 190.0)),
        ("30..90", 60.0, (30.0, 60.0)),
        ("-90..", 60.0, (0.0, 60.0)),
        ("50%..-0", 60.0, (30.0, 60.0)),
    ],
)
def test_positions(where: str, duration: float, stretch: tuple[float, float]) -> None:
    assert Filter.parse(where=where).stretch(duration) == pytest.approx(stretch)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"video_length": "60"}, "video length '60': write LOW..HIGH"),
        ({"video_length": ".."}, "either may be left out"),
        ({"video_length": "60..30"}, "must not be above"),
        ({"moment_length": "-5.."}, "moment length '-5' is no time"),
        ({"moment_length": "a..b"}, "'a' is no time"),
        ({"modified": "yesterday.."}, "2024-05-31"),
        ({"modified": "2024-06-01..2024-05-01"}, "must not be above"),
        ({"taken": "2025..2024"}, "taken 2025-01-01..2024-12-31: the first must not be above"),
        ({"taken": "0001"}, "taken 0001-01-01 .* years from 0002"),
        ({"where": "120%.."}, "at most 100%"),
        ({"where": "x.."}, "'x' is no time"),
        ({"where": "60..30"}, "where 60..30: the first must not be above"),
        ({"where": "-10%..-20%"}, "where -10%..-20%: the first must not be above"),
        ({"taken": "2023-00"}, "no such day"),
        ({"taken": "0000"}, "no such day"),
        ({"taken": "2023-05-00"}, "no such day"),
        ({"video_length": f"{'1' * 400}:00:00.."}, "is no time"),
        ({"video_length": f"{'1' * 5000}:00:00.."}, "is no time"),
    ],
)
def test_values_in_another_form_are_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Filter.parse(**fields)


def test_values_out_of_range_are_refused() -> None:
    for wrong in (
        {"video_length": (-1.0, None)}, {"moment_length": (math.nan, None)},
        {"moment_length": (5.0, 1.0)}, {"folder": ""}, {"camera": " "}, {"tag": "\n"},
        {"where": (Position(math.inf), None)},
    ):  # fmt: skip
        with pytest.raises(InvalidValue):
            Filter(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"folder": 3}, {"folder": b"beach"}, {"camera": 3}, {"tag": ["beach"]}, {"near": (52.5, 13.4)},
        {"near": "52.5,13.4"},
        {"modified": ("2024-05-01", None)}, {"taken": datetime(2024, 5, 1)}, {"video_length": ("10", None)},
        {"moment_length": 10}, {"where": (0.5, None)},
    ],
)  # fmt: skip
def test_values_of_another_type_are_refused(wrong: dict[str, object]) -> None:
    """The message names the argument and the value."""
    ((name, value),) = wrong.items()
    inner = next((one for one in value if one is not None), value) if isinstance(value, tuple) else value
    with pytest.raises(InvalidValue, match=re.escape(name)) as refused:
        Filter(**wrong)  # type: ignore[arg-type]
    assert repr(value) in str(refused.value) or repr(inner) in str(refused.value)


def test_a_folder_may_be_a_path(tmp_path: Path) -> None:
    videos = {row: video(row, str(tmp_path.resolve() / place)) for row, place in enumerate(("a/1", "b/2"))}
    assert Filter(folder=tmp_path / "a") == Filter(folder=str(tmp_path / "a"))
    assert Filter(folder=tmp_path / "a").rows(videos) == {0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"top_k": "3"}, {"top_k": None}, {"top_k": 0}, {"top_k": math.nan}, {"per_video": "1"},
        {"top_k": 2.5}, {"top_k": 3.0}, {"top_k": True}, {"per_video": 1.5},
        {"per_video": 0}, {"min_score": "0.5"}, {"min_score": None}, {"min_score": 1.5}, {"by": ["visual"]},
        {"filter": "beach"}, {"filter": None}, {"videos": "beach"},
        {"videos": 3}, {"videos": [3]}, {"refine": "no"}, {"weak": None},
    ],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(InvalidValue, match=name) as refused:
        SearchOptions(**wrong)  # type: ignore[arg-type]
    inner = value[0] if isinstance(value, list) else value
    assert repr(value) in str(refused.value) or repr(inner) in str(refused.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Near("52", 13.4), "latitude '52': give a number"),  # type: ignore[arg-type]
        (lambda: Position("1"), "position '1': give a number"),  # type: ignore[arg-type]
        (lambda: Filter.parse(modified=2024), "modified 2024: give a text"),  # type: ignore[arg-type]
        (lambda: Filter.parse(video_length=3), "video length 3: give a text"),  # type: ignore[arg-type]
        (lambda: Filter.parse(near=3), "near 3: give a text"),  # type: ignore[arg-type]
    ],
)
def test_values_of_another_kind_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make()


def test_numbers_of_numpy_are_numbers() -> None:
    assert SearchOptions(top_k=np.int64(3), min_score=np.float32(0.5)).top_k == 3
    assert Filter(video_length=(np.float64(1), None)).video_length[0] == 1


def test_videos_may_come_one_by_one() -> None:
    assert SearchOptions(videos=(name for name in ("a", "b"))).videos == {"a", "b"}  # type: ignore[arg-type]


def test_any_integer_above_zero_is_a_number_of_moments() -> None:
    assert SearchOptions(top_k=10**400).top_k == 10**400


@given(st.integers(0, 9), st.integers(0, 59), st.integers(0, 59))
def test_clock_times(hours: int, minutes: int, seconds: int) -> None:
    total = 3600 * hours + 60 * minutes + seconds
    assert parse_seconds(f"{hours}:{minutes:02d}:{seconds:02d}", "t") == total
    assert parse_seconds(f"{total}.5s", "t") == total + 0.5
    assert parse_range(f"{minutes}:{seconds:02d}..", "t", parse_seconds) == (60 * minutes + seconds, None)


# ---- in a library ------------------------------------------------------------------------------------------


def test_videos_are_chosen_before_the_search(library: Library) -> None:
    lengths = {v.video_id: v.duration for v in library.videos()}
    some = {name for name, seconds in lengths.items() if seconds < 30}
    chosen = library.search(QUERY, top_k=100, filter=Filter(video_length=(None, 30.0)))
    assert chosen == library.search(QUERY, top_k=100, videos=some)
    assert {m.video_id for m in chosen} == some
    both = library.search(QUERY, videos=["film0"], filter=Filter(video_length=(None, 30.0)))
    assert both == []


def test_file_dates_and_folders(library: Library, films: Path) -> None:
    for name in ("film0", "film1", "film2"):
        assert library.catalogue.video(name).mtime_ns == (films / f"{name}.mp4").stat().st_mtime_ns
    assert library.search(QUERY, filter=Filter(folder=str(films)))
    future = datetime(2200, 1, 1, tzinfo=UTC)
    assert library.search(QUERY, filter=Filter(modified=(future, None))) == []


def test_moments_are_refused_before_ranking(library: Library) -> None:
    every = library.search(QUERY, top_k=1000)
    longest = sorted(m.end - m.start for m in every)[len(every) // 2]
    short = library.search(QUERY, top_k=1000, filter=Filter(moment_length=(None, longest)))
    expected = [m for m in every if m.end - m.start <= longest]
    assert [(m.video_id, m.start, m.end, m.score) for m in short] == [
        (m.video_id, m.start, m.end, m.score) for m in expected
    ]
    assert [m.rank for m in short] == list(range(1, len(short) + 1))


@pytest.mark.parametrize("where", ["0..50%", "-10..", "25%..75%"])
def test_where_in_the_video(library: Library, where: str) -> None:
    filter = Filter.parse(where=where)
    found = library.search(QUERY, top_k=1000, filter=filter)
    lengths = {v.video_id: v.duration for v in library.videos()}
    assert found
    for moment in found:
        start, end = filter.stretch(lengths[moment.video_id])
        assert start <= (moment.start + moment.end) / 2 < end
    assert {m.video_id for m in found} == set(lengths)


def test_a_moment_at_the_bound_belongs_to_one_side() -> None:
    first, second = Filter.parse(where="..50%"), Filter.parse(where="50%..")
    assert first.stretch(10.0) == (0.0, 5.0)
    assert second.stretch(10.0) == (5.0, 10.0)


@pytest.mark.parametrize("folder", ["~nobody", "~root/films", "a\0b", "x" * 5000])
def test_folders_that_lead_nowhere_are_named(folder: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Filter(folder=folder).rows({})


def test_a_folder_that_leads_in_circles_is_named(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(NotFound, match="loop"):
        Filter(folder=str(tmp_path / "loop")).rows({})
