"""Encoding of videos: threads decode ahead while the encoder works.

A thread decodes the frames of a video, or of parts of a long one (:mod:`.film_parts`), and finds its shots on
the way; where the pictures leave a cut open, some seconds are decoded again by the next free thread. There is
one decoding thread per core, and frames of all videos share the encoder in the order in which they come.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.errors import MediaError, UnreadableMedia, printable
from moviola.files.reasons import reason
from moviola.library.disk.catalogue import ShotRow
from moviola.library.disk.fingerprints import Fingerprint
from moviola.library.disk.schema import encoding_of
from moviola.library.ingest.decode_ahead import Branch, side_by_side
from moviola.library.ingest.film_parts import (
    BATCH,
    Again,
    Begun,
    Film,
    Looked,
    Pictures,
    ReadPart,
    Rest,
    Step,
    part_length,
)
from moviola.library.ingest.held_stills import HeldStills
from moviola.library.ingest.plan import FoundFile, why_unreadable
from moviola.library.ingest.unchanged_frames import encode_changes
from moviola.media import (
    Facts,
    Hardware,
    Notes,
    embedded_subtitles,
    in_language,
    joined,
    joined_tracks,
    name_beside,
    of_one_size,
    probe,
    read_facts,
    read_subtitles,
    read_through,
    sample_frames,
    seconds_of_timecode,
    within_film,
)
from moviola.threads import compute_threads
from moviola.types import Cue, FrameSize
from moviola.words import base_language

if TYPE_CHECKING:
    from moviola.media import Fix, Marks, MediaInfo, Notice, Stretch, Transition

__all__ = [
    "Encoded", "EncodedPart", "Outcome", "Refused", "Subtitled", "encode_videos", "facts_of", "read_cues",
    "require_no_link", "shot_rows", "with_chapters",
]  # fmt: skip

# Threads that decode one film at most: each reads all of it.
_MOST_LANES = 4


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

    Of a film that comes in parts, features, repeats, stills and fingerprint are those after the last
    :class:`EncodedPart`.
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
class EncodedPart:
    """A part of a long film, after all before it, as far as it is ready: features (n, d) float32 of this
    part, and of the film so far its shots, the transitions that they are made of, and what is still to be
    looked through. The subtitles are those of the whole film.
    """

    file: FoundFile
    info: MediaInfo
    part: ReadPart
    frames: NDArray[np.float32]
    repeats: int
    shots: Sequence[ShotRow]
    marks: Marks
    unclear: Sequence[Stretch]
    subtitles: Subtitled = Subtitled()


@dataclass(frozen=True, slots=True)
class Refused:
    """An unusable file, and the reason."""

    file: FoundFile
    reason: str


Outcome = EncodedPart | Encoded | Refused
_AnyStep: TypeAlias = "Step | Refused"
_Made = TypeVar("_Made")


@dataclass(slots=True)
class _Underway:
    """All that is ready so far of a file whose film is being decoded."""

    file: FoundFile
    film: Film
    info: MediaInfo | None
    lanes_left: int
    moments: int = 0
    next_part: int = 0
    read: dict[int, ReadPart] = field(default_factory=dict)
    rows: defaultdict[int, list[NDArray[np.float32]]] = field(default_factory=lambda: defaultdict(list))
    repeats: Counter[int] = field(default_factory=Counter)
    looked: dict[tuple[Stretch, ...], Marks] = field(default_factory=dict)
    ready: deque[Outcome] = field(default_factory=deque)
    rest: Rest | None = None
    refused: Refused | None = None

    def take(self, step: Step | Refused) -> None:
        if isinstance(step, Refused):
            self.refused = self.refused or step
        elif isinstance(step, Again):
            for part in [part for part in self.rows if part >= step.part]:
                del self.rows[part], self.repeats[part]
            self.moments = step.moments
        elif isinstance(step, Looked):
            self.looked[step.stretches] = step.marks
        elif isinstance(step, ReadPart):
            self.read[step.part] = step
            while self.next_part in self.read:
                self.ready.append(self._part(self.read.pop(self.next_part)))
                self.next_part += 1
        elif isinstance(step, Rest):
            self.rest = step

    def end(self) -> None:
        """All was decoded and looked through."""
        self.ready.append(self.refused or self._whole())

    def _features(self, part: int) -> tuple[NDArray[np.float32], int]:
        return np.concatenate(self.rows.pop(part)), self.repeats.pop(part, 0)

    def _part(self, part: ReadPart) -> EncodedPart:
        looked, unclear = [], {*part.unclear}
        for stretches, marks in self.looked.items():
            if unclear.issuperset(stretches):
                looked += marks
                unclear.difference_update(stretches)
        marks = [*part.marks, *looked]
        rows, repeats = self._features(part.part)
        assert self.info
        return EncodedPart(
            self.file, self.info, part, rows, repeats, shot_rows(joined(marks), part.seconds), marks,
            [stretch for stretch in part.unclear if stretch in unclear],
        )  # fmt: skip

    def _whole(self) -> Encoded:
        rest, info = self.rest, self.info
        assert rest and info
        marks = [*rest.marks, *(mark for marks in self.looked.values() for mark in marks)]
        rows, repeats = self._features(min(self.rows)) if self.rows else (None, 0)
        return Encoded(
            self.file, info, rest.duration, rest.broken_at, rows, shot_rows(joined(marks), rest.duration),
            repeats, rest.stills, rest.fingerprint, checksum=rest.checksum,
        )  # fmt: skip


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
    begun: Callable[[FoundFile], Begun | None] | None = None,
    shots: bool = True,
    held: HeldStills | None = None,
    hardware: Hardware | None = None,
) -> Iterator[Outcome]:
    """Decode and encode files, several at once, and the parts of one; results come in the order of the files.

    ``encode`` computes features (n, d) of frames (n, height, width, 3) of a size; without one, there is no
    visual encoder, and files are only probed. ``own``: paths have no links on this machine, and one that has
    come since is not followed. ``begun`` says what is known of the earlier parts of a film; without it, films
    do not come in parts. Without ``shots`` neither they nor a fingerprint are looked for. ``held`` gets
    stills for a reader of text; ``hardware`` decodes, not without ``shots``. The rest is as in
    :class:`.video_encoder.VideoEncoder`.
    """
    if size is None:
        for file in files:
            yield from _refused_if_unreadable(file, _probed(file, own))
        return
    videos: list[_Underway] = []
    lane_of: list[_Underway] = []
    following = 0  # the next file to return

    def lanes() -> Iterator[Iterator[_AnyStep | Branch[_AnyStep]]]:
        for file in files:
            video = _underway(file, rate, own, begun, hardware=hardware)
            videos.append(video)
            for lane in range(video.lanes_left):
                lane_of.append(video)
                looked = _decoded(video, lane, size, stills_every, own, held=held)
                yield looked if shots else _decoded_alone(video, size, rate, own)

    decoding: Generator[tuple[int, Any]] = side_by_side(lanes(), compute_threads())
    with closing(decoding) as steps:
        try:
            for number, step in steps:
                video = lane_of[number]
                if step is None:
                    video.lanes_left -= 1
                    if not video.lanes_left:
                        video.end()
                elif isinstance(step, Pictures):
                    images = step.images
                    rows, repeats = (encode(images), 0) if every_frame else encode_changes(images, encode)
                    video.rows[step.part].append(rows)
                    video.repeats[step.part] += repeats
                    video.moments += len(rows)
                    on_frames(video.file, video.moments / rate)
                else:
                    video.take(step)
                while following < len(videos):
                    video = videos[following]
                    yield from _taken(video.ready)
                    if video.lanes_left:
                        break
                    following += 1
        finally:  # threads may wait for each other
            for video in videos:
                video.film.close()


def _taken(ready: deque[Outcome]) -> Iterator[Outcome]:
    while ready:
        yield ready.popleft()


def _underway(
    file: FoundFile,
    rate: float,
    own: bool,
    begun: Callable[[FoundFile], Begun | None] | None,
    *,
    hardware: Hardware | None,
) -> _Underway:
    """A film that is to be decoded, by all threads if it is long; a file that cannot be read is refused when
    it is its turn.
    """
    with suppress(MediaError, OSError):
        if own:
            require_no_link(file)
        info = probe(file.path)
        if begun is None:
            return _Underway(file, Film(file.path, rate, sys.maxsize, 1, hardware=hardware), info, 1)
        length, known = part_length(rate), begun(file)
        moments = known.moments if known else 0
        parts = math.ceil((info.about * rate - moments) / length)
        lanes = max(1, min(compute_threads(), _MOST_LANES, parts))
        film = Film(
            file.path, rate, length, lanes, identity=partial(_identity, file.path), begun=known,
            hardware=hardware,
        )  # fmt: skip
        return _Underway(file, film, info, lanes, moments, moments // length)
    return _Underway(file, Film(file.path, rate, sys.maxsize, 1), None, 1)


def _identity(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def require_no_link(file: FoundFile) -> None:
    """Fail with :class:`UnreadableMedia` where a link has come into the path of a file."""
    if os.path.realpath(file.path) != str(file.path):
        raise UnreadableMedia(file.path, reason("link since"))


def _probed(file: FoundFile, own: bool) -> Iterator[Encoded]:
    """Probe a file without a visual encoder: it must be a video that can be read to its end."""
    if own:
        require_no_link(file)
    info = probe(file.path)
    yield Encoded(file, info, info.duration, None, None, checksum=read_through(file.path).checksum)


def _decoded(
    video: _Underway,
    lane: int,
    size: FrameSize,
    stills_every: int | None,
    own: bool,
    *,
    held: HeldStills | None,
) -> Iterator[_AnyStep | Branch[_AnyStep]]:
    """One thread's parts of a film."""
    file = video.file

    def steps() -> Iterator[_AnyStep | Branch[_AnyStep]]:
        try:
            if own:
                require_no_link(file)
            if video.info is None:
                video.info = probe(file.path)
            reads = held and held.taken_of(file.hash, video.info.width, video.info.height)
            for step in video.film.lane(lane, size, stills_every, [reads] if reads else []):
                yield Branch(_refused_if_unreadable(file, step.steps)) if isinstance(step, Branch) else step
        except BaseException:
            video.film.close()
            raise

    return _refused_if_unreadable(file, steps())


