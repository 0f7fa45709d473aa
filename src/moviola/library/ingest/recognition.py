"""Readers of text in pictures and of speech: a step of its own per video, after the pictures.

Cues are committed video by video, together with the reading itself: interrupted work continues with the next
call, and a reader that is switched on later reads only videos that it has not read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from moviola.encoders.checkpoints import is_same_model
from moviola.encoders.readers import (
    OFFLINE_SPEECH,
    SpeechReader,
    TextReader,
    hears_offline,
    load_speech_reader,
    load_text_reader,
    require_languages,
)
from moviola.errors import (
    BrokenPlugin,
    EncoderMismatch,
    FeaturesAway,
    InvalidValue,
    MediaError,
    MissingDependency,
    MissingModel,
    UnreadableMedia,
    counted,
    installing,
)
from moviola.library.disk.accounts import has_sound
from moviola.library.disk.catalogue import Reading, VideoRow
from moviola.library.disk.schema import UNREAD, encoding_of, with_encoding
from moviola.library.ingest.plan import IngestProgress, IngestReport
from moviola.library.ingest.workers import Lost, Workers, require_seen
from moviola.plugins import naming_plugins
from moviola.types import Cue, CueKind, Span
from moviola.words import each_detected

if TYPE_CHECKING:
    from moviola.library.disk.store import LibraryStore
    from moviola.library.ingest.held_stills import FilmStills, HeldStills

__all__ = [
    "LEGIBLE", "Listening", "Readers", "ReadingRun", "encode_cues_where_missing", "mend_cues", "replace_cues",
]  # fmt: skip

NONE = "none"

LEGIBLE = 240
"""Minimum shorter side, in pixels, of pictures that are read by default: in smaller ones words are rarely
legible, and small drawings look like letters."""

Reader = TextReader | SpeechReader


@dataclass(frozen=True, slots=True)
class Listening:
    """Options of reading speech: the track that players choose (``"default"``), ``"all"``, or one by number
    from 1 on or by language; and the spoken language (ISO 639-1), None to detect it.
    """

    track: str = "default"
    language: str | None = None

    @classmethod
    def chosen(cls, track: str | None, language: str | None) -> Self:
        """From options of the command line; :class:`InvalidValue` for an impossible track or language."""
        from moviola.media import language_of, require_track_choice

        if track not in (None, "default", "all"):
            track = str(require_track_choice(str(track)))
        spoken = None if language is None else language_of(language)
        if language is not None and not spoken:
            raise InvalidValue(f"speech language {language!r}: give an ISO 639 code, such as de")
        return cls(track or "default", spoken)

    def noted(self, revision: str) -> str:
        """A reader's revision as a library records it, followed by these options."""
        chosen = {"track": self.track if self.track != "default" else "", "language": self.language}
        return "; ".join([revision, *(f"{name} {value}" for name, value in chosen.items() if value)])

    def same(self, noted: str) -> bool:
        """Whether a recorded reading was made with these options."""
        return self.noted("").partition(";")[2] == noted.partition(";")[2]


AS_PLAYED = Listening()
"""The track that players choose, in any language."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of this run, and options of reading speech. The kinds that an option named are read again
    where another reader has read them, and in small pictures, too. ``no_speech`` says how to read speech
    where nobody refused it and no reader can be opened.
    """

    text: TextReader | None
    speech: SpeechReader | None
    named: Collection[CueKind] = ()
    listening: Listening = AS_PLAYED
    no_speech: str = ""

    @classmethod
    def chosen(
        cls,
        ocr: bool | None,
        ocr_reader: str | None,
        speech: str | None,
        device: str,
        *,
        ocr_language: str | None = None,
        speech_track: str | None = None,
        speech_language: str | None = None,
    ) -> Readers:
        """Readers from options of :meth:`moviola.library.Indexer.index`; ``"none"`` reads no speech.

        Raises:
            InvalidValue: an impossible track or language, or a reader of another kind.
            MissingDependency: packages of a named reader are not installed.
            MissingModel: its model is not on this machine.
        """
        listening = Listening.chosen(speech_track, speech_language)
        text = hears = None
        named: list[CueKind] = []
        if ocr is not False:
            text = load_text_reader(ocr_reader, require_languages(ocr_language))
            named += ["text"] if ocr or ocr_reader or ocr_language else []
        no_speech = ""
        if speech is None and listening.language not in (None, "en"):
            no_speech = (
                f"{OFFLINE_SPEECH} knows English only; --speech names a reader that knows {speech_language}"
            )
        elif speech is None and not hears_offline():
            no_speech = f"{installing('speech')} adds a reader of English; --no-speech leaves it out"
        elif speech != NONE:
            hears = load_speech_reader(speech or OFFLINE_SPEECH, device=device, language=listening.language)
            named += ["speech"] if speech else []
        return cls(text, hears, named, listening, no_speech)

    def holding_stills(self, rate: float) -> HeldStills | None:
        """What holds stills for the reader of text, of ``rate`` sampled frames a second, of the films that it
        will read; None without one.
        """
        from moviola.library.ingest.held_stills import HeldStills

        if self.text is None:
            return None
        return HeldStills(self.text.longest_side, rate, 0 if "text" in self.named else LEGIBLE)

    def of_text(self) -> Readers:
        """That of text in pictures alone."""
        return replace(self, speech=None, no_speech="")

    @classmethod
    def require(
        cls,
        ocr: bool | None,
        ocr_reader: str | None,
        speech: str | None,
        ocr_language: str | None = None,
        **options: Any,
    ) -> None:
        """Raise the errors of :meth:`chosen`, for readers that are named; the default ones are not loaded."""
        reads = bool(ocr is not False and (ocr or ocr_reader or ocr_language))
        cls.chosen(reads, ocr_reader, speech or NONE, ocr_language=ocr_language, **options)


