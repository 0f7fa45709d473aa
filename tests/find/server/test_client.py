"""The typed client gives what the server gives, and errors as the library has them."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from fastapi.testclient import TestClient

from moviola.errors import InvalidValue, LibraryError, NotFound
from moviola.export import read_moments
from moviola.server import Client
from moviola.server.client import ServerError
from moviola.server.schemas import Job


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
    for selected, moment in zip(read_moments(tmp_path / "found.csv")[0], answer.moments, strict=True):
        known = ("rank", "video_id", "start", "end", "score", "strong", "source", "snippet", "snippet_kind")
        assert [getattr(selected.moment, name) for name in known] == [getattr(moment, name) for name in known]
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


@pytest.mark.parametrize("status", [200, 307, 502])
def test_another_program_at_the_address_is_an_error_of_the_server(status: int) -> None:
    page = httpx2.MockTransport(lambda _: httpx2.Response(status, text="<html>"))
    client = Client(http=httpx2.Client(transport=page, base_url="http://films"))
    with pytest.raises(ServerError, match=rf"http://films/api/library: {status}, not an answer"):
        client.library()


@pytest.mark.parametrize(
    ("url", "token", "sent"),
    [
        ("http://films:8765/?token=a%2Bsecret", "", "Bearer a+secret"),
        ("http://films:8765/?token=other", "secret\n", "Bearer secret"),
        ("http://films:8765/", "", None),
    ],
)
def test_an_address_as_it_is_printed(
    monkeypatch: pytest.MonkeyPatch, url: str, token: str, sent: str | None
) -> None:
    asked = []

    def answer(_: httpx2.HTTPTransport, request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, json={"jobs": []})

    monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", answer)
    with Client(url, token) as client:
        assert client.jobs() == []
    assert str(asked[0].url) == "http://films:8765/api/jobs"
    assert asked[0].headers.get("Authorization") == sent


@pytest.mark.parametrize("url", ["films:8765", "127.0.0.1:8765", "http://films:port"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match=f"url '{url}': "):
        Client(url)


def test_a_server_that_is_slow_is_not_said_to_be_away() -> None:
    def answer(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("timed out")

    client = Client(http=httpx2.Client(transport=httpx2.MockTransport(answer), base_url="http://films"))
    with pytest.raises(ServerError, match=r"no answer yet .*longer timeout"):
        client.jobs()


def test_events_of_files_with_odd_names() -> None:
    job = Job(
        job="a", state="done", sources=["films/sand\u2028sea\x85.mp4"], done=1, total=1, share=1.0,
        seconds_left=None, step="", video="", seconds=0.0, refused=[], added=1, copies=0, started=None,
        finished=None, error="",
    )  # fmt: skip
    text = f"retry: 2000\n\nid: 1\nevent: done\ndata: {job.model_dump_json()}\n\n"

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.startswith("/api/jobs/a/"):
            return httpx2.Response(200, text=text)
        raise httpx2.ConnectError("no connection")

    client = Client(http=httpx2.Client(transport=httpx2.MockTransport(answer), base_url="http://films"))
    assert list(client.events("a")) == [("done", job)]
    with pytest.raises(ServerError, match="moviola serve"):
        next(client.events("b"))
