"""`moviola doctor` finds each damage of a library, and the command that it names mends it."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from left_drafts import leave_drafts
from moviola.cli import all_commands
from moviola.library import diagnosis
from moviola.library.diagnosis import Finding
from moviola.search import Library
from sample import Answers, answers, films_in, flip_bit, library_of, restored
from written_settings import of_later_format


class Sample(NamedTuple):
    """A library that is not to be changed, its films, and what it answers."""

    films: Path
    folder: Path
    answers: Answers


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    folder = tmp_path_factory.mktemp("doctor")
    films = films_in(folder / "films")
    library = library_of(films, folder / "library", model=True)
    return Sample(films, library, answers(library))


@pytest.fixture
def folder(sample: Sample, tmp_path: Path) -> Path:
    """A copy, to be damaged."""
    return restored(sample.folder, tmp_path / "library")


def findings(folder: Path) -> list[Finding]:
    return list(diagnosis._library(folder))


def wrong(folder: Path) -> list[Finding]:
    return [finding for finding in findings(folder) if not finding.ok]


def run(command: str) -> Any:
    program, *words = shlex.split(command)
    assert program == "moviola"
    outcome = CliRunner().invoke(all_commands(), words)
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit), outcome.exception
    return outcome


def the_middle(path: Path) -> None:
    flip_bit(path, path.stat().st_size // 2)


def test_nothing_is_wrong_with_a_sound_library(folder: Path) -> None:
    assert wrong(folder) == []


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("cache/facts/videos-*.part", "cache/facts/videos-"),
        ("cache/facts/*.json", "cache/facts/columns.json"),
        ("cache/facts/names-*.part", "cache/facts/names-"),
        ("index/*segments*", "index"), ("features/frames-*.f16", "features are damaged"),
        ("stills.sqlite", "stills.sqlite"), ("models/refiner/*/model.safetensors", "the model in use"),
    ],
)  # fmt: skip
def test_a_damaged_file(sample: Sample, folder: Path, pattern: str, named: str) -> None:
    for path in folder.glob(pattern):
        if path.suffix == ".sqlite":
            path.write_bytes(b"no database" * 100)
        else:
            the_middle(path)
    found = wrong(folder)
    assert found and named in found[0].detail and all(finding.commands for finding in found)
    # It only looks.
    assert wrong(folder) == found
    for command in found[0].commands:
        run(command)
    assert wrong(folder) == []
    if "model" not in named:  # without the model there are other answers
        assert answers(folder) == sample.answers


def test_features_that_are_damaged_name_their_video(folder: Path) -> None:
    (path,) = folder.glob("features/frames-*.f16")
    flip_bit(path, 0)
    found, *_ = wrong(folder)  # the index, which has this video still, comes after it
    assert found.what in ("a", "b", "c") and [shlex.split(one)[1] for one in found.commands] == [
        "repair",
        "index",
    ]


@pytest.mark.parametrize("damage", ["empty", "flipped", "gone"])
def test_a_damaged_catalogue_needs_a_copy(sample: Sample, folder: Path, damage: str) -> None:
    path = folder / "catalogue.sqlite"
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "gone":
        path.unlink()
    else:
        flip_bit(path, 3)
    (found,) = wrong(folder)
    assert "catalogue.sqlite" in found.detail and "restore a copy" in found.detail and not found.commands
    shutil.copyfile(sample.folder / "catalogue.sqlite", path)
    assert wrong(folder) == [] and answers(folder) == sample.answers


def test_a_library_of_a_newer_format(folder: Path) -> None:
    of_later_format(folder, 99)
    (found,) = wrong(folder)
    assert "format version 99" in found.detail and "update moviola" in found.detail
    assert found.commands == ()


@pytest.mark.parametrize("name", ["moviola.toml", "index/segments-new.main", "cache/copies.table"])
def test_drafts_that_were_left_behind(folder: Path, name: str) -> None:
    def left() -> Path:
        if "-new" not in name:
            return leave_drafts(folder / name)[0]
        (folder / name).write_bytes(b"half of it")
        return folder / name

    left()
    (found,) = wrong(folder)
    assert found.what == "drafts" and "10 bytes" in found.detail
    with Library(folder) as library, library.store.writing():  # sweeps them; then its own are no damage
        again = left()
        assert wrong(folder) == []
    for command in found.commands:
        run(command)
    assert wrong(folder) == [] and not again.exists()


def library_with_films(sample: Sample, tmp_path: Path) -> tuple[Path, Path]:
    """A library whose films may be changed."""
    films = Path(shutil.copytree(sample.films, tmp_path / "films"))
    return films, library_of(films, tmp_path / "own", model=False)


def test_a_drive_that_is_away(sample: Sample, tmp_path: Path) -> None:
    films, folder = library_with_films(sample, tmp_path)
    films.rename(tmp_path / "moved")
    assert wrong(folder) == []
    (away,) = (finding for finding in findings(folder) if finding.what == str(films))
    assert "away: it is not there; its 3 videos are searched" in away.detail
    run(
        shlex.join(
            ["moviola", "library", "move", str(films), str(tmp_path / "moved"), "--library", str(folder)]
        )
    )
    assert wrong(folder) == [] and not any("away: " in finding.detail for finding in findings(folder))


def test_a_folder_that_cannot_be_read(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    films, folder = library_with_films(sample, tmp_path)
    scan = os.scandir

    def refused(path: Any) -> Any:
        if Path(path) == films:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refused)
        (found,) = wrong(folder)
    assert found.what == str(films) and "Permission denied" in found.detail and "chmod" in found.detail
    assert wrong(folder) == []


def test_a_library_that_cannot_be_looked_at(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    (found,) = wrong(long)
    assert "File name too long" in found.detail


@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(path.read_bytes() + b"more")])
def test_a_film_that_is_gone_or_another(
    sample: Sample, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    films, folder = library_with_films(sample, tmp_path)
    change(films / "b.mp4")
    (found,) = wrong(folder)
    assert found.what == "b" and str(films / "b.mp4") in found.detail
    for command in found.commands:
        run(command)
    assert wrong(folder) == []


def test_many_problems_are_not_all_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_MOST", 1)
    for path in folder.glob("cache/facts/*.part"):
        the_middle(path)
    *_, last = wrong(folder)
    assert "more problems" in last.detail and run(last.commands[0]).exit_code == 3


def test_a_disk_that_is_nearly_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Library(folder) as library:
        library.indexer.remove(["a", "b", "c"])
    usage = shutil.disk_usage(folder)
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
        (found,) = wrong(folder)
    assert found.what == "disk" and "1,000 bytes are free" in found.detail
    # What could still be restored is not given up for room.
    assert not found.commands and "compact" not in found.detail


def test_people_see_the_command(folder: Path) -> None:
    the_middle(folder / "cache" / "facts" / "videos.json")
    outcome = CliRunner().invoke(all_commands(), ["doctor", "--library", str(folder)])
    assert outcome.exit_code == 3
    assert (
        "cache/facts/videos.json: damaged; searches ignore it, and it is rebuilt · run: moviola repair"
        in outcome.output
    )
