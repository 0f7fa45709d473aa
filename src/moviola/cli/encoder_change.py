"""Messages while the encoder of a library is changed in place: before, on the way, and at its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from moviola.cli.app import note, some
from moviola.cli.progress import progress_bar, steps_on
from moviola.errors import counted

if TYPE_CHECKING:
    from moviola.library import ChangePlan, EncoderChange
    from moviola.search import Library

_MIB = 2**20


def change_encoder(library: Library, **wanted: Any) -> EncoderChange:
    """Change the encoder of a library; ``wanted`` are arguments of
    :meth:`moviola.library.Indexer.use_encoder`. The plan and the outcome are printed on standard error.
    """
    before = library.settings.encoder or "words alone"
    share = wanted.get("both_from")
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn()
    kept = f"finished videos are kept, the same command continues; searches answer by {before}"
    with progress_bar(*columns, remedy=kept) as bar:

        def begin(plan: ChangePlan) -> None:
            for line in _before(plan, before, share):
                bar.console.print(line, markup=False, highlight=False)

        done = library.indexer.use_encoder(**wanted, begin=begin, progress=steps_on(bar))
    both = library.catalogue.made_for_both() is not None
    for line in _after(done, f"{before} and {done.encoder}" if both else f"{before} as before", before):
        note(line)
    return done


def _before(plan: ChangePlan, before: str, share: float | None) -> Iterator[str]:
    """What a change is going to do, and what becomes of what it touches."""
    if plan.seconds or plan.waiting:
        done = f", {plan.encoded} of them are" if plan.encoded else ""
        yield (
            f"To {plan.encoder}: {counted(plan.videos, 'video')}{done}; pictures of {plan.seconds / 60:.1f} "
            "minutes are to be encoded, nothing else of them is read again"
        )
        both = "" if share is None else f", from {share:.0%} of them on for words by both"
        yield (
            f"Searches answer by {before} until all are done{both}; Ctrl-C interrupts, the same command "
            "goes on"
        )
    yield (
        f"On the disk: {plan.new_bytes / _MIB:,.1f} MiB more, of {plan.free_bytes / _MIB:,.0f} MiB that are "
        f"free; {plan.old_bytes / _MIB:,.1f} MiB go when it is done"
    )
    for model in plan.models:
        yield f"{model}: does not fit afterwards, goes out of use, and to backups/"
    if plan.removed:
        yield (
            f"{counted(len(plan.removed), 'removed video')} ({some(plan.removed)}): pictures are encoded "
            f"when they are restored; what they have by {before} stays until a compaction"
        )
    for name in plan.backups:
        yield f"backups/{name} leads back to the features in use, which stay for that until a compaction"


def _after(change: EncoderChange, answering: str, before: str) -> Iterator[str]:
    """What a change has done, and what it has not."""
    if change.given_up:
        yield f"the change to {change.given_up} is given up, and what it had encoded is deleted"
    encoded = counted(len(change.encoded), "video")
    for video_id, reason in change.waiting.items():
        yield f"not encoded: {video_id}: {reason}"
    for name, problem in change.concepts.items():
        yield f"concept @{name}: {problem}"
    for model in change.models:
        yield f"{model}: in use no longer; its copy is in backups/"
    if change.without:
        yield (
            f"{counted(len(change.without), 'video')} ({some(change.without)}): found by words and names "
            f"alone until their files are indexed again; what they have by {before} is kept for a change back"
        )
    if change.done:
        yield f"{encoded} encoded; searches answer by {change.encoder}"
    else:
        left = len(change.waiting)
        yield (
            f"{encoded} encoded, {left} of {change.total} not; searches answer by {answering}. The "
            "same command goes on when files are there; with --without-files it changes over without them"
        )
