"""Shots found in films cut from real clips, beside PySceneDetect's detectors; what that costs.

    python benchmarks/footage/cut_films.py CLIPS FILMS
    python benchmarks/footage/shots.py FILMS

PySceneDetect is compared where it is installed (``pip install scenedetect-headless``), each detector as it
comes. A cut is found if a boundary is reported at its frame or at one beside it; a dissolve or a fade if one
is reported between its first and last frame. What is reported besides is false. All detectors read the same
files; seconds are of the process, on one core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clips import HERE
from cut_films import Film, read_labels

from moviola.media import find_transitions, sample_frames
from moviola.types import FrameSize

sys.path.insert(0, str(HERE.parent))

from comparison.table import Table

# What an encoder would be given: the usual crop.
ENCODED = FrameSize(224, 224, "crop", 224)
KINDS = ("cut", "dissolve", "fade")
Boundaries = list[float]


@dataclass
class Score:
    """Counts over some films: found and missed by kind, false ones, frames by which cuts are off."""

    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    missed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    false: int = 0
    exact: int = 0
    seconds: float = 0.0

    def cells(self, minutes: float) -> list[str]:
        """Recall of each kind (NaN without any), precision, cuts to the frame, seconds a minute."""
        there = {kind: self.found[kind] + self.missed[kind] for kind in KINDS}
        recalls = [self.found[kind] / there[kind] if there[kind] else float("nan") for kind in KINDS]
        right = sum(self.found.values())
        shares = [*recalls, right / max(right + self.false, 1), self.exact / max(self.found["cut"], 1)]
        return [*(f"{share:.3f}" for share in shares), f"{self.seconds / minutes:.1f}"]

    def add(self, film: Film, boundaries: Boundaries) -> list[str]:
        """Count one film; says what went wrong."""
        frames = [round(time * film.rate) for time in boundaries]
        left, wrong = list(frames), []
        for transition in film.transitions:
            reach = (transition.first - 1, transition.stop + 1)
            hits = [frame for frame in left if reach[0] <= frame <= reach[1]]
            if not hits:
                self.missed[transition.kind] += 1
                wrong.append(f"{film.file}: missed {transition}")
                continue
            self.found[transition.kind] += 1
            self.exact += transition.kind == "cut" and transition.first in hits
            best = min(hits, key=lambda frame: abs(frame - (transition.first + transition.stop) / 2))
            left.remove(best)
        self.false += len(left)
        return wrong + [f"{film.file}: false at {frame / film.rate:.2f} s" for frame in left]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("films", type=Path, nargs="+", help="folders that cut_films.py wrote")
    parser.add_argument("--wrong", action="store_true", help="say what moviola misses and invents")
    options = parser.parse_args()
    films = [(folder, film) for folder in options.films for film in read_labels(folder)]
    minutes = sum(film.frames / film.rate for _, film in films) / 60
    looking = Looking()
    detectors: dict[str, Callable[[Path], Boundaries]] = {"moviola": looking, **pyscenedetect()}
    rows = []
    for name, detect in detectors.items():
        score = Score()
        for folder, film in films:
            started = time.process_time()
            boundaries = detect(folder / film.file)
            score.seconds += time.process_time() - started
            wrong = score.add(film, boundaries)
            if options.wrong and name == "moviola":
                print(*wrong, sep="\n")
        rows.append((name, *score.cells(minutes)))
    title = f"{len(films)} films, {sum(len(film.transitions) for _, film in films)} transitions"
    head = ("detector", *(f"{kind} recall" for kind in KINDS), "precision", "to the frame", "s / min")
    Table(title, head, rows, looking.report(minutes)).print()


class Looking:
    """Our own detector as ingest uses it, beside what the frames of every second take anyway."""

    def __init__(self) -> None:
        self.frames = self.shots = 0.0

    def __call__(self, path: Path) -> Boundaries:
        """Seconds at which shots of a file begin but the first."""
        started = time.process_time()
        with sample_frames(path, rate=1.0, size=ENCODED) as stream:
            for _ in stream:
                pass
        sampled = time.process_time()
        found = find_transitions(path, rate=1.0, size=ENCODED)
        self.frames += sampled - started
        self.shots += time.process_time() - sampled
        return [transition.time for transition in found]

    def report(self, minutes: float) -> str:
        """What each part costs."""
        return (
            f"moviola, CPU s per minute of film: a frame of every second {self.frames / minutes:.2f}, with "
            f"shots {self.shots / minutes:.2f}; the table has both together"
        )


def pyscenedetect() -> dict[str, Callable[[Path], Boundaries]]:
    """PySceneDetect's detectors with their defaults, by name; none where it is not installed."""
    try:
        import scenedetect  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return {}

    def detector(name: str) -> Callable[[Path], Boundaries]:
        made = getattr(scenedetect, f"{name}Detector")
        return lambda path: [start.seconds for start, _ in scenedetect.detect(str(path), made())[1:]]

    names = ("Content", "Adaptive", "Hash", "Histogram", "Threshold")
    return {f"PySceneDetect {name}": detector(name) for name in names}


if __name__ == "__main__":
    main()
