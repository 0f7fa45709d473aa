"""Progress bars, imported by the commands that have one: their import takes as long as the rest of rich's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from moviola.cli.app import errors, note
from moviola.files.plain import plain


class _Description(TextColumn):
    def render(self, task: Task) -> Text:
        return Text(plain(task.description))


@contextmanager
def progress_bar(*columns: ProgressColumn, remedy: str = "nothing was written") -> Iterator[Progress]:
    """Tasks with these columns after their descriptions; shown only if standard error is a terminal.

    Interrupted work prints where it stands, and ``remedy``: what was kept, or how to continue.
    """
    shown = (_Description(""), *columns)
    bar = Progress(*shown, console=errors, disable=not errors.is_terminal, transient=True)
    try:
        with bar:
            yield bar
    except KeyboardInterrupt:
        for task in bar.tasks:
            total = "" if task.total is None else f" of {task.total:,.0f}"
            note(f"{task.description}: {task.completed:,.0f}{total} done; {remedy}")
        raise
