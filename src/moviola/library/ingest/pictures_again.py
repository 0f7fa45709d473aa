"""Pictures of videos that are in a library already, decoded and encoded, and nothing else of their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from moviola.features import Extent
from moviola.files.reasons import reason
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.contents import content_hash
from moviola.library.disk.encoders_in_use import LibraryEncoders
from moviola.library.disk.other_frames import FRAMES
from moviola.library.disk.places import present_path
from moviola.library.disk.settings import Settings
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.learning_again import learn_again
from moviola.library.ingest.plan import FoundFile, IngestProgress

if TYPE_CHECKING:
    from moviola.library.ingest.frame_features import Encoded, Refused

__all__ = ["WAITS", "encode_pictures", "encode_where_missing", "file_of", "say_state"]

WAITS = reason("waits")

Progress = Callable[[IngestProgress], None]


def encode_pictures(
    files: Sequence[FoundFile], encoders: LibraryEncoders, settings: Settings, progress: Progress
) -> Iterator[Encoded | Refused]:
    """Pictures of files, encoded, in the order of the files; nothing else of them is read. A file that has
    changed since it was found is refused: its pictures would be those of another film.
    """
    # With PyAV, which a search does without.
    from moviola.library.ingest.frame_features import EncodedPart, Refused, encode_videos

    visual, done = encoders.visual, 0
    assert visual is not None

    def on_frames(found: FoundFile, seconds: float) -> None:
        progress(IngestProgress(done, len(files), found.video_id, seconds))

    for outcome in encode_videos(
        files, visual.frame_size, encoders.rows, settings.frame_rate, on_frames, shots=False
    ):
        if not isinstance(outcome, EncodedPart):  # films come whole here
            same = isinstance(outcome, Refused) or _is_as_found(outcome.file)
            yield outcome if same else Refused(outcome.file, reason("changed since"))
            done += 1


def _is_as_found(file: FoundFile) -> bool:
    with suppress(OSError):
        status = file.path.stat()
        return (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)
    return False


def file_of(store: LibraryStore, video: VideoRow) -> FoundFile | str:
    """The file of a video as it was indexed, or why it cannot be read."""
    path = present_path(video, store.catalogue.copies_of(video.row), store.catalogue.roots())
    if path is None:
        return f"{video.path}: not there; connect its drive, or index it at its new place"
    try:
        status = path.stat()
        same = status.st_size == video.size and (
            (str(path) == video.path and status.st_mtime_ns == video.mtime_ns)
            or content_hash(path, video.size) == video.hash
        )
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror})"
    if not same:
        return f"{path}: has changed since it was indexed; index it again"
    return FoundFile(path, video.video_id, video.size, status.st_mtime_ns, video.hash, video.sidecars)


def say_state(store: LibraryStore, video: VideoRow, *, waits: bool) -> None:
    """Say of a video that its pictures wait, or no longer, beside what else is said of it."""
    said = [
        part for part in (video.error.removesuffix(WAITS).removesuffix("; "), WAITS if waits else "") if part
    ]
    store.catalogue.set_state(video.row, "partial" if said else "ready", "; ".join(said))


def encode_where_missing(
    store: LibraryStore, video_ids: Sequence[str], progress: Progress = lambda _: None
) -> dict[str, str]:
    """Encode the pictures of videos that have none, as those whose files were away when the encoder was
    changed; concepts with moments of them are learnt again. Under the write lock. Returns why, of those that
    cannot be read.
    """
    from moviola.library.ingest.frame_features import Refused

    settings, catalogue = store.settings, store.catalogue
    if not settings.encoder:
        return {}
    named = catalogue.videos_named(video_ids)
    lacking = [video for video in named.values() if video.frames is None and video.state != "refused"]
    others, files, reasons = catalogue.other_frames(), [], {}
    for video in lacking:
        if known := others.get((video.row, settings.pictures_key)):
            _put_frames(store, video, known.extent, known.repeats)
            continue
        found = file_of(store, video)
        if isinstance(found, str):
            reasons[video.video_id] = found
        else:
            files.append(found)
    for outcome in encode_pictures(files, store.encoders, settings, progress) if files else ():
        video = named[outcome.file.video_id]
        if isinstance(outcome, Refused) or outcome.frames is None:
            reason = outcome.reason if isinstance(outcome, Refused) else "it has no pictures"
            reasons[video.video_id] = f"{outcome.file.path.name}: {reason}"
            continue
        store.require_in_place()
        end = catalogue.feature_end(FRAMES)
        extent = store.frame_features.append(outcome.frames, end, catalogue.last_shard())
        _put_frames(store, video, extent, outcome.repeats)
    with catalogue.transaction() if reasons else nullcontext():
        for video_id in reasons:
            say_state(store, named[video_id], waits=True)
    if done := {video.video_id for video in lacking} - reasons.keys():
        extents = {video.video_id: video.frames for video in catalogue.videos() if video.frames is not None}
        learn_again(store, settings, store.frame_features, extents, of_videos=done)
    return reasons


def _put_frames(store: LibraryStore, video: VideoRow, extent: Extent, repeats: int) -> None:
    catalogue = store.catalogue
    with catalogue.transaction():
        catalogue.relocate(video.row, extent, video.cues)
        catalogue.set_repeats(video.row, repeats)
        catalogue.drop_other_frames(store.settings.pictures_key, video.row)
        end = extent.shard, extent.offset + extent.count
        catalogue.set_feature_end(FRAMES, *max(catalogue.feature_end(FRAMES), end))
        say_state(store, video, waits=False)
