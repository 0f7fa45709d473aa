"""What is known of videos besides their features: when, where and with what they were taken; and shots and
fingerprints of those that were indexed before these were kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from moviola.errors import MediaError
from moviola.library.disk.fingerprints import FingerprintMaker
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.plan import IngestProgress, IngestReport, why_unreadable

__all__ = ["look_again_where_needed", "note_captures"]

# Files whose capture data are read between two commits.
_AT_ONCE = 200


def note_captures(store: LibraryStore, video_ids: Collection[str]) -> None:
    """Read capture data of videos that lack it; files that cannot be read now are tried again next time."""
    from moviola.media import read_capture

    catalogue = store.catalogue
    known = catalogue.captures().keys()
    waiting = [
        video
        for video in catalogue.videos()
        if video.video_id in video_ids and video.row not in known and video.state != "refused"
    ]
    for start in range(0, len(waiting), _AT_ONCE):
        captures = {}
        for video in waiting[start : start + _AT_ONCE]:
            with suppress(MediaError, OSError):
                captures[video.row] = read_capture(Path(video.path))
        if captures:
            with catalogue.transaction():
                catalogue.put_captures(captures)


def look_again_where_needed(
    store: LibraryStore,
    video_ids: Collection[str],
    report: IngestReport,
    progress: Callable[[IngestProgress], None],
) -> None:
    """Decode the videos that have no shots or no fingerprint yet, and encode nothing; under the write lock.
    Each is committed when it is done; a file that cannot be read now is tried again the next time.
    """
    from moviola.library.ingest.frame_features import shot_rows
    from moviola.media import find_transitions

    encoder = store.encoders.visual
    if encoder is None:
        return
    shots, prints = store.catalogue.videos_with_shots(), store.stills.with_fingerprint()
    lacking = [
        video
        for video in store.catalogue.videos()
        if video.video_id in video_ids
        and video.frames
        and (video.row not in shots or video.hash not in prints)
    ]
    for done, video in enumerate(lacking, 1):
        maker = FingerprintMaker()
        try:
            found = find_transitions(
                Path(video.path), rate=store.settings.frame_rate, size=encoder.frame_size, tiny=maker
            )
        except (MediaError, OSError) as error:
            if video.row not in shots:
                report.partial[video.video_id] = f"shots: {why_unreadable(error)}"
            continue
        store.require_in_place()
        store.stills.put(video.hash, (), maker.made())
        if video.row not in shots:
            with store.catalogue.transaction():
                store.catalogue.set_shots(video.row, shot_rows(found, video.duration))
            report.shots_found.append(video.video_id)
        else:
            report.fingerprinted.append(video.video_id)
        progress(IngestProgress(done, len(lacking), video.video_id, 0.0))
