"""Encoding of videos: threads decode ahead while the encoder works.

A thread decodes the frames of a video and finds its shots on the way; where the pictures leave a cut open,
some seconds are decoded again by the next free thread. There is one decoding thread per core, and frames of
all videos share the encoder in the order in which they come: no thread waits while there is work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.errors import MediaError, UnreadableMedia, printable
from moviola.files.reasons import reason
from moviola.library.disk.catalogue import ShotRow
from moviola.library.disk.fingerprints import Fingerprint, FingerprintMaker
from moviola.library.disk.schema import encoding_of
from moviola.library.ingest.decode_ahead import Branch, side_by_side
from moviola.library.ingest.plan import FoundFile, why_unreadable
from moviola.library.ingest.unchanged_frames import encode_changes
from moviola.media import (
    Facts,
    Notes,
    ShotFinder,
    SmallStills,
    embedded_subtitles,
    in_language,
    joined,
    look_through,
    name_beside,
    probe,
    read_facts,
    read_subtitles,
    read_through,
    sample_frames,
    seconds_of_timecode,
    shrunk,
    within_film,
    without_doubles,
)
from moviola.threads import compute_threads
from moviola.types import Cue, FrameSize
from moviola.words import base_language

if TYPE_CHECKING:
    from moviola.media import Fix, Marks, MediaInfo, Notice, Transition

__all__ = [
    "Encoded", "Refused", "Subtitled", "encode_videos", "facts_of", "read_cues", "shot_rows", "with_chapters",
]  # fmt: skip

_BATCH = 32


@dataclass(frozen=True, slots=True)
class Subtitled:
    """Subtitles of a video in order of time, what is missing of them, how they were read, whether they are of
    files beside it, and what a camera noted instead.
    """

    cues: Sequence[Cue] = ()
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    beside: bool = False
    fixes: Sequence[Fix] = ()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A decoded video: features (n, d) float32, of which ``repeats`` are copies of others; None, and then no
    shots, without a visual encoder. ``stills`` are seconds and WebP bytes. In the end it has its subtitles
    in order of time, with their sentence vectors (cues, d) float32, None without a sentence encoder or cues,
    what could not be read of these, and how they were read. ``checksum`` is of all that was read,
    ``facts`` what the file says of itself; None where it cannot be read any more.
    """

    file: FoundFile
    info: MediaInfo
    duration: float
    broken_at: float | None
    frames: NDArray[np.float32] | None
    shots: Sequence[ShotRow] = ()
    repeats: int = 0
    stills: Sequence[tuple[float, bytes]] = ()
    fingerprint: Fingerprint | None = None
    subtitles: Subtitled = Subtitled()
    checksum: str = ""
    facts: Facts | None = None
    sentences: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """An unusable file, and the reason."""

    file: FoundFile
    reason: str


_Step: TypeAlias = "NDArray[np.uint8] | Marks | Encoded | Refused"
"""Pictures; transitions found in those of some stretches; at last what is known besides, or a refusal."""
_AnyStep = TypeVar("_AnyStep")


@dataclass(slots=True)
class _Underway:
    """The parts of a video that are ready so far."""

    rows: list[NDArray[np.float32]] = field(default_factory=list)
    repeats: int = 0
    marks: Marks = field(default_factory=list)
    end: Encoded | Refused | None = None

    def done(self) -> Encoded | Refused:
        assert self.end
        if isinstance(self.end, Refused):
            return self.end
        shots = shot_rows(joined(self.marks), self.end.duration)
        return replace(self.end, frames=np.concatenate(self.rows), shots=shots, repeats=self.repeats)


