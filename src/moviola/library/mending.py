"""Repair and compaction of a library. A repair takes nothing away for good, unless asked to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from moviola.errors import DamagedSettings, FeaturesAway, LibraryError, NotFound, counted
from moviola.features import Extent, FeatureShards
from moviola.files.presence import is_file
from moviola.library.check import (
    LostShard,
    Problem,
    command,
    lost_shards,
    parts_damaged,
    still_problems,
    verify,
)
from moviola.library.derived.indexes import publish_indexes
from moviola.library.derived.name_table import publish_names
from moviola.library.derived.verdicts import VerdictStore
from moviola.library.disk.backups import set_aside
from moviola.library.disk.catalogue import CATALOGUE_FILE, Catalogue, VideoRow
from moviola.library.disk.disk_cache import damaged_in_cache
from moviola.library.disk.lock import sweep_drafts, writing
from moviola.library.disk.other_frames import KEY_FRAMES, OTHER_FRAMES, OtherExtent
from moviola.library.disk.settings import SETTINGS_FILE, Settings
from moviola.library.disk.store import LibraryStore
from moviola.library.disk.upgrade import require_fitting, shards_in_backup
from moviola.library.ingest.indexer import Indexer
from moviola.library.ingest.recognition import mend_cues

__all__ = ["compact", "ends_with_compaction", "mend_settings", "repair"]

Confirm = Callable[[Sequence[str], int], bool]


def repair(
    store: LibraryStore, *, confirm: Confirm | None = None, dry_run: bool = False, for_good: bool = False
) -> list[Problem]:
    """Mend what is damaged; returns the problems that were fixed.

    Videos with damaged features of pictures are taken out: indexing encodes them again, and if their features
    are whole again, :meth:`moviola.library.Indexer.restore` brings them back. Where other parts are damaged,
    the rest stays: features of cues are computed again from their texts, and pictures and cues that are lost,
    shots, and features whose encoder is not on this machine are made when the file is indexed the next time.
    Indexes and caches are rebuilt; damaged stills are moved to ``backups/``.

    Args:
        confirm: called with ids and the number of videos before more than one and more than a tenth of them
            are taken out, or any for good; None: that is refused.
        dry_run: change nothing; the problems say what would be done.
        for_good: also take out videos whose features are not there at all, and keep nothing of what is taken
            out.

    Raises:
        FeaturesAway: a whole file of features, or their folder, is not there; nothing was changed.
        LibraryError: much is to be taken out, which was not confirmed; nothing was changed.
        InvalidValue, LibraryLocked: see :class:`moviola.library.Indexer`.
        MissingModel: a damaged cache file needs a model that is not on this machine; the file was deleted,
            and searches work without it.
    """
    problems = [problem for problem in verify(store) if problem.repairable]
    lost = lost_shards(store, [video for video in store.catalogue.videos() if video.state != "refused"])
    if lost and not for_good:
        raise FeaturesAway(
            f"{lost[0].message}. `moviola repair --help` says what to do where it is lost for ever"
        )
    given_up = [_given_up(one) for one in lost]
    if dry_run:
        return [*problems, *given_up]
    with store.writing():
        damaged = _damaged_videos(store, problems, lost)
        out = [video for video, parts in damaged if "frames" in parts]
        _require_consent(store, out, confirm, for_good)
        if out or lost:
            _take_out(store, out, {one.kind for one in lost}, for_good=for_good)
        for video, parts in damaged:
            if "frames" not in parts:
                _mend(store, video, parts)
        _make_again(store, names=bool(out))
    return [*problems, *given_up]


def _given_up(lost: LostShard) -> Problem:
    repair = (
        "takes these videos out for good" if lost.kind == "frames" else "computes them again from the texts"
    )
    return Problem("", lost.message, True, repair=repair)


def _damaged_videos(
    store: LibraryStore, problems: Sequence[Problem], lost: Sequence[LostShard]
) -> list[tuple[VideoRow, set[str]]]:
    """Videos with the parts that are damaged now, or lie where nothing is."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for one in lost:
        for video_id in one.video_ids:
            kinds[video_id].add(one.kind)
    wanted = {problem.video_id for problem in problems if problem.video_id} | kinds.keys()
    named = store.catalogue.videos_named(wanted)
    return [(video, parts_damaged(store, video) | kinds[video_id]) for video_id, video in named.items()]


def _require_consent(
    store: LibraryStore, out: Sequence[VideoRow], confirm: Confirm | None, for_good: bool
) -> None:
    ids, total = [video.video_id for video in out], len(store.catalogue.videos())
    many = len(ids) > max(1, total / 10)
    if (many or (for_good and ids)) and not (confirm is not None and confirm(ids, total)):
        how = "for good" if for_good else "more than a tenth"
        raise LibraryError(
            f"{store.folder}: {len(ids)} of {counted(total, 'video')} would be taken out, {how}: features of "
            "their pictures are damaged; nothing was changed. Restore features/ from a copy, or confirm it"
        )


