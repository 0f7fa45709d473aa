"""Word error rate of the offline speech reader on sentences that espeak-ng says.

    python benchmarks/readers/speech.py [--reader pocketsphinx]

Needs the program espeak-ng. Rows: voices; columns: word error rate (words left out, put in or mistaken, by
words said), share of the sentences' longer words (from five letters on) that are heard, CPU seconds a second
of sound.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import time

import av
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from moviola.encoders.readers import RATE, SpeechReader, load_speech_reader, voiced

VOICES = (
    ("en-us", "175"), ("en-us", "140"), ("en-gb", "160"), ("en-us+f3", "150"), ("en-us+klatt2", "140"),
)  # fmt: skip
SENTENCES = (
    "the lighthouse keeper lost his umbrella in the storm",
    "please bring the wooden boxes to the kitchen before dinner",
    "a dog is running along the river in the evening sun",
    "we will meet at the train station on monday morning",
    "the museum opens its doors to visitors at nine",
    "nobody remembered the harbor in winter",
    "the pilot landed the plane safely after a long flight",
    "she bought apples and oranges at the market",
    "scientists have discovered a new planet near a distant star",
    "the children are playing football in the garden",
    "turn the red key slowly and open the heavy door",
    "the mountain road is closed because of snow",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reader", default="pocketsphinx")
    options = parser.parse_args()
    reader = load_speech_reader(options.reader)
    table = Table(title=f"{reader.id} {reader.revision}, {len(SENTENCES)} sentences")
    for column in ("voice", "words a minute", "word error rate", "long words heard", "CPU s / s"):
        table.add_column(column)
    for voice, speed in VOICES:
        table.add_row(voice, speed, *_row(reader, voice, speed))
    Console(width=110).print(table)


def _row(reader: SpeechReader, voice: str, speed: str) -> list[str]:
    wrong = words = long = heard_long = 0
    seconds = used = 0.0
    for sentence in SENTENCES:
        sound = spoken(sentence, voice, speed)
        started = time.process_time()
        heard = " ".join(said.text for said in reader.read(voiced([sound]))).split()
        used, seconds = used + time.process_time() - started, seconds + len(sound) / RATE
        said = sentence.split()
        wrong, words = wrong + word_errors(said, heard), words + len(said)
        longer = [word for word in said if len(word) >= 5]
        long, heard_long = long + len(longer), heard_long + sum(word in heard for word in longer)
    return [f"{wrong / words:.2f}", f"{heard_long / long:.2f}", f"{used / seconds:.2f}"]


def spoken(sentence: str, voice: str, speed: str) -> NDArray[np.float32]:
    """A sentence between two seconds of silence, (n,) float32 at RATE."""
    command = ["espeak-ng", "-v", voice, "-s", speed, "--stdout", sentence]
    done = subprocess.run(command, check=True, capture_output=True)
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    with av.open(io.BytesIO(done.stdout), "r") as container:
        frames = [made for frame in container.decode(audio=0) for made in resampler.resample(frame)]
    frames += resampler.resample(None)
    silence = np.zeros(RATE, np.float32)
    return np.concatenate([silence, *(frame.to_ndarray()[0] for frame in frames), silence])


def word_errors(said: list[str], heard: list[str]) -> int:
    """Words left out, put in or mistaken (Levenshtein)."""
    row = list(range(len(heard) + 1))
    for left, word in enumerate(said, start=1):
        corner, row[0] = row[0], left
        for place, other in enumerate(heard, start=1):
            best = min(row[place] + 1, row[place - 1] + 1, corner + (word != other))
            corner, row[place] = row[place], best
    return row[-1]


if __name__ == "__main__":
    main()
