"""The typed client gives what the server gives, and errors as the library has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from moviola.errors import InvalidValue, LibraryError, NotFound
from moviola.server import Client
from moviola.server.client import ServerError


@pytest.fixture
def library(client: TestClient) -> Client:
    """A client of the session's server; not to be closed."""
    return Client(http=client)


def test_the_library_and_its_videos(library: Client) -> None:
    assert library.library().videos == 3 and library.videos(text="harbour").total == 1
    name = library.videos(state="ready").videos[0].video_id
    assert "/" in name and library.video(name).video_id == name
    assert len(library.shots("harbour")) == 4 and library.cues("harbour", 0, 3)[0].kind == "subtitle"
    assert library.still("harbour", 1.5).startswith(b"\xff\xd8")
    assert library.jobs() == []


def test_search_export_and_clips(library: Client, tmp_path: Path) -> None:
    answer = library.search({"terms": [{"text": "umbrella"}]}, top_k=2)
    assert len(answer.moments) == 2 and answer.confident
    library.export(answer.moments, "csv", tmp_path / "found.csv")
    assert (tmp_path / "found.csv").read_text().count("\n") == 3
    library.clip("harbour", 1, 2, tmp_path / "clip.mp4")
    assert (tmp_path / "clip.mp4").stat().st_size
    assert len(library.curve("umbrella", "harbour").scores) == 12


def test_a_picture(library: Client, tmp_path: Path) -> None:
    (tmp_path / "still.jpg").write_bytes(library.still("market", 4))
    picture = library.send_picture(tmp_path / "still.jpg")
    assert library.search({"terms": [{"picture": picture}]}).moments[0].video_id == "market"


def test_errors_are_those_of_the_library(library: Client) -> None:
    with pytest.raises(NotFound, match="nix"):
        library.video("nix")
    with pytest.raises(InvalidValue, match="top_k"):
        library.search("a", top_k=0)
    with pytest.raises(LibraryError, match="speech"):
        library.search("a", by="speech")
    with pytest.raises(ServerError, match="--allow-ingest") as refused:
        library.index("nix")
    assert refused.value.code == "forbidden"
    with pytest.raises(NotFound, match="unknown since"):
        next(library.events("nix"))
