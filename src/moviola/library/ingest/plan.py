"""The plan of an indexing run: how files and catalogue differ; its progress, and its report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from moviola.errors import MediaError, printable
from moviola.files.reasons import reason
from moviola.library.disk.places import Copy, Root
from moviola.library.disk.removed import RemovedVideo
from moviola.library.disk.schema import State, VideoRow
from moviola.types import CueKind, HeldAs, Holding

__all__ = ["FoundFile", "IngestProgress", "IngestReport", "Paused", "Plan", "only_renamed", "why_unreadable"]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A video file on disk, with its present or future id; ``beside`` are its subtitle files, without links,
    and ``sidecars`` their signature.
    """

    path: Path
    video_id: str
    size: int
    mtime_ns: int
    hash: str
    sidecars: str
    beside: tuple[Path, ...] = ()

    def row(self, state: State, **known: Any) -> VideoRow:
        """The file as a video that is to be stored; ``known`` are further fields."""
        own = {**asdict(self), "path": str(self.path)}
        del own["beside"]
        return VideoRow(row=0, state=state, **own, **known)


@dataclass(slots=True)
class Plan:
    """The plan: every file is in exactly one of the lists.

    What has the name of a field of :class:`IngestReport` means the same.

    Attributes:
        new, changed: to be encoded.
        moved: known content at another path, or a file that was only touched.
        overwritten: known videos whose path has other known content now.
        kept_paths: former paths of moved videos, which may come back since their root is away.
        copies: further paths of the content of a known video, or of a new one, by its id; each has an id of
            its own, for where that one is refused.
        lost_copies: paths of copies that are gone.
        forgotten: roots that are gone, of which every file was found elsewhere.
        subtitles: new subtitles, the same pictures.
        missing: known videos of the given folders whose file is gone, though its root is there.
        roots: folders that were read, and volumes mounted in them.
        refused: files that cannot even be read, by their present or future id, with the reason. They are not
            stored; what the library has of them stays.
    """

    new: list[FoundFile] = field(default_factory=list)
    changed: list[FoundFile] = field(default_factory=list)
    moved: list[tuple[VideoRow, FoundFile]] = field(default_factory=list)
    overwritten: list[VideoRow] = field(default_factory=list)
    kept_paths: list[Copy] = field(default_factory=list)
    copies: list[tuple[str, FoundFile]] = field(default_factory=list)
    lost_copies: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    restored: list[tuple[RemovedVideo, FoundFile]] = field(default_factory=list)
    subtitles: list[tuple[VideoRow, FoundFile]] = field(default_factory=list)
    unchanged: list[VideoRow] = field(default_factory=list)
    missing: list[VideoRow] = field(default_factory=list)
    away: list[VideoRow] = field(default_factory=list)
    left_out: list[VideoRow] = field(default_factory=list)
    offline: dict[str, str] = field(default_factory=dict)
    roots: list[Root] = field(default_factory=list)
    waiting: list[Path] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    ignored: list[Path] = field(default_factory=list)
    unmatched: list[Path] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)


def why_unreadable(error: MediaError | OSError) -> str:
    """Why a file cannot be used."""
    return error.reason if isinstance(error, MediaError) else reason("unreadable", why=error.strerror)


def only_renamed(video: VideoRow, found: FoundFile) -> bool:
    """Whether the subtitle files beside a video are those from before, but for the name that all share."""

    def endings(path: Path, signature: str) -> list[str]:
        return [part.removeprefix(printable(path.stem)) for part in signature.split("|")]

    return endings(Path(video.path), video.sidecars) == endings(found.path, found.sidecars)


class Paused(Exception):
    """Raised by a callback of indexing to end the call between two steps; what is finished is in, and is
    reported.
    """


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """Progress of one step of indexing: videos done of those that need work, and the current video with its
    seconds done. Pictures of several videos may be encoded at a time.
    """

    done: int
    total: int
    video_id: str
    seconds: float
    step: Literal["key frames", "pictures", "sounds"] | CueKind = "pictures"


