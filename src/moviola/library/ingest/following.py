"""Updates without encoding: of paths of files that moved, were copied, came back, or whose
folder changed; what files say of themselves; and shots and fingerprints of those that were
indexed before these were kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from moviola.errors import InvalidValue, LibraryError, MediaError, NotFound, counted
from moviola.features import Extent
from moviola.files.names import composed
from moviola.files.presence import is_file, is_folder
from moviola.library.disk.camera_zones import CameraZone
from moviola.library.disk.catalogue import Catalogue, VideoRow
from moviola.library.disk.fingerprints import FingerprintMaker
from moviola.library.disk.places import Copy, Root, held_by, is_below, moved_path, root_of, volume_of
from moviola.library.disk.removed import RemovedVideo
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.plan import (
    FoundFile,
    IngestProgress,
    IngestReport,
    Plan,
    only_renamed,
    why_unreadable,
)
from moviola.library.ingest.recognition import replace_cues
from moviola.types import several

if TYPE_CHECKING:
    from moviola.media import Facts, Fix

__all__ = [
    "follow", "forget_root", "known_encoding", "look_again_where_needed", "look_into", "move_root",
    "note_copies", "note_facts", "only_in", "prune_videos", "reread_moved", "reread_subtitles", "restore",
    "set_zones",
]  # fmt: skip

Confirm = Callable[[Sequence[str], int], bool]

# Files that are looked into between two commits.
_AT_ONCE = 200


def follow(store: LibraryStore, plan: Plan, report: IngestReport) -> None:
    """Update the paths of known content in one transaction, since files may have changed places. Removed
    videos that come back with damaged features are planned as new.
    """
    catalogue = store.catalogue
    changed = (plan.moved, plan.overwritten, plan.kept_paths, plan.lost_copies, plan.forgotten, plan.restored)
    known = set(catalogue.roots())
    roots = [root for root in plan.roots if root not in known]
    if not (roots or any(changed)):
        return
    with catalogue.transaction():
        for root in roots:
            catalogue.put_root(root)
        for video in plan.overwritten:
            if catalogue.take_out(video):
                report.removed.append(video.video_id)
        for path in plan.lost_copies:
            catalogue.drop_copy(path)
        for path in plan.forgotten:
            catalogue.drop_root(path)
        # Release all paths before taking new ones.
        for video, _ in plan.moved:
            catalogue.moved(video.row, f"\0{video.row}", video.size, video.mtime_ns, video.sidecars)
        for video, found in plan.moved:
            catalogue.drop_copy(str(found.path))
            # Other subtitles are noted when they were read.
            beside = found.sidecars if only_renamed(video, found) else video.sidecars
            catalogue.moved(video.row, str(found.path), found.size, found.mtime_ns, beside)
        for copy in plan.kept_paths:
            catalogue.put_copy(copy)
        for removed, found in plan.restored:
            if not _intact(store, removed):
                plan.new.append(found)
                continue
            catalogue.bring_back(
                removed.row, video_id=found.video_id, path=str(found.path), size=found.size,
                mtime_ns=found.mtime_ns,
            )  # fmt: skip
            report.restored.append(found.video_id)


def note_copies(store: LibraryStore, plan: Plan, report: IngestReport) -> None:
    """Store the further paths of videos, new ones included; what has the bytes of a refused file is refused,
    too.
    """
    if not plan.copies:
        return
    catalogue = store.catalogue
    with catalogue.transaction():
        videos = {video.video_id: video for video in catalogue.videos()}
        for video_id, found in plan.copies:
            video = videos.get(video_id)
            if video is None:
                continue
            if video.state == "refused":
                report.refused[found.video_id] = f"{found.path.name}: {video.error}; skipped"
                catalogue.put(found.row("refused", error=video.error), [])
            else:
                catalogue.put_copy(Copy(video.row, str(found.path), found.size, found.mtime_ns))
                report.copies.setdefault(video_id, []).append(str(found.path))


def restore(store: LibraryStore, video_ids: Iterable[str]) -> list[str]:
    """Restore removed videos, the newest of each id; see :meth:`moviola.library.Indexer.restore`."""
    catalogue = store.catalogue
    newest = {removed.video_id: removed for removed in reversed(catalogue.removed())}
    alike = {composed(video_id): video_id for video_id in newest}
    wanted = [
        video_id if video_id in newest else alike.get(composed(video_id), video_id)
        for video_id in dict.fromkeys(several("video_ids", video_ids))
    ]
    for video_id in wanted:
        if video_id not in newest:
            raise NotFound(f"{video_id}: not among the removed videos; `moviola library removed` shows them")
        if not _intact(store, newest[video_id]):
            raise LibraryError(f"{video_id}: its features are damaged; index its file again")
    with catalogue.transaction():
        for video_id in wanted:
            catalogue.bring_back(newest[video_id].row)
    return wanted


def _intact(store: LibraryStore, removed: RemovedVideo) -> bool:
    (video,) = store.catalogue.removed_content(removed.row)["videos"]
    for kind, features in (("frame", store.frame_features), ("cue", store.cue_features)):
        values = [video[f"{kind}_{part}"] for part in ("shard", "offset", "count", "crc")]
        if None not in values and not features.intact(Extent(*values)):
            return False
    return True


def only_in(store: LibraryStore, folder: Path) -> list[str]:
    """Videos that lie in a root alone; see :meth:`moviola.library.Indexer.only_in`."""
    _, held, _, elsewhere = _root_content(store.catalogue, folder)
    return [video.video_id for video in held if video.row not in elsewhere and video.state != "refused"]


def forget_root(store: LibraryStore, folder: Path) -> list[str]:
    """Remove a root with its videos; see :meth:`moviola.library.Indexer.forget_root`."""
    catalogue = store.catalogue
    root, held, here, elsewhere = _root_content(catalogue, folder)
    removed = []
    with catalogue.transaction():
        for video in held:
            if other := elsewhere.get(video.row):
                catalogue.drop_copy(other.path)
                catalogue.moved(video.row, other.path, other.size, other.mtime_ns, video.sidecars)
            elif catalogue.take_out(video):
                removed.append(video.video_id)
        for copy in here:
            catalogue.drop_copy(copy.path)
        catalogue.drop_root(root.path)
    return removed


def _root_content(
    catalogue: Catalogue, folder: Path
) -> tuple[Root, list[VideoRow], list[Copy], dict[int, Copy]]:
    """A root by its folder, its videos, further paths in it, and one elsewhere of each video by its row."""
    path, roots = str(_absolute(folder)), catalogue.roots()
    root = next((root for root in roots if root.path == path), None)
    if root is None:
        raise NotFound(f"{folder}: no folder of this library; `moviola library roots` shows them")
    return root, held_by(catalogue.videos(), roots)[path], *_divided(catalogue.copies(), path, roots)


def _divided(
    copies: Iterable[Copy], folder: str, roots: Sequence[Root]
) -> tuple[list[Copy], dict[int, Copy]]:
    """The further paths in a root, and one of each video, by its row, that lies elsewhere."""
    here: list[Copy] = []
    elsewhere: dict[int, Copy] = {}
    for copy in copies:
        root = root_of(copy.path, roots)
        if root is not None and root.path == folder:
            here.append(copy)
        else:
            elsewhere.setdefault(copy.video, copy)
    return here, elsewhere


def move_root(store: LibraryStore, old: Path, new: Path, *, check: bool = True) -> int:
    """Replace a folder by another; see :meth:`moviola.library.Indexer.move`."""
    catalogue = store.catalogue
    before, after = str(_absolute(old)), str(_absolute(new))
    videos = catalogue.videos()
    first = {video.path: video.row for video in videos}
    owners = first | {copy.path: copy.video for copy in catalogue.copies()}
    held = {path for path in owners if is_below(path, before)}
    if not held:
        raise NotFound(f"{old}: the library has no video there; `moviola library roots` shows its folders")
    there = {moved_path(path, before, after): path for path in held}
    if check and not any(map(is_file, there)):
        raise NotFound(
            f"{new}: none of the {counted(len(held), 'file')} of {old} is there; name the folder that "
            "replaces it, or add --force if it cannot be seen from here"
        )
    known = sorted((owners.keys() - held) & there.keys())
    # Of a refused file there is nothing to keep.
    refused = {video.row for video in videos if video.state == "refused"}
    for path in known:
        rows = {owners[path], owners[there[path]]}
        if len(rows) > 1 and not rows & refused:
            raise InvalidValue(f"{path}: the library has another video there; remove that one first")
    with catalogue.transaction():
        for path in known:
            if owners[path] in refused:
                catalogue.drop(owners[path])
            elif owners[there[path]] in refused:
                catalogue.drop(owners[there[path]])
            else:  # two paths of one video become one
                catalogue.drop_copy(there[path] if path in first else path)
        moved = catalogue.move_paths(before, after)
        catalogue.move_removed(before, after)
        for root in catalogue.roots():
            if is_below(root.path, after) and is_folder(root.path):
                catalogue.put_root(replace(root, volume=volume_of(Path(root.path))))
    return moved


def _absolute(folder: Path) -> Path:
    """The path with links resolved, as far as it exists."""
    try:
        return folder.expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise InvalidValue(f"{folder}: its links cannot be followed ({error}); name a folder") from error


def reread_subtitles(store: LibraryStore, video: VideoRow, found: FoundFile, report: IngestReport) -> None:
    """Read the subtitles of a video again; the pictures and their features stay."""
    from moviola.library.ingest.frame_features import facts_of, read_cues

    read, catalogue = read_cues(found, video.duration), store.catalogue
    report.note_subtitles(found.video_id, read.problems, read.notes)
    facts = facts_of(found.path) if read.fixes else None
    with catalogue.transaction():
        catalogue.note_subtitles(video.row, read.problems, read.notes, beside=read.beside)
        if facts:
            note_facts(catalogue, video.row, facts, report, read.fixes)
        else:
            report.note_unused(catalogue.account(video.row).holdings or ())
    fresh = replace(video, size=found.size, mtime_ns=found.mtime_ns, sidecars=found.sidecars)
    replace_cues(store, video, fresh, read.cues)


def prune_videos(
    store: LibraryStore, videos: Sequence[VideoRow], confirm: Confirm | None, report: IngestReport
) -> None:
    """Remove videos, unless they are many and the removal is not confirmed."""
    if not videos:
        return
    catalogue = store.catalogue
    ids, total = [video.video_id for video in videos], len(catalogue.videos())
    if len(ids) > max(1, total / 10) and not (confirm is not None and confirm(ids, total)):
        report.not_pruned = f"{len(ids)} of {total} videos would be taken out, more than a tenth"
        return
    with catalogue.transaction():
        report.removed += [video.video_id for video in videos if catalogue.take_out(video)]
    report.missing, report.left_out = [], []


def reread_moved(store: LibraryStore, plan: Plan, report: IngestReport) -> None:
    """Read the subtitles of videos that moved, where these differ."""
    for video, found in plan.moved:
        if video.sidecars != found.sidecars and not only_renamed(video, found):
            there = replace(video, path=str(found.path), size=found.size, mtime_ns=found.mtime_ns)
            reread_subtitles(store, there, found, report)
        report.moved.append(video.video_id)
    for _, found in plan.restored:
        if found.video_id in report.restored:
            video = store.catalogue.video(found.video_id)
            if video.sidecars != found.sidecars:
                reread_subtitles(store, video, found, report)


def note_facts(
    catalogue: Catalogue, row: int, facts: Facts, report: IngestReport, fixes: Sequence[Fix] = ()
) -> None:
    """Store what the file of a video says of itself; ``fixes`` are what a camera noted second by second,
    which is when and where it was taken as far as the file is silent. Inside a transaction.
    """
    from moviola.media import route_of, with_fixes

    account = catalogue.account(row)
    known = catalogue.capture_of_file(row)
    capture = with_fixes(facts.capture, fixes)
    if not fixes and known.source in ("tags", ""):  # of files beside it, which are not read now
        capture = replace(
            capture, taken=capture.taken or known.taken, source=capture.source or known.source,
            latitude=known.latitude if capture.latitude is None else capture.latitude,
            longitude=known.longitude if capture.longitude is None else capture.longitude,
        )  # fmt: skip
    catalogue.put_captures({row: capture})
    if route := route_of(facts.fixes) or route_of(fixes):
        catalogue.put_route(row, route)
    catalogue.put_holdings(row, bool(account.beside), facts.holdings)
    catalogue.put_sayings(row, facts.sayings, live=facts.live)
    report.note_unused(catalogue.account(row).holdings or ())


def known_encoding(name: str | None) -> str | None:
    """An encoding of subtitles by its usual name; None and ``"auto"`` stay. Raises InvalidValue: unknown."""
    from moviola.media import require_encoding

    return name if name in (None, "auto") else require_encoding(name)


def set_zones(catalogue: Catalogue, zones: Sequence[CameraZone]) -> None:
    """Store the zones of cameras' clocks."""
    if zones:
        with catalogue.transaction():
            catalogue.put_camera_zones(zones)