def _take_out(store: LibraryStore, videos: Sequence[VideoRow], kinds: set[str], *, for_good: bool) -> None:
    """Take videos out; the next features of some kinds are to begin a new shard."""
    with store.catalogue.transaction():
        for video in videos:
            if for_good:
                store.catalogue.drop(video.row)
            else:
                store.catalogue.take_out(video)
        for kind in kinds:
            _leave_shards(store, kind)


def _leave_shards(store: LibraryStore, kind: str) -> None:
    """Let the next features of a kind begin a new shard: some of the present ones are gone."""
    features = {"frames": store.frame_features, "cues": store.cue_features}[kind]
    last = max([*features.shards(), store.catalogue.feature_end(kind)[0], store.catalogue.last_shard()])
    store.catalogue.set_feature_end(kind, last + 1, 0)


def _mend(store: LibraryStore, video: VideoRow, parts: Collection[str]) -> None:
    if "missing" in parts:
        with store.catalogue.transaction():
            store.catalogue.encode_again(video.row)
    if "shots" in parts:  # without any, the next indexing finds them again
        with store.catalogue.transaction():
            store.catalogue.set_shots(video.row, ())
    if "cues" in parts:
        mend_cues(store, video)


def _make_again(store: LibraryStore, *, names: bool) -> None:
    """Make again what is derived of the rest, and put damaged stills aside."""
    in_cache = damaged_in_cache(store.folder)
    for path in in_cache:
        path.unlink(missing_ok=True)  # a reader may have swept it
    if any(problem.repairable for problem in still_problems(store)):
        store.stills.put_aside()
    publish_indexes(store, thorough=True)
    if in_cache:
        Indexer(store).publish()
    elif names:
        publish_names(store, encode=False)


def mend_settings(folder: Path, *, dry_run: bool = False) -> list[Problem]:
    """Put right what keeps a library from being opened: write ``moviola.toml`` again from the copy in the
    catalogue where it is missing, damaged or another library's, or note that copy again. Replaced settings
    are moved to ``backups/``. Returns what was fixed, or with ``dry_run`` would be; none where both agree.

    Raises:
        LibraryError: neither can be used, or the catalogue cannot.
        InvalidValue, LibraryLocked: see :class:`moviola.library.Indexer`.
    """
    if not is_file(folder / CATALOGUE_FILE):
        return []
    with closing(Catalogue(folder, read_only=dry_run)) as catalogue, ExitStack() as lock:
        if not dry_run:
            lock.enter_context(writing(folder))
            sweep_drafts(folder)
        own, wrong = _settings_of(folder)
        try:
            noted = catalogue.noted_settings()
        except DamagedSettings as error:
            return _noted_again(folder, catalogue, own, str(error), dry_run)
        if noted is None:
            if wrong and (folder / SETTINGS_FILE).exists():
                raise DamagedSettings(f"{wrong}; the catalogue, of an earlier format, has no copy of it")
            return []
        if own is not None:
            try:
                catalogue.followed(folder, own)
                return []
            except DamagedSettings as error:
                wrong = str(error)
        if not dry_run:
            if (folder / SETTINGS_FILE).exists():
                set_aside(folder, folder / SETTINGS_FILE)
            noted.write(folder)
        repair = "writes it again as the catalogue has noted it; the present one goes to backups/"
        return [Problem("", wrong, True, (command(folder, "repair"),), repair)]


def _settings_of(folder: Path) -> tuple[Settings | None, str]:
    """The settings in ``moviola.toml``; None, and what is wrong with it."""
    try:
        return Settings.read(folder), ""
    except (DamagedSettings, NotFound) as error:
        return None, str(error)


def _noted_again(
    folder: Path, catalogue: Catalogue, own: Settings | None, wrong: str, dry_run: bool
) -> list[Problem]:
    if own is None:
        raise LibraryError(f"{wrong}, and {SETTINGS_FILE} cannot be used either; restore both from a copy")
    require_fitting(folder, catalogue, own)
    if not dry_run:
        catalogue.note_settings(own)
    return [
        Problem("", wrong, True, (command(folder, "repair"),), f"notes those of {SETTINGS_FILE} in it again")
    ]


def compact(store: LibraryStore) -> int:
    """Copy live features into new shards and delete the old ones; returns the bytes that were freed. Removed
    videos cannot be brought back afterwards. Readers that have the old shards open keep them; the catalogue
    changes over in one transaction.

    Raises:
        InvalidValue, LibraryLocked: see :class:`Indexer`.
        LibraryError: features are damaged, or away.
    """
    catalogue = store.catalogue
    kinds = {"frames": store.frame_features, "cues": store.cue_features}
    with store.writing():
        videos, before = catalogue.videos(), _bytes(store)
        contents = {video.hash for video in videos} | catalogue.unfinished_extents().keys()
        # Numbers are never used again: readers may still have the shards that bore them.
        first = {
            kind: max([*features.shards(), catalogue.feature_end(kind)[0], catalogue.last_shard()]) + 1
            for kind, features in kinds.items()
        }
        try:
            _change_over(store, videos, first)
        finally:
            for kind, features in kinds.items():
                features.delete_unused(first[kind], catalogue.feature_end(kind)[0])
        store.stills.keep_only(contents)
        with closing(VerdictStore(store.folder)) as verdicts:
            verdicts.keep_only(contents)
        return before - _bytes(store)


