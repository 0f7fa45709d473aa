"""Recognised speech of videos without subtitles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.readers import RATE, SpeechReader, voiced
from moviola.library.ingest.decode_ahead import ahead
from moviola.media import probe, read_sound
from moviola.types import Cue

__all__ = ["read_speech"]


def read_speech(
    path: Path,
    duration: float,
    reader: SpeechReader,
    on_seconds: Callable[[float], None],
    track: str = "default",
) -> tuple[list[Cue], str]:
    """Cues of recognised speech, and the language spoken most, empty without speech. Sound after the duration
    of the pictures is ignored; ``on_seconds`` is called with the number of seconds that are read; ``track``
    see :class:`~moviola.library.ingest.recognition.Listening`.

    Raises:
        MediaError: the file cannot be read any more, or it has no such track.
    """
    cues: list[Cue] = []
    languages: Counter[str] = Counter()
    tracks: list[int | str | None] = [None if track == "default" else track]
    if track == "all":
        tracks = [one.number for one in probe(path).sound_tracks]
    for one in tracks:
        with closing(ahead(read_sound(path, rate=RATE, track=one))) as sound:
            for said in reader.read(voiced(_with_progress(sound, on_seconds))):
                if said.start < duration:
                    end = min(said.end, duration)
                    sure = round(said.confidence, 4)
                    cues.append(Cue(said.start, end, said.text, "speech", sure, words=said.words))
                    languages[said.language] += 1
    cues.sort(key=lambda cue: (cue.start, cue.end))
    return cues, max(languages, key=lambda name: languages[name], default="")


def _with_progress(
    sound: Iterable[NDArray[np.float32]], on_seconds: Callable[[float], None]
) -> Iterator[NDArray[np.float32]]:
    heard = 0
    for piece in sound:
        yield piece
        heard += len(piece)
        on_seconds(heard / RATE)
