"""Putting what was encoded of a video into a library, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.files.presence import is_gone
from moviola.files.reasons import reason
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.following import note_facts
from moviola.library.ingest.plan import IngestReport

if TYPE_CHECKING:
    from moviola.library.ingest.frame_features import Encoded, Refused

__all__ = ["commit", "commit_refusal"]


def commit(store: LibraryStore, encoded: Encoded, report: IngestReport) -> None:
    """Store a video with its features, subtitles and stills, under the write lock."""
    file = encoded.file
    store.require_in_place()
    read = encoded.subtitles
    report.note_subtitles(file.video_id, read.problems, read.notes)
    broken = encoded.broken_at
    error = "" if broken is None else reason("damaged", seconds=f"{broken:.1f}")
    report.partial |= {file.video_id: error} if error else {}
    frames = cues = None
    if encoded.frames is not None:
        end, last = store.catalogue.feature_end("frames"), store.catalogue.last_shard()
        frames = store.frame_features.append(encoded.frames, end, last)
        report.frames += frames.count
        report.repeats += encoded.repeats
    if encoded.sentences is not None:
        cues = store.cue_features.append(encoded.sentences, store.catalogue.feature_end("cues"))
    row = file.row(
        "partial" if error else "ready", error=error, duration=encoded.duration, width=encoded.info.width,
        height=encoded.info.height, codec=encoded.info.video_codec, frames=frames, cues=cues,
    )  # fmt: skip
    store.stills.put(file.hash, encoded.stills, encoded.fingerprint)
    with store.catalogue.transaction():
        stored = store.catalogue.put(row, read.cues, encoded.shots, repeats=encoded.repeats)
        store.catalogue.note_subtitles(stored.row, read.problems, read.notes, beside=read.beside)
        if encoded.facts:
            note_facts(store.catalogue, stored.row, encoded.facts, report, read.fixes)
        store.catalogue.put_checksum(stored.row, encoded.checksum)


def commit_refusal(store: LibraryStore, refused: Refused, report: IngestReport) -> None:
    """Store that a file is none that can be used."""
    file = refused.file
    store.require_in_place()
    report.refused[file.video_id] = f"{file.path.name}: {refused.reason}; skipped"
    catalogue = store.catalogue
    known = catalogue.videos_named([file.video_id]).get(file.video_id)
    has_this = known is not None and known.state != "refused" and known.hash == file.hash
    # A file that was moved or unplugged since it was listed, or that was to be encoded again and cannot be
    # read now, stays as it is known.
    if has_this or is_gone(file.path):
        return
    with catalogue.transaction():
        catalogue.put(file.row("refused", error=refused.reason), [])
