"""Videos that are sent in parts, by tus."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from moviola.errors import InvalidValue, NotFound
from moviola.media import write_video
from moviola.server import receiving
from moviola.server.options import Limits
from moviola.server.problems import Busy
from moviola.server.receiving import Receiving

Serving = Callable[..., TestClient]
TUS = {"Tus-Resumable": "1.0.0"}


def film() -> bytes:
    """A video of 10,240 bytes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        write_video(path, [np.full((48, 64, 3), shade, np.uint8) for shade in range(0, 200, 20)], rate=5)
        return path.read_bytes().ljust(10_240, b"\0")


CONTENT = film()


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """A folder that videos are sent to."""
    folder = (tmp_path / "inbox").resolve()
    folder.mkdir()
    return folder


@pytest.fixture
def client(serving: Serving, folder: Path, inbox: Path) -> Iterator[TestClient]:
    """A client of a server that takes videos."""
    with serving(folder, allow_ingest=(inbox,), limits=Limits(upload_bytes=20_000, uploads=3)) as client:
        yield client


def begin(client: TestClient, length: int = len(CONTENT), name: str = "beach.mp4", **fields: str) -> Any:
    metadata = ",".join(
        f"{key} {base64.b64encode(value.encode('utf-8', 'surrogatepass')).decode()}"
        for key, value in {"filename": name, **fields}.items()
    )
    headers = {**TUS, "Upload-Length": str(length), "Upload-Metadata": metadata}
    return client.post("/api/uploads", headers=headers)


