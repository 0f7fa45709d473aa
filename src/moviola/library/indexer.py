"""Bringing videos into a library and taking them out; putting trained models in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from moviola.encoders.readers import installed
from moviola.errors import IndexServerError, InvalidValue, LibraryError, MediaError, printable
from moviola.index import Trial
from moviola.library.catalogue import VideoRow
from moviola.library.indexes import publish_indexes, tune_index
from moviola.library.models_in_use import NONE, ROLES, check_fits, copy_into, discard_others, source_of
from moviola.library.names import publish_names
from moviola.library.reading import Readers, ReadingRun, replace_subtitles
from moviola.library.report import IngestProgress, IngestReport
from moviola.library.settings import Settings
from moviola.library.store import LibraryStore
from moviola.library.unrelated import publish_unrelated, read_unrelated
from moviola.library.workers import Workers
from moviola.types import Cue, CueKind

if TYPE_CHECKING:
    from moviola.library.encoding import EncodedVideo
    from moviola.library.ingest import Refused
    from moviola.library.scan import FoundFile, Plan

__all__ = ["Indexer"]


Progress = Callable[[IngestProgress], None]


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
        ocr: bool | None = None,
        speech: str | None = None,
        workers: int | str | None = None,
        every_frame: bool = False,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Bring files and folders (recursively) into the library; what has not changed is passed over.

        Each video is committed as soon as it is whole: interrupted work, however it was interrupted, goes on
        with the next call. A damaged or unfit file is reported and does not stop the others.

        Args:
            sources: video files or folders.
            prune: take out videos of these folders whose file is gone (else they are only reported).
            ocr: read text in pictures; None: if the extra ``ocr`` is installed, in pictures of at least
                240 pixels. What was read stays.
            speech: who writes down what is said in videos without subtitles: ``"pocketsphinx"`` (English,
                offline), or a Whisper model for CTranslate2, a folder or a hub id that was pulled; None:
                nobody. Videos that another one has read are read again.
            workers: who encodes and reads: None: this process; a number: so many processes of this machine,
                which share its cores; ``"ray://host:port"``: the machines of a Ray cluster, which see the
                videos by the same paths. Only this process writes; see :mod:`moviola.library.workers`.
            every_frame: encode all frames, those too that repeat one before
                (:mod:`moviola.library.repeats`).
            progress: called as work goes on; with workers, when a video is done.

        Raises:
            InvalidValue: no source given, the library was opened read-only, or no such workers.
            MissingDependency, MissingModel: a reader that was asked for, or Ray, is not on this machine.
            WorkersError: the cluster cannot be reached, or a node of it cannot do the work.
            NotFound: a source does not exist.
            LibraryLocked: another process is writing.
        """
        from moviola.library.scan import make_plan

        if not sources:
            raise InvalidValue("nothing to index: name at least one video file or folder")
        readers = Readers.chosen(ocr, speech, self._store.encoders.device)
        chosen = nullcontext() if workers is None else Workers(workers)
        with self._store.writing(), chosen as pool:
            plan = make_plan([Path(source) for source in sources], self._store.catalogue.videos())
            report = IngestReport(
                unchanged=[video.video_id for video in plan.unchanged],
                missing=[video.video_id for video in plan.missing],
                ignored=[printable(path) for path in plan.ignored],
                refused=dict(plan.refused),
            )
            if prune and plan.missing:
                self._drop(plan.missing)
                report.removed, report.missing = report.missing, []
            self._follow_moved(plan, report)
            for video, found in plan.subtitles:
                self._reread_subtitles(video, found, report)
                report.updated.append(video.video_id)
            self._find_missing_shots(plan, report)
            self._encode(plan, report, every_frame, pool, progress or (lambda _: None))
            self._read(plan, readers, report, pool, progress or (lambda _: None))
            self._publish()
        return report

    def remove(self, video_ids: Iterable[str]) -> list[str]:
        """Take videos out (their files are not touched); all or none.

        Raises:
            NotFound: an id is unknown.
            InvalidValue: the library was opened read-only.
            LibraryLocked: another process is writing.
        """
        with self._store.writing():
            videos = [self._store.catalogue.video(video_id) for video_id in dict.fromkeys(video_ids)]
            self._drop(videos)
            publish_indexes(self._store)
            publish_names(self._store, encode=False)
        return [video.video_id for video in videos]

    def _drop(self, videos: Iterable[VideoRow]) -> None:
        with self._store.catalogue.transaction():
            for video in videos:
                self._store.catalogue.drop(video.row)

    def _follow_moved(self, plan: Plan, report: IngestReport) -> None:
        catalogue = self._store.catalogue
        for video, found in plan.moved:
            with catalogue.transaction():
                catalogue.moved(video.row, str(found.path), found.size, found.mtime_ns, video.sidecars)
            if video.sidecars != found.sidecars:
                there = replace(video, path=str(found.path), size=found.size, mtime_ns=found.mtime_ns)
                self._reread_subtitles(there, found, report)
            report.moved.append(video.video_id)

    def _encode(
        self,
        plan: Plan,
        report: IngestReport,
        every_frame: bool,
        workers: Workers | None,
        progress: Progress,
    ) -> None:
        from moviola.library.encoding import EncodedVideo, VideoEncoder

        files = [*plan.new, *plan.changed]
        if not files:
            return
        changed = {found.video_id for found in plan.changed}
        catalogue = self._store.catalogue
        encoder = VideoEncoder(self._store.encoders, self._store.settings.frame_rate, every_frame=every_frame)
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
        with store.catalogue.transaction():
            store.catalogue.put(row, video.cues, encoded.shots, repeats=encoded.repeats)

    def _find_missing_shots(self, plan: Plan, report: IngestReport) -> None:
        """Look for shots in videos that were encoded before that was done; their features stay."""
        from moviola.library.ingest import find_shots

        store, known = self._store, self._store.catalogue.videos_with_shots()
        for video in plan.unchanged:
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
        named = {video.video_id for video in kept} | {*report.added, *report.updated}
        ReadingRun(self._store, report, on_video, workers).read(named, readers)
        if readers.text is None and not installed("ocr"):
            report.not_read["text"] = "pip install 'moviola[ocr]' to read text in pictures"

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
            self._publish()

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
            publish_unrelated(self._store)
            unrelated = read_unrelated(self._store)
            if unrelated is None:
                raise LibraryError(f"{self._store.folder}: no segments to measure; index videos first")
            return tune_index(self._store, unrelated.vectors)

    def models_in_use(self) -> dict[str, dict[str, str] | None]:
        """``name`` and ``revision`` of the trained models in use by role, ``stage1`` and ``refiner``."""
        values = self._store.settings.model_dump()
        return {
            role: {"name": values[role], "revision": values[f"{role}_revision"]} if values[role] else None
            for role in ROLES
        }

    def _publish(self) -> None:
        """Bring up to date what follows from videos and models: indexes, and what the cache holds."""
        store = self._store
        store.models.make_graphs()
        publish_indexes(store)
        publish_unrelated(store)
        publish_names(store)
        features = store.features_of(store.searchable())
        keys = features.keys.tolist()
        kept = store.cache.keep_only(store.settings.refiner_revision, set(keys))
        for place, key in enumerate(keys):
            if store.settings.refiner and key not in kept:
                store.models.refiner.prepare(features, place)