@dataclass(frozen=True, slots=True)
class ReadingRun:
    """One run of the readers over a library, by this process or workers; under its write lock.

    ``report`` gets what was read, and problems; ``progress`` is called as work goes on, by workers when a
    video is done. ``held`` has stills of videos that were decoded now, as far as no workers did.
    """

    store: LibraryStore
    report: IngestReport
    progress: Callable[[IngestProgress], None]
    workers: Workers | None = None
    held: HeldStills | None = None

    def read(self, videos: Collection[str], readers: Readers) -> None:
        """Run the readers over the videos, by id, that they have not read."""
        chosen: dict[CueKind, Reader | None] = {"text": readers.text, "speech": readers.speech}
        usual: dict[CueKind, Callable[[list[VideoRow]], list[VideoRow]]]
        usual = {"text": self._legible, "speech": self._with_sound}
        for kind, reader in chosen.items():
            if reader is None and not (kind == "speech" and readers.no_speech):
                continue
            waiting = [
                video
                for video in self.store.searchable().values()
                if video.video_id in videos and self._lacks(video, kind, reader, readers)
            ]
            if kind not in readers.named:
                waiting = usual[kind](waiting)
            if waiting and reader is not None:
                self._read_all(kind, reader, readers.listening, waiting)
            elif waiting:
                what = f"{counted(len(waiting), 'video')} with sound and without subtitles"
                self.report.not_read["speech"] = f"{what}; {readers.no_speech}"

    def _lacks(self, video: VideoRow, kind: CueKind, reader: Reader | None, readers: Readers) -> bool:
        if kind == "speech" and any(cue.kind == "subtitle" for cue in self.store.catalogue.cues(video.row)):
            return False
        reading = self.store.catalogue.readings(video.row).get(kind)
        if reading is None:
            return True
        if reader is None or kind not in readers.named:
            return False
        read_by = reading.reader, reading.revision.partition(";")[0]
        if kind == "speech" and not readers.listening.same(reading.revision):
            return True
        # Of what is no folder the revision may be a version, which changes without need, and others have too.
        if not (Path(reader.id).is_absolute() or Path(reading.reader).is_absolute()):
            return reading.reader != reader.id
        return not is_same_model(read_by, (reader.id, reader.revision))

    def _legible(self, videos: Sequence[VideoRow]) -> list[VideoRow]:
        """Videos without those of small pictures, which are reported."""
        large = [video for video in videos if min(video.width, video.height) >= LEGIBLE]
        if small := len(videos) - len(large):
            self.report.not_read["text"] = (
                f"pictures of {counted(small, 'video')} are below {LEGIBLE} pixels, where words are rarely "
                "legible; --ocr reads them all the same"
            )
        return large

    def _with_sound(self, videos: Sequence[VideoRow]) -> list[VideoRow]:
        """Videos without those whose files have no sound."""
        accounts = self.store.catalogue.accounts()
        return [video for video in videos if has_sound(accounts.get(video.row))]

    def _read_all(self, kind: CueKind, reader: Reader, listening: Listening, videos: list[VideoRow]) -> None:
        catalogue = self.store.catalogue
        goes_through = VideoReader(kind, reader, self.store.encoders.device, listening)
        revision = listening.noted(reader.revision) if kind == "speech" else reader.revision
        read = self._here if self.workers is None else self._elsewhere
        with catalogue.job(f"read {kind}", len(videos)) as advance:
            for video, found in zip(videos, read(goes_through, videos), strict=True):
                if isinstance(found, MediaError):
                    self.report.reading_problems[video.video_id] = f"{kind}: {found.reason}"
                else:
                    cues, language, unread = found
                    _commit(self.store, video, cues, Reading(kind, reader.id, revision, language, unread))
                    self.report.read[kind].append(video.video_id)
                    if unread:
                        self.report.reading_notes[video.video_id] = f"{kind}: {unread}"
                advance()

    def _here(self, reader: VideoReader, videos: Sequence[VideoRow]) -> Iterator[Found | MediaError]:
        for done, video in enumerate(videos):
            start = IngestProgress(done, len(videos), video.video_id, 0.0, reader.kind)
            self.progress(start)

            def on_seconds(seconds: float, start: IngestProgress = start) -> None:
                self.progress(replace(start, seconds=seconds))

            if self.held is None or reader.kind != "text":
                yield reader.read(self._to_read(video), on_seconds)
                continue
            held = self.held.of(video.hash)
            yield reader.read(replace(self._to_read(video), held=held), on_seconds)
            self.held.drop([video.hash])

    def _elsewhere(self, reader: VideoReader, videos: Sequence[VideoRow]) -> Iterator[Found | MediaError]:
        assert self.workers is not None
        self.workers.require(reader.require_able, [(Path(video.path), video.size) for video in videos])
        results = self.workers.map(reader.read, map(self._to_read, videos), gpu=reader.on_gpu)
        for done, (video, found) in enumerate(zip(videos, results, strict=True)):
            self.progress(IngestProgress(done, len(videos), video.video_id, video.duration, reader.kind))
            yield UnreadableMedia(video.path, found.reason) if isinstance(found, Lost) else found

    def _to_read(self, video: VideoRow) -> _ToRead:
        from moviola.library.ingest.screen_text import spans_of
        from moviola.media import stills_apart

        starts = [shot.start for shot in self.store.catalogue.shots(video.row)]
        settings = self.store.settings
        apart = stills_apart(settings.frame_rate) if settings.encoder else None  # nothing was sampled
        return _ToRead(Path(video.path), video.duration, spans_of(starts, video.duration), apart)