def _change_over(store: LibraryStore, videos: Sequence[VideoRow], first: Mapping[str, int]) -> None:
    """Copy features that are in use into shards from some numbers on, and have the catalogue name these."""
    catalogue = store.catalogue
    rough, unfinished = catalogue.by_key_frames(), catalogue.unfinished_extents()
    whole = [one.frames for one in videos if one.row not in rough]
    frames, end_of_frames = _copied(store.frame_features, [*whole, *unfinished.values()], first["frames"])
    cues, end_of_cues = _copied(store.cue_features, [one.cues for one in videos], first["cues"])
    by_key_frames, end_of_key_frames = _copied(
        store.frame_features, [one.frames for one in videos if one.row in rough], end_of_frames[0] + 1
    )
    others, end_of_others = _others_copied(store, end_of_key_frames[0] + 1)
    with catalogue.transaction():
        catalogue.forget_removed()
        copied = frames | by_key_frames
        for video in videos:
            catalogue.relocate(
                video.row, video.frames and copied[video.frames], video.cues and cues[video.cues]
            )
        for content, place in unfinished.items():
            catalogue.relocate_unfinished(content, frames[place])
        for (row, key), extent in others.items():
            if extent is None:
                catalogue.drop_other_frames(key, row)
            else:
                catalogue.relocate_other_frames(row, key, extent)
        catalogue.set_feature_end("frames", *end_of_frames)
        catalogue.set_feature_end("cues", *end_of_cues)
        catalogue.set_feature_end(KEY_FRAMES, *end_of_key_frames)
        catalogue.set_feature_end(OTHER_FRAMES, *end_of_others)


def ends_with_compaction(store: LibraryStore) -> list[str]:
    """What cannot be brought back any more after a compaction, in words; empty if that is nothing."""
    ends = []
    if removed := store.catalogue.removed():
        names = ", ".join(video.video_id for video in removed[:5])
        more = f", and {len(removed) - 5} more" if len(removed) > 5 else ""
        ends.append(
            f"{counted(len(removed), 'removed video')} could not be restored afterwards ({names}{more})"
        )
    shards = {f"frame {n}" for n in store.frame_features.shards()}
    shards |= {f"cue {n}" for n in store.cue_features.shards()}
    backups = {path: shards_in_backup(path) for path in sorted((store.folder / "backups").glob("format-*"))}
    ends += [
        f"{path}, the way back to an earlier format, would fit no features any more"
        for path, named in backups.items()
        if named and named <= shards
    ]
    return ends


def _copied(
    features: FeatureShards, extents: Iterable[Extent | None], shard: int
) -> tuple[dict[Extent, Extent], tuple[int, int]]:
    """Rows copied to shards from a number on: their places by those from before, and their end."""
    end, copies = (shard, 0), {}
    for extent in dict.fromkeys(extents):
        if extent is None:
            continue
        if not features.intact(extent):
            raise LibraryError(f"{features.kind}: damaged features; `moviola doctor` says what mends them")
        copies[extent] = copy = features.append(features.read(extent), end)
        end = copy.shard, copy.offset + copy.count
    return copies, end


def _others_copied(
    store: LibraryStore, shard: int
) -> tuple[dict[tuple[int, str], Extent | None], tuple[int, int]]:
    """Features by other encoders copied to shards from a number on, those of a change that goes on last:
    their extents, None for damaged ones, and their end.
    """
    by_key: dict[str, dict[int, OtherExtent]] = defaultdict(dict)
    for (row, key), one in store.catalogue.other_frames().items():
        by_key[key][row] = one
    change = store.catalogue.change()
    last = change.pictures_key if change else ""
    end = (shard, 0)
    copies: dict[tuple[int, str], Extent | None] = {}
    for key in sorted(by_key, key=lambda key: (key == last, key)):
        features = store.features_in("frames", next(iter(by_key[key].values())).dim)
        whole = {row: one.extent if features.intact(one.extent) else None for row, one in by_key[key].items()}
        copied, end = _copied(features, whole.values(), end[0] + (end[1] > 0))
        copies |= {(row, key): at and copied[at] for row, at in whole.items()}
    if last not in by_key and end[1]:
        end = end[0] + 1, 0
    return copies, end


def _bytes(store: LibraryStore) -> int:
    return sum(path.stat().st_size for path in (store.folder / "features").glob("*.f16"))