def encode_videos(
    files: Sequence[FoundFile],
    size: FrameSize | None,
    encode: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    rate: float,
    on_frames: Callable[[FoundFile, float], None],
    *,
    every_frame: bool = False,
    stills_every: int | None = None,
    own: bool = True,
    shots: bool = True,
) -> Iterator[Encoded | Refused]:
    """Decode and encode files, several at once; results come in the order of the files.

    ``encode`` computes features (n, d) of frames (n, height, width, 3) of a size; without one, there is no
    visual encoder, and files are only probed. ``own``: paths have no links on this machine, and one that has
    come since is not followed. Without ``shots`` neither they nor a fingerprint are looked for. The rest is
    as in :class:`.video_encoder.VideoEncoder`.
    """
    if size is None:
        for file in files:
            yield from _refused_if_unreadable(file, _probed(file, own))
        return
    underway: dict[int, _Underway] = {}
    done: dict[int, Encoded | Refused] = {}
    following = 0  # the next file to return
    decoded = (
        _decode(file, size, rate, stills_every, own) if shots else _decode_alone(file, size, rate, own)
        for file in files
    )
    each = (_refused_if_unreadable(file, steps) for file, steps in zip(files, decoded, strict=True))
    with closing(side_by_side(each, compute_threads())) as steps:
        for number, step in steps:
            video = underway.setdefault(number, _Underway())
            if step is None:
                done[number] = underway.pop(number).done()
            elif isinstance(step, Encoded | Refused):
                if video.end is None or isinstance(step, Refused):
                    video.end = step
            elif isinstance(step, list):
                video.marks += step
            elif isinstance(step, np.ndarray):
                rows, repeats = (encode(step), 0) if every_frame else encode_changes(step, encode)
                video.rows.append(rows)
                video.repeats += repeats
                on_frames(files[number], sum(map(len, video.rows)) / rate)
            while following in done:
                yield done.pop(following)
                following += 1


def _require_no_link(file: FoundFile) -> None:
    if os.path.realpath(file.path) != str(file.path):
        raise UnreadableMedia(file.path, reason("link since"))


def _probed(file: FoundFile, own: bool) -> Iterator[Encoded]:
    """Probe a file without a visual encoder: it must be a video that can be read to its end."""
    if own:
        _require_no_link(file)
    info = probe(file.path)
    yield Encoded(file, info, info.duration, None, None, checksum=read_through(file.path).checksum)


def _decode(
    file: FoundFile, size: FrameSize, rate: float, stills_every: int | None, own: bool
) -> Iterator[_Step | Branch[_Step]]:
    if own:
        _require_no_link(file)
    info = probe(file.path)
    maker, small = FingerprintMaker(), None if stills_every is None else SmallStills(stills_every)
    finder = ShotFinder(rate, maker)

    def look(stretches: Sequence[tuple[float, float]]) -> Branch[_Step]:
        found = (look_through(file.path, part) for part in [stretches])  # decoded when it is iterated
        return Branch(_refused_if_unreadable(file, found))

    with sample_frames(file.path, rate=rate, size=size, watcher=finder.pictures, stills=small) as stream:
        frames = iter(stream)
        while batch := [frame.image for frame in islice(frames, _BATCH)]:
            images = np.stack(batch)
            yield images
            if stretches := finder.add(shrunk(images)):
                yield look(stretches)
    yield look(finder.rest())
    yield finder.marks
    yield Encoded(
        file, info, stream.duration, stream.broken_at, None,
        stills=small.stills if small else (), fingerprint=maker.made(), checksum=stream.checksum,
    )  # fmt: skip


def _decode_alone(file: FoundFile, size: FrameSize, rate: float, own: bool) -> Iterator[_Step]:
    """The pictures of a video, in the batches of :func:`_decode`."""
    if own:
        _require_no_link(file)
    info = probe(file.path)
    with sample_frames(file.path, rate=rate, size=size) as stream:
        frames = iter(stream)
        while batch := [frame.image for frame in islice(frames, _BATCH)]:
            yield np.stack(batch)
        yield Encoded(file, info, stream.duration, stream.broken_at, None, checksum=stream.checksum)


