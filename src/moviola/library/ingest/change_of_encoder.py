"""Another encoder of pictures for a library that exists, in place; or another precision, frame rate or length
of segments.

Frames are decoded and encoded video by video, and their features put beside those in use, which go on
answering. When all videos have them, one transaction of the catalogue changes over; ``moviola.toml`` follows
it. Then what was replaced is cleared away. Wherever the process ends, the library has the old encoder or the
new one, whole, and the same call goes on.

A video whose file cannot be read keeps the library from changing over, unless that is wanted all the same:
then it is found by words and names alone until its file is indexed again. Its features by the old encoder,
and those of removed videos, are kept until a compaction, for a change back.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moviola.encoders.device_choice import PRECISIONS
from moviola.errors import EncoderMismatch, InvalidValue, LibraryError, MoviolaError, counted
from moviola.features import Extent
from moviola.library.disk.backups import set_aside
from moviola.library.disk.catalogue import VideoRow
from moviola.library.disk.encoders_in_use import NONE, LibraryEncoders, settings_of_pictures
from moviola.library.disk.models_in_use import ROLES, check_fits
from moviola.library.disk.other_frames import FRAMES, OTHER_FRAMES, OtherExtent
from moviola.library.disk.settings import OF_PICTURES, Settings
from moviola.library.disk.store import LibraryStore
from moviola.library.disk.upgrade import shards_in_backup
from moviola.library.ingest.learning_again import learn_again
from moviola.library.ingest.pictures_again import WAITS, encode_pictures, file_of, say_state
from moviola.library.ingest.plan import FoundFile, IngestProgress, Paused
from moviola.library.userdata.concepts import settle_concepts

if TYPE_CHECKING:
    from moviola.library.ingest.frame_features import Encoded

__all__ = ["BegunChange", "ChangePlan", "EncoderChange", "Wanted", "change_begun", "change_encoder", "settle"]

Progress = Callable[[IngestProgress], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a library's pictures is to be another; None: as it is. ``encoder`` is a name, ``precision`` as
    in :func:`moviola.encoders.load_encoder`; the others are those of :class:`.settings.Settings`.
    """

    encoder: str | None = None
    precision: str | None = None
    frame_rate: float | None = None
    segment_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """What a change of encoder is going to do.

    Attributes:
        encoder: name of the encoder that the library will have.
        videos, encoded: number of videos, and of those that have features by it from an earlier call.
        seconds: of film that are to be encoded now.
        new_bytes, old_bytes, free_bytes: what is still to be written, features and index; what the features
            in use take, which goes at the end; what is free on the disk.
        waiting: videos that cannot be encoded now, with the reason.
        removed: removed videos, whose pictures are encoded when they are restored.
        models: roles and names of the trained models that do not fit what the library will have.
        backups: folders in ``backups`` that lead back to an earlier format with the features in use, which
            stay for that until a compaction.
    """

    encoder: str
    videos: int
    encoded: int
    seconds: float
    new_bytes: int
    old_bytes: int
    free_bytes: int
    waiting: Mapping[str, str]
    removed: Sequence[str]
    models: Sequence[str]
    backups: Sequence[str]


@dataclass(frozen=True, slots=True)
class BegunChange:
    """A change of encoder that is not done: the encoder that is wanted, how many videos have features by it,
    of how many, and the command that goes on.
    """

    encoder: str
    encoded: int
    total: int
    command: str

    @property
    def said(self) -> str:
        """It in words."""
        done = f"{self.encoded} of {counted(self.total, 'video')}"
        return f"changing to {self.encoder}: {done}; `{self.command}` goes on"


@dataclass(slots=True)
class EncoderChange:
    """What a change of encoder did.

    Attributes:
        encoder: name of the encoder that is wanted.
        done: whether the library has it now.
        encoded: ids of the videos that were encoded in this call.
        total: number of videos.
        waiting: videos without features by it, with the reason; empty where the call was interrupted only.
        without: those of them that the library has changed over without.
        concepts: messages on concepts that were not learnt again, or not from all their moments.
        models: roles and names of the trained models that are in use no longer, and lie in ``backups``.
        given_up: name of the encoder of a change that was given up.
    """

    encoder: str
    done: bool = False
    encoded: list[str] = field(default_factory=list)
    total: int = 0
    waiting: dict[str, str] = field(default_factory=dict)
    without: list[str] = field(default_factory=list)
    concepts: dict[str, str] = field(default_factory=dict)
    models: list[str] = field(default_factory=list)
    given_up: str = ""


