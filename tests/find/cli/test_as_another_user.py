"""A library of which a user may not read everything: each command says which file, and changes nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moviola.library.userdata.values import Mark
from moviola.search import Library

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)

# Everything is done by root first, who loads all modules; the other user may not even read Python's.
_CHILD = """
import contextlib, io, json, os, pwd, sys, traceback
from pathlib import Path
from fastapi.testclient import TestClient
from moviola.cli import main
from moviola.server import Options, create_app

def sent(library, inbox, headers):
    app = create_app(Path(library), Options(allow_ingest=(Path(inbox),)))
    with TestClient(app, base_url="http://localhost") as client:
        answer = client.post("/api/uploads", headers=headers)
        print(answer.status_code, answer.text)

def outcome(words):
    out, code = io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            if words[0] == "send":
                sent(*words[1:])
            else:
                sys.argv = ["moviola", *words]
                main()
        except SystemExit as left:
            code = left.code
        except BaseException:
            traceback.print_exc()
    return code, out.getvalue()

first, then = json.load(sys.stdin)
for words in first:
    outcome(words)
nobody = pwd.getpwnam("nobody")
os.setgroups([])
os.setgid(nobody.pw_gid)
os.setuid(nobody.pw_uid)
print(json.dumps([outcome(words) for words in then]))
"""

# What may not be read; and of each command the exit code, and what it says: {} is the file's path.
_CASES: dict[str, dict[str, tuple[int, str]]] = {
    "lib/catalogue.sqlite": {
        "search": (1, "{}: unable to open database file; it and its folder must be readable"),
        "verify": (1, "{}: unable to open"),
        "repair": (1, "{}: unable to open"), "remove": (1, "{}: unable to open"),
    },
    "lib/moviola.toml": {
        "search": (1, "{}: cannot be read (Permission denied); give this user the right to read it"),
        "verify": (1, "{}: cannot be read"),
        "repair": (1, "{}: cannot be read"), "index": (1, "{}: cannot be read"), "remove": (1, "{}: cannot"),
    },
    "lib/features/frames-00000.f16": {
        "search": (1, "{}: cannot be read (Permission denied); put it back"), "verify": (3, "{}: cannot be"),
        "repair": (1, "{}: cannot be read"), "list": (0, "street"),
    },
    "lib/features": {
        "search": (1, "{}/frames-00000.f16: cannot be read (Permission denied)"),
        "verify": (3, "{}/frames-00000.f16: cannot be read"), "repair": (1, "{}/frames-00000.f16: cannot"),
    },
    "lib/index": {
        "search": (0, "harbour"), "verify": (3, "{}/segments.json: cannot be read (Permission denied); give"),
        "repair": (1, "{}/segments.json: cannot be written"),
    },
    "lib/index/segments.json": {"search": (0, "harbour"), "verify": (3, "{}: damaged manifest")},
    "lib/cache": {"search": (0, "harbour"), "repair": (1, "{}/facts: Permission denied")},
    "lib/stills.sqlite": {
        "search": (0, "harbour"), "verify": (3, "{}: unable to open"),
        "repair": (0, "0 problems repaired"),
    },
    "lib/kept.sqlite": {
        "search": (0, "harbour"), "kept": (1, "{}: unable to open"), "verify": (3, "{}: unable to open"),
        "repair": (0, "0 problems repaired"),
    },
    "films/new.mp4": {"index": (3, "new.mp4: cannot be read (Permission denied); check its permissions")},
    "inbox": {"send": (0, "{}")},
}  # fmt: skip
# Commands that say what is wrong, and change nothing at all.
_CHANGES_NOTHING = {
    "lib/catalogue.sqlite",
    "lib/moviola.toml",
    "lib/features/frames-00000.f16",
    "lib/features",
    "inbox",
}


_LEFT_BY_READERS = {".lock", "last-answer.json", "catalogue.sqlite-shm", "catalogue.sqlite-wal"}


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder that others may reach, as those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="moviola-nobody-") as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "home").mkdir()
        yield Path(folder)


def words_of(name: str, base: Path) -> list[Any]:
    library = str(base / "lib")
    if name == "send":
        named = base64.b64encode(b"beach.mp4").decode()
        headers = {"Tus-Resumable": "1.0.0", "Upload-Length": "100", "Upload-Metadata": f"filename {named}"}
        return ["send", library, str(base / "inbox"), headers]
    words = {
        "search": ["a red square", "--weak"],
        "index": [str(base / "films")],
        "remove": ["harbour"],
        "kept": ["list"],
    }
    return [name, *words.get(name, []), "--library", library]


def content(folder: Path) -> dict[str, str]:
    """A digest of each file of a library, but of what a search leaves."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in _LEFT_BY_READERS)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
def test_what_another_user_may_not_read(library: Path, films: Path, room: Path) -> None:
    """A repair replaced settings and stills that were whole where only a right was missing; an unreadable
    index ended searches, which do without one that is gone.
    """
    warm, asked, expected, before = room / "warm", [], [], {}
    bases = {name: room / str(number) for number, name in enumerate(_CASES)}
    for base in (warm, *bases.values()):
        shutil.copytree(library, base / "lib")
        shutil.copytree(films, base / "films", ignore=shutil.ignore_patterns("broken.mp4"))
        (base / "inbox").mkdir()
        with Library(base / "lib") as opened:
            opened.indexer.move(films, base / "films")
            opened.userdata.mark(Mark(video_id="harbour"), rating=4)
        shutil.copy(base / "films" / "street.mp4", base / "films" / "new.mp4")
    for name, base in bases.items():
        for path in (base, *base.rglob("*")):
            shutil.chown(path, "nobody")
        (base / name).chmod(0)
        before[name] = content(base)
        asked += [words_of(command, base) for command in _CASES[name]]
        expected += [
            (name, command, code, said.format(base / name)) for command, (code, said) in _CASES[name].items()
        ]
    shutil.chown(room / "home", "nobody")
    every = dict.fromkeys(command for commands in _CASES.values() for command in commands)
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps([[words_of(command, warm) for command in every], asked]),
        capture_output=True, text=True, check=True, cwd="/",
        env={**os.environ, "HOME": str(room / "home"), "COLUMNS": "2000"},
    )  # fmt: skip
    found = json.loads(done.stdout)
    wrong = [
        (name, command, code, said, outcome)
        for (name, command, code, said), outcome in zip(expected, found, strict=True)
        if outcome[0] != code
        or said.format(bases[name] / name) not in outcome[1]
        or "Traceback" in outcome[1]
    ]
    assert not wrong, "\n\n".join(map(str, wrong))
    for name in _CHANGES_NOTHING:
        assert content(bases[name]) == before[name], name
