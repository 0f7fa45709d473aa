"""The Typer application that every command file hangs its commands on, and what they all share.

Everything that is printed goes through here. Ids, file names and subtitles are other people's text: they are
shown letter by letter, never read as markup, and what would steer the terminal is replaced.

Exit codes (also in ``moviola --help``): 0 all went well; 1 an error, named on standard error; 2 wrong
usage; 3 the work was done, but something in it was refused or found damaged; 130 interrupted.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task, TextColumn
from rich.table import Table
from rich.text import Text

__all__ = [
    "EXIT_PARTIAL", "JsonOption", "app", "console", "emit_json", "in_one_line", "leave_partial", "note",
    "plain",
    "progress_bar", "show_table",
]  # fmt: skip

EXIT_PARTIAL = 3

app = typer.Typer(
    name="moviola",
    help="Video moment search: text in, a ranked list of moments out.\n\n"
    "Exit codes: 0 all went well; 1 an error; 2 wrong usage; 3 done, but something was refused or "
    "found damaged; 130 interrupted.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"moviola {version('moviola')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """The options that stand before a command."""


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

# Control characters but tab and line feed, marks that turn the direction of writing, and the halves of
# characters as which Python reads file names that are no Unicode.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """A text without characters that would steer the terminal or cannot be written; each becomes ``�``."""
    return _STEERING.sub("\ufffd", text)


class _PlainConsole(Console):
    """Shows strings as they are, in tables too, but for what steers the terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(plain(text), **options)


console = _PlainConsole()
"""Standard output."""

_errors = _PlainConsole(stderr=True)


def in_one_line(name: str) -> str:
    """A name as a person is shown it: a line feed in it must not look like the next row."""
    return name.replace("\n", "\ufffd")


def emit_json(value: Any) -> None:
    """Print one JSON document to standard output; what steers the terminal is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    # json.dumps has escaped all below U+0020 inside of strings; what stands outside are line feeds.
    escaped = _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    sys.stdout.write(escaped + "\n")
    sys.stdout.flush()  # who reads a pipe waits for it, and a server never ends


def note(message: str) -> None:
    """Say something to the person on standard error, so that standard output stays data."""
    _errors.print(message)


def show_table(table: Table, rows: Iterable[Sequence[str | Text]]) -> None:
    """Print rows of text below the columns of a table, no wider than the terminal."""
    for row in rows:
        table.add_row(*row)
    console.print(table, soft_wrap=False)


class _Description(TextColumn):
    """The description of a task, as it is."""

    def __init__(self) -> None:
        super().__init__("{task.description}", markup=False)

    def render(self, task: Task) -> Text:
        return Text(plain(task.description))


def progress_bar(*columns: ProgressColumn) -> Progress:
    """Tasks with these columns behind their descriptions; shown only if standard error is a terminal."""
    return Progress(
        _Description(), *columns, console=_errors, disable=not _errors.is_terminal, transient=True
    )


def leave_partial() -> NoReturn:
    """End with the code that says: done, but something was refused."""
    raise typer.Exit(EXIT_PARTIAL)
