"""The Typer application of all commands, and what they print.

File names, ids and subtitles are text of others: they are printed letter by letter, never read as markup, and
characters that would steer the terminal are replaced. Exit codes, and what a pipe gets, are in the help.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from typer import BadParameter, Context, Exit, Option
from typer.core import TyperGroup

from moviola.cli.config import nested_defaults, read_config
from moviola.errors import InvalidValue, shortened
from moviola.files.plain import STEERING, plain

if TYPE_CHECKING:
    from moviola.cli.terminal import Cell, PlainConsole, Shortening

_NO_COMMAND = re.compile(r"No such command '(?P<name>.*?)'\.")
_TOO_MUCH = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((?P<words>.*)\)", re.DOTALL)
_NO_NUMBER = re.compile(r"is not a valid (int|float)(?:eger)?(?: range)?\b")
_WRONG_USAGE = BadParameter.__mro__[1]  # Click's error of all wrong usage, of the one that Typer has

_NONE: Mapping[str, Shortening] = {}

PANELS: dict[str, dict[str, tuple[str, str]]] = {
    "First steps": {
        "index": ("indexing", "Bring videos into a library; interrupted work continues."),
        "search": ("search", "Search for a text, a moment or a picture."),
        "serve": ("serve", "Serve a page to search, watch and collect in, and an API."),
        "open": ("export", "Play a moment of the last answer."),
        "export": ("export", "Write moments as a table, an edit list, clips, a film …"),
    },
    "Library": {
        "list": ("videos", "List the videos, refused ones with the reason."),
        "show": ("videos", "Show what the library knows of one video."),
        "transcript": ("transcripts", "Print what is said or written in a video."),
        "cut": ("export", "Cut a moment of the last answer, exact to the frame."),
        "mark": ("kept", "Mark moments as right or wrong, and search again."),
        "teach": ("kept", "Keep the marks on the last answer as a concept."),
        "concepts": ("kept", "Concepts that were taught."),
        "kept": ("kept", "Saved searches, collections, tags and ratings."),
        "watch": ("indexing", "Keep a library in step with folders, until Ctrl-C."),
        "remove": ("videos", "Remove videos; `library restore` brings them back."),
        "duplicates": ("library", "List copies, and videos that show the same."),
        "library": ("library", "Settings, models, index and folders."),
        "models": ("models", "Encoders, trained models and checkpoints."),
        "doctor": ("upkeep", "Check packages, encoder, device and the library."),
        "verify": ("upkeep", "Check every stored byte; changes nothing."),
        "repair": ("upkeep", "Repair what can be made again."),
        "compact": ("upkeep", "Free the space of removed videos, for good."),
    },
    "Agents and servers": {
        "ask": ("looking", "Answer a question about the films, by a model that you name."),
        "mcp": ("agents", "Serve a library to agents (Model Context Protocol)."),
    },
}
"""Panels of the help: of each own command and group the module, which adds it when imported, and a line."""

OTHERS = "Plug-ins"
"""Panel of commands from other packages that name none."""

_PLACES = {
    name: (number, panel)
    for number, (name, panel) in enumerate((name, panel) for panel, names in PANELS.items() for name in names)
}


def placed(name: str) -> tuple[int, str]:
    """Place in the help of a command, and its panel; those of plug-ins come last."""
    return _PLACES.get(name, (len(_PLACES), OTHERS))


def short_help(name: str) -> str | None:
    """The line of an own command in the help of all; None for others, whose own help says it."""
    return next((names[name][1] for names in PANELS.values() if name in names), None)


class _Commands(TyperGroup):
    """Commands in the order of the help's panels, whatever was imported first; messages of wrong usage, which
    quote what was given, are shortened, and name the command that is meant.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=lambda name: placed(name)[0])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        _require_one_library(command, rest)
        return name, command, rest

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _shortened_usage():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _shortened_usage():  # contexts of the commands below are made here
            return super().invoke(ctx)