def _refused_if_unreadable(file: FoundFile, steps: Iterator[_AnyStep]) -> Iterator[_AnyStep | Refused]:
    """Steps; an error that the file causes becomes a refusal."""
    try:
        yield from steps
    except (MediaError, OSError) as error:
        yield Refused(file, why_unreadable(error))


def shot_rows(found: Sequence[Transition], duration: float) -> list[ShotRow]:
    """The shots of a video; the first begins at its start."""
    inside = [shot for shot in found if 0 < shot.time < duration]
    return [ShotRow(0.0, "start"), *(ShotRow(shot.time, shot.kind) for shot in inside)]


def read_cues(file: FoundFile, duration: float, facts: Facts | None = None) -> Subtitled:
    """Subtitles of a video of ``duration`` seconds, each in its language: of files beside it, which were put
    there on purpose, and of text streams inside it in languages that these are not in; a line that is there
    twice once. ``facts`` are those of the file, None where they are not known.
    """
    problems: list[str] = []
    cues: list[Cue] = []
    notes: list[str] = []
    fixes: list[Fix] = []
    info = _probed_or_none(file.path) if file.beside else None
    for path in file.beside:
        try:
            subtitles = read_subtitles(
                path, encoding=encoding_of(file.sidecars), frame_rate=info.frame_rate if info else None,
                follow=False,
            )  # fmt: skip
        except MediaError as error:
            problems.append(str(error))
            continue
        lead = info.lead if info else 0.0
        moved = (replace(cue, start=max(0.0, cue.start - lead), end=cue.end - lead) for cue in subtitles.cues)
        begins_at = seconds_of_timecode(info.start_timecode, info.frame_rate) if info else None
        fixes += subtitles.fixes
        inside, met = within_film([cue for cue in moved if cue.end > 0], duration, begins_at=begins_at)
        name = name_beside(file.path, path)
        cues += in_language(inside, name.language, name.form)
        _sort((*subtitles.notices, *met), f"{printable(path.name)}: ", problems, notes)
    beside = bool(cues)
    languages = {base_language(cue.language) for cue in cues if cue.form != "forced"}
    if "" not in languages and (facts is None or facts.has_text):
        try:
            subtitles = embedded_subtitles(file.path, captioned=facts.captioned if facts else None)
        except MediaError as error:
            problems.append(str(error))
        else:
            fixes += subtitles.fixes if not beside else ()
            tracks, met = within_film(subtitles.cues, duration)
            cues += [cue for cue in tracks if base_language(cue.language) not in languages]
            _sort((*subtitles.notices, *met), "", problems, notes)
    # Beside copies of a film lie copies of its subtitles.
    ordered = without_doubles(cues, Notes())
    return Subtitled(ordered, tuple(problems), tuple(notes), beside, tuple(fixes))


def facts_of(path: Path) -> Facts | None:
    """What a file says of itself; None where it cannot be read."""
    try:
        return read_facts(path)
    except (MediaError, OSError):
        return None


def with_chapters(subtitles: Subtitled, facts: Facts, duration: float) -> Subtitled:
    """Subtitles of a video of ``duration`` seconds, and the titles of its chapters as further cues."""
    chapters, met = within_film(facts.chapters, duration)
    problems, notes = [*subtitles.problems], [*subtitles.notes]
    _sort(met, "chapters: ", problems, notes)
    cues = [*subtitles.cues, *chapters]
    return replace(subtitles, cues=cues, problems=tuple(problems), notes=tuple(notes))


def _sort(notices: Iterable[Notice], before: str, problems: list[str], notes: list[str]) -> None:
    """Add notices to problems or notes; that lines that are there twice were read once is worth neither."""
    for notice in notices:
        if notice.loss or notice.kind not in ("repeated", "doubled"):
            (problems if notice.loss else notes).append(f"{before}{notice}")


def _probed_or_none(path: Path) -> MediaInfo | None:
    try:
        return probe(path)
    except MediaError:
        return None
