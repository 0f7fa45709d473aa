"""The library on disk: open, create, index videos into it, take them out, read what is in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, LibraryError, NotFound, SegmentIndexError, printable
from moviola.index import BACKENDS, Index, load_index, save_index
from moviola.library.catalogue import CATALOGUE_FILE, Catalogue, Extent, VideoRow
from moviola.library.features import FeatureStore
from moviola.library.lock import writing
from moviola.library.segments import (
    POOLING,
    mean_pooled,
    normalised,
    pack_ids,
    trained_pooling,
    unpack_ids,
)
from moviola.library.settings import SETTINGS_FILE, Settings
from moviola.library.trained import (
    NONE,
    ROLES,
    ContextCache,
    Stage1,
    check_fits,
    copy_into,
    discard_others,
    opened_stage1,
    require_intact,
    source_of,
)
from moviola.types import Cue, Video

if TYPE_CHECKING:
    from moviola.encoders import ClipEncoder, SentenceEncoder
    from moviola.library.ingest import Encoded, Refused
    from moviola.library.scan import FoundFile

__all__ = ["IngestProgress", "IngestReport", "LibraryStore"]


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """Where indexing stands: videos done of those that need work, the one in flight and its seconds done."""

    done: int
    total: int
    video_id: str
    seconds: float


@dataclass(slots=True)
class IngestReport:
    """What indexing did, by video id. ``refused``, ``partial`` and ``subtitle_problems`` carry reasons.

    ``missing`` are videos whose file is gone; they stay in unless pruning was asked for (``removed``).
    ``ignored`` are paths of files that are no videos by their suffix.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    partial: dict[str, str] = field(default_factory=dict)
    subtitle_problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """One consistent state of the library: its videos by row number, the numbers by id, and their indexes."""

    generation: int
    videos: dict[int, VideoRow]
    numbers: dict[str, int]
    segments: Index | None
    cues: Index | None