def _decoded_alone(
    video: _Underway, size: FrameSize, rate: float, own: bool
) -> Iterator[_AnyStep | Branch[_AnyStep]]:
    """The pictures of a video, in the batches of :func:`_decoded`."""
    file = video.file

    def steps() -> Iterator[_AnyStep]:
        if own:
            require_no_link(file)
        video.info = video.info or probe(file.path)
        with sample_frames(file.path, rate=rate, size=size) as stream:
            frames = iter(stream)
            while batch := [frame.image for frame in islice(frames, BATCH)]:
                for images in of_one_size(batch):
                    yield Pictures(0, images)
        yield Rest(stream.duration, (), None, [], stream.broken_at, stream.checksum)

    return _refused_if_unreadable(file, steps())


def _refused_if_unreadable(file: FoundFile, steps: Iterator[_Made]) -> Iterator[_Made | Refused]:
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
    tracks: list[tuple[str, list[Cue]]] = []
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
        tracks.append((name.title, in_language(inside, name.language, name.form)))
        _sort((*subtitles.notices, *met), f"{printable(path.name)}: ", problems, notes)
    beside = any(cues for _, cues in tracks)
    languages = {base_language(cue.language) for _, cues in tracks for cue in cues if cue.form != "forced"}
    if "" not in languages and (facts is None or facts.has_text):
        try:
            subtitles = embedded_subtitles(file.path, captioned=facts.captioned if facts else None)
        except MediaError as error:
            problems.append(str(error))
        else:
            fixes += subtitles.fixes if not beside else ()
            inside, met = within_film(subtitles.cues, duration)
            others = [cue for cue in inside if base_language(cue.language) not in languages]
            forms = dict.fromkeys(one.form for one in others)
            tracks += [("", [cue for cue in others if cue.form == form]) for form in forms]
            _sort((*subtitles.notices, *met), "", problems, notes)
    # Beside copies of a film lie copies of its subtitles.
    ordered = joined_tracks(tracks, Notes())
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