Found = tuple[list[Cue], str, str]
"""Cues of a video, the recognised language, and what is said of what could not be read."""


@dataclass(frozen=True, slots=True)
class _ToRead:
    path: Path
    duration: float
    shots: Sequence[Span]
    apart: Fraction | None
    held: FilmStills | None = None


class VideoReader:
    """Runs a reader over videos. Pickled for another process, it opens its own reader there."""

    def __init__(self, kind: CueKind, reader: Reader, device: str, listening: Listening = AS_PLAYED) -> None:
        self.kind, self._reader, self._device, self._listening = kind, reader, device, listening

    def __reduce__(self) -> tuple[Callable[..., VideoReader], tuple[CueKind, str, str, str, Listening]]:
        return _reopened, (
            self.kind, self._reader.id, self._reader.revision, self._device, self._listening,
        )  # fmt: skip

    @property
    def on_gpu(self) -> bool:
        return self.kind == "speech" and self._device != "cpu"

    def require_able(self, files: Iterable[tuple[Path, int]]) -> None:
        """Fail where this machine does not see the files; a reader on another one was opened before."""
        require_seen(files)

    def read(
        self, video: _ToRead, on_seconds: Callable[[float], None] = lambda _: None
    ) -> Found | MediaError:
        """Cues of a video; the error where the file cannot be read any more, or a plug-in fails.
        ``on_seconds`` is called with the number of seconds that are read.
        """
        from moviola.library.ingest.screen_text import read_text
        from moviola.library.ingest.speech import read_speech

        try:
            with naming_plugins():
                if self.kind == "speech":
                    reader = cast(SpeechReader, self._reader)
                    return read_speech(video.path, video.duration, reader, on_seconds, self._listening.track)
                reads = cast(TextReader, self._reader)
                found = read_text(video.path, video.shots, video.apart, reads, on_seconds, held=video.held)
                return found, "", ""
        except MediaError as error:
            return error
        except BrokenPlugin as error:
            return UnreadableMedia(video.path, str(error))


