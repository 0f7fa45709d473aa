"""Words that the command line does not take, and those that are meant by them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

_OF_OTHERS: dict[str, str] = {
    "search": "find grep lookup query",
    "index": "add build import ingest init new reindex scan sync update",
    "open": "play view watch-moment",
    "serve": "browse gui server start ui web",
    "list": "dir files ls videos",
    "show": "describe details info inspect metadata",
    "library info": "about info stat statistics stats status",
    "export": "render save timeline write",
    "cut": "clip extract trim",
    "transcript": "captions subtitles text words",
    "remove": "del delete rm unindex",
    "library restore": "recover undelete undo unremove",
    "kept list": "bookmarks collections favorites favourites saved searches tags",
    "kept tag": "label",
    "kept collect": "collect",
    "duplicates": "copies dedup dedupe dupes",
    "doctor": "check diagnose health selftest test",
    "verify": "checksum fsck validate",
    "repair": "fix mend",
    "compact": "clean gc prune purge vacuum",
    "library roots": "folders paths roots",
    "library use": "choose switch use",
    "library move": "rename mv",
    "models list": "encoders",
    "models pull": "download fetch",
    "mcp": "agent",
    "--help": "commands help man usage",
    "--version": "ver version",
}
"""Commands by names that other programs have for the same, in words."""


def commands_meant(word: str, program: Any, group: str = "") -> list[str]:
    """The commands that a word may mean, as they are typed after ``moviola``, most likely first.

    Args:
        word: what was typed, no command of the group.
        program: the group of all commands that are loaded.
        group: the group of commands below which it was typed, such as ``library``; empty for none.
    """
    known = list(_commands(program))
    named = [name for name, others in _OF_OTHERS.items() if word.casefold() in others.split()]
    elsewhere = [path for path in known if path.rpartition(" ")[2] == word.casefold()]
    below = [path for path in known if path.rpartition(" ")[0] == group]
    return list(dict.fromkeys(named + elsewhere)) or get_close_matches(f"{group} {word}".strip(), below, n=2)


def of_too_much(words: str, context: Any) -> str:
    """What helps where a command, that of Click's context, is given more words than it takes."""
    from moviola.library.disk.settings import SETTINGS_FILE

    taken = {one.name for one in context.command.params}
    if "library" in taken and (Path(words) / SETTINGS_FILE).is_file():
        return f"name a library by --library {shlex.quote(words)}"
    if "text" in taken:
        return "put a text of several words in quotation marks"
    return f"`{context.command_path} --help` shows what it takes"


def of_no_option(context: Any) -> str:
    """What helps where a command, that of Click's context, has no such option, nor one spelt alike."""
    path = context.command_path
    if below := getattr(context.command, "commands", {}):
        return f"name a command of `{path}` before its options: {', '.join(below)}"
    return f"`{path} --help` shows its options"


def example_of(context: Any) -> str:
    """How a command, that of Click's context, is written, by the first example of its help; else empty."""
    found = re.search(r"Examples?: (`[^`]+`)", context.command.help or "")
    return f"For example: {found[1]}" if found else ""


def _commands(group: Any, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        path = f"{before} {name}".strip()
        yield path
        if hasattr(command, "commands"):
            yield from _commands(command, path)