def look_into(
    store: LibraryStore, video_ids: Collection[str], report: IngestReport, zones: Sequence[CameraZone]
) -> None:
    """Read what the files of videos say of themselves, of those that were not looked at for it yet. Files
    that cannot be read now are tried again next time.
    """
    from moviola.library.ingest.frame_features import Subtitled, facts_of, with_chapters

    catalogue = store.catalogue
    held = {row for row, account in catalogue.accounts().items() if account.holdings is not None}
    looked_at = catalogue.looked_at() & catalogue.captures().keys() & held
    waiting = [
        video
        for video in catalogue.videos()
        if video.video_id in video_ids and video.state != "refused" and video.row not in looked_at
    ]
    for start in range(0, len(waiting), _AT_ONCE):
        videos = waiting[start : start + _AT_ONCE]
        read = [(video, facts) for video in videos if (facts := facts_of(Path(video.path)))]
        if not read:
            continue
        for video, facts in read:
            titled = with_chapters(Subtitled(), facts, video.duration)
            report.note_subtitles(video.video_id, titled.problems, titled.notes)
            replace_cues(store, video, video, titled.cues, "chapter")
        stored = catalogue.videos_named([video.video_id for video, _ in read])
        with catalogue.transaction():
            for video, facts in read:
                note_facts(catalogue, stored[video.video_id].row, facts, report)
    known = catalogue.captures().values() if zones else ()
    report.unknown_cameras += [one.camera for one in zones if not any(map(one.is_of, known))]


