"""Recognised speech of videos without subtitles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.readers import RATE, UNKNOWN_LANGUAGE, SpeechReader, voiced
from moviola.library.ingest.decode_ahead import ahead
from moviola.media import probe, read_sound
from moviola.types import Cue, clock

__all__ = ["read_speech"]


def read_speech(
    path: Path,
    duration: float,
    reader: SpeechReader,
    on_seconds: Callable[[float], None],
    track: str = "default",
) -> tuple[list[Cue], str, str]:
    """Cues of recognised speech, the language spoken most, empty without speech, and what is said of speech
    in a language that the reader does not know, of which nothing is kept; empty without any.

    Sound after the duration of the pictures is ignored; ``on_seconds`` is called with the number of seconds
    that are read; ``track`` see :class:`~moviola.library.ingest.recognition.Listening`.

    Raises:
        MediaError: the file cannot be read any more, or it has no such track.
    """
    cues: list[Cue] = []
    seconds: dict[str, float] = defaultdict(float)  # of speech, by its language
    tracks: list[int | str | None] = [None if track == "default" else track]
    if track == "all":
        tracks = [one.number for one in probe(path).sound_tracks]
    for one in tracks:
        with closing(ahead(read_sound(path, rate=RATE, track=one))) as sound:
            for said in reader.read(voiced(_with_progress(sound, on_seconds))):
                if said.start < duration:
                    end = min(said.end, duration)
                    seconds[said.language] += end - said.start
                    if said.language == UNKNOWN_LANGUAGE:
                        continue
                    sure = round(said.confidence, 4)
                    cues.append(Cue(said.start, end, said.text, "speech", sure, words=said.words))
    cues.sort(key=lambda cue: (cue.start, cue.end))
    unread, whole = seconds.pop(UNKNOWN_LANGUAGE, 0.0), sum(seconds.values())
    return cues, max(seconds, key=lambda name: seconds[name], default=""), _unread(unread, whole, reader.id)


def _unread(seconds: float, others: float, reader: str) -> str:
    """The note on seconds of speech in a language that a reader does not know, beside others."""
    if not seconds:
        return ""
    what = f"{clock(seconds)} of {clock(seconds + others)} of speech" if others else "all that is said"
    return f"{what}, in a language that {reader} does not know or too noisy, is not kept"


def _with_progress(
    sound: Iterable[NDArray[np.float32]], on_seconds: Callable[[float], None]
) -> Iterator[NDArray[np.float32]]:
    heard = 0
    for piece in sound:
        yield piece
        heard += len(piece)
        on_seconds(heard / RATE)
