"""Readers go through the videos of a library: each a step of its own, video by video, after the pictures.

What a reader found is committed video by video, together with the fact that it has been there: interrupted
work goes on with the next call, and a reader that is switched on later reads only what it has not read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from moviola.encoders.readers import SpeechReader, TextReader, installed, load_speech_reader, load_text_reader
from moviola.errors import MediaError
from moviola.features import Extent
from moviola.library.catalogue import Reading, VideoRow
from moviola.library.report import IngestReport
from moviola.types import Cue, CueKind, Span

if TYPE_CHECKING:
    from moviola.library.store import LibraryStore

__all__ = ["LEGIBLE", "Readers", "ReadingRun", "append_cues", "replace_subtitles"]

NONE = "none"

LEGIBLE = 240
"""Pixels of the shorter side from which on pictures are read unasked.

In smaller ones words are rarely legible, and much that is drawn small looks like letters.
"""

Reader = TextReader | SpeechReader

OnVideo = Callable[[CueKind, int, int, str, float], None]
"""Called with the kind of cues, how many videos are done of how many, a video's id and its seconds done."""


@dataclass(frozen=True, slots=True)
class Readers:
    """Who reads in this run.

    Attributes:
        text, speech: the readers; None: nobody reads.
        named: kinds that were asked for: what another one read is read again, and small pictures are read.
    """

    text: TextReader | None
    speech: SpeechReader | None
    named: Collection[CueKind] = ()

    @classmethod
    def chosen(cls, ocr: bool | None, speech: str | None, device: str) -> Readers:
        """Readers by option.

        Args:
            ocr: whether text in pictures is read; None: if the packages are installed.
            speech: name of the reader of speech; None or ``"none"``: nobody.
            device: handed to it.

        Raises:
            MissingDependency: packages of a reader that was asked for are not installed.
            MissingModel: its model is not on this machine.
        """
        text = load_text_reader() if ocr or (ocr is None and installed("ocr")) else None
        hears = None if speech in (None, NONE) else load_speech_reader(str(speech), device=device)
        asked: dict[CueKind, bool] = {"text": bool(ocr), "speech": hears is not None}
        return cls(text, hears, [kind for kind, is_asked in asked.items() if is_asked])


@dataclass(frozen=True, slots=True)
class ReadingRun:
    """One run of the readers through a library; under its write lock.

    Attributes:
        store: the library.
        report: gets what was read, and what could not be.
        on_video: called as work goes on.
    """

    store: LibraryStore
    report: IngestReport
    on_video: OnVideo

    def read(self, videos: Collection[str], readers: Readers) -> None:
        """Let the readers go through those of some videos, by id, that they have not read."""
        chosen: dict[CueKind, Reader | None] = {"text": readers.text, "speech": readers.speech}
        for kind, reader in chosen.items():
            if reader is not None:
                named = kind in readers.named
                waiting = [
                    video
                    for video in self.store.searchable().values()
                    if video.video_id in videos and self._lacks(video, kind, reader.id, again=named)
                ]
                if kind == "text" and not named:
                    waiting = self._legible(waiting)
                if waiting:
                    self._read_all(kind, reader, waiting)

    def _lacks(self, video: VideoRow, kind: CueKind, reader: str, *, again: bool) -> bool:
        if kind == "speech" and any(cue.kind == "subtitle" for cue in self.store.catalogue.cues(video.row)):
            return False
        reading = self.store.catalogue.readings(video.row).get(kind)
        return reading is None or (again and reading.reader != reader)

    def _legible(self, videos: Sequence[VideoRow]) -> list[VideoRow]:
        """Videos without those of small pictures, which are told of."""
        large = [video for video in videos if min(video.width, video.height) >= LEGIBLE]
        if small := len(videos) - len(large):
            self.report.not_read["text"] = (
                f"{small} videos have pictures below {LEGIBLE} pixels, where words are rarely legible; "
                "--ocr reads them all the same"
            )
        return large

    def _read_all(self, kind: CueKind, reader: Reader, videos: Sequence[VideoRow]) -> None:
        catalogue = self.store.catalogue
        job, state = catalogue.begin_job(f"read {kind}", len(videos)), "interrupted"
        try:
            for done, video in enumerate(videos):
                on_seconds = partial(self.on_video, kind, done, len(videos), video.video_id)
                on_seconds(0.0)
                try:
                    cues, language = self._cues(kind, reader, video, on_seconds)
                except MediaError as error:
                    self.report.reading_problems[video.video_id] = f"{kind}: {error.reason}"
                else:
                    reading = Reading(kind, reader.id, reader.revision, language)
                    _commit(self.store, video, cues, reading)
                    self.report.read[kind].append(video.video_id)
                catalogue.advance_job(job)
            state = "done"
        finally:
            catalogue.end_job(job, state)  # type: ignore[arg-type]

    def _cues(
        self, kind: CueKind, reader: Reader, video: VideoRow, on_seconds: Callable[[float], None]
    ) -> tuple[list[Cue], str]:
        """What a reader finds in a video, and the language that it hears."""
        path = Path(video.path)
        if kind == "speech":
            from moviola.library.spoken import read_speech

            return read_speech(path, video.duration, cast(SpeechReader, reader), on_seconds)
        from moviola.library.written import read_text

        return read_text(path, _shots(self.store, video), cast(TextReader, reader), on_seconds), ""


