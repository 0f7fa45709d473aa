"""A small library and apps that serve it: in the process for most tests, as a process of its own for some."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from awake import Awake
from moviola.media import write_video
from moviola.search import Library
from moviola.server import Options, create_app
from moviola.server.routes import videos
from rewrapped import to_matroska

SUBTITLES = "1\n00:00:02,000 --> 00:00:05,000\nThe umbrella is gone.\n"
ODD_NAME = "deep/Straße #1 ?50%&ü"


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three films, one under an odd name, one that browsers don't play, and a file that is none."""
    folder = tmp_path_factory.mktemp("films").resolve()
    generator = np.random.default_rng(0)
    (folder / "deep").mkdir()
    for name in ("harbour", ODD_NAME, "market"):
        walls = [np.full((72, 96, 3), generator.integers(0, 255, 3), np.uint8) for _ in range(4)]
        write_video(folder / f"{name}.mp4", [wall for wall in walls for _ in range(15)], rate=5)
    to_matroska(folder / "market.mp4")
    (folder / "harbour.srt").write_text(SUBTITLES)
    (folder / "broken.mp4").write_bytes(b"nothing of a film")
    return folder


@pytest.fixture(scope="session")
def original(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their library; not to be changed but for its cache."""
    folder = tmp_path_factory.mktemp("original") / "library"
    with Library(folder, encoder="demo", sentence_encoder="none") as library:
        library.index(films, ocr=False)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of the library, without what servers have made."""
    made = shutil.ignore_patterns("stills", "converted")
    return Path(shutil.copytree(original, tmp_path / "library", ignore=made))


FIRST = ("broken", ODD_NAME)
"""Videos of the first of two libraries; the second has the others."""


def _divided(original: Path, place: Path) -> list[Path]:
    """The library as two, "first" and "second", with the same ids."""
    folders = [place / "first", place / "second"]
    for number, folder in enumerate(folders):
        shutil.copytree(original, folder, ignore=shutil.ignore_patterns("stills", "converted"))
        with Library(folder) as library:
            every = library.catalogue.video_ids()
            library.indexer.remove([one for one in every if (one in FIRST) == bool(number)])
    return folders


@pytest.fixture(scope="session")
def original_two(original: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The library divided in two; not to be changed but for their caches."""
    return _divided(original, tmp_path_factory.mktemp("divided"))


@pytest.fixture
def two(original_two: list[Path], tmp_path: Path) -> list[Path]:
    """Copies of both."""
    made = shutil.ignore_patterns("stills", "converted")
    return [Path(shutil.copytree(one, tmp_path / one.name, ignore=made)) for one in original_two]


def _serving(folder: Path | list[Path], **options: Any) -> TestClient:
    return Awake(create_app(folder, Options(threads=2, **options)))


@pytest.fixture
def serving() -> Callable[..., TestClient]:
    """``with serving(folder, token="secret") as client``: a client of an app in this process."""
    return _serving


@pytest.fixture(autouse=True)
def started_programs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that servers of this process would have started on the machine; none is."""
    commands: list[list[str]] = []
    monkeypatch.setattr(videos, "play", commands.append)
    return commands


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests with ``client`` ask one library, and two that are served as one: at once where the answer comes
    from a library, in a module with ``TWO_LIBRARIES`` when that mark's turn is.
    """
    if "libraries" in metafunc.fixturenames:
        turn = getattr(metafunc.module, "TWO_LIBRARIES", ())
        served = ["one library", pytest.param("two libraries", marks=turn)]
        metafunc.parametrize("libraries", served, indirect=True, scope="session")


@pytest.fixture(scope="session")
def libraries(request: pytest.FixtureRequest, original: Path, original_two: list[Path]) -> Path | list[Path]:
    """What ``client`` asks: the library, or two."""
    return original if request.param == "one library" else original_two


@pytest.fixture(scope="session")
def client(libraries: Path | list[Path]) -> Iterator[TestClient]:
    """A client of a server without a token, for tests that change nothing."""
    with _serving(libraries) as started:
        yield started


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[..., Server]]:
    """Start servers of the copy as processes: ``start("--token", "secret")``."""
    servers: list[Server] = []

    def started(*options: str) -> Server:
        servers.append(Server(folder, *options))
        return servers[-1]

    yield started
    for server in servers:
        server.kill()


class Server:
    """``moviola serve`` in a process.

    Attributes:
        url: where it listens.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        command = [
            sys.executable,
            "-m",
            "moviola",
            "serve",
            "-l",
            str(folder),
            "--port",
            "0",
            "--json",
            *options,
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"}
        )
        assert self.process.stdout is not None
        self.url: str = json.loads(self.process.stdout.readline())["url"]

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
