"""Shots in a library: found while videos are indexed, stored with them, looked after with them."""

from __future__ import annotations

import errno
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from distinct import film_like
from moviola.cli import all_commands
from moviola.errors import LibraryError, UnreadableMedia
from moviola.library import ShotRow, Viewer, repair, verify
from moviola.media import Marks, look_through, write_video
from moviola.search import Library

app = all_commands()

Opened = Callable[..., Library]
SHOTS = [ShotRow(0.0, "start"), ShotRow(3.4, "cut"), ShotRow(6.0, "cut")]


def write_cut_film(path: Path) -> Path:
    """Twelve seconds at 5 frames a second, cut at 3.4 and 6 s."""
    generator = np.random.default_rng(3)
    scenes = generator.integers(0, 256, (3, 4, 4, 3), dtype=np.uint8).repeat(16, 1).repeat(16, 2)
    write_video(path, [scenes[0]] * 17 + [scenes[1]] * 13 + [scenes[2]] * 30, rate=5)
    return path


@pytest.fixture
def cut_film(tmp_path: Path) -> Path:
    (tmp_path / "cut").mkdir()
    return write_cut_film(tmp_path / "cut" / "film.mp4")


@pytest.fixture
def indexed(cut_film: Path, opened: Opened) -> Library:
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(cut_film)
    return library


def shots_of(library: Library, video: str = "film") -> list[ShotRow]:
    return library.catalogue.shots(library.catalogue.video(video).row)


def as_built_before(library: Library) -> Path:
    """Make a library what it was before there were shots; closed."""
    library.close()
    with closing(sqlite3.connect(library.folder / "catalogue.sqlite")) as db:
        db.execute("DROP TABLE shots")
        db.commit()
    return library.folder


def test_shots_are_found_while_indexing(indexed: Library) -> None:
    assert shots_of(indexed) == SHOTS
    features = Viewer(indexed.store).view().features
    np.testing.assert_allclose(features.shot_edges_of(np.array([0]))[1], [0.0, 3.4, 6.0, 12.0])


