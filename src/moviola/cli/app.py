"""The Typer application that every command file hangs its commands on, and what they all share.

Exit codes (also in ``moviola --help``): 0 all went well; 1 an error, named on standard error; 2 wrong
usage; 3 the work was done, but something in it was refused or found damaged; 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

__all__ = ["EXIT_PARTIAL", "JsonOption", "app", "console", "emit_json", "leave_partial", "note"]

EXIT_PARTIAL = 3

app = typer.Typer(
    name="moviola",
    help="Video moment search: text in, a ranked list of moments out.\n\n"
    "Exit codes: 0 all went well; 1 an error; 2 wrong usage; 3 done, but something was refused or "
    "found damaged; 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

console = Console(highlight=False, soft_wrap=True)
_errors = Console(stderr=True, highlight=False, soft_wrap=True)


def emit_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=1, default=str)
    sys.stdout.write("\n")


def note(message: str) -> None:
    """Say something to the person on standard error, so that standard output stays data."""
    _errors.print(message, markup=False)


def leave_partial() -> NoReturn:
    """End with the code that says: done, but something was refused."""
    raise typer.Exit(EXIT_PARTIAL)