def _shots(store: LibraryStore, video: VideoRow) -> list[Span]:
    """The shots of a video; all of it where they are not known."""
    starts = [shot.start for shot in store.catalogue.shots(video.row)] or [0.0]
    return [Span(start, end) for start, end in pairwise([*starts, video.duration]) if end > start]


def _commit(store: LibraryStore, video: VideoRow, cues: Sequence[Cue], reading: Reading) -> None:
    """Cues of a kind in place of those that the video had of it."""
    catalogue = store.catalogue
    before = catalogue.cues(video.row)
    others = [cue for cue in before if cue.kind != reading.kind]
    if not cues and len(others) == len(before):
        with catalogue.transaction():
            catalogue.set_readings(video.row, [reading])  # nothing to search for has changed
        return
    readings = {**catalogue.readings(video.row), reading.kind: reading}
    _put(store, video, [*others, *cues], video, readings.values())


def replace_subtitles(
    store: LibraryStore, video: VideoRow, fresh: VideoRow, subtitles: Sequence[Cue]
) -> None:
    """Store other subtitles of a video; recognised speech gives way to them, text in pictures stays.

    Args:
        store: the library.
        video: as the catalogue has it.
        fresh: what to store in its place.
        subtitles: in order of time.
    """
    gone: CueKind = "speech" if subtitles else "subtitle"
    others = [cue for cue in store.catalogue.cues(video.row) if cue.kind not in ("subtitle", gone)]
    readings = store.catalogue.readings(video.row)
    kept = [reading for kind, reading in readings.items() if kind != gone]
    _put(store, video, [*subtitles, *others], fresh, kept)


def _put(
    store: LibraryStore, video: VideoRow, cues: Sequence[Cue], fresh: VideoRow, readings: Iterable[Reading]
) -> None:
    extent = append_cues(store, cues, video)
    shots = store.catalogue.shots(video.row)
    with store.catalogue.transaction():
        store.catalogue.put(replace(fresh, cues=extent), cues, shots, readings)


def append_cues(store: LibraryStore, cues: Sequence[Cue], before: VideoRow | None = None) -> Extent | None:
    """Store the sentence vectors of cues; None without a sentence encoder or cues.

    Args:
        store: the library.
        cues: of one video.
        before: the video as it was; texts that it had are not encoded again.
    """
    sentences = store.encoders.sentences
    if sentences is None or not cues:
        return None
    known = {}
    if before is not None and before.cues is not None:
        had = store.catalogue.cues(before.row)
        vectors = np.asarray(store.cue_features.read(before.cues), np.float32)
        known = {cue.text: vector for cue, vector in zip(had, vectors, strict=True)}
    new = list(dict.fromkeys(cue.text for cue in cues if cue.text not in known))
    known |= dict(zip(new, sentences.encode_text(new), strict=True))
    embedded = np.stack([known[cue.text] for cue in cues])
    return store.cue_features.append(embedded, store.catalogue.feature_end("cues"))
