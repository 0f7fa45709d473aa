"""Judging in the browser: an addition to ``moviola serve``, with its page ``/judge``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from moviola.errors import InvalidValue, counted
from moviola.plugins import ServerAddition

if TYPE_CHECKING:
    from moviola.search import Library
    from moviola.study.judging.task import JudgingTask

__all__ = ["ADDITION"]


def _options(
    judge: Annotated[Path | None, Option(help="Task of `moviola judge new`, for raters at /judge.")] = None,
) -> Path | None:
    """The judging task of the library's videos."""
    return judge


def _task_on(library: Library, path: Path) -> JudgingTask:
    from moviola.study.judging.task import JudgingTask

    task = JudgingTask(path)
    lacking = {pair.video_name for pair in task.pairs} - {video.video_id for video in library.videos()}
    if lacking:
        raise InvalidValue(
            f"{path}: judges {counted(len(lacking), 'video')} that {library.folder} lacks "
            f"({min(lacking)}, …); serve the library that the task was made on"
        )
    return task


def _router() -> Any:
    from moviola.study.judging.routes import router

    return router


ADDITION = ServerAddition(
    options=_options, opened=_task_on, router=_router, right="read", pages=Path(__file__).parent / "page"
)
"""The addition ``judging``: a task is served to be answered, and is a file of its own."""
