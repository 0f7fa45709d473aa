"""A library on a disk that is mounted read-only: all of it is read, and what would change it says why not."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from furnished import small_film
from moviola.cli import all_commands
from moviola.errors import InvalidValue, LibraryError
from moviola.files import presence
from moviola.files.locks import exclusive
from moviola.library import IngestProgress, Paused
from moviola.library.disk.database import named
from moviola.library.userdata.values import Mark
from moviola.search import Library, Marked, MarkedMoment
from other_encoder import write_other_encoder

READING = (
    ("search", "lighthouse keeper", "--json"), ("search", "a red square", "--weak", "--json"),
    ("list", "--json"), ("show", "a", "--json"), ("transcript", "a", "--json"), ("kept", "list", "--json"),
    ("kept", "run", "keepers", "--json"), ("concepts", "list", "--json"), ("duplicates", "--json"),
    ("library", "info", "--json"), ("library", "removed", "--json"), ("verify", "--json"),
)  # fmt: skip
CHANGING = (
    ("library", "use", "--encoder", "OTHER"), ("library", "use", "--precision", "bf16"),
    ("library", "use", "--segment-seconds", "2", "--frame-rate", "2"), ("index", "FILMS"), ("remove", "a"),
    ("compact",), ("repair",), ("teach", "walls"), ("kept", "delete", "search", "keepers", "--yes"),
)  # fmt: skip
SCRIPT = """
import json, sys
from typer.testing import CliRunner
from moviola.cli import all_commands
done = []
for words in json.load(sys.stdin):
    one = CliRunner().invoke(all_commands(), words)
    done.append([one.exit_code, one.stdout, f"{one.stderr} {one.exception or ''}"])
print(json.dumps(done))
"""


def mounted(folder: Path, command: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command that sees a folder read-only, and nobody else does."""
    again = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", again, str(folder), *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, **more)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_is_read_and_what_would_change_it_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of a change of encoder, answered by both: a command that fails, answers something else,
    or speaks of SQLite and locks; a change that loses something before it is refused.
    """
    if shutil.which("unshare") is None or mounted(tmp_path, ["true"]).returncode:
        pytest.skip("this user may not mount")
    for name in ("CONFIG", "LOG"):
        monkeypatch.setenv(f"MOVIOLA_{name}", "")
    monkeypatch.setenv("COLUMNS", "500")
    folder, films, other = (tmp_path / name for name in ("library", "films", "other"))
    small_film(films / "a.mp4", 1, "A lighthouse keeper.")
    small_film(films / "b.mp4", 2)
    write_other_encoder(other)

    def stop(step: IngestProgress) -> None:
        if step.done == 1:
            raise Paused

    with Library(folder, encoder="demo", sentence_encoder="none") as library:
        library.index(films, ocr=False, speech="none", sounds="none")
        library.concepts.teach("Red walls", Marked(None, (MarkedMoment("a", 1.0, 3.0),)))
        library.userdata.put("search", "keepers", {"query": "lighthouse keeper"})
        library.userdata.mark(Mark(video_id="a", start=1.0, end=2.5), add=["stall"], rating=4)
        library.indexer.use_encoder(str(other), both_from=0.4, progress=stop)
    places = {"OTHER": str(other), "FILMS": str(films)}
    commands = [
        [*(places.get(word, word) for word in words), "--library", str(folder)]
        for words in READING + CHANGING
    ]

    wanted = [CliRunner().invoke(all_commands(), words) for words in commands[: len(READING)]]
    before = content(folder)
    done = mounted(folder, [sys.executable, "-c", SCRIPT], input=json.dumps(commands))
    assert not done.returncode and content(folder) == before, done.stderr
    found: list[tuple[int, str, str]] = json.loads(done.stdout)
    for words, (code, out, said), theirs in zip(READING, found, wanted, strict=False):
        assert (code, out) == (0, theirs.stdout), (words, out, said, theirs)
    for words, (code, out, said) in zip(CHANGING, found[len(READING) :], strict=True):
        assert code == 1 and not out, (words, out, said)
        if words[0] != "teach":
            assert f"{folder}: {presence.READ_ONLY}" in " ".join(said.split()), (words, said)
    with Library(folder) as library:
        assert library.indexer.use_encoder(str(other)).done and library.concepts.all()


def test_what_the_system_says_of_it_is_put_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody may mount: modes of files do not keep an administrator from writing, so that the system's
    own answers stand in; another disk's trouble is not called read-only.
    """
    words = presence.READ_ONLY

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    for flags, said in ((os.ST_RDONLY, words), (0, "cannot be locked (Read-only file system)")):
        monkeypatch.setattr(os, "statvfs", lambda _, flags=flags: SimpleNamespace(f_flag=flags))
        with pytest.raises(InvalidValue) as raised, exclusive(tmp_path / "library" / ".lock"):
            pass
        assert said in str(raised.value) and str(tmp_path / "library") in str(raised.value)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    for code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = code
        with (
            pytest.raises(LibraryError, match="library: lies on a disk that is mounted read-only"),
            named(tmp_path / "library" / "kept.sqlite"),
        ):
            raise error