def change_begun(store: LibraryStore) -> BegunChange | None:
    """The change of encoder of a library that was begun and is not done."""
    target = store.catalogue.change()
    if target is None:
        return None
    rows = {video.row for video in store.catalogue.videos() if video.state != "refused"}
    made = {row for row, key in store.catalogue.other_frames() if key == target.pictures_key} & rows
    command = command_to(target, store.settings, store.folder)
    return BegunChange(target.encoder, len(made), len(rows), command)


def change_encoder(
    store: LibraryStore,
    wanted: Wanted,
    *,
    without_files: bool = False,
    both_from: float | None = None,
    begin: Callable[[ChangePlan], None] = lambda _: None,
    progress: Progress = lambda _: None,
) -> EncoderChange:
    """Change the encoder of a library, under the write lock; see
    :meth:`moviola.library.Indexer.use_encoder`.
    """
    settings, catalogue = store.settings, store.catalogue
    begun = catalogue.change()
    target = _target(store, wanted, begun or settings)
    report = EncoderChange(target.encoder, total=len(store.videos()))
    if target.built_with == settings.built_with:
        if begun is not None:
            _give_up(store, begun)
            report.given_up = begun.encoder
        report.done = True
        return report
    if begun is not None and begun.built_with != target.built_with:
        raise InvalidValue(
            f"{store.folder}: is being changed to {_said(begun)}, which is not done; "
            f"`{command_to(begun, settings, store.folder)}` goes on with that, "
            f"`{command_to(settings, begun, store.folder)}` gives it up"
        )
    change = _Change(store, target, report)
    plan = change.plan()
    if plan.new_bytes > plan.free_bytes:
        raise LibraryError(
            f"{store.folder}: features by both encoders need {plan.new_bytes / 2**20:,.0f} MiB more, but "
            f"{plan.free_bytes / 2**20:,.0f} MiB are free there; free some space and try again"
        )
    begin(plan)
    if begun is None:
        catalogue.begin_change(target)
    if both_from is not None:
        catalogue.answer_by_both_from(both_from)
    with suppress(Paused):
        change.encode(progress)
        report.waiting = change.waiting()
        if not report.waiting or without_files:
            change.finish(list(report.waiting))
    return report


def _target(store: LibraryStore, wanted: Wanted, base: Settings) -> Settings:
    """The settings that are wanted, of what differs from those that the library has, or is about to have."""
    from moviola.encoders.checkpoints import is_same_model

    if wanted.encoder == NONE:
        raise InvalidValue(
            f"{store.folder}: {NONE!r} is no encoder to change to; index the videos into a new library "
            "without pictures, with `--encoder none`"
        )
    changes: dict[str, Any] = {
        name: value
        for name in ("frame_rate", "segment_seconds")
        if (value := getattr(wanted, name)) is not None
    }
    name = wanted.encoder or base.encoder
    if not name:
        raise InvalidValue(f"{store.folder}: built without a visual encoder; name one with --encoder")
    if wanted.encoder is not None or wanted.precision is not None:
        made = settings_of_pictures(name, store.encoders.device, wanted.precision or "auto")
        same = is_same_model(
            (base.encoder, base.encoder_revision), (made["encoder"], made["encoder_revision"])
        )
        if same:
            made |= {key: getattr(base, key) for key in ("encoder", "encoder_revision")}
        if same and wanted.precision is None:
            made["encoder_precision"] = base.encoder_precision
        changes |= made
    return replace(base, **changes)


def _said(settings: Settings) -> str:
    return (
        f"{settings.encoder} at {settings.frame_rate:g} frames a second, segments of "
        f"{settings.segment_seconds:g} s"
    )


def command_to(settings: Settings, other: Settings, folder: Path) -> str:
    """The command that gives a library those settings of pictures that differ from others."""
    words = []
    if (settings.encoder, settings.encoder_revision) != (other.encoder, other.encoder_revision):
        words += ["--encoder", settings.encoder or NONE]
    elif settings.encoder_precision != other.encoder_precision:
        # 8 bits are never named, but taken where they are faster.
        known = settings.encoder_precision in PRECISIONS
        words += ["--precision", settings.encoder_precision if known else "auto"]
    for name in ("frame_rate", "segment_seconds"):
        if getattr(settings, name) != getattr(other, name):
            words += [f"--{name.replace('_', '-')}", f"{getattr(settings, name):g}"]
    return shlex.join(["moviola", "library", "use", *words, "--library", str(folder)])