@dataclass(slots=True)
class IngestReport:
    """What indexing did, by video id. ``refused``, ``partial`` and ``subtitle_problems`` hold reasons,
    ``subtitle_notes`` say how subtitles were read where that is a guess or not as they stand there.

    ``missing`` are videos whose file is gone, ``left_out`` those that patterns exclude now; both stay unless
    pruning is on (``removed``), and if that would remove too many, ``not_pruned`` says so. ``away`` are
    videos of folders that are not there now, named in ``offline`` with the reason; they stay.
    ``forgotten`` are folders that are gone, of which every file is elsewhere now; they are no folders of the
    library any more. ``moved`` videos have a new path, or were touched; ``copies`` are new paths of videos
    that are in or came in now, ``restored`` had been removed; none of them was encoded.
    ``excluded`` are excluded folders and video files, ``waiting`` files that are still being written,
    ``ignored`` files that are no videos by their suffix, ``unmatched`` subtitle files that belong to no video
    by their names. ``unused`` counts the parts of files that were looked at now and that nothing uses, by
    what they are (:data:`moviola.types.HELD_AS`); :class:`moviola.library.Account` has them of each video.
    ``unknown_cameras`` have a zone now, and no video.
    ``shots_found`` are unchanged videos of a library
    older than shot detection, ``fingerprinted`` those older than fingerprints; both were decoded again, not
    encoded. ``read`` are videos that a reader read, by kind of cues, ``heard`` those whose sounds were read,
    ``reading_problems`` those it could not, ``reading_notes`` what of a video is in a language that the
    reader does not know; ``not_read`` says how to read a kind that has no reader. ``frames`` is the number of
    frames that now have features, ``repeats`` that of frames that reuse the features of an earlier one.
    ``decoding`` says which films a device decoded and which software, and why, where a device was wanted.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    copies: dict[str, list[str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    offline: dict[str, str] = field(default_factory=dict)
    forgotten: list[str] = field(default_factory=list)
    not_pruned: str = ""
    excluded: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    partial: dict[str, str] = field(default_factory=dict)
    subtitle_problems: dict[str, str] = field(default_factory=dict)
    subtitle_notes: dict[str, str] = field(default_factory=dict)
    unused: dict[HeldAs, int] = field(default_factory=dict)
    unknown_cameras: list[str] = field(default_factory=list)
    shots_found: list[str] = field(default_factory=list)
    fingerprinted: list[str] = field(default_factory=list)
    read: dict[str, list[str]] = field(default_factory=lambda: {"text": [], "speech": []})
    heard: list[str] = field(default_factory=list)
    reading_problems: dict[str, str] = field(default_factory=dict)
    reading_notes: dict[str, str] = field(default_factory=dict)
    not_read: dict[str, str] = field(default_factory=dict)
    frames: int = 0
    repeats: int = 0
    decoding: str = ""

    @classmethod
    def of(cls, plan: Plan) -> IngestReport:
        """A report with all that a plan says by itself."""

        def ids(videos: Iterable[VideoRow]) -> list[str]:
            return [video.video_id for video in videos]

        return cls(
            unchanged=ids(plan.unchanged), missing=ids(plan.missing), left_out=ids(plan.left_out),
            away=ids(plan.away), offline={printable(path): reason for path, reason in plan.offline.items()},
            forgotten=[*map(printable, plan.forgotten)], ignored=[*map(printable, plan.ignored)],
            excluded=[*plan.excluded], waiting=[*map(printable, plan.waiting)], refused={**plan.refused},
            unmatched=[*map(printable, plan.unmatched)],
        )  # fmt: skip

    def note_subtitles(self, video_id: str, problems: Sequence[str], notes: Sequence[str]) -> None:
        """Report what is missing of a video's subtitles, and how they were read."""
        if problems:
            self.subtitle_problems[video_id] = "; ".join(problems)
        if notes:
            self.subtitle_notes[video_id] = "; ".join(notes)

    def note_unused(self, holdings: Iterable[Holding]) -> None:
        """Count the parts of a file that are not used."""
        for one in holdings:
            if not one.used:
                self.unused[one.held_as] = self.unused.get(one.held_as, 0) + 1