def test_a_film_without_shots_that_cannot_be_read_now_stops_no_other(
    indexed: Library, cut_film: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(path: Path, **_: object) -> None:
        raise OSError(errno.EIO, "Input/output error", str(path))

    as_built_before(indexed)
    film_like(cut_film, cut_film.parent / "new.mp4")
    library = opened()
    with monkeypatch.context() as patch:
        patch.setattr("moviola.media.find_transitions", look)
        report = library.index(cut_film.parent)
    assert report.partial == {"film": "shots: cannot be read (Input/output error)"}
    assert report.added == ["new"]
    assert library.index(cut_film.parent).shots_found == ["film"]


def test_a_film_that_cannot_be_read_again_for_its_shots_is_refused_alone(
    cut_film: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(path: Path, stretches: Sequence[tuple[float, float]]) -> Marks:
        if path.stem == "gone":
            raise UnreadableMedia(path, "no such file")
        return look_through(path, stretches)

    film_like(cut_film, cut_film.with_name("gone.mp4"))
    monkeypatch.setattr("moviola.library.ingest.film_parts.look_through", look)
    library = opened(encoder="demo", sentence_encoder="none")
    report = library.index(cut_film.parent)
    assert report.added == ["film"]
    assert list(report.refused.values()) == ["gone.mp4: no such file; skipped"]
    assert shots_of(library) == SHOTS


def test_a_video_without_cuts_is_one_shot(library: Library) -> None:
    assert {len(library.catalogue.shots(video.row)) for video in library.catalogue.videos()} == {1}


def test_untrained_moments_are_shots(indexed: Library) -> None:
    spans = {(round(m.start, 6), round(m.end, 6)) for m in indexed.search("anything", top_k=10)}
    assert spans == {(0.0, 3.4), (3.4, 6.0), (6.0, 12.0)}


def test_shots_stay_when_only_the_subtitles_change(indexed: Library, cut_film: Path) -> None:
    cut_film.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n")
    assert indexed.index(cut_film).updated == ["film"]
    assert shots_of(indexed) == SHOTS


def test_shots_go_with_their_video(indexed: Library) -> None:
    row = indexed.catalogue.video("film").row
    indexed.indexer.remove(["film"])
    assert indexed.catalogue.shots(row) == [] and indexed.catalogue.videos_with_shots() == set()


def test_a_changed_video_has_its_own_shots(indexed: Library, cut_film: Path) -> None:
    write_video(cut_film, [np.full((64, 64, 3), 90, np.uint8)] * 30, rate=5)
    indexed.index(cut_film)
    assert shots_of(indexed) == SHOTS[:1]


def test_a_library_that_was_built_before_opens_and_answers(indexed: Library) -> None:
    folder = as_built_before(indexed)
    for read_only in (True, False):
        with Library(folder, read_only=read_only) as library:
            assert shots_of(library) == [] and library.catalogue.videos_with_shots() == set()
            assert library.search("anything")
            assert verify(library.store) == []


def test_the_next_index_finds_the_shots_of_a_library_that_was_built_before(
    indexed: Library, cut_film: Path
) -> None:
    with Library(as_built_before(indexed)) as library:
        before = library.search("anything")
        report = library.index(cut_film)
        assert (report.shots_found, report.unchanged) == (["film"], ["film"])
        assert shots_of(library) == SHOTS
        assert library.search("anything") != before
        assert library.index(cut_film).shots_found == []


def test_a_library_that_was_built_before_loses_a_video(indexed: Library) -> None:
    with Library(as_built_before(indexed)) as library:
        assert library.indexer.remove(["film"]) == ["film"]


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM shots WHERE number = 0",
        "UPDATE shots SET start = 99.0 WHERE number = 2",
        "UPDATE shots SET start = 7.5 WHERE number = 1",
        "UPDATE shots SET start = 6.0 WHERE number = 1",
        "UPDATE shots SET opening = 'iris' WHERE number = 1",
    ],
)
def test_shots_that_do_not_follow_each_other_are_noticed_and_put_right(
    indexed: Library, cut_film: Path, change: str
) -> None:
    indexed.close()
    with closing(sqlite3.connect(indexed.folder / "catalogue.sqlite")) as db:
        db.execute(change)
        db.commit()
    with Library(indexed.folder) as library:
        problem = verify(library.store)[0]
        assert problem.video_id == "film" and "shots" in problem.message and problem.repairable
        repair(library.store)
        library.index(cut_film)
        assert verify(library.store) == [] and shots_of(library) == SHOTS


@pytest.mark.parametrize("change", ["start = 'soon'", "start = 9e999", "opening = x'00'"])
def test_shots_of_another_kind_are_a_damaged_catalogue(indexed: Library, change: str) -> None:
    indexed.close()
    with closing(sqlite3.connect(indexed.folder / "catalogue.sqlite")) as db:
        db.execute(f"UPDATE shots SET {change} WHERE number = 1")
        db.commit()
    with (
        Library(indexed.folder, read_only=True) as library,
        pytest.raises(LibraryError, match=r"damaged catalogue \(shots of video 1\); restore a copy"),
    ):
        library.search("anything")


def test_show(indexed: Library) -> None:
    arguments = ["show", "film", "--library", str(indexed.folder)]
    shown = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert [shot["opening"] for shot in shown["shots"]] == ["start", "cut", "cut"]
    edges = [(shot["start"], shot["end"]) for shot in shown["shots"]]
    np.testing.assert_allclose(edges, [(0.0, 3.4), (3.4, 6.0), (6.0, 12.0)])
    lines = CliRunner().invoke(app, arguments).stdout.splitlines()
    assert any(line.split()[-2:] == ["0:00:03.4", "cut"] for line in lines)
