"""Makes ``speech.ogg``, ``speech.txt`` and ``german.ogg`` in ``tests/data``: sentences of a synthetic voice,
what they say, and the same in German.

Needs the program ``espeak-ng``, which nothing else does: the files are in the repository.
Run: ``python scripts/make_speech_sample.py``
"""

from __future__ import annotations

import argparse
import io
import subprocess
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data"
VOICE, GERMAN_VOICE = ("-v", "en-us", "-s", "160"), ("-v", "de", "-s", "150")
RATE = 16_000
# Seconds of silence before each sentence, and after the last.
PAUSE = 1.5

SENTENCES = (
    "the lighthouse keeper lost his umbrella in the storm",
    "the children are playing football in the garden",
    "we will meet at the train station on monday morning",
)


GERMAN = (
    "der Leuchtturmwärter hat im Sturm seinen Regenschirm verloren",
    "die Kinder spielen im Garten Fußball",
    "wir treffen uns am Montagmorgen am Bahnhof",
)


def spoken(sentence: str, voice: tuple[str, ...] = VOICE) -> NDArray[np.float32]:
    """A sentence as samples (n,) in [-1, 1]."""
    done = subprocess.run(["espeak-ng", *voice, "--stdout", sentence], check=True, capture_output=True)
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    with av.open(io.BytesIO(done.stdout), "r") as container:
        frames = [made for frame in container.decode(audio=0) for made in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])


def write_opus(path: Path, samples: NDArray[np.float32]) -> None:
    """Samples at RATE as Ogg Opus."""
    with av.open(str(path), "w", format="ogg", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libopus", rate=RATE, layout="mono")
        stream.bit_rate = 24_000
        size = RATE // 50
        whole = np.pad(samples, (0, -len(samples) % size))
        for first in range(0, len(whole), size):
            frame = av.AudioFrame.from_ndarray(
                whole[np.newaxis, first : first + size], format="flt", layout="mono"
            )
            frame.sample_rate, frame.pts = RATE, first
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def main() -> None:
    """Write the files; each line of the text has the seconds from and to which a sentence is said."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    FOLDER.mkdir(exist_ok=True)
    silence = np.zeros(int(PAUSE * RATE), np.float32)
    pieces, lines, length = [], [], 0
    for sentence in SENTENCES:
        voice = spoken(sentence)
        pieces += [silence, voice]
        start = length + len(silence)
        lines.append(f"{start / RATE:.2f} {(start + len(voice)) / RATE:.2f} {sentence}")
        length += len(silence) + len(voice)
    write_opus(FOLDER / "speech.ogg", np.concatenate([*pieces, silence]))
    german = [part for sentence in GERMAN for part in (silence, spoken(sentence, GERMAN_VOICE))]
    write_opus(FOLDER / "german.ogg", np.concatenate([*german, silence]))
    (FOLDER / "speech.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