def _require_one_library(command: Any, given: list[str]) -> None:
    """Refuse several libraries for a command that takes one: the last would count, without a word."""
    while given and given[0] in (below := getattr(command, "commands", {})):
        command, given = below[given[0]], given[1:]
    option = next((one for one in getattr(command, "params", ()) if one.name == "library"), None)
    words = takewhile(lambda word: word != "--", given)
    named = [word for word in words if word == "--library" or word.startswith(("-l", "--library="))]
    if option is not None and not option.multiple and len(named) > 1:
        raise BadParameter(
            f"--library: given {len(named)} times, but `{command.name}` takes one library; `search`, "
            "`show`, `open`, `cut`, `export`, `mark`, `ask`, `serve` and `mcp` take several as one"
        )


@contextmanager
def _shortened_usage() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(error, _WRONG_USAGE):
            said = vars(error)
            said["message"] = shortened(_with_remedy(said, said.get("ctx")))
        raise


def _with_remedy(said: Mapping[str, Any], context: Context | None) -> str:
    """The message of wrong usage, with what helps: the commands that a word may mean which is none, the
    option of a library, quotation marks around a text of several words, an example of what is missing.
    """
    message = str(said["message"])
    message = _NO_NUMBER.sub(lambda found: f"is no {'whole ' if found[1] == 'int' else ''}number", message)
    if context is not None and "param_type" in said:
        from moviola.cli.meant import example_of

        return f"{message} {example_of(context)}".strip()
    if context is not None and "option_name" in said and not said.get("possibilities"):
        from moviola.cli.meant import of_no_option

        return f"{message}; {of_no_option(context)}"
    if context is not None and (extra := _TOO_MUCH.match(message)):
        from moviola.cli.meant import of_too_much

        return f"{message}; {of_too_much(extra['words'], context)}"
    word = _NO_COMMAND.match(message)
    if word is None or context is None:
        return message
    from moviola.cli.meant import commands_meant

    group = context.command_path.partition(" ")[2]
    meant = commands_meant(word["name"], context.find_root().command, group)
    commands = " or ".join(f"`moviola {name}`" for name in meant)
    return f"No such command '{word['name']}'. {f'Try {commands}.' if meant else 'See `moviola --help`.'}"


app = typer.Typer(
    name="moviola", cls=_Commands,
    help="Video moment search: text in, a ranked list of moments out.\n\n"
    "Exit codes: 0 success; 1 an error; 2 wrong usage; 3 done, but something was refused or found damaged; "
    "130 interrupted. In a pipe each row is one line with tabs between columns; --json prints one object per "
    "line.",
    no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False, rich_markup_mode="markdown",
)  # fmt: skip


def command_group(name: str, help: str, *, below: typer.Typer = app, panel: str | None = None) -> typer.Typer:
    """A group of commands below ``moviola``, or in what a plug-in adds to it."""
    group = typer.Typer(name=name, help=help, no_args_is_help=True, rich_markup_mode="markdown")
    below.add_typer(group, rich_help_panel=panel)
    return group


def _show_version(wanted: bool) -> None:
    if wanted:
        from moviola.cli.version import print_version

        print_version()
        raise Exit