def _give_up(store: LibraryStore, begun: Settings) -> None:
    """Forget a change that was begun, and what it has made."""
    with store.catalogue.transaction():
        store.catalogue.end_change()
        store.catalogue.drop_given_up(begun.pictures_key)
        store.catalogue.note_unsettled()
    settle(store)


class _Change:
    """A change of encoder in one call, under the write lock."""

    def __init__(self, store: LibraryStore, target: Settings, report: EncoderChange) -> None:
        self._store, self._target, self._report = store, target, report
        self._key = target.pictures_key
        self._encodes = self._key != store.settings.pictures_key
        self._features = store.features_in("frames", target.frame_dim)
        self._videos = [video for video in store.catalogue.videos() if video.state != "refused"]
        self._made = self._whole()
        self._reasons: dict[str, str] = {}

    def _whole(self) -> dict[int, OtherExtent]:
        """Features by the new encoder by row number, without any that are damaged."""
        found = self._store.catalogue.other_frames()
        made = {row: one for (row, key), one in found.items() if key == self._key}
        damaged = [row for row, one in made.items() if not self._features.intact(one.extent)]
        if damaged:
            with self._store.catalogue.transaction():
                for row in damaged:
                    self._store.catalogue.drop_other_frames(self._key, row)
                    del made[row]
        return made

    def _pending(self) -> list[VideoRow]:
        return [video for video in self._videos if self._encodes and video.row not in self._made]

    def plan(self) -> ChangePlan:
        """The plan of what is left to do."""
        store, target, pending = self._store, self._target, self._pending()
        for video in pending:
            found = file_of(store, video)
            if isinstance(found, str):
                self._reasons[video.video_id] = found
        seconds = sum(video.duration for video in pending if video.video_id not in self._reasons)
        every = sum(video.duration for video in self._videos)
        segments = every / target.segment_seconds + len(self._videos)
        indexed = target.encoder_dim + (target.frame_dim if target.picture_dim else 0)
        new = seconds * target.frame_rate * target.frame_dim * 2 + segments * indexed * 4
        backups = [name for name, shards in _backups(store).items() if shards and self._encodes]
        old = sum(video.frames.count for video in self._videos if video.frames) * store.settings.frame_dim * 2
        return ChangePlan(
            target.encoder, len(self._videos), len(self._videos) - len(pending), seconds, int(new),
            old if self._encodes and not backups else 0, shutil.disk_usage(store.folder).free,
            dict(self._reasons),
            [one.video_id for one in store.catalogue.removed()] if self._encodes else [],
            [f"{role} {getattr(store.settings, role)}" for role in self._models_out()],
            backups,
        )  # fmt: skip

    def _models_out(self) -> list[str]:
        """Roles of the trained models that do not fit what the library will have."""
        store, out = self._store, []
        for role in ROLES:
            if name := getattr(store.settings, role):
                fits = store.settings.encoder_revision == self._target.encoder_revision
                try:
                    check_fits(role, store.folder / "models" / role / name, self._target, force=True)
                except EncoderMismatch:
                    fits = False
                except MoviolaError:  # it is damaged, or cannot be read on this machine
                    pass
                if not fits:
                    out.append(role)
        return out

    def encode(self, progress: Progress) -> None:
        """Encode the videos that wait and can be read, one after the other; each is in when it is done."""
        from moviola.library.ingest.frame_features import Refused

        store, target = self._store, self._target
        files = [found for video in self._pending() if isinstance(found := file_of(store, video), FoundFile)]
        if not files:
            return
        # An earlier call may have named it; 8 bits are never named.
        precision = target.encoder_precision if target.encoder_precision in PRECISIONS else "auto"
        encoders = LibraryEncoders(store.folder, target, store.encoders.device, precision, resident=False)
        rows = {video.video_id: video.row for video in self._videos}
        for done, outcome in enumerate(encode_pictures(files, encoders, target, progress), 1):
            video_id = outcome.file.video_id
            if isinstance(outcome, Refused) or outcome.frames is None:
                why = outcome.reason if isinstance(outcome, Refused) else "it has no pictures"
                self._reasons[video_id] = f"{outcome.file.path.name}: {why}"
            else:
                self._commit(rows[video_id], outcome)
                self._report.encoded.append(video_id)
            progress(IngestProgress(done, len(files), video_id, 0.0))

    def _commit(self, row: int, encoded: Encoded) -> None:
        store, catalogue = self._store, self._store.catalogue
        assert encoded.frames is not None
        store.require_in_place()
        extent = self._features.append(
            encoded.frames, catalogue.feature_end(OTHER_FRAMES), catalogue.last_shard()
        )
        self._made[row] = found = OtherExtent(extent, self._target.frame_dim, encoded.repeats)
        catalogue.add_other_frames(row, self._key, found)

    def waiting(self) -> dict[str, str]:
        """The videos without features by the new encoder, with the reason."""
        return {one.video_id: self._reasons.get(one.video_id, WAITS) for one in self._pending()}

    def finish(self, without: list[str]) -> None:
        """Change over."""
        store, catalogue, old = self._store, self._store.catalogue, self._store.settings
        out = self._models_out()
        self._report.models = [f"{role} {getattr(old, role)}" for role in out]
        changes: dict[str, Any] = {key: "" for role in out for key in (role, f"{role}_revision")}
        changes |= {name: getattr(self._target, name) for name in (*OF_PICTURES, "segment_seconds")}
        new = replace(old, **changes)
        kept: dict[int, Extent] = {}
        if self._encodes:
            extents = {
                video.video_id: self._made[video.row].extent
                for video in self._videos
                if video.row in self._made
            }
            self._report.concepts = learn_again(store, new, self._features, extents, next_=True)
            kept, end = self._kept_apart()
        with catalogue.transaction():
            if self._encodes:
                self._relocate(old, kept)
                catalogue.change_frames_of_removed(old, new, kept)
                catalogue.set_feature_end(FRAMES, *catalogue.feature_end(OTHER_FRAMES))
                catalogue.set_feature_end(OTHER_FRAMES, *end)
            catalogue.end_change()
            catalogue.put_former(old)
            catalogue.put_settings(new)
            catalogue.note_unsettled()
        self._report.done, self._report.without = True, without
        store.choose(new)
        settle(store)

    def _kept_apart(self) -> tuple[dict[int, Extent], tuple[int, int]]:
        """Copies of the features in use of videos that have none by the new encoder, and of removed ones, in
        shards of their own: their new places by row number, and their end. Damaged ones stay where they are.
        """
        old, catalogue = self._store.frame_features, self._store.catalogue
        wanted = {video.row: video.frames for video in self._pending() if video.frames is not None}
        wanted |= catalogue.frames_of_removed()
        end = catalogue.last_shard() + 1, 0
        for row, extent in wanted.items():
            with suppress(LibraryError):
                wanted[row] = copy = old.append(old.checked(extent), end)
                end = copy.shard, copy.offset + copy.count
        return wanted, end

    def _relocate(self, old: Settings, kept: Mapping[int, Extent]) -> None:
        """Give all videos their new features, inside a transaction."""
        catalogue = self._store.catalogue
        rough = catalogue.by_key_frames()
        for video in self._videos:
            made = self._made.get(video.row)
            catalogue.drop_other_frames(self._key, video.row)
            catalogue.relocate(video.row, made.extent if made else None, video.cues)
            if video.row in rough:  # it has all pictures now, or none
                catalogue.forget_by_key_frames(video.row)
                catalogue.encode_again(video.row)
                video = catalogue.video(video.video_id)
            if made is None:
                if video.row in kept:
                    before = OtherExtent(kept[video.row], old.frame_dim, catalogue.repeats(video.row))
                    catalogue.put_other_frames(video.row, old.pictures_key, before)
                say_state(self._store, video, waits=True)
            elif video.frames is None:
                say_state(self._store, video, waits=False)
            catalogue.set_repeats(video.row, made.repeats if made else 0)


def settle(store: LibraryStore) -> None:
    """Clear away what a change of encoder has replaced, under the write lock."""
    catalogue = store.catalogue
    settle_concepts(store.folder, store.settings)
    for role in ROLES:
        for folder in (store.folder / "models" / role).glob("*"):
            if folder.name != getattr(store.settings, role):
                set_aside(store.folder, folder)
    used = catalogue.shards_in_use().union(*_backups(store).values())
    used |= {catalogue.feature_end(kind)[0] for kind in (FRAMES, OTHER_FRAMES)}
    store.frame_features.delete_others(used)
    catalogue.note_settled()


def _backups(store: LibraryStore) -> dict[str, set[int]]:
    """Shards of frames by the name of a backup that leads back to an earlier format with them."""
    there = set(store.frame_features.shards())
    found = {}
    for path in sorted((store.folder / "backups").glob("format-*")):
        named = {
            int(one.removeprefix("frame ")) for one in shards_in_backup(path) if one.startswith("frame ")
        }
        found[path.name] = named if named <= there else set()
    return found
