"""How players are started at a moment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from late_pictures import late_pictures
from moviola.errors import InvalidValue, NotFound
from moviola.export import PLAYERS, folder_command, play, player_command, write_moments
from moviola.types import Moment, Span

FILM, SPAN = Path("/films/a b'c.mp4"), Span(12.5, 20)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Programs on the path; none at first."""
    programs: set[str] = set()
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name in programs else None)
    return programs


@pytest.mark.parametrize(
    ("player", "words"),
    [
        ("mpv", ["--start=12.500", "--", str(FILM)]),
        ("vlc", ["--start-time=12.500", str(FILM)]),
        ("ffplay", ["-ss", "12.500", "-i", str(FILM)]),
    ],
)
def test_each_starts_at_the_moment(installed: set[str], player: str, words: list[str]) -> None:
    installed.add(player)
    assert player_command(FILM, SPAN, player) == [f"/bin/{player}", *words]
    assert player_command(FILM, SPAN) == [f"/bin/{player}", *words]


def test_a_recording_goes_on_in_its_next_files(installed: set[str]) -> None:
    """The time is that of the first file alone; a player of one file plays that."""
    later = [Path("/films/GX02 b.mp4"), Path("/films/GX03.mp4")]
    installed.update({*PLAYERS, "celluloid"})
    expected = {
        "mpv": ["--{", "--start=12.500", str(FILM), "--}", *map(str, later)],
        "vlc": [str(FILM), ":start-time=12.500", *map(str, later)],
        "ffplay": ["-ss", "12.500", "-i", str(FILM)],
        "celluloid {path} {next}": [str(FILM), *map(str, later)],
        "celluloid {path}": [str(FILM)],
    }
    for player, words in expected.items():
        assert player_command(FILM, SPAN, player, later)[1:] == words
    assert player_command(FILM, SPAN, "celluloid {path} {next}")[1:] == [str(FILM)]
    assert player_command(FILM, SPAN, None, later)[1:] == expected["mpv"]


def test_players_count_from_the_beginning_of_the_file(
    installed: set[str], rates: dict[str, str], tmp_path: Path
) -> None:
    installed.add("mpv")
    late = late_pictures(Path(rates["24"]), tmp_path / "late.mp4", 2)
    assert player_command(late, SPAN, "mpv")[1] == "--start=14.500"
    for format in ("vtt", "vtt-videos"):
        (chapters,) = write_moments(
            [Moment("a", 0.5, 1, 0.5, 1)], {"a": late}, tmp_path / f"{format}.vtt", format
        ).files
        assert "00:00:02.500 --> 00:00:03.000" in chapters.read_text()


def test_the_first_of_the_table_is_taken(installed: set[str]) -> None:
    installed.update(PLAYERS)
    assert player_command(FILM, SPAN)[0] == f"/bin/{next(iter(PLAYERS))}"


@pytest.mark.parametrize(
    ("system", "words"),
    [("linux", ["xdg-open"]), ("darwin", ["open"]), ("win32", ["cmd", "/c", "start", ""])],
)
def test_else_what_the_system_opens_videos_with(
    installed: set[str], monkeypatch: pytest.MonkeyPatch, system: str, words: list[str]
) -> None:
    installed.add(words[0])
    monkeypatch.setattr(sys, "platform", system)
    assert player_command(FILM, SPAN) == [*words, str(FILM)]


def test_a_command_of_ones_own(installed: set[str]) -> None:
    installed.add("celluloid")
    command = player_command(FILM, SPAN, "celluloid --mpv-start={start} --mpv-end='{end}' {path}")
    assert command == ["/bin/celluloid", "--mpv-start=12.500", "--mpv-end=20.000", str(FILM)]


@pytest.mark.parametrize("player", [None, "mpv", "celluloid {path}"])
def test_missing_programs_are_named(installed: set[str], player: str | None) -> None:
    with pytest.raises(NotFound, match="install"):
        player_command(FILM, SPAN, player)


@pytest.mark.parametrize(
    "player",
    [
        "celluloid",
        "x {path} {begin}",
        "x {path} {",
        "x '{path}",
        "x {path} {0}",
        "x {path.name} {path}",
        "x {path[name]} {path}",
    ],
)
def test_commands_that_cannot_be_filled_are_refused(installed: set[str], player: str) -> None:
    installed.update({"celluloid", "x"})
    with pytest.raises(InvalidValue, match="player"):
        player_command(FILM, SPAN, player)


def test_it_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: started.append((words, how)))
    play(["mpv", "a.mp4"])
    ((words, how),) = started
    assert words == ["mpv", "a.mp4"] and how["start_new_session"]


def test_what_cannot_be_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="cannot be started"):
        play([str(tmp_path / "no player")])


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ("linux", ["xdg-open", str(FILM.parent)]),
        ("darwin", ["open", "-R", str(FILM)]),
        ("win32", ["explorer", f"/select,{FILM}"]),
    ],
)
def test_a_file_is_shown_in_its_folder(
    installed: set[str], monkeypatch: pytest.MonkeyPatch, platform: str, words: list[str]
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(NotFound, match="no program opens folders"):
        folder_command(FILM)
    installed.add(words[0])
    assert folder_command(FILM) == [f"/bin/{words[0]}", *words[1:]]
