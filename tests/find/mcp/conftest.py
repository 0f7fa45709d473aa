"""A library of small films for agents, and a client of the SDK that talks to it in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from mcp import Client
from mcp.types import CallToolResult

from moviola.mcp import library_server
from moviola.media import write_video
from moviola.search import Library

RATE = 5
SUBTITLES = "1\n00:00:02,000 --> 00:00:05,000\nThe umbrella is gone.\n"
COLOURS = {"harbour": (200, 40, 40), "street": (40, 40, 200), "deep/yard": (40, 160, 40)}


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three films of 12 s, one of them with subtitles and one in a folder, and a file that is none."""
    folder = tmp_path_factory.mktemp("films")
    for name, colour in COLOURS.items():
        path = folder / f"{name}.mp4"
        path.parent.mkdir(exist_ok=True)
        frames = np.tile(np.array(colour, np.uint8), (12 * RATE, 72, 96, 1))
        for number, frame in enumerate(frames):
            frame[20:40, number : number + 20] = 255
        write_video(path, list(frames), rate=RATE)
    (folder / "harbour.srt").write_text(SUBTITLES)
    (folder / "broken.mp4").write_bytes(b"nothing of a film")
    return folder


@pytest.fixture(scope="session")
def folder(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their library; to be read only."""
    folder = tmp_path_factory.mktemp("library") / "lib"
    with Library(folder, encoder="demo", sentence_encoder="none") as library:
        library.index(films)
    return folder


@pytest.fixture
def library(folder: Path) -> Iterator[Library]:
    """The library, opened."""
    with Library(folder, read_only=True) as opened:
        yield opened


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """The folder for clips, which is not there yet."""
    return tmp_path / "given" / "clips"


Call = Callable[..., CallToolResult]


@pytest.fixture
def call(library: Library, clips: Path) -> Call:
    """``call("look", video_id=…)``: what a tool answers."""
    server = library_server(library, clips=clips)

    def run(tool: str, **arguments: Any) -> CallToolResult:
        async def once() -> CallToolResult:
            async with Client(server) as client:
                return await client.call_tool(tool, arguments)

        return anyio.run(once)

    return run
