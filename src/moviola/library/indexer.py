"""Bringing videos into a library and taking them out; putting trained models in use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moviola.errors import IndexServerError, InvalidValue, LibraryError, printable
from moviola.index import Trial
from moviola.library.background import text_vectors, texts_among_segments
from moviola.library.capturing import note_captures
from moviola.library.catalogue import VideoRow
from moviola.library.following import follow, forget_root, move_root, note_copies, restore
from moviola.library.indexes import publish_indexes, tune_index
from moviola.library.listening import Listening
from moviola.library.missing_shots import find_missing_shots
from moviola.library.models_in_use import NONE, ROLES, check_fits, copy_into, discard_others, source_of
from moviola.library.names import publish_names
from moviola.library.reading import Readers, ReadingRun, replace_subtitles
from moviola.library.report import IngestProgress, IngestReport
from moviola.library.settings import Settings
from moviola.library.store import LibraryStore
from moviola.library.workers import Workers
from moviola.types import Cue, CueKind

if TYPE_CHECKING:
    from moviola.library.encoding import EncodedVideo
    from moviola.library.ingest import Refused
    from moviola.library.scan import FoundFile, Plan

__all__ = ["Indexer"]


Progress = Callable[[IngestProgress], None]


def _report_on(plan: Plan) -> IngestReport:
    """What is known before anything is done."""
    return IngestReport(
        unchanged=[video.video_id for video in plan.unchanged],
        missing=[video.video_id for video in plan.missing],
        left_out=[video.video_id for video in plan.left_out],
        away=[video.video_id for video in plan.away],
        offline={printable(path): reason for path, reason in plan.offline.items()},
        ignored=[printable(path) for path in plan.ignored],
        excluded=list(plan.excluded),
        waiting=[printable(path) for path in plan.waiting],
        refused=dict(plan.refused),
    )


class Indexer:
    """Writes to a library; every method takes its write lock.

    Args:
        store: the library, not opened read-only.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store = store

    # -- videos ----------------------------------------------------------------------------------------

    def index(
        self,
        *sources: str | PathLike[str],
        prune: bool = False,
        confirm: Callable[[Sequence[str], int], bool] | None = None,
        exclude: Sequence[str] | None = None,
        default_excludes: bool | None = None,
        settled: Callable[[Path, os.stat_result], bool] | None = None,
        ocr: bool | None = None,
        speech: str | None = None,
        speech_track: str | None = None,
        speech_language: str | None = None,
        workers: int | str | None = None,
        every_frame: bool = False,
        stills: bool = True,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Bring files and folders (recursively) into the library; what has not changed is passed over.

        Each video is committed as soon as it is whole: interrupted work, however it was interrupted, goes on
        with the next call. A damaged or unfit file is reported and does not stop the others.

        Args:
            sources: video files or folders.
            prune: take out videos of these folders whose file is gone, or that are left out now (else they
                are only reported); :meth:`restore` brings them back. Never what lies in a folder that is
                away: unmounted, empty where it was not, another volume in its place.
            confirm: asked before pruning takes out more than one video and more than a tenth of the
                library, with their ids and how many there are; None: then nothing is taken out.
            exclude: what to leave out of the folders, patterns as in ``.gitignore``, in place of those that
                were given before; None: those. Files ``.moviolaignore`` add to them.
            default_excludes: leave out :data:`moviola.library.leaving_out.DEFAULTS` and folders with a file
                ``.nomedia``; None: as before, which is True at first.
            settled: whether a new or changed file is whole, by its path and status; others wait for another
                call (``waiting`` in the report). None: all are.
            ocr: read text in pictures; None: in pictures of at least 240 pixels. What was read stays.
            speech: who writes down what is said in videos without subtitles: ``"pocketsphinx"`` (English,
                offline), or a Whisper model for CTranslate2, a folder or a hub id that was pulled; None:
                nobody. Videos that another one has read, or in another way, are read again.
            speech_track: which sound track is listened to: a number from 1 on, or a language (ISO 639), where
                videos without such a track are reported; ``"all"``; None or ``"default"``: the one that
                players choose by the file's flags.
            speech_language: that is spoken, as ISO 639 has it; None: the reader finds out.
            workers: who encodes and reads: None: this process; a number: so many processes of this machine,
                which share its cores; ``"ray://host:port"``: the machines of a Ray cluster, which see the
                videos by the same paths. Only this process writes; see :mod:`moviola.library.workers`.
            every_frame: encode all frames, those too that repeat one before
                (:mod:`moviola.library.repeats`).
            stills: keep a small still of each segment of what is encoded, some 1.4 kB, for when its file is
                not there.
            progress: called as work goes on; with workers, when a video is done.

        Raises:
            InvalidValue: no source given, the library was opened read-only, no such workers, a track or a
                language that cannot be, or a pattern that cannot be read.
            MissingDependency, MissingModel: a reader that was asked for, or Ray, is not on this machine.
            WorkersError: the cluster cannot be reached, or a node of it cannot do the work.
            NotFound: a source does not exist.
            LibraryLocked: another process is writing.
        """
        from moviola.library.scan import Held, make_plan

        if not sources:
            raise InvalidValue("nothing to index: name at least one video file or folder")
        listening = Listening.chosen(speech_track, speech_language)
        readers = Readers.chosen(ocr, speech, self._store.encoders.device, listening)
        chosen = nullcontext() if workers is None else Workers(workers)
        with self._store.writing(), chosen as pool:
            catalogue = self._store.catalogue
            plan = make_plan(
                [Path(source) for source in sources],
                catalogue.videos(),
                Held(catalogue.roots(), catalogue.copies(), catalogue.removed()),
                exclude=exclude,
                default_excludes=default_excludes,
                settled=settled,
            )
            report = _report_on(plan)
            follow(self._store, plan, report)
            if prune:
                self._prune([*plan.missing, *plan.left_out], confirm, report)
            self._reread_moved(plan, report)
            for video, found in plan.subtitles:
                self._reread_subtitles(video, found, report)
                report.updated.append(video.video_id)
            find_missing_shots(self._store, plan.unchanged, report)
            every = self._store.settings.frames_per_segment if stills else None
            options = {"every_frame": every_frame, "stills_every": every}
            self._encode(plan, report, options, pool, progress or (lambda _: None))
            note_copies(self._store, plan, report)
            moved = [video.video_id for video, _ in (*plan.moved, *plan.subtitles)]
            note_captures(
                self._store,
                [*report.unchanged, *moved, *report.added, *report.updated, *report.restored],
            )
            self._read(plan, readers, report, pool, progress or (lambda _: None))
            self.publish()
        return report

    def remove(self, video_ids: Iterable[str], *, for_good: bool = False) -> list[str]:
        """Take videos out (their files are not touched); all or none.

        Args:
            video_ids: of the videos.
            for_good: keep nothing that :meth:`restore` could bring back: what is known of them is damaged.

        Raises:
            NotFound: an id is unknown.
            InvalidValue: the library was opened read-only.
            LibraryLocked: another process is writing.
        """
        with self._store.writing():
            videos = [self._store.catalogue.video(video_id) for video_id in dict.fromkeys(video_ids)]
            self._drop(videos, for_good=for_good)
            publish_indexes(self._store)
            publish_names(self._store, encode=False)
        return [video.video_id for video in videos]

    def _drop(self, videos: Iterable[VideoRow], *, for_good: bool = False) -> None:
        catalogue = self._store.catalogue
        with catalogue.transaction():
            for video in videos:
                if for_good:
                    catalogue.drop(video.row)
                else:
                    catalogue.take_out(video)

    def restore(self, video_ids: Iterable[str]) -> list[str]:
        """Bring back videos that were removed since the last compaction; all or none, without encoding.

        Raises:
            NotFound: nothing of that id was removed.
            InvalidValue: its id or its file belongs to another video now, or opened read-only.
            LibraryError: its features are damaged.
            LibraryLocked: another process is writing.
        """
        with self._store.writing():
            restored = restore(self._store, video_ids)
            publish_indexes(self._store)
            publish_names(self._store, encode=False)
        return restored

    def forget_root(self, root: str | PathLike[str]) -> list[str]:
        """Take out a root with the videos in it; :meth:`restore` brings these back.

        Raises:
            NotFound: the folder is no root.
            InvalidValue: opened read-only.
            LibraryLocked: another process is writing.
        """
        with self._store.writing():
            removed = forget_root(self._store, Path(root))
            publish_indexes(self._store)
            publish_names(self._store, encode=False)
        return removed

    def move(self, old: str | PathLike[str], new: str | PathLike[str], *, check: bool = True) -> int:
        """What the library has of a folder lies in another one now; nothing is read or encoded.

        Args:
            old: where videos lay; need not be there any more.
            new: the folder that stands for it now.
            check: refuse a new folder that has none of the files.

        Returns:
            how many files of videos.

        Raises:
            NotFound: the library has nothing in the old folder, or the new one has none of its files.
            InvalidValue: another video's file is at one of the new paths, or opened read-only.
            LibraryLocked: another process is writing.
        """
        with self._store.writing():
            moved = move_root(self._store, Path(old), Path(new), check=check)
            publish_names(self._store, encode=False)
        return moved

    def _prune(
        self,
        videos: Sequence[VideoRow],
        confirm: Callable[[Sequence[str], int], bool] | None,
        report: IngestReport,
    ) -> None:
        """Take out videos, unless these are many and nobody says that it is meant."""
        if not videos:
            return
        ids, total = [video.video_id for video in videos], len(self._store.catalogue.videos())
        if len(ids) > max(1, total / 10) and not (confirm is not None and confirm(ids, total)):
            report.not_pruned = f"{len(ids)} of {total} videos would be taken out, more than a tenth"
            return
        self._drop(videos)
        report.removed += ids
        report.missing, report.left_out = [], []

    def _reread_moved(self, plan: Plan, report: IngestReport) -> None:
        """Read the subtitles of videos that lie elsewhere now, where these are others."""
        for video, found in plan.moved:
            if video.sidecars != found.sidecars:
                there = replace(video, path=str(found.path), size=found.size, mtime_ns=found.mtime_ns)
                self._reread_subtitles(there, found, report)
            report.moved.append(video.video_id)
        for _, found in plan.restored:
            if found.video_id in report.restored:
                video = self._store.catalogue.video(found.video_id)
                if video.sidecars != found.sidecars:
                    self._reread_subtitles(video, found, report)

    def _encode(
        self,
        plan: Plan,
        report: IngestReport,
        options: Mapping[str, Any],
        workers: Workers | None,
        progress: Progress,
    ) -> None:
        from moviola.library.encoding import EncodedVideo, VideoEncoder

        files = [*plan.new, *plan.changed]
        if not files:
            return
        changed = {found.video_id for found in plan.changed}
        catalogue = self._store.catalogue
        encoder = VideoEncoder(self._store.encoders, self._store.settings.frame_rate, **options)
        job, done, state = catalogue.begin_job("index", len(files)), 0, "interrupted"

        def on_frames(found: FoundFile, seconds: float) -> None:
            progress(IngestProgress(done, len(files), found.video_id, seconds))

        try:
            for found, outcome in zip(files, encoder.many(files, on_frames, workers), strict=True):
                if isinstance(outcome, EncodedVideo):
                    self._commit(outcome, report)
                    known = found.video_id in changed
                    (report.updated if known else report.added).append(found.video_id)
                else:
                    self._commit_refusal(outcome, report)
                done += 1
                catalogue.advance_job(job)
                progress(IngestProgress(done, len(files), found.video_id, 0.0))
            state = "done"
        finally:
            catalogue.end_job(job, state)  # type: ignore[arg-type]

    def _commit(self, video: EncodedVideo, report: IngestReport) -> None:
        store, encoded, found = self._store, video.pictures, video.pictures.file
        if video.problems:
            report.subtitle_problems[found.video_id] = "; ".join(video.problems)
        error = ""
        if encoded.broken_at is not None:
            error = f"damaged at {encoded.broken_at:.1f} s; what decodes before and after is in"
            report.partial[found.video_id] = error
        frames = cues = None
        if encoded.frames is not None:
            frames = store.frame_features.append(encoded.frames, store.catalogue.feature_end("frames"))
            report.frames += frames.count
            report.repeats += encoded.repeats
        if video.sentences is not None:
            cues = store.cue_features.append(video.sentences, store.catalogue.feature_end("cues"))
        row = VideoRow(
            row=0, video_id=found.video_id, path=str(found.path), size=found.size, mtime_ns=found.mtime_ns,
            hash=found.hash, sidecars=found.sidecars, state="partial" if error else "ready", error=error,
            duration=encoded.duration, width=encoded.info.width, height=encoded.info.height,
            codec=encoded.info.video_codec, frames=frames, cues=cues,
        )  # fmt: skip
        store.stills.put(found.hash, encoded.stills, encoded.fingerprint)
        with store.catalogue.transaction():
            store.catalogue.put(row, video.cues, encoded.shots, repeats=encoded.repeats)

    def _commit_refusal(self, refused: Refused, report: IngestReport) -> None:
        found = refused.file
        report.refused[found.video_id] = f"{found.path.name}: {refused.reason}; skipped"
        video = VideoRow(
            row=0, video_id=found.video_id, path=str(found.path), size=found.size, mtime_ns=found.mtime_ns,
            hash=found.hash, sidecars=found.sidecars, state="refused", error=refused.reason,
        )  # fmt: skip
        with self._store.catalogue.transaction():
            self._store.catalogue.put(video, [])

    # -- subtitles -------------------------------------------------------------------------------------

    def _read_cues(self, found: FoundFile, report: IngestReport) -> Sequence[Cue]:
        from moviola.library.ingest import read_cues

        cues, problems = read_cues(found)
        if problems:
            report.subtitle_problems[found.video_id] = "; ".join(problems)
        return cues

    def _reread_subtitles(self, video: VideoRow, found: FoundFile, report: IngestReport) -> None:
        """The pictures are as they were, so their features stay; only the subtitles are read again."""
        fresh = replace(video, size=found.size, mtime_ns=found.mtime_ns, sidecars=found.sidecars)
        replace_subtitles(self._store, video, fresh, self._read_cues(found, report))

    # -- text in pictures, speech ----------------------------------------------------------------------

    def _read(
        self, plan: Plan, readers: Readers, report: IngestReport, workers: Workers | None, progress: Progress
    ) -> None:
        """Let the readers go through the videos that were named."""

        def on_video(step: CueKind, done: int, total: int, video_id: str, seconds: float) -> None:
            progress(IngestProgress(done, total, video_id, seconds, step))

        kept = (*plan.unchanged, *(video for video, _ in (*plan.moved, *plan.subtitles)))
        named = {video.video_id for video in kept} | {*report.added, *report.updated, *report.restored}
        ReadingRun(self._store, report, on_video, workers).read(named, readers)

    # -- models and what follows from videos and models -----------------------------------------------------

    def use(
        self,
        *,
        stage1: str | PathLike[str] | None = None,
        refiner: str | PathLike[str] | None = None,
        force: bool = False,
    ) -> None:
        """Search with trained models from now on, or without them again.

        The models are copied into the library, and the segment index is made anew where stage 1 changes.

        Args:
            stage1: folder of an ``spr-stage1`` model; ``"demo"`` for the one that the package carries for
                the encoder ``demo``; ``"none"`` for the mean of the frames; None: as it is.
            refiner: folder of a ``reel``, ``spr-clip`` or ``reloclnet`` model; ``"demo"`` likewise;
                ``"none"`` for the refinement that needs no training; None: as it is.
            force: take a model that does not say what it was trained on.

        Raises:
            InvalidValue: nothing to change, opened read-only, a model of another kind, or one that does not
                say what it was trained on.
            EncoderMismatch: a model that was trained on another encoder, frame rate or segment length.
            NotFound, DataError: a model's folder is missing or damaged.
            LibraryError: the library has no visual encoder.
            LibraryLocked: another process is writing.
        """
        folder, settings = self._store.folder, self._store.settings
        given = {"stage1": stage1, "refiner": refiner}
        chosen = {role: source for role, source in given.items() if source is not None}
        if not chosen:
            raise InvalidValue(f"{folder}: nothing to change; name a stage1, a refiner, or {NONE!r}")
        if not settings.encoder:
            raise LibraryError(f"{folder}: built without a visual encoder; trained models read frames")
        with self._store.writing():
            sources = {role: source_of(role, source) for role, source in chosen.items()}
            trained = {role: source for role, source in sources.items() if source is not None}
            for role, source in trained.items():
                check_fits(role, source, self._store.settings, force=force)
            changes = {key: "" for role in chosen for key in (role, f"{role}_revision")}
            for role, source in trained.items():
                changes |= copy_into(folder, role, source)
            settings = Settings.of({**self._store.settings.model_dump(), **changes})
            settings.write(folder)
            self._store.adopt(settings)
            discard_others(folder, settings)
            self.publish()

    def use_index(self, kind: str) -> None:
        """Search segments and cues with another type of index from now on; it is made at once.

        Args:
            kind: a name in :data:`moviola.index.BACKENDS`, ``"auto"`` (by the number of segments), or the
                address of a Milvus server, ``"milvus://HOST:PORT/COLLECTION"``.

        Raises:
            InvalidValue: an unknown type, no address, or opened read-only.
            IndexServerError: the server does not answer; the library stays as it is.
            LibraryLocked: another process is writing.
        """
        with self._store.writing():
            before = self._store.settings
            self._choose(Settings.of({**before.model_dump(), "index": kind}))
            try:
                publish_indexes(self._store)
            except IndexServerError:
                self._choose(before)
                raise

    def _choose(self, settings: Settings) -> None:
        settings.write(self._store.folder)
        self._store.adopt(settings)

    def tune_index(self) -> list[Trial]:
        """Measure how far searches for segments must look to find 99 % of the exact answers, and look as far.

        Measured on segments of this library and on two hundred queries by text. An index keeps it until it is
        measured again, or gets another type.

        Returns:
            what was tried; nothing where the type of the index has nothing to choose.

        Raises:
            InvalidValue: opened read-only.
            LibraryError: the library has no visual encoder, or is empty.
            LibraryLocked: another process is writing.
        """
        with self._store.writing():
            publish_indexes(self._store)
            return tune_index(self._store, texts_among_segments(self._store))

    def models_in_use(self) -> dict[str, dict[str, str] | None]:
        """``name`` and ``revision`` of the trained models in use by role, ``stage1`` and ``refiner``."""
        values = self._store.settings.model_dump()
        return {
            role: {"name": values[role], "revision": values[f"{role}_revision"]} if values[role] else None
            for role in ROLES
        }

    def publish(self) -> None:
        """Bring up to date what follows from videos and models: indexes, and what the cache holds.

        Under the write lock, which every other method takes by itself.
        """
        store = self._store
        store.models.make_graphs()
        publish_indexes(store)
        if store.encoders.visual is not None:
            text_vectors(store)
        publish_names(store)
        features = store.features_of(store.searchable())
        keys = features.keys.tolist()
        kept = store.cache.keep_only(store.settings.refiner_revision, set(keys))
        for place, key in enumerate(keys):
            if store.settings.refiner and key not in kept:
                store.models.refiner.prepare(features, place)
