"""Right sounds for texts: ``python benchmarks/readers/sounds.py WORK`` writes ``sounds.json`` beside it.

``WORK`` holds a folder of sound files for each set that ``sounds.csv`` names (``README.md`` says whence);
sets without one are left out. Of each set a library is made, each file under a grey picture and a name that
says nothing.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from moviola.media import write_video
from moviola.search import Library

RATE = 16_000
HERE = Path(__file__).parent


def decoded(path: Path) -> NDArray[np.float32]:
    """The sound of a file, one channel at RATE."""
    with av.open(str(path)) as container:
        resampler = av.AudioResampler("flt", "mono", RATE)
        frames = [frame for one in container.decode(audio=0) for frame in resampler.resample(one)]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames]).astype(np.float32)


def films(folder: Path, out: Path) -> dict[str, str]:
    """Make a film of each sound file; their stems by the ids of the videos."""
    out.mkdir()
    names = {}
    for place, path in enumerate(sorted(one for one in folder.iterdir() if one.is_file())):
        sound = decoded(path)
        pictures = [np.full((64, 64, 3), 90, np.uint8)] * max(1, int(np.ceil(len(sound) / RATE * 2)))
        write_video(out / f"{place:03d}.mp4", pictures, rate=2, sound=sound, sound_rate=RATE)
        names[f"{place:03d}"] = path.stem
    return names


def measured(folder: Path, queries: list[tuple[str, set[str]]]) -> dict[str, Any]:
    """Figures of a set of sounds, by queries and the files that answer them."""
    draw = np.random.default_rng(0)
    first = strong = right = found = answerable = absent = 0
    among_ten = 0.0
    with TemporaryDirectory() as work:
        names = films(folder, Path(work, "films"))
        with Library(Path(work, "library"), encoder="none") as library:
            library.index(Path(work, "films"), ocr=False, speech="none")
            for text, wanted in queries:
                moments = library.search(text, by="sound", top_k=100)
                scores = dict.fromkeys(names.values(), 0.0)
                for one in moments:
                    scores[names[one.video_id]] = max(scores[names[one.video_id]], one.score)
                strongest = [names[one.video_id] for one in moments if one.band == "strong"]
                if not wanted:
                    absent += bool(strongest)
                    continue
                answerable += 1
                best = max(scores[name] for name in wanted)
                others = np.array([score for name, score in scores.items() if name not in wanted])
                first += bool(best > others.max())
                drawn = [draw.choice(others, min(9, len(others)), replace=False).max() for _ in range(100)]
                among_ten += float(np.mean(best > np.array(drawn)))
                strong += len(strongest)
                right += sum(name in wanted for name in strongest)
                found += bool(wanted & set(strongest))
    return {
        "files": len(names),
        "texts": answerable,
        "right first": first,
        "right first of ten files, drawn": round(among_ten / answerable, 3),
        "strong moments": strong,
        "of these right": right,
        "texts with a right strong one": found,
        "absent texts": len(queries) - answerable,
        "absent texts with a strong one": absent,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="folder with a folder of sound files for each set")
    parser.add_argument("--out", type=Path, default=HERE / "sounds.json")
    given = parser.parse_args()
    sets: dict[str, list[tuple[str, set[str]]]] = defaultdict(list)
    with (HERE / "sounds.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            sets[row["set"]].append((row["text"], set(row["right"].split())))
    there = [name for name in sets if (given.work / name).is_dir()]
    results = {name: measured(given.work / name, sets[name]) for name in there}
    given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
