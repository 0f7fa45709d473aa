"""Tools over several libraries as one: the same answers, and what is written goes where it always does."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from command_line import Outcome
from moviola.mcp import library_server
from moviola.search import Libraries, Library


@pytest.fixture
def two(folder: Path, tmp_path: Path) -> list[Path]:
    """The library divided: its first videos, and "street"."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for number, copy in enumerate(folders):
        shutil.copytree(folder, copy)
        with Library(copy) as library:
            every = library.catalogue.video_ids()
            library.indexer.remove([one for one in every if (one == "street") != bool(number)])
    return folders


def test_tools_answer_as_for_one_library(folder: Path, two: list[Path], clips: Path, films: Path) -> None:
    """Moments, pictures, lists and clips of videos of either library; an unknown one is said with the names
    of both.
    """
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search_moments", {"query": "a red wall"}),
        ("search_moments", {"query": {"right": [{"video_id": "street", "start": 0, "end": 4}]}}),
        ("look", {"video_id": "harbour", "start": 0, "end": 6}),
        ("look", {"video_id": "street", "start": 0, "end": 6}),
        ("list_videos", {}),
        ("list_videos", {"folder": str(films / "deep")}),
    ]

    def answers(library: Library) -> tuple[list[Any], str]:
        server = library_server(library, clips=clips / library.folder.name)

        async def asked() -> list[Any]:
            async with Client(server) as client:
                found = [await client.call_tool(tool, given) for tool, given in calls]
                cut = {"video_id": "street", "start": 1, "end": 3, "name": "street"}
                clip = (await client.call_tool("cut_clip", cut)).structured_content
                assert clip is not None and Path(clip.pop("path")).is_file()
                missing = await client.call_tool("look", {"video_id": "attic", "start": 0, "end": 1})
                assert missing.is_error
                return [*((one.structured_content, one.content) for one in found), clip]

        return anyio.run(asked), str(server.instructions)

    with Library(folder, read_only=True) as single, Libraries(two) as both:
        (wanted, one), (found, several) = answers(single), answers(both)
    assert found == wanted
    assert "of one library on this computer" in one
    assert "of 2 libraries, searched as one, on this computer" in several


def test_the_entry_of_a_configuration_names_all(two: list[Path], moviola: Callable[..., Outcome]) -> None:
    """A client that starts the server by it searches all of them."""
    named = [word for one in two for word in ("--library", str(one))]
    (entry,) = moviola("mcp", *named, "--json").rows
    assert entry["mcpServers"]["moviola"] == {
        "command": sys.executable, "args": ["-m", "moviola", "mcp", *named],
    }  # fmt: skip
