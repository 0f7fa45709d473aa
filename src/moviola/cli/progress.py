"""Progress bars, imported by the commands that have one: their import takes as long as the rest of rich's."""

from __future__ import annotations

from types import TracebackType

from rich.progress import Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from moviola.cli.app import errors, note, plain

__all__ = ["progress_bar"]


class _Description(TextColumn):
    """The description of a task, as it is."""

    def __init__(self) -> None:
        super().__init__("{task.description}", markup=False)

    def render(self, task: Task) -> Text:
        return Text(plain(task.description))


class _Bar(Progress):
    """A progress bar that says where the work stands when it is interrupted, and how to continue."""

    remedy: str

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        super().__exit__(exc_type, exc_val, exc_tb)
        if exc_type is KeyboardInterrupt:
            for task in self.tasks:
                total = "" if task.total is None else f" of {task.total:,.0f}"
                note(f"{task.description}: {task.completed:,.0f}{total} done; {self.remedy}")


def progress_bar(*columns: ProgressColumn, remedy: str = "nothing was written") -> Progress:
    """Tasks with these columns after their descriptions; shown only if standard error is a terminal.

    Interrupted work prints where it stands, and ``remedy``: what was kept, or how to continue.
    """
    bar = _Bar(_Description(), *columns, console=errors, disable=not errors.is_terminal, transient=True)
    bar.remedy = remedy
    return bar
