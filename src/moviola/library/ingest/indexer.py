"""Adding, removing and restoring videos of a library; choosing its trained models and index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from pathlib import Path

from moviola.errors import IndexServerError, InvalidValue, LibraryError
from moviola.index import Trial
from moviola.library.derived.encoder_background import text_vectors, texts_among_segments
from moviola.library.derived.indexes import publish_indexes, tune_index
from moviola.library.derived.name_table import publish_names
from moviola.library.derived.sound_classes import sound_classes
from moviola.library.disk.camera_zones import camera_zones_of
from moviola.library.disk.models_in_use import NONE, ROLES, other_stage1_in_use
from moviola.library.disk.protected_paths import require_sources
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.change_of_encoder import (
    ChangePlan,
    EncoderChange,
    Wanted,
    change_encoder,
    settle,
)
from moviola.library.ingest.choosing import use_models, use_sentences
from moviola.library.ingest.following import (
    follow,
    forget_root,
    known_encoding,
    look_again_where_needed,
    look_into,
    move_root,
    note_copies,
    only_in,
    prune_videos,
    reread_moved,
    reread_subtitles,
    restore,
    set_zones,
)
from moviola.library.ingest.pictures_again import encode_where_missing
from moviola.library.ingest.plan import IngestProgress, IngestReport, Paused
from moviola.library.ingest.recognition import Readers, ReadingRun, encode_cues_where_missing
from moviola.library.ingest.sounds import SoundRun, chosen_sound_reader
from moviola.library.ingest.workers import open_workers
from moviola.plugins import naming_plugins
from moviola.types import require_kind, require_kinds, several

__all__ = ["Indexer"]

Progress = Callable[[IngestProgress], None]
Confirm = Callable[[Sequence[str], int], bool]


class Indexer:
    """Writes to a library; every method takes its write lock.

    Raises:
        InvalidValue: by every method, where the library was opened read-only.
        LibraryLocked: by every method, where another process is writing.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store = store

    @naming_plugins()
    def index(
        self,
        *sources: str | PathLike[str],
        prune: bool = False,
        confirm: Confirm | None = None,
        exclude: Sequence[str] | None = None,
        default_excludes: bool | None = None,
        suffixes: Sequence[str] = (),
        settled: Callable[[Path, os.stat_result], bool] | None = None,
        ocr: bool | None = None,
        ocr_reader: str | None = None,
        ocr_language: str | None = None,
        speech: str | None = None,
        speech_track: str | None = None,
        speech_language: str | None = None,
        sounds: str | None = None,
        subtitle_encoding: str | None = None,
        camera_zones: Sequence[str] | None = None,
        workers: int | str | None = None,
        every_frame: bool = False,
        stills: bool = True,
        links_out: bool = True,
        hwaccel: str = "none",
        progress: Progress | None = None,
    ) -> IngestReport:
        """Index files and folders (recursively); unchanged videos are skipped.

        Each video is committed when it is complete, and a long one in parts of some five minutes, which can
        be searched at once: after any interruption the next call continues. Workers take whole videos. A
        damaged or unfit file is reported and does not stop the others.

        Args:
            prune: remove videos of these folders whose file is gone, or that are left out now (else they are
                only reported); :meth:`restore` brings them back. Never those of a folder that is away:
                unmounted, empty where it was not, or with another volume in its place.
            confirm: called with ids and the number of videos before pruning removes more than one and more
                than a tenth of the library; None: nothing is removed then.
            exclude: patterns of files to leave out, as in ``.gitignore``, besides files ``.moviolaignore``;
                None: the earlier ones.
            default_excludes: leave out :data:`moviola.library.ingest.ignore_patterns.DEFAULTS` and folders
                with a file ``.nomedia``; None: as before, which is True at first.
            suffixes: further suffixes, ``".dat"`` for one, by which files in folders count as videos,
                also in later calls while the library has such a video of the folder.
            settled: whether a new or changed file is complete, by its path and status; others wait for
                another call (``waiting`` in the report). None: all are.
            ocr: read text in pictures; None: in pictures of at least 240 pixels. Earlier results stay.
            ocr_reader: reader of text in pictures, see :func:`moviola.encoders.readers.load_text_reader`; it
                reads small pictures, too, and what another one has read. None: by the language.
            ocr_language: languages of text in pictures, ``"ru,en"``; None: those that ``"rapidocr"`` knows.
            speech: reader of speech for videos with sound and without subtitles: ``"tiny.en"`` (English,
                offline), or a Whisper model for CTranslate2, a folder or a hub id that was pulled; videos
                that another model has read, or with other options, are read again. None: ``"tiny.en"`` if
                installed, for videos that no reader has read; ``"none"``: no speech.
            speech_track: sound track to read: a number from 1 on, or a language (ISO 639), where videos
                without such a track are reported; ``"all"``; None or ``"default"``: the one that players
                choose by the file's flags.
            speech_language: spoken language (ISO 639); None: detected.
            sounds: reader of sounds: ``"yamnet"``, a folder of its files, or ``"none"``; None: if installed.
            subtitle_encoding: encoding of subtitle files that are not in Unicode, ``"windows-1250"`` for one,
                kept with the videos that it was given for; ``"auto"``: the likeliest; None: as before.
            camera_zones: see :meth:`.camera_zones.CameraZone.parse`, kept until given again.
            workers: what encodes and reads: None: this process; a number of processes, which share this
                machine's cores; ``"ray://host:port"``: a Ray cluster, whose machines see the videos by the
                same paths. Only this process writes; see :mod:`moviola.library.ingest.workers`.
            every_frame: also encode frames that repeat an earlier one
                (:mod:`moviola.library.ingest.unchanged_frames`).
            stills: keep a small still of each segment, some 1.4 kB, to show when its file is away.
            links_out: take in what links in a folder show outside of it; False, where others may write to it:
                such links are refused, and named.
            hwaccel: what decodes: ``"none"``: software; ``"auto"``: the first device that can be opened, else
                software, which ``decoding`` of the report says; or a device by its name
                (:mod:`moviola.media.hardware`). Software takes over where it fails or is wrong.
            progress: called as work goes on; with workers, when a video is done. It may raise
                :class:`moviola.library.Paused` to end the call early: the next one goes on.

        Raises:
            InvalidValue: no source given, invalid workers, track, language or pattern, a device that is not
                here, or a value of another type.
            MissingDependency, MissingModel: a reader that was named, or Ray, is not on this machine.
            WorkersError: the cluster cannot be reached, or a node of it cannot do the work.
            NotFound: a source does not exist.
        """
        from moviola.library.ingest.picture_run import PictureRun
        from moviola.library.ingest.scan import make_plan
        from moviola.media import chosen_hardware

        require_sources(sources)
        given = {"prune": prune, "every_frame": every_frame, "stills": stills, "links_out": links_out}
        require_kinds(bool, "True or False", **given)
        require_kinds(bool | None, "True, False or None", ocr=ocr, default_excludes=default_excludes)
        calls = {"confirm": confirm, "settled": settled, "progress": progress}
        require_kinds(Callable | None, "a function, or None", **calls)  # type: ignore[arg-type]
        exclude = None if exclude is None else several("exclude", exclude)
        suffixes = several("suffixes", suffixes)
        readers = Readers.chosen(
            ocr, ocr_reader, speech, self._store.encoders.device,
            speech_track=speech_track, speech_language=speech_language, ocr_language=ocr_language,
        )  # fmt: skip
        require_kind("hwaccel", hwaccel, str, "auto, none or the name of a device")
        # On the machines of a cluster, each looks for its own.
        hardware = None if "://" in str(workers) else chosen_hardware(hwaccel)
        hears = chosen_sound_reader(sounds)
        zones = camera_zones_of(camera_zones)
        subtitle_encoding = known_encoding(subtitle_encoding)
        chosen = nullcontext() if workers is None else open_workers(workers)
        progress = progress or (lambda _: None)
        with self._store.writing(), chosen as pool:
            catalogue = self._store.catalogue
            set_zones(catalogue, zones)
            plan = make_plan(
                [Path(source) for source in sources], catalogue.videos_as_read(), roots=catalogue.roots(),
                copies=catalogue.copies(), removed=catalogue.removed(), exclude=exclude,
                default_excludes=default_excludes, settled=settled, links_out=links_out, suffixes=suffixes,
                subtitle_encoding=subtitle_encoding, checksums=catalogue.checksums(),
            )  # fmt: skip
            report = IngestReport.of(plan)
            follow(self._store, plan, report)
            if prune:
                prune_videos(self._store, [*plan.missing, *plan.left_out], confirm, report)
            reread_moved(self._store, plan, report)
            for video, found in plan.subtitles:
                reread_subtitles(self._store, video, found, report)
                report.updated.append(video.video_id)
            every = self._store.settings.frames_per_segment if stills else None
            options = {"every_frame": every_frame, "stills_every": every, "hwaccel": hwaccel}
            settings = self._store.settings
            decodes = pool is None and bool(settings.encoder)
            held = readers.holding_stills(settings.frame_rate) if decodes else None
            reading = ReadingRun(self._store, report, progress, pool, held)
            read_text = partial(reading.read, readers=readers.of_text())
            with suppress(Paused), held or nullcontext():
                PictureRun(self._store, report, progress, pool, held, hardware, read_text).encode(
                    plan, options
                )
                report.decoding = hardware.said if hardware and not pool else ""
                note_copies(self._store, plan, report)
                kept = {*report.unchanged, *(video.video_id for video, _ in (*plan.moved, *plan.subtitles))}
                look_again_where_needed(self._store, kept, report, progress)
                named = {*kept, *report.added, *report.updated, *report.restored}
                report.partial |= encode_where_missing(self._store, sorted(named), progress)
                look_into(self._store, named, report, zones)
                SoundRun(self._store, report, progress).read(named, hears, refused=sounds == NONE)
                reading.read(named, readers)
            self.publish()
        return report

    def again(self, video_ids: Iterable[str], *, pictures: bool = True) -> list[str]:
        """Have videos encoded again when their files are indexed the next time; without ``pictures``, only
        their subtitles and the text in their pictures are read again. All or none; they can be searched as
        they are until then, and keep their ids. Returns the ids.

        Raises:
            NotFound: an id is unknown.
        """
        catalogue = self._store.catalogue
        with self._store.writing():
            videos = catalogue.listed(video_ids)
            process = catalogue.encode_again if pictures else catalogue.read_again
            with catalogue.transaction():
                for video in videos:
                    process(video.row)
            publish_names(self._store, encode=False)
        return [video.video_id for video in videos]

    def remove(self, video_ids: Iterable[str]) -> list[str]:
        """Remove videos (their files are not touched); all or none. :meth:`restore` brings them back.

        Raises:
            NotFound: an id is unknown.
        """
        catalogue = self._store.catalogue
        with self._store.writing():
            videos = catalogue.listed(video_ids)
            with catalogue.transaction():
                for video in videos:
                    catalogue.take_out(video)
            self._publish_changes()
        return [video.video_id for video in videos]

    def restore(self, video_ids: Iterable[str]) -> list[str]:
        """Restore videos that were removed since the last compaction; all or none. Nothing is encoded but
        what an encoder that was changed since did not see, as far as files are there.

        Raises:
            NotFound: no video of that id was removed.
            InvalidValue: its id or its file belongs to another video now.
            LibraryError: its features are damaged.
        """
        with self._store.writing():
            restored = restore(self._store, video_ids)
            encode_cues_where_missing(self._store, restored)
            encode_where_missing(self._store, restored)
            self._publish_changes()
        return restored

    def only_in(self, root: str | PathLike[str]) -> list[str]:
        """Ids of the videos that lie in a root alone, which :meth:`forget_root` would remove; its errors, but
        no lock.
        """
        require_kind("root", root, (str, PathLike), "the path of a folder")
        return only_in(self._store, Path(root))

    def forget_root(self, root: str | PathLike[str]) -> list[str]:
        """Remove a root with its videos, which :meth:`restore` brings back; those with a further path
        elsewhere stay. Returns the ids of those that were removed.

        Raises:
            NotFound: the folder is no root.
            InvalidValue: ``root`` is no path.
        """
        require_kind("root", root, (str, PathLike), "the path of a folder")
        with self._store.writing():
            removed = forget_root(self._store, Path(root))
            self._publish_changes()
        return removed

    def _publish_changes(self) -> None:
        """Bring indexes and names up to date with videos that came or went, without encoding."""
        publish_indexes(self._store)
        publish_names(self._store, encode=False)

    def move(self, old: str | PathLike[str], new: str | PathLike[str], *, check: bool = True) -> int:
        """Replace the path of a folder, which need not exist any more; nothing is read or encoded. ``check``
        refuses a new folder that has none of the files. Returns the number of files.

        Raises:
            NotFound: the library has nothing in the old folder, or none of its files is in the new one.
            InvalidValue: another video's file is at one of the new paths, or a value of another type.
        """
        require_kinds((str, PathLike), "the path of a folder", old=old, new=new)
        require_kinds(bool, "True or False", check=check)
        with self._store.writing():
            moved = move_root(self._store, Path(old), Path(new), check=check)
            publish_names(self._store, encode=False)
        return moved

    @naming_plugins()
    def use(
        self,
        *,
        stage1: str | PathLike[str] | None = None,
        refiner: str | PathLike[str] | None = None,
        force: bool = False,
    ) -> None:
        """Choose the trained models for later searches. They are copied into the library, and the segment
        index is rebuilt where stage 1 changes.

        Args:
            stage1: folder of a trained stage 1; ``"demo"`` for the packaged one of the encoder
                ``demo``; ``"none"`` for the mean of the frames; None: unchanged.
            refiner: folder of a ``reel``, ``spr-clip`` or ``reloclnet`` model; ``"demo"`` for the example
                model; ``"none"`` for the refinement without training; None: unchanged.
            force: accept a model that does not record its training data, or is worse than none.

        Raises:
            InvalidValue: nothing to change, a model of another kind, or one that does not record its training
                data.
            EncoderMismatch: a model trained on another encoder, frame rate or segment length.
            NotFound, DataError: a model's folder is missing or damaged.
            LibraryError: the library has no visual encoder.
        """
        folder, settings = self._store.folder, self._store.settings
        roles = {"stage1": stage1, "refiner": refiner}
        chosen = {role: source for role, source in roles.items() if source is not None}
        if not chosen:
            raise InvalidValue(f"{folder}: nothing to change; name a stage1, a refiner, or {NONE!r}")
        if not settings.encoder:
            raise LibraryError(f"{folder}: built without a visual encoder; trained models read frames")
        with self._store.writing():
            use_models(self._store, chosen, force=force)
            self.publish()

    @naming_plugins()
    def use_sentence_encoder(self, name: str) -> int:
        """Encode all lines by another sentence encoder, a name or ``"none"``, and nothing else; returns how
        many. Those of removed videos are encoded when these are restored.

        Raises:
            MissingModel, MissingDependency: it is not on this machine.
            InvalidValue: a trained model in use reads subtitles.
        """
        with self._store.writing():
            count = use_sentences(self._store, name)
            self.publish()
        return count

    @naming_plugins()
    def use_encoder(
        self,
        name: str | None = None,
        *,
        precision: str | None = None,
        frame_rate: float | None = None,
        segment_seconds: float | None = None,
        without_files: bool = False,
        both_from: float | None = None,
        begin: Callable[[ChangePlan], None] | None = None,
        progress: Progress | None = None,
    ) -> EncoderChange:
        """Encode the pictures of all videos by another encoder, or in another way, and nothing else of
        them.

        Until all videos are done the library answers as before, or from a share of them on by both encoders,
        each video by one of them; from then on by the new encoder. After any
        interruption the next call with these values, or fewer, goes on; with the name of the encoder in use
        it gives the change up.

        Args:
            name, precision: of the encoder; see :func:`moviola.encoders.load_encoder`. None: as it is.
            frame_rate, segment_seconds: as in :class:`moviola.library.LibraryStore`; None: as they are.
            without_files: change over also if files of videos cannot be read now. These are found by words
                and names alone until their files are indexed again.
            both_from: share of the videos, above 0 and at most 1, from which on searches for words answer by
                both encoders; None: as an earlier call said, at first never.
            begin: called with what is going to be done, before anything is.
            progress: as in :meth:`index`; :class:`moviola.library.Paused` ends the call.

        Raises:
            InvalidValue: nothing is wanted, ``"none"``, a segment that is no whole number of frames, or
                another change is not done.
            MissingModel, MissingDependency, DataError: see :func:`moviola.encoders.load_encoder`.
            LibraryError: the disk has no room for the features of both encoders.
        """
        wanted = Wanted(name, precision, frame_rate, segment_seconds)
        if wanted == Wanted():
            raise InvalidValue(f"{self._store.folder}: nothing to change; name an encoder")
        if both_from is not None and not 0 < both_from <= 1:
            raise InvalidValue(
                f"both_from {both_from!r:.100}: give a share of the videos, above 0 and at most 1"
            )
        begin, progress = begin or (lambda _: None), progress or (lambda _: None)
        with self._store.writing():
            self._settle()
            report = change_encoder(
                self._store, wanted, without_files=without_files, both_from=both_from, begin=begin,
                progress=progress,
            )  # fmt: skip
            if report.done:
                self.publish()
        return report

    def _settle(self) -> None:
        """Clear away what a process was killed over that had changed the encoder."""
        if self._store.catalogue.is_unsettled:
            settle(self._store)

    @naming_plugins()
    def use_index(self, kind: str) -> None:
        """Choose the type of index for segments and cues, which is built at once: a name in
        :data:`moviola.index.BACKENDS`, ``"auto"`` (by the number of segments), or the address of a Milvus
        server, ``"milvus://HOST:PORT/COLLECTION"``.

        Raises:
            InvalidValue: an unknown type, or no address.
            IndexServerError: the server does not answer; the library stays as it is.
        """
        with self._store.writing():
            before = self._store.settings
            self._store.choose(replace(before, index=kind))
            try:
                publish_indexes(self._store)
            except IndexServerError:
                self._store.choose(before)
                raise

    @naming_plugins()
    def tune_index(self) -> list[Trial]:
        """Measure how far searches must look to find 99 % of the exact answers, on segments of this library
        and on two hundred text queries. An index keeps that setting until it is measured again, or gets
        another type. Returns the settings that were tried; none where the type of the index has none.

        Raises:
            LibraryError: the library has no visual encoder, or is empty.
        """
        with self._store.writing():
            publish_indexes(self._store)
            return tune_index(self._store, texts_among_segments(self._store))

    def models_in_use(self) -> dict[str, dict[str, str] | None]:
        """``name`` and ``revision`` of the trained models in use by role, ``stage1`` and ``refiner``."""
        values = asdict(self._store.settings)
        return {
            role: {"name": values[role], "revision": values[f"{role}_revision"]} if values[role] else None
            for role in ROLES
        }

    def other_stage1(self) -> str:
        """What to say where the refiner in use was trained on another stage 1 than the one in use; "" else.

        Raises:
            NotFound, DataError: the refiner's folder is missing or damaged.
        """
        return other_stage1_in_use(self._store.folder, self._store.settings)

    def publish(self) -> None:
        """Update what is derived from videos and models, indexes and the cache, under the write lock, which
        this method does not take.
        """
        store = self._store
        store.require_in_place()
        self._settle()
        store.clear_key_frames()
        store.models.make_graphs()
        publish_indexes(store)
        if store.encoders.visual is not None:
            text_vectors(store)
        if store.catalogue.sounds_read() and store.settings.sentence_encoder:
            sound_classes(store)
        publish_names(store)
        features = store.features_of(store.searchable())
        keys = features.keys.tolist()
        kept = store.cache.keep_only(store.settings.refiner_revision, set(keys))
        for place, key in enumerate(keys):
            if store.settings.refiner and key not in kept:
                store.models.refiner.prepare(features, place)
