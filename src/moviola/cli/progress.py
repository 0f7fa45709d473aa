"""Progress bars, imported by the commands that have one: their import takes as long as the rest of rich's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from moviola.cli.app import errors, note
from moviola.files.plain import plain

if TYPE_CHECKING:
    from moviola.library import IngestProgress


class _Description(TextColumn):
    def render(self, task: Task) -> Text:
        return Text(plain(task.description))


@contextmanager
def progress_bar(*columns: ProgressColumn, remedy: str = "nothing was written") -> Iterator[Progress]:
    """Tasks with these columns after their descriptions; shown only if standard error is a terminal.

    Interrupted work prints where it stands, and ``remedy``: what was kept, or how to continue.
    """
    shown = (_Description(""), *columns)
    bar = Progress(*shown, console=errors.rich, disable=not errors.is_terminal, transient=True)
    try:
        with bar:
            yield bar
    except KeyboardInterrupt:
        for task in bar.tasks:
            total = "" if task.total is None else f" of {task.total:,.0f}"
            note(f"{task.description}: {task.completed:,.0f}{total} done; {remedy}")
        raise


def steps_on(bar: Progress) -> Callable[[IngestProgress], None]:
    """Shows steps of indexing on a bar, with their rate."""
    task = bar.add_task("looking for videos", total=None, rate="")
    seconds: dict[tuple[str, str], float] = {}  # done, by step and video

    def show(step: IngestProgress) -> None:
        of = (step.step, step.video_id)
        seconds[of] = max(step.seconds, seconds.get(of, 0.0))
        elapsed = bar.tasks[0].elapsed
        rate = f"{sum(seconds.values()) / elapsed if elapsed else 0:.0f}x real time"
        name = step.video_id if step.step == "pictures" else f"{step.step}: {step.video_id}"
        bar.update(task, total=step.total, completed=step.done, description=name, rate=rate)

    return show