class LibraryStore:
    """A library folder. Opening is cheap: encoders are loaded when first needed.

    Args:
        folder: the library; created by the first writer when an encoder is given and nothing is there.
        encoder: name of the visual encoder (``"demo"``, a hub id, a folder), ``"none"`` for a library that
            lives on subtitles alone, or None for the one that the library was built with.
        sentence_encoder: the same for subtitle sentences; for a new library None means MiniLM if its
            package is installed, else word search only.
        segment_seconds: length of the indexed segments (tau_S of SPR) of a new library, 4 by default; a whole
            number of frames. For one that exists, what it must have been built with.
        frame_rate: frames a second that are encoded, 1 by default; likewise.
        read_only: never write, not even an index; works on a read-only file system.
        device, precision: handed to the encoders.

    Raises:
        NotFound: no library there, and no encoder to create one with.
        EncoderMismatch: the library was built with another encoder, revision, segment length or frame rate.
        InvalidValue: a segment is no whole number of frames.
        LibraryError: damaged settings or catalogue.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        encoder: str | None = None,
        sentence_encoder: str | None = None,
        segment_seconds: float | None = None,
        frame_rate: float | None = None,
        read_only: bool = False,
        device: str = "auto",
        precision: str = "auto",
    ) -> None:
        self.folder = Path(folder)
        self.read_only = read_only
        self._device, self._precision = device, precision
        self._view: View | None = None
        exists = (self.folder / SETTINGS_FILE).is_file()
        sampling = {"segment_seconds": segment_seconds, "frame_rate": frame_rate}
        chosen = {name: float(value) for name, value in sampling.items() if value is not None}
        if not exists:
            self._refuse_to_create(encoder, read_only)
            self.settings = self._new_settings(str(encoder), sentence_encoder, chosen)
            self.folder.mkdir(parents=True, exist_ok=True)
            # The settings come last: a folder without them is not yet a library.
            Catalogue(self.folder).close()
            self.settings.write(self.folder)
        self.settings = Settings.read(self.folder)
        if not (self.folder / CATALOGUE_FILE).is_file():
            missing = self.folder / CATALOGUE_FILE
            raise LibraryError(f"{missing}: missing; restore it, or index into a new library")
        if exists:
            self.settings.require_same(self.folder, chosen)
            self._require_same_encoders(encoder, sentence_encoder)
        self.catalogue = Catalogue(self.folder, read_only=read_only)
        self.frame_features = FeatureStore(self.folder / "features", "frames", self.settings.encoder_dim)
        self.cue_features = FeatureStore(self.folder / "features", "cues", self.settings.sentence_dim)
        self.contexts = ContextCache(self.folder / "cache" / "context", read_only=read_only)

    def _refuse_to_create(self, encoder: str | None, read_only: bool) -> None:
        if self.folder.exists() and not (self.folder.is_dir() and _is_blank(self.folder)):
            raise NotFound(f"{self.folder}: not a moviola library (no {SETTINGS_FILE}); name an empty folder")
        if read_only or encoder is None:
            raise NotFound(
                f"{self.folder}: no library there; `moviola index FOLDER --library {self.folder} "
                "--encoder NAME` makes one (`moviola models list` shows the encoders on this machine)"
            )

    def _new_settings(
        self, encoder: str, sentence_encoder: str | None, sampling: dict[str, float]
    ) -> Settings:
        from moviola.encoders import MINILM, load_encoder, load_sentence_encoder
        from moviola.encoders.sentences import packaged_folder

        values: dict[str, object] = {**sampling}
        if encoder != "none":
            visual = load_encoder(encoder, device=self._device, precision=self._precision)
            self.__dict__["encoder"] = visual
            values.update(encoder=visual.id, encoder_revision=visual.revision, encoder_dim=visual.dim)
        name = sentence_encoder or (MINILM if packaged_folder() else "none")
        if name != "none":
            sentences = load_sentence_encoder(name, device=self._device)
            self.__dict__["sentence_encoder"] = sentences
            values.update(
                sentence_encoder=sentences.id,
                sentence_revision=sentences.revision,
                sentence_dim=sentences.dim,
            )
        return Settings.of(values)

    def _require_same_encoders(self, encoder: str | None, sentence_encoder: str | None) -> None:
        wanted: dict[str, object] = {}
        if encoder == "none":
            wanted["encoder"] = ""
        elif encoder is not None:
            wanted.update(encoder=self._load_visual(encoder).id)
        if sentence_encoder == "none":
            wanted["sentence_encoder"] = ""
        elif sentence_encoder is not None:
            wanted.update(sentence_encoder=self._load_sentences(sentence_encoder).id)
        self.settings.require_same(self.folder, wanted)

    def _load_visual(self, name: str) -> ClipEncoder:
        from moviola.encoders import load_encoder

        encoder = load_encoder(name, device=self._device, precision=self._precision)
        self.settings.require_same(
            self.folder,
            {"encoder": encoder.id, "encoder_revision": encoder.revision, "encoder_dim": encoder.dim},
        )
        return encoder

    def _load_sentences(self, name: str) -> SentenceEncoder:
        from moviola.encoders import load_sentence_encoder

        encoder = load_sentence_encoder(name, device=self._device)
        self.settings.require_same(
            self.folder,
            {
                "sentence_encoder": encoder.id,
                "sentence_revision": encoder.revision,
                "sentence_dim": encoder.dim,
            },
        )
        return encoder

    @cached_property
    def encoder(self) -> ClipEncoder | None:
        """The visual encoder, loaded and compared with the library's revision; None if it has none."""
        return self._load_visual(self.settings.encoder) if self.settings.encoder else None

    @cached_property
    def sentence_encoder(self) -> SentenceEncoder | None:
        """The sentence encoder likewise."""
        return (
            self._load_sentences(self.settings.sentence_encoder) if self.settings.sentence_encoder else None
        )

    @cached_property
    def stage1(self) -> Stage1 | None:
        """The trained stage 1 in use, loaded and compared with its recorded revision; None without one."""
        if self.encoder is None or not self.settings.stage1:
            return None
        return opened_stage1(require_intact(self.folder, "stage1", self.settings), self.encoder.device)

    def close(self) -> None:
        """Close the catalogue."""
        self.catalogue.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def videos(self) -> list[Video]:
        """The videos that can be searched, by id."""
        return [Video(v.video_id, v.duration) for v in self.catalogue.videos() if v.state != "refused"]

    def __len__(self) -> int:
        return len(self.videos())

    # -- writing ---------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the write lock, with the models that are in use now: another process may have changed them."""
        with writing(self.folder):
            self._adopt(Settings.read(self.folder))
            try:
                yield
            except (OSError, sqlite3.OperationalError) as error:
                reason = getattr(error, "strerror", None) or error
                raise LibraryError(
                    f"{self.folder}: cannot be written ({reason}); videos that are finished are in, so put "
                    "that right and run the same command again"
                ) from error

    def _adopt(self, settings: Settings) -> None:
        """Go on with other settings; what was made with the models before is forgotten."""
        if settings == self.settings:
            return
        for role in ROLES:
            if getattr(settings, role) != getattr(self.settings, role):
                self.__dict__.pop(role, None)
        self.settings, self._view = settings, None

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
        chosen = {
            role: source for role, source in (("stage1", stage1), ("refiner", refiner)) if source is not None
        }
        if not chosen:
            raise InvalidValue(f"{self.folder}: nothing to change; name a stage1, a refiner, or {NONE!r}")
        self._refuse_if_read_only()
        if not self.settings.encoder:
            raise LibraryError(f"{self.folder}: built without a visual encoder; trained models read frames")
        with self._writing():
            sources = {role: source_of(role, source) for role, source in chosen.items()}
            trained = {role: source for role, source in sources.items() if source is not None}
            for role, source in trained.items():
                check_fits(role, source, self.settings, force=force)
            changes = {key: "" for role in chosen for key in (role, f"{role}_revision")}
            for role, source in trained.items():
                changes.update(copy_into(self.folder, role, source))
            settings = Settings.of({**self.settings.model_dump(), **changes})
            settings.write(self.folder)
            self._adopt(settings)
            discard_others(self.folder, settings)
            self._publish_indexes()
            self._publish_contexts()

    def models_in_use(self) -> dict[str, dict[str, str] | None]:
        """``name`` and ``revision`` of the trained models in use by role, ``stage1`` and ``refiner``."""
        values = self.settings.model_dump()
        return {
            role: {"name": values[role], "revision": values[f"{role}_revision"]} if values[role] else None
            for role in ROLES
        }

    def _publish_contexts(self) -> None:
        """Make what a refiner wants to know of whole videos; there is none here, see ``moviola.search``."""

    def index(
        self,
        *sources: str | PathLike[str],
        prune: bool = False,
        progress: Callable[[IngestProgress], None] | None = None,
    ) -> IngestReport:
        """Bring files and folders (recursively) into the library; what has not changed is passed over.

        Each video is committed as soon as it is whole: interrupted work, however it was interrupted, goes on
        with the next call. A damaged or unfit file is reported and does not stop the others.

        Args:
            sources: video files or folders.
            prune: take out videos of these folders whose file is gone (else they are only reported).
            progress: called as work goes on.

        Raises:
            InvalidValue: no source given, or the library was opened read-only.
            NotFound: a source does not exist.
            LibraryLocked: another process is writing.
        """
        if not sources:
            raise InvalidValue("nothing to index: name at least one video file or folder")
        self._refuse_if_read_only()
        from moviola.library.scan import make_plan

        with self._writing():
            plan = make_plan([Path(source) for source in sources], self.catalogue.videos())
            report = IngestReport(
                unchanged=[video.video_id for video in plan.unchanged],
                missing=[video.video_id for video in plan.missing],
                ignored=[printable(path) for path in plan.ignored],
                refused=dict(plan.refused),
            )
            if prune and plan.missing:
                self._drop(plan.missing)
                report.removed, report.missing = report.missing, []
            for video, found in plan.moved:
                with self.catalogue.transaction():
                    self.catalogue.moved(
                        video.row, str(found.path), found.size, found.mtime_ns, video.sidecars
                    )
                moved_video = replace(video, path=str(found.path), size=found.size, mtime_ns=found.mtime_ns)
                if video.sidecars != found.sidecars:
                    self._reread_subtitles(moved_video, found, report)
                report.moved.append(video.video_id)
            for video, found in plan.subtitles:
                self._reread_subtitles(video, found, report)
                report.updated.append(video.video_id)
            changed = {found.video_id for found in plan.changed}
            self._encode([*plan.new, *plan.changed], changed, report, progress)
            self._publish_indexes()
            self._publish_contexts()
        return report

    def _encode(
        self,
        files: Sequence[FoundFile],
        changed: set[str],
        report: IngestReport,
        progress: Callable[[IngestProgress], None] | None,
    ) -> None:
        from moviola.library.ingest import Encoded, encode_videos

        if not files:
            return
        tell = progress or (lambda _: None)
        job = self.catalogue.begin_job("index", len(files))
        done = 0

        def on_frames(found: FoundFile, seconds: float) -> None:
            tell(IngestProgress(done, len(files), found.video_id, seconds))

        state = "interrupted"
        try:
            for outcome in encode_videos(files, self.encoder, self.settings.frame_rate, on_frames):
                if isinstance(outcome, Encoded):
                    self._commit(outcome, report)
                    known = outcome.file.video_id in changed
                    (report.updated if known else report.added).append(outcome.file.video_id)
                else:
                    self._commit_refusal(outcome, report)
                done += 1
                self.catalogue.advance_job(job)
                tell(IngestProgress(done, len(files), outcome.file.video_id, 0.0))
            state = "done"
        finally:
            self.catalogue.end_job(job, state)  # type: ignore[arg-type]

    def _commit(self, encoded: Encoded, report: IngestReport) -> None:
        from moviola.library.ingest import read_cues

        found = encoded.file
        cues, problems = read_cues(found)
        if problems:
            report.subtitle_problems[found.video_id] = "; ".join(problems)
        error = ""
        if encoded.broken_at is not None:
            error = f"damaged at {encoded.broken_at:.1f} s; what decodes before and after is in"
            report.partial[found.video_id] = error
        frames = None
        if encoded.frames is not None:
            frames = self.frame_features.append(encoded.frames, self.catalogue.feature_end("frames"))
        video = VideoRow(
            row=0, video_id=found.video_id, path=str(found.path), size=found.size, mtime_ns=found.mtime_ns,
            hash=found.hash, sidecars=found.sidecars, state="partial" if error else "ready", error=error,
            duration=encoded.duration, width=encoded.info.width, height=encoded.info.height,
            codec=encoded.info.video_codec, frames=frames, cues=self._append_cues(cues),
        )  # fmt: skip
        with self.catalogue.transaction():
            self.catalogue.put(video, cues)

    def _append_cues(self, cues: Sequence[Cue]) -> Extent | None:
        if self.sentence_encoder is None or not cues:
            return None
        embedded = self.sentence_encoder.encode_text([cue.text for cue in cues])
        return self.cue_features.append(embedded, self.catalogue.feature_end("cues"))

    def _commit_refusal(self, refused: Refused, report: IngestReport) -> None:
        found = refused.file
        report.refused[found.video_id] = f"{found.path.name}: {refused.reason}; skipped"
        video = VideoRow(
            row=0, video_id=found.video_id, path=str(found.path), size=found.size, mtime_ns=found.mtime_ns,
            hash=found.hash, sidecars=found.sidecars, state="refused", error=refused.reason,
        )  # fmt: skip
        with self.catalogue.transaction():
            self.catalogue.put(video, [])

    def _reread_subtitles(self, video: VideoRow, found: FoundFile, report: IngestReport) -> None:
        """The pictures are as they were, so their features stay; only the cues are read again."""
        from moviola.library.ingest import read_cues

        cues, problems = read_cues(found)
        if problems:
            report.subtitle_problems[found.video_id] = "; ".join(problems)
        fresh = replace(
            video,
            size=found.size,
            mtime_ns=found.mtime_ns,
            sidecars=found.sidecars,
            cues=self._append_cues(cues),
        )
        with self.catalogue.transaction():
            self.catalogue.put(fresh, cues)

    def remove(self, video_ids: Iterable[str]) -> list[str]:
        """Take videos out (their files are not touched); all or none.

        Raises:
            NotFound: an id is unknown.
            LibraryLocked: another process is writing.
        """
        self._refuse_if_read_only()
        with self._writing():
            videos = [self.catalogue.video(video_id) for video_id in dict.fromkeys(video_ids)]
            self._drop(videos)
            self._publish_indexes()
        return [video.video_id for video in videos]

    def _drop(self, videos: Iterable[VideoRow]) -> None:
        with self.catalogue.transaction():
            for video in videos:
                self.catalogue.drop(video.row)

    def _refuse_if_read_only(self) -> None:
        if self.read_only:
            raise InvalidValue(f"{self.folder}: opened read-only; open it without read_only to change it")

    # -- reading ---------------------------------------------------------------------------------------

    def view(self) -> View:
        """The library as it is now. Indexes that lag behind the catalogue are completed in memory."""
        if self._view is None or self._view.generation != self.catalogue.generation:
            with self.catalogue.snapshot():
                generation = self.catalogue.generation
                videos = {v.row: v for v in self.catalogue.videos() if v.state != "refused"}
            self._view = View(
                generation,
                videos,
                {video.video_id: row for row, video in videos.items()},
                self._current_index("segments", videos)[0],
                self._current_index("cues", videos)[0],
            )
        return self._view

    def frame_rows(self, video: VideoRow) -> NDArray[np.float16]:
        """Raw frame features of a video, (n, d) float16, memory-mapped; row k shows k / frame_rate s."""
        if video.frames is None:
            raise LibraryError(f"{video.video_id}: no frame features; this library has no visual encoder")
        return self.frame_features.read(video.frames)

    def segment_vectors(self, video: VideoRow) -> NDArray[np.float32]:
        """Segment embeddings of a video, (ceil(n / T), d) float32, L2-normalised: those of the index."""
        if video.frames is None:
            return np.empty((0, self.settings.encoder_dim), np.float32)
        if self.stage1 is None:
            return self.mean_vectors(video)
        return self.stage1.segments(self.frame_rows(video), self.settings.frames_per_segment)

    def mean_vectors(self, video: VideoRow) -> NDArray[np.float32]:
        """The same without training, in the space of the encoder: the means of the segments' frames."""
        if video.frames is None:
            return np.empty((0, self.settings.encoder_dim), np.float32)
        return mean_pooled(self.frame_features.read(video.frames), self.settings.frames_per_segment)

    def cue_vectors(self, video: VideoRow) -> NDArray[np.float32]:
        """Sentence embeddings of a video's cues, (n, d) float32, L2-normalised."""
        if video.cues is None:
            return np.empty((0, self.settings.sentence_dim), np.float32)
        return normalised(self.cue_features.read(video.cues))

    def heard_rows(self, video: VideoRow) -> NDArray[np.float32]:
        """What is spoken during each frame of a video, (n, d) float32, a row a row of :meth:`frame_rows`.

        The mean of the normalised sentence vectors of the cues that touch the frame's time; zeros where
        nobody speaks. d is 0 without a sentence encoder.
        """
        rate = self.settings.frame_rate
        total = np.zeros((len(self.frame_rows(video)), self.settings.sentence_dim), np.float32)
        spoken = np.zeros((len(total), 1), np.float32)
        cues = self.catalogue.cues(video.row) if video.cues is not None else []
        for cue, vector in zip(cues, self.cue_vectors(video), strict=True):
            first = int(cue.start * rate)
            during = slice(first, max(int(np.ceil(cue.end * rate)), first + 1))
            total[during] += vector
            spoken[during] += 1
        return (total / np.maximum(spoken, 1)).astype(np.float32, copy=False)

    def recipe(self, name: str) -> str:
        """How the vectors of an index (``segments``, ``cues``) are made, as one that is current says."""
        if name == "segments" and self.settings.stage1:
            return trained_pooling(self.settings.stage1_revision)
        return POOLING

    def piece_count(self, name: str, video: VideoRow) -> int:
        """How many vectors of a video an index holds."""
        if name == "segments":
            return -(-video.frames.count // self.settings.frames_per_segment) if video.frames else 0
        return video.cues.count if video.cues else 0

    def _current_index(self, name: str, videos: dict[int, VideoRow]) -> tuple[Index | None, bool]:
        """An index of exactly these videos and whether the one on disk differs from it."""
        dim = self.settings.encoder_dim if name == "segments" else self.settings.sentence_dim
        if not dim:
            return None, False
        vectors = self.segment_vectors if name == "segments" else self.cue_vectors
        loaded = self._load_index(name)
        index, stale = loaded or BACKENDS[self.settings.index](dim), loaded is None
        rows = unpack_ids(index.ids())[0]
        present = set(np.unique(rows).tolist())
        gone = present - videos.keys()
        if gone:
            index.remove(index.ids()[np.isin(rows, list(gone))])
        fresh = [(row, vectors(videos[row])) for row in sorted(videos.keys() - present)]
        fresh = [(row, v) for row, v in fresh if len(v)]
        if fresh:
            ids = np.concatenate([pack_ids(row, len(v)) for row, v in fresh])
            index.add(ids, np.concatenate([v for _, v in fresh]))
        return index, stale or bool(gone or fresh)

    def _load_index(self, name: str) -> Index | None:
        """The published index; one that is missing, damaged or made by another recipe is built anew."""
        try:
            loaded = load_index(self.folder / "index", name, BACKENDS)
        except SegmentIndexError:
            return None
        return loaded[0] if loaded and loaded[1] == self.recipe(name) else None

    def _publish_indexes(self) -> None:
        videos = {v.row: v for v in self.catalogue.videos() if v.state != "refused"}
        for name in ("segments", "cues"):
            index, differs = self._current_index(name, videos)
            if index is not None and differs:
                save_index(
                    index, self.folder / "index", name, backend=self.settings.index, tag=self.recipe(name)
                )


def _is_blank(folder: Path) -> bool:
    """Empty, or left by a process that was killed while it created a library."""
    return all(p.name.startswith(CATALOGUE_FILE) or p.suffix == ".tmp" for p in folder.iterdir())
