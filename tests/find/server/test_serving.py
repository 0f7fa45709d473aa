"""A server as a process: what only shows over a real connection."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from typer.testing import CliRunner

from http_calls import error, ok, search
from moviola.cli import all_commands
from moviola.errors import InvalidValue, LibraryError
from moviola.server import Options
from moviola.server.running import _listen

app = all_commands()

pytestmark = pytest.mark.slow


def test_it_serves_and_ends_in_peace(start: Callable[..., Any], films: Path) -> None:
    server = start()
    content = (films / "harbour.mp4").read_bytes()
    with httpx2.Client(base_url=server.url) as http:
        assert search(http, "umbrella")["moments"][0]["video_id"] == "harbour"
        part = http.get("/api/videos/harbour/stream", headers={"Range": "bytes=5-14"})
        assert (part.status_code, part.content) == (206, content[5:15])
        assert http.head("/api/videos/harbour/stream").headers["Content-Length"] == str(len(content))
        assert "server" not in part.headers
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(30) == 130  # interrupted, as the help of moviola says


def test_a_token_and_foreign_hosts(start: Callable[..., Any]) -> None:
    server = start("--host", "0.0.0.0", "--token", "a-secret")
    port = urlsplit(server.url).port
    assert server.url.endswith("/?token=a-secret")
    url = f"http://127.0.0.1:{port}"
    known, wrong = (
        httpx2.get(f"{url}/api/library", headers={"Authorization": f"Bearer {token}"})
        for token in ("a-secret", "wrong")
    )
    assert ok(known)["name"] == "library"
    refused = error(wrong)
    assert refused[:2] == (401, "unauthorised") and "token" in refused[2]


def test_requests_that_are_no_http_leave_it_standing(start: Callable[..., Any]) -> None:
    server = start()
    address = (urlsplit(server.url).hostname or "", urlsplit(server.url).port or 0)
    for data in (
        b"\x00\x01\x02", b"GET", b"GET / HTTP/1.1\r\n\r\n", b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://evil.example/api/library HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    ):  # fmt: skip
        with socket.create_connection(address, timeout=30) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
            assert b" 500 " not in answer.partition(b"\r\n")[0]
            assert b"segments" not in answer  # of /api/library
    with httpx2.Client(base_url=server.url) as http:
        assert ok(http.get("/api/library"))["name"] == "library"


def test_what_cannot_be_served_is_said(folder: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    for options, words in (
        (["-l", str(tmp_path / "nix")], "no library there"),
        (["-l", str(folder), "--host", "0.0.0.0"], "without a token"),
        (["-l", str(folder), "--host", "192.0.2.1", "--token", "x"], "cannot listen there"),
        (["-l", str(folder), "--allow-ingest", str(tmp_path / "nix")], "no such folder"),
    ):
        error = runner.invoke(app, ["serve", *options]).exception
        assert isinstance(error, InvalidValue | LibraryError | LookupError) and words in str(error)


def test_a_machine_without_ipv6_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")

    monkeypatch.setattr(socket, "socket", refused)
    with pytest.raises(InvalidValue, match="::1:8765: cannot listen there"):
        _listen(Options(host="::1"))