@app.callback()
def _root(
    context: Context,
    *,
    log: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            envvar="MOVIOLA_LOG",
            show_envvar=False,
            help="Append a log of JSON lines (MOVIOLA_LOG).",
        ),
    ] = None,
    _: Annotated[
        bool, Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options before a command; the user's config.toml gives commands their defaults."""
    values = read_config()
    context.default_map = nested_defaults(context.command, values)
    if log := log or values.get("log"):
        from moviola.cli.log_file import LogFile

        log_file = LogFile(Path(log))
        log_file.attach(str(context.invoked_subcommand))
        context.call_on_close(log_file.end)


JsonOption = Annotated[bool, Option("--json", help="Print JSON, one object per line.")]


class _Stream:
    """Standard output or standard error. Rich writes to a terminal; other readers get the same lines without
    it, since its import takes as long as a tenth of a first search.
    """

    def __init__(self, name: Literal["stdout", "stderr"]) -> None:
        self._name = name

    @cached_property
    def rich(self) -> PlainConsole:
        """Rich's console of the stream."""
        from moviola.cli.terminal import PlainConsole

        return PlainConsole(stderr=self._name == "stderr")

    @property
    def is_terminal(self) -> bool:
        """Whether a terminal reads it, or what rich is made to take for one."""
        if "rich" in vars(self) or _TAKEN_FOR_TERMINALS & os.environ.keys():
            return self.rich.is_terminal
        return getattr(sys, self._name).isatty() and self.rich.is_terminal

    def print(self, text: str) -> None:
        """Print a text as it is, but for what steers a terminal."""
        if self.is_terminal:
            self.rich.print(text)
        else:
            file = getattr(sys, self._name)
            file.write(plain(text) + "\n")
            file.flush()


_TAKEN_FOR_TERMINALS = {"FORCE_COLOR", "TTY_COMPATIBLE"}
"""Variables by which rich takes other readers for terminals."""

console, errors = _Stream("stdout"), _Stream("stderr")
"""Standard output and standard error."""


def note(message: str) -> None:
    """Print a message for a person on standard error, so that standard output stays data."""
    errors.print(shortened(message))


def emit_json(value: Any) -> None:
    """Print a value as one line of JSON, a list as a line per entry; what steers the terminal is escaped.

    Dataclasses become objects, numbers that are not finite null, other values that JSON does not have texts.
    """
    for one in value if isinstance(value, list | tuple) else [value]:
        text = json.dumps(one, ensure_ascii=False, default=_plain_value)
        if "NaN" in text or "Infinity" in text:  # perhaps in a name
            finite = json.loads(text, parse_constant=lambda _: None)
            text = json.dumps(finite, ensure_ascii=False)
        sys.stdout.write(STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")
    sys.stdout.flush()  # the reader of a pipe waits for it, and a server never ends


def _plain_value(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def show(json: bool, value: Any, *lines: str) -> None:
    """Print a result as JSON, or as these lines."""
    if json:
        emit_json(value)
    else:
        for line in lines:
            console.print(line)


def lines_of_values(values: Mapping[str, object], width: int) -> Iterator[str]:
    """Values below each other, of a mapping the entries that are not empty."""
    for name, value in values.items():
        if isinstance(value, bool):
            value = "yes" if value else "no"
        if isinstance(value, dict):
            value = [f"{key} {content}" for key, content in value.items() if content]
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        yield f"{name:>{width}}  {'none' if value in (None, '') else value}"


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    title: str = "",
    lines: Collection[int] = (),
    short: Mapping[str, Shortening] = _NONE,
) -> None:
    """Print rows below their columns on a terminal; in a pipe each row as a line, tabs between its cells.

    A line feed in a cell is replaced, and a tab is a space: no id or file name looks like the next row.

    Args:
        columns, rows, title: of the table.
        lines: numbers of rows, from 0, below which a terminal gets a line.
        short: columns that a terminal gets shortened, so that each row is one line, and where.
    """
    cells = [
        [
            [
                part.replace("\n", "\ufffd").replace("\t", " ")
                for part in ([cell] if isinstance(cell, str) else cell)
            ]
            for cell in row
        ]
        for row in rows
    ]
    if not console.is_terminal:
        for row in cells:
            sys.stdout.write(plain("\t".join(", ".join(cell) for cell in row)) + "\n")
        return
    from moviola.cli.terminal import print_table

    print_table(console.rich, columns, cells, title=title, lines=lines, short=short)


def show_records(
    json: bool, records: Any, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str = ""
) -> None:
    """Print records as JSON, see :func:`emit_json`, or as the rows of a table, see :func:`show_table`."""
    if json:
        emit_json(records)
    else:
        show_table(columns, rows, title=title)


def some(names: Sequence[str], most: int = 5) -> str:
    """The first few names of a list."""
    return ", ".join(names[:most]) + (f", and {len(names) - most} more" if len(names) > most else "")


YesOption = Annotated[bool, Option("--yes", "-y", help="Without a question.")]


def require_consent(what: str, yes: bool) -> None:
    """Ask at a terminal before something is taken away; elsewhere the answer is ``yes``.

    Raises:
        InvalidValue: there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidValue(f"{what}; nothing was changed. Give --yes if you mean it")
    if not typer.confirm(f"{what}. Go on?", err=True):
        note("nothing was changed")
        leave_partial()


def leave_partial() -> NoReturn:
    """End with the exit code for: done, but something was refused."""
    raise Exit(3)
