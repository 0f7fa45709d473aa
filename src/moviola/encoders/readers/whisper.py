"""Speech by Whisper (Radford et al. 2022, *Robust speech recognition via large-scale weak supervision*).

Models in the form of CTranslate2, run by ``faster-whisper``: a folder, or a hub id that was pulled before.

Voice is detected before recognition, so that silence and music cost next to nothing: by Silero's network
(v6), whose weights ``faster-whisper`` carries. An hour takes seconds, and it separates speech from music,
which measures of energy do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.devices import available_device, require_device_name
from moviola.encoders.checkpoints import Checkpoint, find_checkpoint
from moviola.encoders.readers.contract import RATE, Utterance, Voiced
from moviola.errors import DataError, InvalidValue
from moviola.threads import compute_threads
from moviola.types import Word

__all__ = ["LONGEST", "WhisperReader", "is_whisper", "voiced"]

# From this probability on a detected language is used for the whole video.
_SURE_OF_LANGUAGE = 0.8
# Text that compresses better repeats itself: the model was stuck in a loop (Radford et al., section 4.5).
_REPETITIVE = 2.4

LONGEST = 30.0
"""Seconds of the longest stretch, Whisper's input length; longer speech is cut at a pause."""

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
        self._checkpoint = find_checkpoint(
            name, builtin={}, instead="or use the offline one, 'pocketsphinx' (English)"
        )
        if not is_whisper(self._checkpoint):
            raise InvalidValue(
                f"{name}: no Whisper model for CTranslate2 with its tokenizer; take one such as "
                "Systran/faster-whisper-small"
            )
        self._device, self._language = device, language
        self.id, self.revision = self._checkpoint.id, self._checkpoint.revision
        if language is not None and language not in self._model.supported_languages:
            known = ", ".join(self._model.supported_languages)
            raise InvalidValue(f"{name}: does not know the language {language!r}; it knows {known}")

    @cached_property
    def _model(self) -> Any:
        from faster_whisper import WhisperModel

        kind, _, number = available_device(self._device).partition(":")
        gpu = kind == "cuda"  # CTranslate2 supports no other
        try:
            return WhisperModel(
                str(self._checkpoint.folder),
                device="cuda" if gpu else "cpu",
                device_index=int(number or 0),
                compute_type="float16" if gpu else "int8",
                cpu_threads=compute_threads(),
                local_files_only=True,
            )
        except Exception as error:  # CTranslate2 and the tokenizer raise nothing more specific
            raise DataError(
                f"{self._checkpoint.folder}: cannot be loaded ({error}); fetch it again"
            ) from error

    def read(self, speech: Iterable[Voiced]) -> Iterator[Utterance]:
        """Utterances in the named language, or the first one that the model is sure of."""
        language = self._language
        for stretch in speech:
            segments, heard = self._model.transcribe(
                stretch.samples,
                language=language,
                temperature=0.0,
                word_timestamps=True,
                condition_on_previous_text=False,
            )
            if language is None and heard.language_probability >= _SURE_OF_LANGUAGE:
                language = heard.language
            end = stretch.start + len(stretch.samples) / self._model.feature_extractor.sampling_rate
            for segment in segments:
                said = _utterance(segment, stretch.start, end, heard.language)
                if said is not None:
                    yield said


def _utterance(segment: Any, offset: float, latest: float, language: str) -> Utterance | None:
    """A segment of a stretch in the time of the video; None without words."""
    start, end = float(offset + segment.start), float(min(offset + segment.end, latest))
    text = segment.text.strip()
    if not text or end <= start or segment.compression_ratio > _REPETITIVE:
        return None
    words = tuple(
        Word(float(offset + word.start), float(min(offset + word.end, end)), word.word.strip())
        for word in segment.words or ()
        if offset + word.start < end
    )
    return Utterance(start, end, text, words, min(1.0, math.exp(segment.avg_logprob)), language)


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
