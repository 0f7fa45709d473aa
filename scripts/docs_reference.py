"""A hook of MkDocs: the reference is made from the code whenever the site is built, and names become links.

- One page per room: its modules, of each the names in its ``__all__``. One page of all commands, from the
  Typer application. Neither lies in the repository.
- ``<!-- public names -->`` in a page becomes tables of the names that a program imports, by room.
- Text in backticks that is a dotted name, ``moviola.retrieval.propose``, links to where it is documented. A
  name that does not exist, or is not documented, is a warning, which fails a strict build.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import moviola
from moviola.cli import all_commands

app = all_commands()

PACKAGE = Path(moviola.__file__).parent
WITHOUT_PAGE = {"__init__", "__main__", "cli"}
"""Rooms that have no page in the API: commands have one of their own."""
OF_ROOMS = {"study", "addons"}
"""Folders whose own folders are the rooms."""
PUBLIC = "<!-- public names -->"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for path, text in {**api_pages(), "reference/commands.md": command_page()}.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated pages into the navigation."""
    rooms = [{path.removeprefix("reference/api/").removesuffix(".md"): path} for path in api_pages()]
    config.nav = [*(config.nav or []), {"Reference": ["reference/commands.md", {"Python": rooms}]}]
    return config


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link dotted names, outside of code blocks and of links."""
    del page, config, files
    markdown = markdown.replace(PUBLIC, name_tables())
    parts = re.split(r"(^ *```.*?^ *```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.lstrip().startswith("```") else linked(part) for part in parts)


def name_tables() -> str:
    """The names in ``__all__`` of the package and of each room, with the first line of their docstrings."""
    names = ["types", "errors", *sorted(".".join(room.parts) for room in rooms())]
    modules = [moviola, *(resolve_name(f"moviola.{name}") for name in names)]
    return "\n\n".join(name_table(module) for module in modules if hasattr(module, "__all__"))


def rooms() -> Iterator[Path]:
    """The folders that are rooms, below the package; of studies and of addons each has its own."""
    for path in sorted(PACKAGE.glob("*/__init__.py")) + sorted(PACKAGE.glob("*/*/__init__.py")):
        room = path.parent.relative_to(PACKAGE)
        nested = room.parts[0] in OF_ROOMS
        if room.name not in WITHOUT_PAGE and (len(room.parts) == 2) == nested:
            yield room


def name_table(module: Any) -> str:
    """A heading, and a row for each name of a module's ``__all__``."""
    rows = [f"| `{module.__name__}.{name}` | {purpose(getattr(module, name))} |" for name in module.__all__]
    return "\n".join([f"### {module.__name__}", "", "| name | |", "|---|---|", *rows])


def purpose(value: Any) -> str:
    """First line of the docstring of a class, function or module; empty for other values."""
    documented = inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)
    first = (inspect.getdoc(value) or "").split("\n\n")[0] if documented else ""
    return (
        re.sub(r":\w+:`~?(?:moviola\.)?([^`]+)`", r"`\1`", " ".join(first.split()))
        .replace("|", "\\|")
        .replace("``", "`")
    )


_DOTTED = re.compile(r"(?<!\[)(?<!`)`(moviola(?!\.toml`)(?:\.\w+)+)(\(\))?`(?!`)")


def linked(text: str) -> str:
    """A text in which dotted names in backticks are references to what documents them."""
    return _DOTTED.sub(lambda found: f"[`{found[1].removeprefix('moviola.')}`][{canonical(found[1])}]", text)


def canonical(name: str) -> str:
    """The name of an object in the module that defines it; the name itself if there is no such object."""
    try:
        found = resolve_name(name)
    except (ImportError, AttributeError):
        return name  # a warning will name it
    if isinstance(found, property):
        found = found.fget
    if inspect.isclass(found) or inspect.isfunction(found):
        return f"{found.__module__}.{found.__qualname__}"
    return name


# ---- Python ----------------------------------------------------------------------------------------------


def api_pages() -> dict[str, str]:
    """Text of the page of each room, by its place."""
    pages: dict[str, str] = {}
    modules = [path.relative_to(PACKAGE) for path in PACKAGE.glob("*.py") if path.stem not in WITHOUT_PAGE]
    for room in sorted([*modules, *rooms()]):
        pages[f"reference/api/{room.with_suffix('').as_posix()}.md"] = room_page(PACKAGE / room)
    return pages


def room_page(room: Path) -> str:
    """A room's own docstring, and each of its modules with the names that are public there."""
    text = f"# {room.stem}\n\n"
    for path in [room] if room.suffix else sorted(room.rglob("*.py")):
        name = ".".join(("moviola", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        )
        members = public_names(path)
        text += f"::: {name}\n    options:\n      heading_level: 2\n      members: {members}\n\n"
    return text


def public_names(path: Path) -> list[str]:
    """What a module defines of the names in its ``__all__``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    listed: list[str] = []
    defined: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            defined.add(target)
            if target == "__all__":
                listed = list(ast.literal_eval(node.value)) if node.value else []
    return [name for name in listed if name in defined]


# ---- commands --------------------------------------------------------------------------------------------


def command_page() -> str:
    """All commands with their options, from the Typer application."""
    root = typer.main.get_command(app)
    text = "# Commands\n\n" + inspect.cleandoc(root.help or "") + "\n"
    return text + "".join(command_text(words, command) for words, command in commands(root, "moviola"))


def commands(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Each command that does something (of Typer's own click), with the words that call it."""
    below = getattr(command, "commands", None)
    if below is None:
        yield words, command
    else:
        for name, one in sorted(below.items()):
            yield from commands(one, f"{words} {name}")


def command_text(words: str, command: Any) -> str:
    """What a command does, and a table of its parameters."""
    context = command.context_class(command, info_name=words)
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    text = f"\n## {words}\n\n{inspect.cleandoc(command.help or '')}\n\n```text\n{usage}\n```\n\n"
    text += "| parameter | meaning |\n|---|---|\n"
    for parameter in command.params:
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
        if parameter.param_type_name == "argument":
            names = parameter.name.upper()
        meaning = " ".join(str(parameter.help or "").split())
        if names != "--help":
            text += f"| `{names}` | {meaning}{default_of(parameter)} |\n".replace("||", "\\|\\|")
    return text


def default_of(parameter: Any) -> str:
    """What holds without the option, if that can be said in a word."""
    default = parameter.default
    if parameter.required or default is None or isinstance(default, bool | list | tuple) or callable(default):
        return ""
    return f" Default: `{default}`."