def look_again_where_needed(
    store: LibraryStore,
    video_ids: Collection[str],
    report: IngestReport,
    progress: Callable[[IngestProgress], None],
) -> None:
    """Decode the videos that have no shots or no fingerprint yet, and encode nothing; under the write lock.
    Each is committed when it is done; a file that cannot be read now is tried again the next time.
    """
    from moviola.library.ingest.frame_features import shot_rows
    from moviola.media import find_transitions

    encoder = store.encoders.visual
    if encoder is None:
        return
    shots, prints = store.catalogue.videos_with_shots(), store.stills.with_fingerprint()
    lacking = [
        video
        for video in store.catalogue.videos()
        if video.video_id in video_ids
        and video.frames
        and (video.row not in shots or video.hash not in prints)
    ]
    for done, video in enumerate(lacking, 1):
        maker = FingerprintMaker()
        try:
            found = find_transitions(
                Path(video.path), rate=store.settings.frame_rate, size=encoder.frame_size, tiny=maker
            )
        except (MediaError, OSError) as error:
            if video.row not in shots:
                report.partial[video.video_id] = f"shots: {why_unreadable(error)}"
            continue
        store.require_in_place()
        store.stills.put(video.hash, (), maker.made())
        if video.row not in shots:
            with store.catalogue.transaction():
                store.catalogue.set_shots(video.row, shot_rows(found, video.duration))
            report.shots_found.append(video.video_id)
        else:
            report.fingerprinted.append(video.video_id)
        progress(IngestProgress(done, len(lacking), video.video_id, 0.0))
