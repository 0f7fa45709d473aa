"""The command as an agent's program starts it: a process of its own, the protocol on its standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, jsonrpc_message_adapter

# A library that prints in every way there is, whenever something is looked for.
LOUD = """
import ctypes, os, subprocess, sys
from moviola.cli import main
from moviola.search import Library

quiet = Library.search
def search(self, *args, **options):
    print("python, not flushed")
    os.write(1, b"descriptor\\n")
    libc = ctypes.CDLL(None)
    libc.puts(b"C, not flushed")
    subprocess.run(["echo", "child"], check=True)
    return quiet(self, *args, **options)
Library.search = search
sys.argv = ["moviola", "mcp", *sys.argv[1:]]
main()
"""
NOISE = ["python, not flushed", "descriptor", "C, not flushed", "child"]


def test_the_entry_of_a_server_over_http(folder: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "moviola", "mcp", "-l", str(folder), "--http", "8808", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    entry = json.loads(said.stdout)["mcpServers"]["moviola"]
    assert entry == {"type": "http", "url": "http://127.0.0.1:8808/mcp"}


def test_the_command(folder: Path, tmp_path: Path) -> None:
    """Started as the entry for a client's configuration says, from another working folder."""
    said = subprocess.run(
        [
            sys.executable, "-m", "moviola", "mcp", "-l", str(folder), "--clips", str(tmp_path / "clips"),
            "--json",
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    entry = json.loads(said.stdout)["mcpServers"]["moviola"]
    started = StdioServerParameters(**entry, env=dict(os.environ), cwd=tmp_path)

    async def talk() -> tuple[list[str], CallToolResult, CallToolResult]:
        async with Client(started) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("search_moments", {"query": "The umbrella is gone", "top_k": 1})
            assert found.structured_content is not None
            (moment,) = found.structured_content["moments"]
            wanted = {key: moment[key] for key in ("video_id", "start", "end")}
            return tools, found, await client.call_tool("cut_clip", {**wanted, "name": "red"})

    tools, found, clip = anyio.run(talk)
    assert tools == ["search_moments", "look", "list_videos", "cut_clip"]
    assert [content.type for content in found.content] == ["text", "image"]
    assert not clip.is_error and (tmp_path / "clips" / "red.mp4").is_file()


def test_nothing_but_the_protocol_on_standard_output(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "loud.py"
    script.write_text(LOUD)
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    call = {"name": "search_moments", "arguments": {"query": "a red wall", "top_k": 1}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    server = subprocess.Popen(
        [sys.executable, str(script), "-l", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with server:
        assert server.stdin is not None and server.stdout is not None
        for message in sent:
            server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        lines = [server.stdout.readline(), server.stdout.readline()]
        rest, errors = server.communicate()
    assert server.returncode == 0, errors
    messages = [jsonrpc_message_adapter.validate_json(line) for line in [*lines, *rest.splitlines()]]
    assert [message.id for message in messages] == [1, 2]  # type: ignore[union-attr]
    assert sorted(errors.splitlines()) == sorted(NOISE)


def test_no_library(tmp_path: Path) -> None:
    """One line on standard error, as from any command."""
    said = subprocess.run(
        [sys.executable, "-m", "moviola", "mcp", "-l", str(tmp_path / "none")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("error: ") and len(said.stderr.splitlines()) == 1


def test_without_the_sdk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the extra."""
    code = (
        "import sys; sys.modules['mcp'] = None; sys.argv = ['moviola', *sys.argv[1:]]\n"
        "from moviola.cli import main\nmain()"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, "mcp", "-l", str(folder)], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout) == (1, "")
    assert "-m pip install 'mcp<" in said.stderr
