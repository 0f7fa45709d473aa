"""Storing of what was encoded: videos, parts of long ones, and refusals."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from moviola.features import Extent
from moviola.files.presence import is_gone
from moviola.files.reasons import reason
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.fingerprints import Fingerprint
from moviola.library.disk.store import LibraryStore
from moviola.library.disk.unfinished import UnfinishedFilm, how_far
from moviola.library.ingest.film_parts import Begun, part_length
from moviola.library.ingest.first_pass import Glimpse
from moviola.library.ingest.following import note_facts
from moviola.library.ingest.frame_features import Encoded, EncodedPart, Outcome, Refused
from moviola.library.ingest.plan import FoundFile, IngestReport
from moviola.media import Marks, Slope, Transition
from moviola.types import Cue

__all__ = ["Commits"]


@dataclass(frozen=True, slots=True)
class Commits:
    """Stores outcomes in a library, one after another, under its write lock, and reports them.

    ``made`` says in words how frames are encoded; parts that were made in another way are not continued.
    ``changed`` are the ids of the videos that are in already.
    """

    store: LibraryStore
    report: IngestReport
    made: str
    changed: Collection[str]

    def forget_others(self, contents: Iterable[str]) -> None:
        """Delete what is known of unfinished films that are neither known nor of some contents."""
        catalogue = self.store.catalogue
        unknown = catalogue.unfinished().keys() - {*contents, *(one.hash for one in catalogue.removed())}
        if unknown := unknown - catalogue.rows_with(unknown).keys():
            with catalogue.transaction():
                catalogue.forget_unfinished(unknown)

    def begun(self, file: FoundFile) -> Begun | None:
        """The first parts of a film as they are known; None, and they are forgotten, where it cannot be
        continued, since another file or other options come now.
        """
        film = self.store.catalogue.unfinished_film(file.hash)
        if film is None:
            return None
        same = (film.size, film.mtime_ns, film.made) == (file.size, file.mtime_ns, self._made())
        if not (same and self.store.frame_features.intact(film.frames)):
            catalogue = self.store.catalogue
            with catalogue.transaction():
                catalogue.forget_unfinished([file.hash])
                for row in catalogue.rows_with([file.hash]).get(file.hash, ()):
                    catalogue.encode_again(row)
            return None
        known = film.state
        unclear = [(start, end) for start, end in known["unclear"]]
        return Begun(film.moments, _read_marks(known["marks"]), unclear, known["broken_at"], known["film"])

    def unseen(self, files: Iterable[FoundFile]) -> list[FoundFile]:
        """The files of which nothing is shown, neither what they are now nor what they were."""
        files = [*files]
        named = self.store.catalogue.videos_named([file.video_id for file in files])
        shown = {video.video_id for video in named.values() if video.state != "refused"}
        return [file for file in files if file.video_id not in shown]

    def glimpse(self, found: Glimpse) -> None:
        """Store a film as its key frames show it."""
        store, file, info = self.store, found.file, found.info
        store.require_in_place()
        frames = store.append_key_frames(found.moments(store.settings.frame_rate))
        said = how_far(0.0, found.seconds, key_frames=True)
        row = file.row(
            "partial", error=said, duration=found.seconds, width=info.width, height=info.height,
            codec=info.video_codec, frames=frames,
        )  # fmt: skip
        with store.catalogue.transaction():
            store.catalogue.put(row, [], by_key_frames=0.0)
        self.report.partial[file.video_id] = said

    def take(self, outcome: Outcome) -> None:
        """Store one outcome."""
        self.store.require_in_place()
        if isinstance(outcome, EncodedPart):
            self._part(outcome)
        elif isinstance(outcome, Encoded):
            self._whole(outcome)
            known = outcome.file.video_id in self.changed
            (self.report.updated if known else self.report.added).append(outcome.file.video_id)
        else:
            self._refusal(outcome)

    def _made(self) -> str:
        settings = self.store.settings
        parts = part_length(settings.frame_rate)
        return f"{self.made}, by {settings.encoder_revision}, parts of {parts}"

    def _part(self, encoded: EncodedPart) -> None:
        store, file, part = self.store, encoded.file, encoded.part
        catalogue = store.catalogue
        before = catalogue.unfinished_film(file.hash)
        frames = store.frame_features.extend(
            before.frames if before else None, encoded.frames, catalogue.feature_end("frames"),
            catalogue.last_shard(),
        )  # fmt: skip
        state = {
            "marks": _written_marks(encoded.marks), "unclear": encoded.unclear, "broken_at": part.broken_at,
            "film": part.state,
        }  # fmt: skip
        film = UnfinishedFilm(
            file.hash, file.size, file.mtime_ns, self._made(), part.moments, part.seconds,
            encoded.info.about, frames, encoded.repeats + (before.repeats if before else 0), state,
        )  # fmt: skip
        store.stills.put(file.hash, part.stills, None)
        shown = self._shows(file, before, part.seconds)
        cues = [cue for cue in encoded.subtitles.cues if cue.start < part.seconds] if shown else []
        cues = [replace(cue, end=min(cue.end, part.seconds)) for cue in cues]
        lines = self._lines(shown, cues)
        rest = self._with_key_frames(shown, frames)
        with catalogue.transaction():
            catalogue.put_unfinished(film, part.fingerprint)
            catalogue.raise_feature_end("frames", frames)
            if shown is not None:
                since = film.seconds if rest is not None else None
                said = how_far(film.seconds, film.promised, key_frames=rest is not None)
                row = replace(
                    shown, error=said, duration=film.seconds if rest is None else film.promised,
                    width=encoded.info.width, height=encoded.info.height, codec=encoded.info.video_codec,
                    frames=rest or frames, cues=lines,
                )  # fmt: skip
                catalogue.put(row, cues, encoded.shots, repeats=film.repeats, by_key_frames=since)
                self.report.partial[file.video_id] = said
        self.report.frames += len(encoded.frames)
        self.report.repeats += encoded.repeats

    def _shows(self, file: FoundFile, before: UnfinishedFilm | None, seconds: float) -> VideoRow | None:
        """The searchable video of a film of which parts are in, as it is before the one that ends at some
        second. None where a whole one is in, which stays until the new one is whole; and where parts are in
        with key frames of the rest, of which all is written again whenever twice as much is in.
        """
        known = self.store.catalogue.videos_named([file.video_id]).get(file.video_id)
        if known is None or known.state == "refused":
            return file.row("partial")
        since = self.store.catalogue.by_key_frames().get(known.row)
        if since is None:
            own = before is not None and known.hash == file.hash and known.frames == before.frames
        else:
            own = known.hash == file.hash and seconds >= 2 * since
        return (
            replace(file.row("partial"), row=known.row, frames=known.frames, cues=known.cues) if own else None
        )

    def _with_key_frames(self, shown: VideoRow | None, frames: Extent) -> Extent | None:
        """Features of the parts of a film that are in, and of its key frames for the rest; None where it is
        not known by these, or there is no rest.
        """
        store = self.store
        if shown is None or shown.frames is None or shown.row not in store.catalogue.by_key_frames():
            return None
        rest = store.frame_features.checked(shown.frames)[frames.count :]
        if not len(rest):
            return None
        return store.append_key_frames(np.concatenate([store.frame_features.checked(frames), rest]))

    def _lines(self, shown: VideoRow | None, cues: list[Cue]) -> Extent | None:
        """Where the sentence vectors of cues lie, which follow those of the video so far."""
        store = self.store
        if shown is None or not cues:
            return None
        before = shown.cues
        known = store.catalogue.cues(store.catalogue.video(shown.video_id).row) if before else []
        if [cue.text for cue in known] != [cue.text for cue in cues[: len(known)]]:
            before, known = None, []
        rows = store.encoders.sentence_rows(cues[len(known) :])
        if rows is None:
            return before
        return store.cue_features.extend(before, rows, store.catalogue.feature_end("cues"))

    def _whole(self, encoded: Encoded) -> None:
        store, file = self.store, encoded.file
        read = encoded.subtitles
        self.report.note_subtitles(file.video_id, read.problems, read.notes)
        self.report.partial.pop(file.video_id, None)
        broken = encoded.broken_at
        error = "" if broken is None else reason("damaged", seconds=f"{broken:.1f}")
        self.report.partial |= {file.video_id: error} if error else {}
        film = store.catalogue.unfinished_film(file.hash)
        frames, fingerprint = film.frames if film else None, encoded.fingerprint
        if encoded.frames is not None:
            frames = store.frame_features.extend(
                frames, encoded.frames, store.catalogue.feature_end("frames"), store.catalogue.last_shard()
            )
            self.report.frames += len(encoded.frames)
            self.report.repeats += encoded.repeats
        if film and fingerprint:
            fingerprint = _joined(store.catalogue.unfinished_fingerprint(file.hash), fingerprint)
        cues = None
        if encoded.sentences is not None:
            cues = store.cue_features.append(encoded.sentences, store.catalogue.feature_end("cues"))
        row = file.row(
            "partial" if error else "ready", error=error, duration=encoded.duration, width=encoded.info.width,
            height=encoded.info.height, codec=encoded.info.video_codec, frames=frames, cues=cues,
        )  # fmt: skip
        store.stills.put(file.hash, encoded.stills, fingerprint)
        repeats = encoded.repeats + (film.repeats if film else 0)
        with store.catalogue.transaction():
            store.catalogue.forget_unfinished([file.hash])
            stored = store.catalogue.put(row, read.cues, encoded.shots, repeats=repeats)
            store.catalogue.note_subtitles(stored.row, read.problems, read.notes, beside=read.beside)
            if encoded.facts:
                note_facts(store.catalogue, stored.row, encoded.facts, self.report, read.fixes)
            store.catalogue.put_checksum(stored.row, encoded.checksum)

    def _refusal(self, refused: Refused) -> None:
        file, catalogue = refused.file, self.store.catalogue
        self.report.refused[file.video_id] = f"{file.path.name}: {refused.reason}; skipped"
        self.report.partial.pop(file.video_id, None)
        known = catalogue.videos_named([file.video_id]).get(file.video_id)
        film = catalogue.unfinished_film(file.hash)
        part = known is not None and (
            (film is not None and known.frames == film.frames) or known.row in catalogue.by_key_frames()
        )
        has_this = known is not None and known.state != "refused" and known.hash == file.hash and not part
        # A file that was moved or unplugged since it was listed, or that was to be encoded again and cannot
        # be read now, stays as it is known.
        if is_gone(file.path):
            return
        with catalogue.transaction():
            catalogue.forget_unfinished([file.hash])
            if not has_this:
                catalogue.put(file.row("refused", error=refused.reason), [])


def _joined(one: Fingerprint, other: Fingerprint) -> Fingerprint:
    times, frames = (
        np.concatenate([getattr(one, name), getattr(other, name)]) for name in ("times", "frames")
    )
    return Fingerprint(times, frames)


def _written_marks(marks: Marks) -> list[Any]:
    """Marks as values of JSON: a slope has one number more than a transition."""
    return [
        (begin, [(m.kind, m.start, m.end) if isinstance(m, Transition) else
                 (m.start, m.end, m.from_blank, m.to_blank) for m in own])
        for begin, own in marks
    ]  # fmt: skip


def _read_marks(written: Iterable[tuple[float, list[Any]]]) -> Marks:
    return [
        (begin, [Transition(*m) if isinstance(m[0], str) else Slope(*m) for m in own])
        for begin, own in written
    ]