def send(client: TestClient, place: str, offset: int, content: Any, **more: str | bytes) -> Any:
    headers = {**TUS, "Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset), **more}
    return client.patch(place, headers=headers, content=content)


def test_what_is_spoken(client: TestClient) -> None:
    answer = client.options("/api/uploads")
    assert (answer.status_code, answer.headers["Tus-Version"]) == (204, "1.0.0")
    assert answer.headers["Tus-Max-Size"] == "20000"
    assert answer.headers["Tus-Extension"] == "creation,termination,checksum,expiration"
    assert "sha1" in answer.headers["Tus-Checksum-Algorithm"].split(",")


def test_a_video_in_parts_is_whole_under_its_name(client: TestClient, inbox: Path) -> None:
    for expected in ("beach.mp4", "beach (2).mp4"):
        begun = begin(client)
        assert (begun.status_code, begun.headers["Upload-Offset"]) == (201, "0")
        place = begun.headers["Location"]
        for start in range(0, len(CONTENT), 4000):
            asked = client.head(place, headers=TUS)
            assert (asked.headers["Upload-Offset"], asked.headers["Upload-Length"]) == (str(start), "10240")
            assert asked.headers["Cache-Control"] == "no-store" and asked.headers["Upload-Expires"]
            assert not (inbox / expected).exists()
            sent = send(client, place, start, CONTENT[start : start + 4000])
            assert (sent.status_code, sent.headers["Tus-Resumable"]) == (204, "1.0.0"), sent.text
        assert (inbox / expected).read_bytes() == CONTENT
        state = client.get(place).json()
        assert (state["path"], state["offset"], state["bytes"]) == (str(inbox / expected), 10_240, 10_240)
        assert client.head(place, headers=TUS).headers["Upload-Offset"] == "10240"
    assert {path.name for path in inbox.iterdir()} == {"beach.mp4", "beach (2).mp4"}


def test_an_upload_goes_on_on_another_server(
    serving: Serving, folder: Path, inbox: Path, client: TestClient
) -> None:
    place = begin(client).headers["Location"]
    send(client, place, 0, CONTENT[:5000])
    with serving(folder, allow_ingest=(inbox,)) as other:
        assert other.head(place, headers=TUS).headers["Upload-Offset"] == "5000"
        assert send(other, place, 5000, CONTENT[5000:]).status_code == 204
    assert (inbox / "beach.mp4").read_bytes() == CONTENT


def test_an_upload_is_finished_where_the_server_was_killed_after_its_last_byte(
    client: TestClient, inbox: Path
) -> None:
    place = begin(client).headers["Location"]
    (part,) = inbox.glob(".moviola-*.part")
    part.write_bytes(CONTENT)
    assert client.head(place, headers=TUS).headers["Upload-Offset"] == "10240"
    assert client.get(place).json()["path"] == str(inbox / "beach.mp4")
    assert [path.name for path in inbox.iterdir()] == ["beach.mp4"]
    assert (inbox / "beach.mp4").read_bytes() == CONTENT


def test_what_has_arrived_before_the_connection_broke_stays(start: Callable[..., Any], inbox: Path) -> None:
    server = start("--allow-ingest", str(inbox))
    port = int(server.url.rsplit(":", 1)[1].partition("/")[0])

    def asked(head: str, rest: str, body: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.settimeout(60)
        lines = f"{head} HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\n{rest}\r\n\r\n"
        connection.sendall(lines.encode() + body)
        return connection

    def patch(offset: int, length: int, body: bytes) -> socket.socket:
        kind = "Content-Type: application/offset+octet-stream"
        return asked(f"PATCH {place}", f"Upload-Offset: {offset}\r\n{kind}\r\nContent-Length: {length}", body)

    metadata = "Upload-Metadata: filename YmVhY2gubXA0\r\nContent-Length: 0"
    with asked("POST /api/uploads", f"Upload-Length: 10240\r\n{metadata}") as connection:
        begun = connection.recv(4000).decode().split("\r\n")
    (place,) = [line.split(": ")[1] for line in begun if line.startswith("location")]
    (part,) = inbox.glob(".moviola-*.part")
    with patch(0, 10_240, CONTENT[:3000]):
        while part.stat().st_size < 3000:
            time.sleep(0.01)
    answer = b"HTTP/1.1 503"
    while answer.startswith(b"HTTP/1.1 503"):  # until the server has noticed that the first one is gone
        with patch(3000, 0, b"") as connection:
            answer = connection.recv(4000)
    assert b"upload-offset: 3000" in answer
    assert part.read_bytes() == CONTENT[:3000]


@pytest.mark.parametrize(
    ("more", "offset", "status"),
    [
        ({"Tus-Resumable": "0.2.2"}, 100, 412), ({"Tus-Resumable": ""}, 100, 412),
        ({"Content-Type": "video/mp4"}, 100, 415), ({}, 0, 409), ({}, 101, 409),
        ({"Upload-Checksum": "sha1 " + base64.b64encode(b"x" * 20).decode()}, 100, 460),
        ({"Upload-Checksum": "crc32 AAAA"}, 100, 422), ({"Upload-Checksum": "sha1 %"}, 100, 422),
        ({"Upload-Checksum": "sha1 é".encode("latin-1")}, 100, 422),
    ],
)  # fmt: skip
def test_a_part_that_does_not_fit_changes_nothing(
    client: TestClient, more: dict[str, str | bytes], offset: int, status: int
) -> None:
    place = begin(client).headers["Location"]
    send(client, place, 0, CONTENT[:100])
    answer = send(client, place, offset, CONTENT[100:200], **more)
    assert answer.status_code == status and answer.json()["error"]["message"]
    assert answer.headers["Tus-Resumable"] == "1.0.0"
    assert (answer.headers.get("Tus-Version") == "1.0.0") == (status == 412)
    assert client.head(place, headers=TUS).headers["Upload-Offset"] == "100"


def test_a_name_that_is_no_base64_is_refused(client: TestClient) -> None:
    for name in (b"%", "é".encode("latin-1"), b"/w=="):
        headers = {**TUS, "Upload-Length": "10", "Upload-Metadata": b"filename " + name}
        answer = client.post("/api/uploads", headers=headers)
        assert (answer.status_code, "base64" in answer.text) == (422, True)


@pytest.mark.parametrize("algorithm", receiving.ALGORITHMS)
def test_a_part_with_its_checksum_counts(client: TestClient, algorithm: str) -> None:
    place = begin(client).headers["Location"]
    digest = hashlib.new(algorithm, CONTENT[:100]).digest()
    checksum = f"{algorithm} {base64.b64encode(digest).decode()}"
    sent = send(client, place, 0, CONTENT[:100], **{"Upload-Checksum": checksum})
    assert sent.headers["Upload-Offset"] == "100"


def test_more_than_was_announced_or_is_allowed_is_refused(client: TestClient, inbox: Path) -> None:
    assert begin(client, 20_001).status_code == 413
    place = begin(client, 1000).headers["Location"]
    for content in (b"x" * 1001, (b"x" * 100 for _ in range(20)), b"x" * 20_001):
        assert send(client, place, 0, content).status_code == 413
        assert client.head(place, headers=TUS).headers["Upload-Offset"] == "0"
    assert begin(client, 0).status_code == 422
    assert [path.suffix for path in sorted(inbox.iterdir())] == [".json", ".part"]


@pytest.mark.parametrize(
    "name",
    [
        "../x.mp4", "/x.mp4", "..", ".x.mp4", "a\\b.mp4", "x.sh", "x", "a\0.mp4", "x" * 300 + ".mp4", "",
        "\ud800.mp4",
    ],
)  # fmt: skip
def test_names_that_are_not_of_a_video_are_refused(client: TestClient, inbox: Path, name: str) -> None:
    assert begin(client, name=name).status_code == 422
    assert list(inbox.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("What now? Part 1: the start.mp4", "?: in it, which not every system takes"),
        ("東" * 80 + ".mp4", "244 bytes of UTF-8, more than 200"),
        (" beach.mp4", "spaces around it"),
        (".beach.mp4", "a hidden file"),
    ],
)
def test_it_is_said_what_is_wrong_with_a_name(client: TestClient, name: str, reason: str) -> None:
    assert f"{reason}; rename the file" in begin(client, name=name).json()["error"]["message"]


def test_only_into_folders_that_are_allowed(serving: Serving, folder: Path, client: TestClient) -> None:
    assert begin(client, folder="/etc").status_code == 404
    with serving(folder) as reading:
        assert begin(reading).json()["error"]["code"] == "forbidden"
    for name in ("x", "../../etc/passwd", "..%2f..", "0" * 32):
        assert client.head(f"/api/uploads/{name}", headers=TUS).status_code == 404


def test_a_cancelled_upload_leaves_nothing(client: TestClient, inbox: Path) -> None:
    place = begin(client).headers["Location"]
    send(client, place, 0, CONTENT[:100])
    assert client.delete(place, headers=TUS).status_code == 204
    assert client.delete(place, headers=TUS).status_code == 404
    assert list(inbox.iterdir()) == []
    whole = begin(client).headers["Location"]
    send(client, whole, 0, CONTENT)
    client.delete(whole, headers=TUS)
    assert (inbox / "beach.mp4").read_bytes() == CONTENT


def test_what_is_no_video_is_refused_when_it_is_whole_and_deleted(client: TestClient, inbox: Path) -> None:
    place = begin(client, 2000).headers["Location"]
    assert send(client, place, 0, b"words" * 200).status_code == 204
    refused = send(client, place, 1000, b"words" * 200)
    assert refused.status_code == 422
    assert refused.json()["error"]["message"].startswith("beach.mp4: a text file")
    assert client.get(place).status_code == 404
    assert list(inbox.iterdir()) == []


def test_many_who_begin_at_once_are_counted(inbox: Path) -> None:
    received, together = Receiving([inbox], 20_000, 3), Barrier(12)

    def one(number: int) -> bool:
        together.wait()
        try:
            received.begin(f"film {number}.mp4", 10)
        except Busy:
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(one, range(12))) == 3
    assert len(list(inbox.glob(".moviola-*.part"))) == 3


