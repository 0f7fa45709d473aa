"""Other people's text on the terminal: shown letter by letter, and never able to steer it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from distinct import film_like
from moviola.cli.app import emit_json
from moviola.cli.terminal import PlainConsole, print_table
from moviola.files.plain import plain

Run = Callable[..., Any]

# Ids of films: markup, an unopened tag, emoji codes, colours for the terminal, text turned round.
IDS = ["[eng] film", "x[/b]", ":smile: [red]a[/red]", "clear\x1b[2J\x9b31mred", "\u202egnp.exe", "[/]"]
SAID = "Nobody [b]remembered[/i] the :harbour: \x1b]0;owned\x07in winter."
REPLACED = "\ufffd"


@pytest.fixture(scope="module")
def hostile(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Films whose names are the ids, each with the subtitle; and files that are refused."""
    folder = tmp_path_factory.mktemp("hostile")
    for number, video_id in enumerate(IDS):
        film = folder / f"{video_id}.mp4"
        film.parent.mkdir(exist_ok=True)
        film_like(films / "harbour.mp4", film, number)
        film.with_name(film.name.removesuffix(".mp4") + ".srt").write_text(
            f"1\n00:00:02,000 --> 00:00:05,000\n{SAID}\n"
        )
    (folder / "[/i] \x1b[5mno film.mp4").write_bytes(b"nothing of a film")
    return folder


