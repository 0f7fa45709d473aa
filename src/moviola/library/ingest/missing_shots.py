"""Shot detection for videos of libraries older than it; their features stay."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from moviola.errors import MediaError
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.report import IngestReport

__all__ = ["find_missing_shots"]


def find_missing_shots(store: LibraryStore, videos: Iterable[VideoRow], report: IngestReport) -> None:
    """Look for shots in videos that have none yet; under the library's write lock."""
    from moviola.library.ingest.frame_features import find_shots

    known = store.catalogue.videos_with_shots()
    for video in videos:
        encoder = store.encoders.visual if video.frames and video.row not in known else None
        if encoder is None:
            continue
        try:
            shots = find_shots(
                Path(video.path), encoder.frame_size, store.settings.frame_rate, video.duration
            )
        except MediaError as error:
            report.partial[video.video_id] = f"shots: {error.reason}"
            continue
        with store.catalogue.transaction():
            store.catalogue.set_shots(video.row, shots)
        report.shots_found.append(video.video_id)