def test_unfinished_uploads_are_limited_and_expire(client: TestClient, inbox: Path) -> None:
    places = [begin(client).headers["Location"] for _ in range(3)]
    assert begin(client).status_code == 503
    for part in inbox.glob("*.part"):
        if part.name.removeprefix(".moviola-")[:32] in places[0]:
            os.utime(part, (0, 0))
    assert begin(client).status_code == 201
    found = [client.head(place, headers=TUS).status_code for place in places]
    assert found == [404, 200, 200]


@pytest.mark.parametrize("suffix", ["part", "json"])
def test_what_a_killed_server_had_just_begun_expires(inbox: Path, suffix: str) -> None:
    half = inbox / f".moviola-{'0' * 32}.{suffix}"
    half.touch()
    uploads = Receiving([inbox], 1000, 10)
    uploads.sweep()
    assert half.exists()
    os.utime(half, (0, 0))
    uploads.sweep()
    assert not half.exists()


def test_an_upload_that_cannot_be_begun_leaves_nothing(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(receiving, "write_json", full)
    with pytest.raises(InvalidValue, match="make room"):
        Receiving([inbox], 1000, 10).begin("film.mp4", 10)
    assert list(inbox.iterdir()) == []


def test_what_is_no_upload_is_left_alone(inbox: Path) -> None:
    for name in (".moviola-x.json", ".moviola-" + "0" * 32 + ".json", "film.part"):
        (inbox / name).write_text("not JSON")
    uploads = Receiving([inbox], 1000, 10)
    with pytest.raises(NotFound, match="begin again"):
        uploads.find("0" * 32)
    uploads.sweep()
    assert len(list(inbox.iterdir())) == 3