@pytest.fixture(scope="module")
def hostile_library(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from moviola.search import Library

    folder = tmp_path_factory.mktemp("hostile-library") / "lib"
    with Library(folder, encoder="none", sentence_encoder="none") as lib:
        lib.index(hostile)
    return folder


def steers(text: str) -> bool:
    return any(char in text for char in "\x1b\x9b\x07\u202e")


def joined(text: str) -> str:
    """A table's text without the blanks and breaks of its layout."""
    return "".join(text.split())


@pytest.mark.parametrize("terminal", [False, True])
def test_index_shows_what_it_refuses_as_it_is_called(
    moviola: Run, hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    if terminal:  # then the progress bar shows ids too
        monkeypatch.setenv("FORCE_COLOR", "1")
    words = ("--library", tmp_path / "[lib]", "--encoder", "demo", "--sentence-encoder", "none")
    answer = moviola("index", hostile, *words)
    assert answer.code == 3
    assert f"{tmp_path / '[lib]'}: {len(IDS)} added" in answer.out
    assert f"refused: [/i] {REPLACED}[5mno film: " in answer.err
    assert "\x1b[5m" not in answer.err and "\x1b[2J" not in answer.err


def test_list_shows_ids_letter_by_letter(moviola: Run, hostile_library: Path) -> None:
    answer = moviola("list", "-l", hostile_library)
    assert answer.code == 0
    for video_id in IDS:
        assert joined(plain(video_id)) in joined(answer.out)
    assert not steers(answer.out)


@pytest.mark.parametrize("video_id", IDS)
def test_show_and_remove_take_every_id(
    moviola: Run, hostile_library: Path, tmp_path: Path, video_id: str
) -> None:
    shown = moviola("show", video_id, "-l", hostile_library)
    assert shown.code == 0
    assert f" video_id  {plain(video_id)}\n" in shown.out and not steers(shown.out)
    lib = shutil.copytree(hostile_library, tmp_path / "lib")
    assert json.loads(moviola("remove", video_id, "-l", lib, "--json").out) == {"removed": [video_id]}


def test_search_shows_ids_files_and_subtitles(
    moviola: Run, hostile_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    answer = moviola("search", "nobody remembered winter", "-l", hostile_library)
    assert answer.code == 0
    assert "Nobody [b]remembered[/" in answer.out
    for video_id in IDS:
        assert plain(video_id) in answer.out
        assert f"{plain(video_id.rsplit('/')[-1])}.mp4" in answer.out
    assert not steers(answer.out)
    limited = moviola("search", "nobody", "-l", hostile_library, "--video", IDS[1])
    assert limited.code == 0 and "x[/b]" in limited.out


def test_json_holds_every_letter_and_steers_nothing(moviola: Run, hostile_library: Path) -> None:
    answer = moviola("search", "nobody remembered winter", "-l", hostile_library, "--json")
    assert not steers(answer.out)
    assert sorted(moment["video_id"] for moment in answer.rows) == sorted(IDS)


@pytest.mark.parametrize("name", ["[/b]", "[eng]", "\x1b[2J", ":smile:"])
def test_errors_show_names_as_they_are(moviola: Run, hostile_library: Path, name: str) -> None:
    for words in (("show", name), ("search", "x", "--video", name), ("remove", name)):
        answer = moviola(*words, "-l", hostile_library)
        assert answer.code == 1
        assert answer.err.startswith(f"error: {plain(name)}: no such video") and not steers(answer.err)
    assert moviola("search", "x", "--nosuch", name, "-l", hostile_library).code == 2


def test_an_id_that_is_no_unicode_is_an_error(moviola: Run, hostile_library: Path) -> None:
    answer = moviola("show", "\udcff", "-l", hostile_library)
    assert (answer.code, answer.err) == (
        1,
        "error: '\\udcff': not Unicode text; give the file another name\n",
    )


def test_file_names_that_are_no_unicode_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    emit_json({"path": "films/\udcff.mp4", "said": "Tür\x9b"})
    out = capsys.readouterr().out
    out.encode()
    assert "Tür" in out
    assert json.loads(out) == {"path": "films/\udcff.mp4", "said": "Tür\x9b"}


def test_columns_stay_in_their_order_beside_letters_that_run_to_the_left() -> None:
    """Terminals turned a whole row, its times and its score too, between two Arabic cells; widths stay."""
    console = PlainConsole()
    console.file, console.width = io.StringIO(), 80
    rows = [[["حفل \u202eالزفاف"], ["0:01 – 0:04"], ["شاطئ البحر", "two"]], [["夏の花火"], ["0:02"], ["sea"]]]
    print_table(console, ["video", "time", "words"], rows, title="", lines=(), short={})
    _, first, below, second = console.file.getvalue().splitlines()
    assert first.startswith(f"\u200eحفل {REPLACED}الزفاف\u200e  0:01 – 0:04  \u200eشاطئ البحر\u200e")
    assert below.split() == ["\u200etwo\u200e"] and "\u200e" not in second
    assert "  0:02" in second


LONG = {
    "ar": "سيارة حمراء تمر في شارع المدينة القديمة عند غروب الشمس",
    "he": "מכונית אדומה ברחוב הראשי של העיר בשעת ערב",
    "th": "รถยนต์สีแดงวิ่งผ่านถนนในเมืองเก่าตอนพระอาทิตย์ตก",
    "hi": "सूर्यास्त के समय पुराने शहर की सड़क पर लाल गाड़ी",
    "zh": "一辆红色的汽车在日落时分穿过老城区的街道向海边驶去",
    "mixed": "family holiday שבת שלום العطلة 休假 in one long name",
}


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("short", [{}, {"video": "in the middle", "words": "at the end"}])
def test_long_names_of_any_script_keep_rows_and_letters_whole(width: int, short: dict[str, Any]) -> None:
    """The second line of a wrapped Hebrew name turned its row; what was left out took a letter's marks off
    it, or left the marks without their letter.
    """
    console = PlainConsole()
    console.file, console.width = io.StringIO(), width
    rows = [[[name], ["0:01 – 0:04"], [name]] for name in LONG.values()]
    print_table(console, ["video", "time", "words"], rows, title="", lines=(), short=short)
    _, *lines = console.file.getvalue().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    for line in lines:
        for text in filter(None, re.split(r"\s{2,}", line.strip())):
            turned = any(unicodedata.bidirectional(one) in ("R", "AL") for one in text)
            assert not turned or (text[0], text[-1]) == ("\u200e", "\u200e"), line
            head, cut, tail = text.strip("\u200e").partition("…")
            (name,) = [one for one in LONG.values() if cut and one.startswith(head)] or [""]
            assert not unicodedata.category(name[len(head) : len(head) + 1] or " ").startswith("M"), line
            assert not unicodedata.category(tail[:1] or " ").startswith("M"), line


def test_numbers_that_json_does_not_have_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    emit_json({"kappa": nan, "p": [-inf, 0.5], "name": "NaN \x9b"})
    out = capsys.readouterr().out
    assert out == '{"kappa": null, "p": [null, 0.5], "name": "NaN \\u009b"}\n'


def test_a_line_feed_in_a_name_makes_no_row(moviola: Run, films: Path, tmp_path: Path) -> None:
    source = next(films.rglob("*.mp4"))
    (tmp_path / "films").mkdir()
    shutil.copyfile(source, tmp_path / "films" / "a\nb.mp4")
    library = tmp_path / "lib"
    moviola("index", tmp_path / "films", "-l", library, "--encoder", "demo", "--sentence-encoder", "none")
    answer = moviola("list", "-l", library)
    assert "a\ufffdb" in answer.out and len(answer.out.splitlines()) == 1


def test_letters_that_the_terminal_does_not_have_are_escaped(library: Path) -> None:
    """Of a Windows console, or of a Unix one without a language: a span has a dash that is not ASCII."""
    ran = subprocess.run(
        [sys.executable, "-m", "moviola", "search", "an umbrella", "-l", library, "--weak"],
        capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "\\u2013" in ran.stdout


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_streams_may_be_closed(library: Path, closed: str) -> None:
    command = [sys.executable, "-m", "moviola", "list", "-l", str(library)]
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ("harbour" in ran.stdout) == (">&-" not in closed.replace("2>&-", ""))


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["--help"]])
def test_a_reader_that_has_read_enough_is_no_error(library: Path, command: list[str]) -> None:
    """`moviola list | head -1` in a script with `set -o pipefail`."""
    read, write = os.pipe()
    os.close(read)
    try:
        words = [*command, *([] if command == ["--help"] else ["-l", str(library)])]
        ran = subprocess.run(
            [sys.executable, "-m", "moviola", *words],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(write)
    assert (ran.returncode, ran.stderr) == (0, "")
