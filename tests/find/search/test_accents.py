"""A name whose accents are apart, as macOS writes them, is found as people type it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unicodedata import normalize

import anyio
import pytest
from mcp import Client

from awake import Awake
from moviola.cli import main
from moviola.errors import NotFound
from moviola.library.userdata.values import Mark
from moviola.mcp import library_server
from moviola.search import Filter, Library
from moviola.server import create_app

APART, WHOLE = (normalize(form, "Übung/Café") for form in ("NFD", "NFC"))


@pytest.fixture(scope="module")
def accented(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of one film in a folder, without encoders."""
    videos = tmp_path_factory.mktemp("accents") / "videos"
    (videos / APART).parent.mkdir(parents=True)
    shutil.copy(films / "film2.mp4", videos / f"{APART}.mp4")
    with Library(videos.parent / "library", encoder="none", sentence_encoder="none") as library:
        assert library.index(videos).added == [APART]
    return videos.parent / "library"


@pytest.fixture
def library(accented: Path) -> Iterator[Library]:
    """It, opened."""
    with Library(accented, read_only=True) as opened:
        yield opened


def test_a_video_goes_by_its_name_in_either_form(library: Library) -> None:
    assert library.catalogue.video(WHOLE) == library.catalogue.video(APART)
    with pytest.raises(NotFound, match="did you mean"):
        library.catalogue.video(f"{WHOLE}s")


def test_its_name_is_completed(library: Library) -> None:
    assert [name for name, _ in library.complete("café").videos] == [APART]


@pytest.mark.parametrize("folder", ["*Café*", "{films}/Übung"])
def test_its_folder_is_found(library: Library, folder: str) -> None:
    video = library.catalogue.video(APART)
    composed = normalize("NFC", folder.format(films=Path(video.path).parents[1]))
    assert Filter(folder=composed).rows({video.row: video}, library.catalogue) == {video.row}


def test_a_tag_lies_on_the_video_itself(accented: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["moviola", "kept", "tag", WHOLE, "summer", "-l", str(accented)])
    with suppress(SystemExit):
        main()
    with Library(accented, read_only=True) as library:
        assert library.userdata.tagged() == {"summer": frozenset({APART})}
        library.userdata.mark(Mark(video_id=APART), remove=["summer"])


def test_lists_of_servers_find_it(library: Library, accented: Path) -> None:
    with Awake(create_app(accented)) as http:
        assert http.get("/api/videos", params={"text": "CAFÉ"}).json()["total"] == 1

    async def total() -> int:
        async with Client(library_server(library)) as agent:
            listed = await agent.call_tool("list_videos", {"text": "café"})
            return int((listed.structured_content or {})["total"])

    assert anyio.run(total) == 1
