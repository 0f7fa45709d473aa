"""*Input*: every command and every tool for agents, each argument one of the values that break programs.

The lists of commands, options and tools come from the program, so that what is new is tried by itself. What
must hold of each call, in a process of its own: it ends, with an error in words and an exit code or without
one, never with a traceback, and it reads no pipe, device or socket to its end. Routes over HTTP are tried so
by ``tests/find/server/test_openapi.py``.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import socket
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from children import in_child
from sample import films_in, library_of

__all__ = ["Inputs", "call_tool", "run_command"]

_SECONDS = 60
"""Of processor time, for a call on a library of three films."""

_SERVING = {"serve", "watch", "mcp"}
"""Commands that go on until they are stopped."""

_VALUES = (
    "", " ", "\n", "-1", "0", "1", "2.5", "1e400", "nan", "-inf", "9" * 400, "a" * 50_000, "\udcff", "\u202e",
    "émile", "a,b", "a..b", "1..", "..", "2021-13-45", "52,13,5", "a@1", "a@-1", "@nothing", "~nobody/x", "~",
    "[", "{", '{"a": [', "a.mp4", "a", "true", "null", "*", "--", "-", "🦄",
)  # fmt: skip

_PATHS = (
    "pipe",
    "socket",
    "loop",
    "missing/x",
    "empty",
    "bytes",
    "deep.json",
    "wrong.json",
    "films",
    "/dev/zero",
)


class Inputs:
    """Calls of commands and tools, in an order of the seed's.

    Args:
        folder: an empty one to work in.
        seed: of the calls.

    Attributes:
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._draw = folder, random.Random(seed)
        self._library = library_of(films_in(folder / "films"), folder / "original", model=False)
        self._commands, self._tools = commands(), anyio.run(_schemas, self._library)
        self._odd = _odd_paths(folder)
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Call one after the other until ``goes_on`` says no."""
        while goes_on():
            self.counts["tried"] += 1
            work = self._folder / "work"
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(self._library, work / "library")
            if self._draw.random() < 0.75:
                words = self._words()
                outcome = in_child(run_command, words, str(work), seconds=_SECONDS)
                what = " ".join(words)
            else:
                tool, arguments = self._call()
                outcome = in_child(call_tool, tool, arguments, str(work / "library"), seconds=_SECONDS)
                what = f"{tool} {arguments}"
            known = outcome in ("succeeded", "refused")
            self.counts[outcome if known else "failed"] += 1
            if not known:
                self.failures.append(f"{what[:300]!r}: {outcome}")

    def _words(self) -> list[str]:
        """A command, some of its arguments and options, each with any value."""
        name = self._draw.choice(sorted(self._commands))
        words = ["--log", self._value()] if self._draw.random() < 0.1 else []
        words += name.split()
        for options, is_flag in self._commands[name]:
            if options and self._draw.random() < 0.1:
                words += (
                    [self._draw.choice(options)] if is_flag else [self._draw.choice(options), self._value()]
                )
            elif not options and self._draw.random() < 0.9:
                words.append(self._value())
        return words

    def _call(self) -> tuple[str, dict[str, Any]]:
        name = self._draw.choice(sorted(self._tools))
        properties = self._tools[name].get("properties", {})
        required = self._tools[name].get("required", [])
        arguments: dict[str, Any] = {
            key: self._draw.choice((self._value(), -1, 10**30, 0.5, None, [], {"a": 1}, [self._value()]))
            for key in properties
            if key in required or self._draw.random() < 0.4
        }
        if self._draw.random() < 0.1:
            arguments["unknown"] = 1
        return name, arguments

    def _value(self) -> str:
        return self._draw.choice((self._draw.choice(_VALUES), self._draw.choice(self._odd)))


def commands() -> dict[str, list[tuple[list[str], bool]]]:
    """Commands that end, with their parameters: options (none: an argument), and whether it is a flag."""
    import typer

    from moviola.cli import all_commands

    found: dict[str, list[tuple[list[str], bool]]] = {}

    def walk(command: Any, name: str) -> None:
        for inner, each in getattr(command, "commands", {}).items():
            walk(each, f"{name} {inner}".strip())
        if not hasattr(command, "commands") and name not in _SERVING:
            found[name] = [
                (
                    list(each.opts) if each.param_type_name == "option" else [],
                    bool(getattr(each, "is_flag", False)),
                )
                for each in command.params
            ]

    walk(typer.main.get_command(all_commands()), "")
    return found


async def _schemas(library: Path) -> dict[str, dict[str, Any]]:
    """The schema of the arguments of each tool for agents."""
    from mcp import Client

    from moviola.mcp import library_server
    from moviola.search import Library

    with Library(library, read_only=True) as opened:
        async with Client(library_server(opened)) as client:
            return {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}


def _odd_paths(folder: Path) -> list[str]:
    """Files that are none, or not what a reader thinks."""
    odd = folder / "odd"
    odd.mkdir()
    os.mkfifo(odd / "pipe")
    with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(odd):
        listening.bind("socket")  # a path of a socket may have 107 bytes
    (odd / "loop").symlink_to("loop")
    (odd / "empty").touch()
    (odd / "bytes").write_bytes(bytes(range(256)) * 16)
    (odd / "deep.json").write_text("[" * 100_000)
    (odd / "wrong.json").write_text('{"moments": [{"video_id": 1}]}\n')
    (odd / "films").symlink_to(folder / "films")
    return [name if name.startswith("/") else str(odd / name) for name in _PATHS]


def run_command(words: list[str], folder: str) -> str:
    """What a command came to, in a folder with a library: ``"succeeded"`` or ``"refused"``.

    Raises:
        AssertionError: it ended with an error, and without a word.
    """
    from moviola.cli import main

    os.chdir(folder)
    os.environ["MOVIOLA_LIBRARY"] = "library"
    sys.argv = ["moviola", *words]
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as left:
            if left.code in (0, None):
                return "succeeded"
            said = out.getvalue() + errors.getvalue()
            assert said.strip(), f"exit code {left.code}, and not a word"
            assert "Traceback" not in said, said[-300:]
            return "refused"
    return "succeeded"


def call_tool(name: str, arguments: dict[str, Any], library: str) -> str:
    """What a tool for agents came to: ``"succeeded"`` or ``"refused"``.

    Raises:
        AssertionError: it is refused without a word, or in the words of a library that checks types.
    """
    return anyio.run(_called, name, arguments, library)


async def _called(name: str, arguments: dict[str, Any], folder: str) -> str:
    from mcp import Client

    from moviola.mcp import library_server
    from moviola.search import Library

    with Library(folder, read_only=True) as opened:
        async with Client(library_server(opened, clips=Path(folder).parent / "clips")) as client:
            result = await client.call_tool(name, arguments)
    if not result.is_error:
        return "succeeded"
    said = " ".join(getattr(content, "text", "") for content in result.content)
    assert said.strip() and "Traceback" not in said and "Internal error" not in said, said
    return "refused"
