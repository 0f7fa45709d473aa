"""Films of real clips joined by every kind of transition, and which of these are found.

    python benchmarks/footage/transitions.py OUT [--films 6] [--seed 1]

OUT gets ``film-0.mp4``, …; the same arguments, the same films. A transition is found if a boundary is
reported between its first and last frame, or a frame beside them; what is reported besides is false.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from clips import VIDEOS, Picture, rows

from moviola.media import find_transitions, sample_frames, write_video
from moviola.types import FrameSize

SIZE, RATE = FrameSize(180, 320, "stretch", interpolation="bilinear"), 25
ENCODED = FrameSize(224, 224, "crop", 224)
LONGEST_CLIP, SHORTEST_CLIP, SHORTEST_SHOT = 6 * RATE, 3 * RATE, RATE
LENGTHS = (8, 38)  # frames of a transition, the last one left out
# Kind, and for what sweeps over the screen the number of quarter turns of the picture.
KINDS = (
    *(("wipe", turns) for turns in range(4)), ("push", 0), ("push", 1), ("cover", 2), ("cover", 3),
    ("uncover", 0), ("white", 0), ("black", 0), ("dissolve", 0), ("cut", 0), ("cut", 0),
)  # fmt: skip


@dataclass(frozen=True)
class Label:
    """A transition of a film: frames ``first`` to ``stop`` show neither shot alone."""

    kind: str
    first: int
    stop: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="folder for the films")
    parser.add_argument("--films", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    clips = read_clips()
    there, found, false = Counter[str](), Counter[str](), 0
    for number in range(options.films):
        path = options.out / f"film-{number}.mp4"
        labels = make_film(path, clips, np.random.default_rng((options.seed, number)))
        false += count(path, labels, there, found)
    for kind, of in there.items():
        print(f"{kind}: {found[kind]} of {of}")
    gradual, right = (sum(counts.values()) - counts["cut"] for counts in (there, found))
    print(f"false: {false}; F1 of all but cuts {2 * right / (gradual + right + false):.3f}")


def read_clips() -> list[tuple[str, list[Picture]]]:
    """File and pictures of the stretches of real clips that are long enough."""
    clips = []
    for row in rows("stretches.csv"):
        first = round(float(row["start"]) * RATE)
        count = min(LONGEST_CLIP, round(float(row["end"]) * RATE) - first)
        if count >= SHORTEST_CLIP:
            with sample_frames(VIDEOS / row["file"], rate=RATE, size=SIZE) as stream:
                clips.append((row["file"], [frame.image for frame in islice(stream, first, first + count)]))
    return clips


def make_film(
    path: Path, clips: list[tuple[str, list[Picture]]], generator: np.random.Generator
) -> list[Label]:
    """Write a film of the clips, in any order, no two of one file in a row; returns what lies between."""
    kinds = [KINDS[place] for place in generator.permutation(len(KINDS))]
    pictures: list[Picture] = []
    labels: list[Label] = []
    file, shot = "", list[Picture]()
    for place in generator.permutation(len(clips)).tolist():
        following, images = clips[place]
        if following == file or not kinds:
            continue
        if shot:
            kind, turns = kinds.pop()
            most = min(len(shot), len(images)) - SHORTEST_SHOT
            length = 0 if kind == "cut" else min(int(generator.integers(*LENGTHS)), most)
            pictures += shot[: len(shot) - length]
            labels.append(Label(kind, len(pictures), len(pictures) + length))
            for number, (old, new) in enumerate(zip(shot[len(shot) - length :], images, strict=False), 1):
                pictures.append(between(kind, turns, old, new, number / (length + 1)))
            images = images[length:]
        file, shot = following, images
    write_video(path, [*pictures, *shot], rate=RATE, crf=22, keyframe_every=10.0)
    return labels


def between(kind: str, turns: int, old: Picture, new: Picture, share: float) -> Picture:
    """The picture at a share of a transition."""
    if kind == "dissolve":
        return (old * (1 - share) + new * share + 0.5).astype(np.uint8)
    if kind in ("white", "black"):
        shown, blank = (old, 2 * share) if share < 0.5 else (new, 2 - 2 * share)
        return (shown * (1 - blank) + (255 if kind == "white" else 0) * blank).astype(np.uint8)
    old, new = np.rot90(old, turns), np.rot90(new, turns)
    width = old.shape[1]
    edge = round(width * share)
    behind = new[:, width - edge :] if kind in ("push", "cover") else new[:, :edge]
    before = old[:, : width - edge] if kind in ("push", "uncover") else old[:, edge:]
    return np.ascontiguousarray(np.rot90(np.concatenate([behind, before], axis=1), -turns))


def count(path: Path, labels: list[Label], there: Counter[str], found: Counter[str]) -> int:
    """Count what is there and what is found of a film; returns the number of false boundaries."""
    left = [round(one.time * RATE) for one in find_transitions(path, rate=1.0, size=ENCODED)]
    for label in labels:
        there[label.kind] += 1
        hits = [frame for frame in left if label.first - 1 <= frame <= label.stop + 1]
        if hits:
            found[label.kind] += 1
            left.remove(min(hits, key=lambda frame: abs(2 * frame - label.first - label.stop)))
    return len(left)


if __name__ == "__main__":
    main()
