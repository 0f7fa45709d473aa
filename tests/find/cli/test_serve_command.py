"""``moviola serve``: what becomes of its options; what the server does is tested in ``tests/find/server``."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import moviola.server
from moviola.cli import all_commands
from moviola.server import Options

ADDRESS = "http://127.0.0.1:1234/?token=changes"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """Options of servers, which end at once."""
    options: list[Options] = []

    def run(library: Path, given: Options, *, started: Callable[[str], None]) -> None:
        options.append(given)
        started(ADDRESS)

    monkeypatch.setattr(moviola.server, "serve", run)
    return options


def test_the_page_is_opened_where_that_is_wanted(
    served: list[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, is_open = [], threading.Event()
    monkeypatch.setattr(webbrowser, "open", lambda address: (opened.append(address), is_open.set()))
    result = CliRunner().invoke(all_commands(), ["serve", "--library", "x"])
    assert result.exit_code == 0, result.output
    assert not opened
    CliRunner().invoke(all_commands(), ["serve", "--library", "x", "--open"])
    assert is_open.wait(30) and opened == [ADDRESS]


def test_the_usual_device_reaches_the_server(served: list[Options], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVIOLA_DEVICE", "cuda:1")
    CliRunner().invoke(all_commands(), ["serve", "--library", "x"])
    assert served[0].device == "cuda:1"


def test_tokens_and_the_evaluation_reach_the_server(
    served: list[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOVIOLA_DRES_PASSWORD", "secret")
    monkeypatch.setenv("MOVIOLA_READ_TOKEN", "reads")
    account = ["--dres", "https://dres.example.org", "--dres-user", "team", "--dres-evaluation", "VBS"]
    CliRunner().invoke(all_commands(), ["serve", "--library", "x", "--token", "changes", *account])
    assert (served[0].token, served[0].read_token) == ("changes", "reads")
    assert served[0].additions["dres"] == ("https://dres.example.org", "team", "secret", "VBS")
    assert "secret" not in repr(served[0])


def test_readings_of_watched_folders_reach_the_server(
    served: list[Options], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOVIOLA_OCR", "false")
    CliRunner().invoke(all_commands(), ["serve", "--library", "x", "--watch", ".", "--speech", "tiny.en"])
    assert served[0].reading == {"ocr": False, "speech": "tiny.en"}  # the others have their defaults


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--speech", "pocketsfinx"], "pocketsfinx"),
        (["--speech", "tiny.en", "--speech-language", "de"], "does not know the language 'de'"),
        (["--ocr-reader", "nobody"], "nobody"),
    ],
)
def test_readers_that_are_not_there_are_named_at_the_start(
    served: list[Options], options: list[str], said: str
) -> None:
    answer = CliRunner().invoke(all_commands(), ["serve", "--library", "x", "--watch", ".", *options])
    assert not served and said in str(answer.exception)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--webhook", "https://example.org"], "give that too"),
        (["--watch", ".", "--alert", "doors"], "say where findings"),
        (["--watch", ".", "--alert-command", "echo 'found"], "No closing quotation"),
        (["--dres-user", "team"], "name the server"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    served: list[Options], options: list[str], words: str
) -> None:
    result = CliRunner().invoke(all_commands(), ["serve", "--library", "x", *options])
    assert (result.exit_code, served) == (2, []) and words in result.output
