"""An open library: its settings, catalogue, features, encoders and models."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from copy import copy
from dataclasses import replace
from numbers import Real
from os import PathLike
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, LibraryError
from moviola.features import Extent, FeatureRows, FeatureShards, Integers, VideoFeatures
from moviola.features.shards import halves
from moviola.index import AUTO
from moviola.library.disk.catalogue import Catalogue, VideoRow
from moviola.library.disk.columns import Column, Columns, column_set, columns_made, facts_of
from moviola.library.disk.disk_cache import DiskCache
from moviola.library.disk.encoders_in_use import LibraryEncoders, settings_of_new_library
from moviola.library.disk.folders import holds_library, make_folder, refuse_to_create, require_unicode
from moviola.library.disk.kinds import Arrays
from moviola.library.disk.lock import sweep_drafts, writing
from moviola.library.disk.places import present_path
from moviola.library.disk.protected_paths import require_outside
from moviola.library.disk.row_parts import FACTS, RowSet
from moviola.library.disk.searching_models import ROLE_NAMES, ModelsInUse
from moviola.library.disk.settings import FORMAT_VERSION, OF_PICTURES, SETTINGS_FILE, Settings
from moviola.library.disk.still_store import StillStore
from moviola.library.disk.upgrade import upgraded
from moviola.library.disk.video_table import VideoTable, video_set, videos_made
from moviola.retrieval.segments import normalised
from moviola.types import Video, require_kind, require_kinds, several

__all__ = ["LibraryStore"]


class LibraryStore:
    """A library folder. Opening is cheap: encoders and models are loaded when first needed. Reading is safe
    for threads.

    Args:
        folder: the library; created by the first writer if an encoder is given and nothing is there.
        encoder: name of the visual encoder (``"demo"``, a hub id, a folder), ``"none"`` for subtitles alone,
            or None for the library's own.
        encoder_of_new: gives it for a new library where none is named.
        sentence_encoder: the same for subtitles; in a new library None means MiniLM.
        segment_seconds: length of the indexed segments (tau_S of SPR) of a new library, 4 by default; a whole
            number of frames. For an existing one, the value that it must have.
        frame_rate: encoded frames per second of a new library, 1 by default. For an existing one, the value
            that it must have.
        read_only: never write, not even an index; works on a read-only file system.
        device, precision: passed to the encoders.
        columns: further facts of videos by name, which filters choose by (:meth:`columns_of`).
        resident: for a process that searches repeatedly: the first search takes half a second longer (some
            ten seconds if the encoder's text tower was never compiled on this machine), all others are
            faster.

    Attributes:
        settings: of the library, with the models in use.
        stills: small stills, for files that are away.
        cache: encodings of whole videos by models.
        parts: of several libraries that are searched as one (:mod:`moviola.library.united_store`); else none.

    Raises:
        NotFound: no library there, and no encoder to create one.
        EncoderMismatch: the library was built with another encoder, revision, segment length or frame rate.
        InvalidValue: a segment is no whole number of frames, a value is of another type, or the folder's name
            is not UTF-8.
        DamagedSettings: settings that do not match their digest, or the catalogue.
        LibraryError: a damaged catalogue, or a folder that cannot be examined.
    """

    parts: tuple[LibraryStore, ...] = ()

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        encoder: str | None = None,
        encoder_of_new: Callable[[], str] | None = None,
        sentence_encoder: str | None = None,
        segment_seconds: float | None = None,
        frame_rate: float | None = None,
        read_only: bool = False,
        device: str = "auto",
        precision: str = "auto",
        resident: bool = False,
        columns: Mapping[str, Column] = MappingProxyType({}),
    ) -> None:
        require_kind("folder", folder, (str, PathLike), "the path of a library")
        require_kinds(bool, "True or False", read_only=read_only, resident=resident)
        names = {"encoder": encoder, "sentence_encoder": sentence_encoder}
        require_kinds(str | None, "the name of an encoder", **names)
        self.folder, self.read_only, self._columns = Path(folder), read_only, columns
        require_unicode(self.folder)
        sampling = {"segment_seconds": segment_seconds, "frame_rate": frame_rate}
        chosen = {name: _number(name, value) for name, value in sampling.items() if value is not None}
        exists = holds_library(self.folder)
        if not exists:
            if encoder is None and encoder_of_new is not None and not read_only:
                encoder = encoder_of_new()
            refuse_to_create(self.folder, encoder, read_only)
            new = settings_of_new_library(str(encoder), sentence_encoder, chosen, device, precision)
            make_folder(self.folder)
            with writing(self.folder):
                exists = holds_library(self.folder)  # another process may have been faster
                if not exists:
                    # The settings are written last: a folder without them is not yet a library.
                    Catalogue.create(self.folder)
                    with closing(Catalogue(self.folder)) as catalogue:
                        if noted := catalogue.noted_settings():
                            new.require_built_as(self.folder, noted)
                        catalogue.note_settings(new)
                    new.write(self.folder)
        self._settings_changed = (self.folder / SETTINGS_FILE).stat().st_mtime_ns
        settings = Settings.read(self.folder)
        self.catalogue = Catalogue(self.folder, read_only=read_only)
        self.settings = self.catalogue.followed(self.folder, settings)
        self.encoders = LibraryEncoders(self.folder, self.settings, device, precision, resident)
        if exists:
            self.settings.require_same(self.folder, chosen)
            self.encoders.require_same(encoder, sentence_encoder)
        self.models = ModelsInUse(self.folder, self.settings, self.encoders, read_only=read_only)
        self.frame_features = self.features_in("frames", self.settings.frame_dim)
        self.cue_features = self.features_in("cues", self.settings.sentence_dim)
        self.stills = StillStore(self.folder, read_only=read_only)
        self.cache = DiskCache(self.folder / "cache" / "context", read_only=read_only)
        self._lock = RLock()
        self._place = _identity(self.folder)

    def close(self) -> None:
        """Close the files; a file of features that are still in use is closed when they are released."""
        self.catalogue.close()
        self.stills.close()
        self.frame_features.close()
        self.cue_features.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the write lock, with the models in use now, which another process may have changed. A library
        of an earlier format is upgraded first; see :mod:`moviola.library.disk.upgrade`.

        Raises:
            InvalidValue: the library was opened read-only.
            LibraryLocked: another process is writing.
            LibraryError: the disk is full, a write fails, or a file that is read on the way is missing.
        """
        if self.read_only:
            raise InvalidValue(f"{self.folder}: opened read-only; open it without read_only to change it")
        with writing(self.folder):
            sweep_drafts(self.folder)
            on_file = Settings.read(self.folder)
            self.adopt(self.catalogue.followed(self.folder, on_file))
            try:
                if self.settings.built_with != on_file.built_with:
                    self.choose(self.settings)
                if self.settings.format_version < FORMAT_VERSION:
                    self.adopt(upgraded(self.folder, self.catalogue, self.settings))
                if self.encoders.moved:
                    moved: dict[str, Any] = {**self.encoders.moved}
                    self.choose(replace(self.settings, **moved))
                    self.encoders.moved = {}
                yield
                with self.catalogue.snapshot():
                    self._publish_facts()
            except FileNotFoundError as error:
                # Read on the way, for instance of the package: the library's place is fine.
                raise LibraryError(
                    f"{error.filename or error}: missing, so nothing more was written to {self.folder}; "
                    "finished videos are in. Fix that (reinstall moviola if it is a file of the package), "
                    "then run the same command again"
                ) from error
            except (OSError, sqlite3.OperationalError) as error:
                reason = getattr(error, "strerror", None) or error
                where = getattr(error, "filename", None) or self.folder
                raise LibraryError(
                    f"{where}: cannot be written ({reason}); finished videos are in. Fix that, "
                    "then run the same command again"
                ) from error

    def require_in_place(self) -> None:
        """Raise :class:`LibraryError` where the library's folder is no longer the one that was opened."""
        # The catalogue of an unplugged drive may stay open and take rows, while features would be written to
        # whatever is at the path now.
        if _identity(self.folder) != self._place:
            raise LibraryError(
                f"{self.folder}: no longer the folder that was opened; was its drive unplugged? Finished "
                "videos are in; plug it in again, and run the same command again"
            )

    def adopt(self, settings: Settings) -> None:
        """Switch to other models in use, or to other encoders; the loaded ones are dropped."""
        with self._lock:
            before = self.settings
            if settings != before:
                lines = settings.with_sentences_of(before) != settings
                pictures = settings.built_with != before.built_with
                if lines or pictures:
                    self.encoders = self.encoders.with_settings(settings)
                if lines:
                    self.cue_features = self.features_in("cues", settings.sentence_dim)
                if settings.pictures_key != before.pictures_key:
                    self.frame_features = self.features_in("frames", settings.frame_dim)
                self.settings = settings
                self.models = ModelsInUse(self.folder, settings, self.encoders, read_only=self.read_only)

    def with_pictures_of(self, settings: Settings) -> LibraryStore:
        """The same library as it would be with the pictures' settings of others, and without trained models:
        its encoders, and where features of frames lie. It shares all that is open, and is not closed.
        """
        other = copy(self)
        pictures: dict[str, Any] = {of: getattr(settings, of) for of in (*OF_PICTURES, "segment_seconds")}
        pictures |= {name: "" for role in ROLE_NAMES for name in (role, f"{role}_revision")}
        other.adopt(replace(self.settings, **pictures, index=AUTO))
        return other

    def refresh(self) -> None:
        """Switch to the models that another process has chosen since; videos need no such call."""
        try:
            changed = (self.folder / SETTINGS_FILE).stat().st_mtime_ns
        except OSError as error:
            raise LibraryError(
                f"{self.folder}: gone ({error.strerror}); put the library back, or open it at its new place"
            ) from error
        if changed != self._settings_changed:
            self.adopt(self._read_settings())
            self._settings_changed = changed

    def follow_encoders(self) -> None:
        """Switch to the encoders that the catalogue names, if another process has changed them."""
        self.adopt(self.catalogue.followed(self.folder, self.settings))

    def features_in(self, kind: str, dim: int) -> FeatureShards:
        """Features of a kind, each of ``dim`` numbers, in the library's shards."""
        return FeatureShards(self.folder / "features", kind, dim)

    def choose(self, settings: Settings) -> None:
        """Write other settings, under the write lock, and switch to them."""
        settings.write(self.folder)
        self.catalogue.note_settings(settings)
        self.adopt(settings)

    def _read_settings(self) -> Settings:
        return self.catalogue.followed(self.folder, Settings.read(self.folder))

    def append_key_frames(self, rows: NDArray[np.floating[Any]]) -> Extent:
        """Write features of frames (n, d) that are those of key frames, to one shard apart from the others
        whatever its length; errors as in :meth:`FeatureShards.append`.
        """
        catalogue, folder = self.catalogue, self.frame_features.folder
        end = catalogue.key_frames_end() or (catalogue.last_shard() + 1, 0)
        shard = FeatureShards(folder, "frames", self.settings.frame_dim, shard_bytes=sys.maxsize)
        return shard.append(rows, end, catalogue.last_shard())

    def clear_key_frames(self) -> None:
        """Delete the features of key frames once no video has any, also no removed one, under the lock."""
        end = self.catalogue.key_frames_end()
        if end is not None and end[1] and end[0] not in self.catalogue.shards_in_use():
            self.catalogue.begin_key_frames(self.catalogue.last_shard() + 1)  # none is used again
            self.frame_features.shard(end[0]).unlink(missing_ok=True)
            self.frame_features.let_go()

    def videos(self) -> list[Video]:
        """The searchable videos, by id."""
        return [Video(v.video_id, v.duration) for v in self.catalogue.videos() if v.state != "refused"]

    def file_of(self, video_id: str) -> Path | None:
        """An existing file of a video, of all its paths; None while its drives are away.

        Raises:
            NotFound: no such video.
        """
        video = self.catalogue.video(video_id)
        return present_path(video, self.catalogue.copies_of(video.row), self.catalogue.roots())

    def paths_of(self, video_ids: Iterable[str]) -> tuple[dict[str, str], set[str]]:
        """A path of each video, an existing one if any, and the ids of videos that are away.

        Raises:
            NotFound: no such video.
        """
        catalogue, roots = self.catalogue, self.catalogue.roots()
        videos = {video_id: catalogue.video(video_id) for video_id in several("video_ids", video_ids)}
        there = {
            video_id: present_path(video, catalogue.copies_of(video.row), roots)
            for video_id, video in videos.items()
        }
        paths = {video_id: str(path or videos[video_id].path) for video_id, path in there.items()}
        return paths, {video_id for video_id, path in there.items() if path is None}

    def kept_still(self, video_id: str, time: float) -> bytes | None:
        """The small still of a video (WebP) nearest to a time in seconds; None without any.

        Raises:
            NotFound: no such video.
        """
        return self.stills.nearest(self.catalogue.video(video_id).hash, time)

    def require_outside(self, out: str | Path) -> None:
        """Refuse to write over what the library has; see :func:`moviola.library.require_outside`."""
        require_outside(out, self.folder, self.catalogue)

    def searchable(self) -> VideoTable:
        """The searchable videos as catalogue rows, by row number."""
        catalogue = self.catalogue
        with catalogue.one_state():
            parts = self._video_set.at(
                catalogue.generation,
                catalogue.changed_since,
                lambda rows: videos_made(catalogue.searchable(rows)),
            )
            return VideoTable.of(catalogue.searchable()) if parts is None else VideoTable.of_parts(parts)

    def columns_of(self, videos: VideoTable, generation: int) -> Columns:
        """The columns of the searchable videos, as they are at a generation of the catalogue."""
        catalogue = self.catalogue

        def made(rows: Sequence[int]) -> tuple[Integers, Mapping[str, Arrays]]:
            there = [videos[row] for row in rows if row in videos]
            return columns_made(self._columns, there, catalogue)

        with catalogue.one_state():
            parts = self._column_set.at(generation, catalogue.changed_since, made)
        if parts is not None and not np.array_equal(parts.rows, videos.rows):
            parts = None
        return Columns(self._columns, lambda: facts_of(videos.values(), catalogue), len(videos), parts)

    def _publish_facts(self) -> None:
        """Publish what has changed of the videos and their columns, inside a snapshot of the catalogue."""
        catalogue = self.catalogue
        for name in ("videos.table", "columns.table"):  # of earlier versions
            (self.folder / "cache" / name).unlink(missing_ok=True)
        known = catalogue.generation, catalogue.changed_since, catalogue.searchable_rows
        self._video_set.publish(*known, lambda rows: videos_made(catalogue.searchable(rows)))
        if self._columns:
            self._column_set.publish(
                *known, lambda rows: columns_made(self._columns, catalogue.searchable(rows), catalogue)
            )

    @property
    def _video_set(self) -> RowSet:
        return video_set(self.folder / FACTS)

    @property
    def _column_set(self) -> RowSet:
        return column_set(self.folder / FACTS, self._columns)

    def features_of(self, videos: VideoTable, *, pictures: bool = False) -> VideoFeatures:
        """Features of the given videos that have frames, by rising row number; with ``pictures`` the features
        of likeness follow those for texts in each row.
        """
        settings, cues = self.settings, self.cue_features
        seen, dim = videos.with_frames, settings.sentence_dim
        rows = videos.rows[seen]
        columns = slice(None if pictures else settings.encoder_dim)

        def subtitles(row: int) -> NDArray[np.float16]:
            return self._subtitle_rows(videos[row], settings, cues)

        return VideoFeatures(
            video_ids=videos.ids(seen),
            durations=videos.durations[seen],
            clip_seconds=1 / settings.frame_rate,
            counts=videos.frames[seen, 2],
            visual=FeatureRows.stored(self.frame_features, videos.extents(seen), columns),
            subtitles=FeatureRows(dim, rows, subtitles) if dim else None,
            keys=rows,
            cache=self.cache,
            shots=_ShotStarts(self.catalogue),
        )

    def has_said(self) -> bool:
        """Whether there are cues of speech: subtitles or recognised speech."""
        counts = self.catalogue.cue_counts()
        return counts["subtitle"] + counts["speech"] > 0

    def cue_vectors(self, video: VideoRow) -> NDArray[np.float32]:
        """Sentence embeddings of a video's cues, (n, d) float32, L2-normalised."""
        return _cue_vectors(video, self.cue_features)

    def _subtitle_rows(
        self, video: VideoRow, settings: Settings, features: FeatureShards
    ) -> NDArray[np.float16]:
        """Speech during each frame of a video, (n, d) float16: the mean of the normalised sentence vectors of
        the subtitles, or recognised speech, that touch the frame's time; zeros where nobody speaks.
        """
        assert video.frames is not None
        rate = settings.frame_rate
        total = np.zeros((video.frames.count, settings.sentence_dim), np.float32)
        spoken = np.zeros((len(total), 1), np.float32)
        cues = self.catalogue.cues(video.row) if video.cues is not None else []
        if video.cues is not None and len(cues) not in (0, video.cues.count):
            raise LibraryError(
                f"{self.catalogue.path}: {video.video_id}: {len(cues)} cues but {video.cues.count} features "
                "of them; `moviola repair` keeps the rest, then index the video again"
            )
        # A video removed this moment has none any more, and is not asked for again.
        for cue, vector in zip(cues, _cue_vectors(video, features) if cues else (), strict=True):
            if cue.kind not in ("subtitle", "speech"):
                continue
            first = int(cue.start * rate)
            during = slice(first, max(int(np.ceil(cue.end * rate)), first + 1))
            total[during] += vector
            spoken[during] += 1
        return halves(total / np.maximum(spoken, 1), f"{video.video_id}: subtitles")


def _cue_vectors(video: VideoRow, features: FeatureShards) -> NDArray[np.float32]:
    if video.cues is None:
        return np.empty((0, features.dim), np.float32)
    return normalised(features.checked(video.cues))


class _ShotStarts:
    """Start times of shots, read once per video; safe for threads."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._known: dict[int, NDArray[np.float64]] = {}

    def __call__(self, rows: Sequence[int]) -> list[NDArray[np.float64]]:
        if missing := {row for row in rows if row not in self._known}:
            shots = self._catalogue.shots_of(missing)
            for row in missing:
                self._known[row] = np.array([shot.start for shot in shots.get(row, ())], np.float64)
        return [self._known[row] for row in rows]


def _number(name: str, value: object) -> float:
    if not isinstance(value, bool) and isinstance(value, Real):
        with suppress(OverflowError):
            return float(value)
    raise InvalidValue(f"{name} {value!r:.200}: give a number above 0, such as 2.0")


def _identity(folder: Path) -> tuple[int, int] | None:
    """Device and number of a folder, which another one at the same path does not have; None where none is."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
