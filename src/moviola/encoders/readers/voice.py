"""Voice detection before recognition, so that silence and music cost next to nothing.

By Silero's network (v6), whose weights ``faster-whisper`` carries: an hour takes seconds, and it separates
speech from music, which measures of energy do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.readers.contract import RATE, Voiced

__all__ = ["LONGEST", "voiced"]

LONGEST = 30.0
"""Seconds of the longest stretch, Whisper's input length; longer speech is cut at a pause."""

# Minimum length of speech, pause that ends a stretch, and margin before and after, in milliseconds.
_SHORTEST, _PAUSE, _ROOM = 250, 500, 200
# Speech this close to the end of the known sound, in seconds, may go on.
_NEAR = 1.0
# Amplitude (16 bits) below which sound is digital silence.
_SILENT = 2.0**-15


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
