"""Shots and fingerprints of videos that were indexed before these were kept; their features stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from moviola.errors import MediaError
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.report import IngestProgress, IngestReport

__all__ = ["look_again_where_needed"]


def look_again_where_needed(
    store: LibraryStore,
    video_ids: Iterable[str],
    report: IngestReport,
    progress: Callable[[IngestProgress], None],
) -> None:
    """Decode the videos that have no shots or no fingerprint yet, and encode nothing.

    Each is committed when it is done. A file that cannot be read now is tried again the next time.

    Args:
        store: the library, under its write lock.
        video_ids: of the videos to look at.
        report: gets what was found, and what could not be read.
        progress: called when a video is done.
    """
    from moviola.library.ingest.frame_features import look_again

    encoder = store.encoders.visual
    if encoder is None:
        return
    wanted, shots, prints = (
        set(video_ids), store.catalogue.videos_with_shots(), store.stills.with_fingerprint(),
    )  # fmt: skip
    lacking = [
        video
        for video in store.catalogue.videos()
        if video.video_id in wanted and video.frames and (video.row not in shots or video.hash not in prints)
    ]
    for done, video in enumerate(lacking, 1):
        try:
            found, fingerprint = look_again(
                Path(video.path), encoder.frame_size, store.settings.frame_rate, video.duration
            )
        except MediaError as error:
            if video.row not in shots:
                report.partial[video.video_id] = f"shots: {error.reason}"
            continue
        store.require_in_place()
        store.stills.put(video.hash, (), fingerprint)
        if video.row not in shots:
            with store.catalogue.transaction():
                store.catalogue.set_shots(video.row, found)
            report.shots_found.append(video.video_id)
        else:
            report.fingerprinted.append(video.video_id)
        progress(IngestProgress(done, len(lacking), video.video_id, 0.0))
