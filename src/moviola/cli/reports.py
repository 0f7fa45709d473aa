"""What commands print of indexing: how far it is, and what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from moviola.cli.app import console, in_one_line, note, progress_bar, show_table

if TYPE_CHECKING:
    from moviola.library import IngestProgress, IngestReport, Trial

__all__ = ["IndexProgress", "listed", "print_report", "print_trials"]


class IndexProgress:
    """A bar with rate and time left."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

        self._bar = progress_bar(
            BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn()
        )
        self._task = self._bar.add_task("looking for videos", total=None, rate="")
        self._seconds: dict[tuple[str, str], float] = {}  # done, by step and video

    def __enter__(self) -> IndexProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Without the bar, while a person is asked."""
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()

    def __call__(self, step: IngestProgress) -> None:
        of = (step.step, step.video_id)
        self._seconds[of] = max(step.seconds, self._seconds.get(of, 0.0))
        elapsed = self._bar.tasks[0].elapsed or 0.0
        rate = sum(self._seconds.values()) / elapsed if elapsed else 0.0
        self._bar.update(
            self._task,
            total=step.total,
            completed=step.done,
            description=step.video_id if step.step == "pictures" else f"{step.step}: {step.video_id}",
            rate=f"{rate:.0f}x real time",
        )


def print_report(report: IngestReport, library: Path, count: int) -> None:
    """What indexing did."""
    done = {
        "added": report.added,
        "updated": report.updated,
        "moved": report.moved,
        "restored": report.restored,
        "further copies": [path for paths in report.copies.values() for path in paths],
        "removed": report.removed,
        "away": report.away,
        "unchanged": report.unchanged,
        "looked through for shots": report.shots_found,
    }
    parts = [f"{len(ids)} {what}" for what, ids in done.items() if ids] or ["nothing to do"]
    console.print(f"{library}: {', '.join(parts)}; {count} videos can be searched")
    if report.repeats:
        console.print(
            f"{report.repeats / report.frames:.0%} of {report.frames} frames repeat an earlier one; "
            "its features were taken"
        )
    for what, reasons in (
        ("refused", report.refused),
        ("partial", report.partial),
        ("subtitles", report.subtitle_problems),
        ("not read", report.reading_problems),
    ):
        for video_id, reason in reasons.items():
            note(f"{what}: {in_one_line(video_id)}: {reason}")
    if report.ignored:
        kinds = sorted({Path(path).suffix or "no suffix" for path in report.ignored})
        note(f"ignored: {len(report.ignored)} files that are no videos by their suffix ({', '.join(kinds)})")
    for kind, ids in report.read.items():
        if ids:
            console.print(f"{kind} read in {len(ids)} videos")
    for kind, remedy in report.not_read.items():
        note(f"{kind}: not read; {remedy}")
    _print_absent(report)


def _print_absent(report: IngestReport) -> None:
    """What of the folders is not in the library, or not there."""
    if report.excluded:
        note(f"left out: {len(report.excluded)} folders and files ({_some(report.excluded)})")
    if report.waiting:
        note(f"still being written: {_some(report.waiting)}; index again when they are whole")
    for folder, reason in report.offline.items():
        note(f"away: {folder}: {reason}; its videos stay. `moviola library move` says where they are now")
    for video_id in report.missing:
        note(f"missing: {in_one_line(video_id)}: its file is gone; --prune takes it out of the library")
    for video_id in report.left_out:
        note(f"left out: {in_one_line(video_id)}: is in the library; --prune takes it out")
    if report.not_pruned:
        note(f"not pruned: {report.not_pruned}; --yes takes them out")
    if report.removed:
        note(f"removed: {_some(report.removed)}; `moviola library restore` brings them back")


def _some(names: Sequence[str]) -> str:
    """The first few of a list."""
    return ", ".join(map(in_one_line, names[:5])) + (f", and {len(names) - 5} more" if len(names) > 5 else "")


def print_trials(trials: list[Trial]) -> None:
    """What tuning tried; the fastest that finds 99 % is what it leaves."""
    if not trials:
        return
    kinds = list(trials[0].recall)
    table = Table(*trials[0].parameters, *(f"found by {kind}" for kind in kinds), "ms")
    rows = [
        (
            *map(str, trial.parameters.values()),
            *(f"{trial.recall[kind]:.1%}" for kind in kinds),
            f"{trial.seconds * 1e3:.1f}",
        )
        for trial in trials
    ]
    show_table(table, rows)


def listed(values: object) -> str:
    """What a person reads of a mapping: its entries that say something."""
    assert isinstance(values, dict)
    return ", ".join(f"{key} {value}" for key, value in values.items() if value) or "none"