def _reopened(kind: CueKind, reader_id: str, revision: str, device: str, listening: Listening) -> VideoReader:
    reader: Reader
    if kind == "speech":
        reader = load_speech_reader(reader_id, device=device, language=listening.language)
    else:
        reader = load_text_reader(reader_id)
    if reader.revision != revision:
        raise EncoderMismatch(
            f"reader {reader_id}: revision {reader.revision} here, {revision} on the library's machine; "
            "install the same"
        )
    return VideoReader(kind, reader, device, listening)


def _commit(store: LibraryStore, video: VideoRow, cues: Sequence[Cue], reading: Reading) -> None:
    catalogue = store.catalogue
    languages = each_detected([cue.text for cue in cues], reading.language)
    cues = [replace(cue, language=cue.language or own) for cue, own in zip(cues, languages, strict=True)]
    before = catalogue.cues(video.row)
    others = [cue for cue in before if cue.kind != reading.kind]
    if not cues and len(others) == len(before):
        with catalogue.transaction():
            catalogue.set_readings(video.row, [reading])  # the searchable cues are unchanged
        return
    readings = {**catalogue.readings(video.row), reading.kind: reading}
    _put(store, video, [*others, *cues], video, readings.values())


def replace_cues(
    store: LibraryStore, video: VideoRow, fresh: VideoRow, cues: Sequence[Cue], kind: CueKind = "subtitle"
) -> None:
    """Replace the cues of a kind of a video, as the catalogue has it and as it will be stored; others stay,
    but subtitles displace recognised speech.
    """
    before = store.catalogue.cues(video.row)
    gone = (kind, "speech") if kind == "subtitle" and cues else (kind,)
    if video == fresh and [*cues] == [cue for cue in before if cue.kind in gone]:
        return
    others = [cue for cue in before if cue.kind not in gone]
    readings = store.catalogue.readings(video.row)
    kept = [reading for kind, reading in readings.items() if kind not in gone]
    _put(store, video, [*cues, *others], fresh, kept)


def mend_cues(store: LibraryStore, video: VideoRow) -> None:
    """Compute damaged features of a video's cues again, from the texts in the catalogue.

    Where the catalogue has lost cues, what is left is encoded, and all are read again when the file is
    indexed the next time; where the sentence encoder is not on this machine, they are encoded then, and are
    found by their words until then.
    """
    cues = store.catalogue.cues(video.row)
    again = replace(video, sidecars=with_encoding(UNREAD, encoding_of(video.sidecars)))
    readings = store.catalogue.readings(video.row).values()
    lost = video.cues is not None and len(cues) != video.cues.count
    kept = () if lost else readings  # of which kind the lost ones were is not known
    if lost:
        with store.catalogue.transaction():
            store.catalogue.forget_facts(video.row)  # nor whether they were titles of chapters
    try:
        _put(store, video, cues, again if lost else video, kept)
    except (MissingModel, MissingDependency, EncoderMismatch):
        _store(store, replace(again, cues=None), cues, kept)


def encode_cues_where_missing(store: LibraryStore, video_ids: Iterable[str]) -> None:
    """Encode cues without features, as those of videos that were removed before the sentence encoder was
    changed.
    """
    for video in store.catalogue.listed(video_ids):
        if video.cues is None and store.settings.sentence_encoder and store.catalogue.cues(video.row):
            mend_cues(store, video)


def _put(
    store: LibraryStore, video: VideoRow, cues: Sequence[Cue], fresh: VideoRow, readings: Iterable[Reading]
) -> None:
    """Store a video with other cues; texts that it had before are not encoded again."""
    store.require_in_place()
    known = {}
    if video.cues is not None:
        had = store.catalogue.cues(video.row)
        with suppress(FeaturesAway):  # which may be lost; if they are not, nothing can be appended to them
            # A copy of damaged ones would bear a digest that says that they are whole.
            if len(had) == video.cues.count and store.cue_features.intact(video.cues):
                vectors = np.asarray(store.cue_features.read(video.cues), np.float32)
                known = {cue.text: vector for cue, vector in zip(had, vectors, strict=True)}
    rows = store.encoders.sentence_rows(cues, known)
    extent = None if rows is None else store.cue_features.append(rows, store.catalogue.feature_end("cues"))
    _store(store, replace(fresh, cues=extent), cues, readings)


def _store(store: LibraryStore, video: VideoRow, cues: Sequence[Cue], readings: Iterable[Reading]) -> None:
    """Replace a video, by its row number, in the catalogue; its shots stay."""
    shots, repeats = store.catalogue.shots(video.row), store.catalogue.repeats(video.row)
    with store.catalogue.transaction():
        store.catalogue.put(video, cues, shots, readings, repeats)
