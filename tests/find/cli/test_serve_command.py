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
    for account, url, user, evaluation in (
        ("https://team@dres.example.org#VBS%202026", "https://dres.example.org", "team", "VBS 2026"),
        ("http://a%40b@localhost:8080/dres/", "http://localhost:8080/dres/", "a@b", ""),
    ):
        served.clear()
        words = ["serve", "--library", "x", "--token", "changes", "--dres", account]
        CliRunner().invoke(all_commands(), words)
        assert (served[0].token, served[0].read_token) == ("changes", "reads")
        assert served[0].additions["dres"] == (url, user, "secret", evaluation)
        assert "secret" not in repr(served[0])


@pytest.mark.parametrize(
    ("account", "said"),
    [("https://team:hidden@dres.example.org", "MOVIOLA_DRES_PASSWORD"), ("https://[dres", "such as")],
)
def test_a_wrong_account_is_refused_without_its_password(
    served: list[Options], account: str, said: str
) -> None:
    result = CliRunner().invoke(all_commands(), ["serve", "--library", "x", "--dres", account])
    assert not served and said in str(result.exception) and "hidden" not in str(result.exception)


def test_readings_of_watched_folders_reach_the_server(
    served: list[Options], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the environment and the file say, which comes second; the others have their defaults."""
    (tmp_path / "config.toml").write_text('ocr = true\nspeech = "tiny.en"\nsounds = "none"\n')
    monkeypatch.setenv("MOVIOLA_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("MOVIOLA_OCR", "false")
    monkeypatch.setenv("MOVIOLA_SPEECH", "")
    CliRunner().invoke(all_commands(), ["serve", "--library", "x", "--watch", "."])
    assert served[0].reading == {"ocr": False, "speech": "tiny.en", "sounds": "none"}
    monkeypatch.setenv("MOVIOLA_OCR", "perhaps")
    refused = CliRunner().invoke(all_commands(), ["serve", "--library", "x", "--watch", "."])
    assert len(served) == 1 and "MOVIOLA_OCR: 'perhaps'" in str(refused.exception)


@pytest.mark.parametrize(
    ("usual", "said"),
    [
        ({"SPEECH": "pocketsfinx"}, "pocketsfinx"),
        ({"SPEECH": "tiny.en", "SPEECH_LANGUAGE": "de"}, "does not know the language 'de'"),
        ({"OCR_READER": "nobody"}, "nobody"),
    ],
)
def test_readers_that_are_not_there_are_named_at_the_start(
    served: list[Options], monkeypatch: pytest.MonkeyPatch, usual: dict[str, str], said: str
) -> None:
    for name, value in usual.items():
        monkeypatch.setenv(f"MOVIOLA_{name}", value)
    answer = CliRunner().invoke(all_commands(), ["serve", "--library", "x", "--watch", "."])
    assert not served and said in str(answer.exception)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--alert-to", "https://example.org"], "give that too"),
        (["--watch", ".", "--alert", "doors"], "say where findings"),
        (["--watch", ".", "--alert-to", "echo 'found"], "No closing quotation"),
        (["--watch", ".", "--alert-to", "a", "--alert-to", "b"], "one address and one command"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    served: list[Options], options: list[str], words: str
) -> None:
    result = CliRunner().invoke(all_commands(), ["serve", "--library", "x", *options])
    assert (result.exit_code, served) == (2, []) and words in result.output
