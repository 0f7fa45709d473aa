"""The log of a command and of a server: lines of JSON in a file."""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awake import Awake
from moviola.cli.log_file import LogFile
from moviola.server import Options, create_app

Run = Callable[..., Any]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("written", ["--log FILE", "--log=FILE"])
def test_what_a_command_does(moviola: Run, library: Path, tmp_path: Path, written: str) -> None:
    path = tmp_path / "log.jsonl"
    words = written.replace("FILE", str(path)).split()
    assert moviola(*words, "search", "a secret wish", "-l", library).code == 0
    first, last = lines(path)
    assert (first["event"], first["command"], first["level"]) == ("command", "search", "info")
    assert (last["event"], last["code"], last["error"]) == ("end", 0, "") and last["milliseconds"] >= 0
    assert last["time"].endswith("+00:00") and "secret" not in path.read_text()


def test_an_error_is_logged_and_shown_once(
    moviola: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    monkeypatch.setenv("MOVIOLA_LOG", str(path))
    answer = moviola("list", "-l", tmp_path / "nix")
    assert answer.code == 1 and answer.err.count("no library there") == 1
    assert moviola("list", "--no-such-option").code == 2
    assert [(line["level"], line["event"], line.get("code")) for line in lines(path)] == [
        ("info", "command", None), ("error", "end", 1), ("info", "command", None), ("error", "end", 2),
    ]  # fmt: skip
    assert "no library there" in lines(path)[1]["error"]


def test_a_reader_that_has_read_enough_is_logged_as_no_error(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log.jsonl")
    log.attach("list")
    try:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")
    except BrokenPipeError:
        log.end()
    assert [(line["level"], line.get("code", 0)) for line in lines(tmp_path / "log.jsonl")] == [
        ("info", 0)
    ] * 2


def test_the_file_of_the_configuration(
    moviola: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    monkeypatch.setenv("MOVIOLA_CONFIG", str(config))
    config.write_text(f'log = "{tmp_path / "log.jsonl"}"\n')
    assert moviola("list", "-l", library).code == 0
    assert [line["command"] for line in lines(tmp_path / "log.jsonl")] == ["list", "list"]
    config.write_text('log = "log.jsonl"\n')
    assert "log = 'log.jsonl': write a full path" in moviola("list", "-l", library).err


@pytest.mark.parametrize("place", ["nix/log.jsonl", "folder", "pipe", "film.mp4"])
def test_a_file_that_cannot_be_written(moviola: Run, library: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "film.mp4").write_bytes(b"no log")
    os.mkfifo(tmp_path / "pipe")
    answer = moviola("--log", f"{tmp_path}/{place}", "list", "-l", library)
    assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)
    assert "--log" in answer.err and "name a file" in answer.err
    assert (tmp_path / "film.mp4").read_bytes() == b"no log"


def test_a_disk_that_is_full_later_ends_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log = LogFile(tmp_path / "log.jsonl")
    monkeypatch.setattr(os, "write", full)
    log.attach("list")
    log.end()
    assert capsys.readouterr().err.count("cannot be written any more (No space left") == 1


def test_warnings_are_shown_as_without_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LogFile(tmp_path / "log.jsonl")
    log.attach("list")
    logging.getLogger("moviola.server").warning("no query can be answered")
    logging.getLogger("moviola.server").info("a detail")
    log.end()
    logging.getLogger("moviola.server").info("after the end")
    events = [(line["level"], line["event"]) for line in lines(tmp_path / "log.jsonl")]
    assert events[1:3] == [("warning", "no query can be answered"), ("info", "a detail")] and len(events) == 4
    assert capsys.readouterr().err.count("no query can be answered") == 1


def test_requests_without_what_is_searched_for(library: Path, tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log.jsonl")
    log.attach("serve")
    with Awake(create_app(library, Options(token="hidden"))) as client:
        assert client.get("/?token=hidden").status_code == 200
        assert client.post("/api/search", json={"query": "a secret wish"}).status_code == 200
        assert client.get("/api/videos/nothing%20there?q=secret").status_code == 422
    log.end()
    requests = [line for line in lines(tmp_path / "log.jsonl") if line["event"] == "request"]
    assert [(line["method"], line["path"], line["status"]) for line in requests] == [
        ("GET", "/", 200), ("POST", "/api/search", 200), ("GET", "/api/videos/nothing%20there", 422),
    ]  # fmt: skip
    assert all(line["milliseconds"] >= 0 for line in requests)
    text = (tmp_path / "log.jsonl").read_text()
    assert "secret" not in text and "hidden" not in text
