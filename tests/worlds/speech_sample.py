"""Three sentences of a synthetic voice, as ``scripts/make_speech_sample.py`` wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent.parent / "data"
RATE = 16_000


@dataclass(frozen=True)
class Sentence:
    """A sentence, with the seconds of its speech."""

    start: float
    end: float
    text: str


def speech(name: str = "speech.ogg") -> NDArray[np.float32]:
    """The samples (n,) at RATE; ``"german.ogg"`` are the same sentences in German."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    with av.open(str(FOLDER / name)) as container:
        frames = [made for frame in container.decode(audio=0) for made in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])


def sentences() -> list[Sentence]:
    """What they say."""
    lines = (line.split(maxsplit=2) for line in (FOLDER / "speech.txt").read_text().splitlines())
    return [Sentence(float(start), float(end), text) for start, end, text in lines]


def word_errors(said: str, heard: str) -> int:
    """Words that were left out, put in or mistaken."""
    true, found = said.split(), heard.split()
    row = list(range(len(found) + 1))
    for left, word in enumerate(true, start=1):
        corner, row[0] = row[0], left
        for place, other in enumerate(found, start=1):
            best = min(row[place] + 1, row[place - 1] + 1, corner + (word != other))
            corner, row[place] = row[place], best
    return row[-1]
