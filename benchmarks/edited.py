"""Edited films beside plain ones of the same seed, an hour beside as much in many films, a large library.

    python benchmarks/edited.py [--videos 60] [--seed 640013] [--work DIR]

Everything goes through the command line, as a user would type it: `moviola gridhouse` makes the films,
`moviola index --encoder demo --no-ocr` indexes them, `moviola library use --stage1 demo --refiner demo` takes
the demo's models, `moviola answer` answers the test queries and `moviola evaluate` measures. Without `--ocr`,
since plain films have nothing to read. Shots that were found while indexing are compared with the truth. Of
the moments that answer some test query, the share that begins, and that ends, within .3 s of a true cut is
given, too: why Reel reads cuts.
Calibration error: expected, of ten bins, over the first 100 answers of the demo's models to each query, which
are right from IoU 0.5 on; the large library has four times the films that calibrated them. Costs are
processor time, which other work on the machine changes little.

Printed as JSON, and written to `benchmarks/edited.json`. Films in DIR are kept and used again, so that
the same films can be measured with other models; libraries are made again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from moviola.search import Library
from moviola.study.measures import read_qrels, read_run
from moviola.study.training.fit_calibration import first_answers
from reliability import calibration_error

HERE = Path(__file__).resolve().parent
MEASURES = ("nDCG@20,IoU>=0.3", "nDCG@20,IoU>=0.5", "nDCG@20,IoU>=0.7")
# Seconds within which a boundary of a cut, a dissolve or a fade is right: two pictures at 25 a second.
NEAR = 0.08
AT_CUT = 0.3  # seconds
CALIBRATED_ON = 100  # films: val of scripts/train_demo_models.py


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=int, default=60)
    parser.add_argument("--seed", type=int, default=640_013)
    parser.add_argument("--work", type=Path, help="where films lie and stay; else a temporary folder")
    options = parser.parse_args()
    worlds = {
        "plain": ("--videos", str(options.videos)),
        "edited": ("--videos", str(options.videos), "--edited"),
        "hour": ("--videos", "1", "--hour", "--edited"),
        "large": ("--videos", str(4 * CALIBRATED_ON)),
    }
    results: dict[str, Any] = {"videos": options.videos, "seed": options.seed}
    with tempfile.TemporaryDirectory() as scratch:
        for name, words in worlds.items():
            world = (options.work or Path(scratch)) / name
            moviola("gridhouse", world, "--seed", options.seed, *words)
            results[name] = measured(world, Path(scratch) / f"{name}-library")
            print(json.dumps({name: results[name]}), flush=True)
    (HERE / "edited.json").write_text(json.dumps(results, indent=1) + "\n")


def measured(world: Path, library: Path) -> dict[str, Any]:
    """Index a world, answer its test queries, and compare with what is true."""
    films, run = world / "videos", world / "run.json"
    queries = len(json.loads((world / "test.json").read_text()))
    durations = json.loads((world / "video_corpus.json").read_text()).values()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    moviola("index", films, "--library", library, "--encoder", "demo", "--no-ocr")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    indexing = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    coarse = answered(world, library, run, "--no-refine")
    moviola("library", "use", "--library", library, "--stage1", "demo", "--refiner", "demo")
    refined = answered(world, library, run)
    score, right, _ = first_answers(read_run(run), read_qrels(world / "test.json"))
    with Library(library) as opened:
        searching = milliseconds(opened, world)
        shots, at_cuts = found_shots(opened, world), moments_at_cuts(world)
    return {
        "films": len(durations), "minutes": round(sum(durations) / 60, 1), "test queries": queries,
        "without training, coarse": coarse, "demo models": refined,
        "calibration error": round(calibration_error(score, right), 4),
        "processor seconds of indexing": round(indexing, 1), "processor ms a query": searching,
        "shots": shots, "moments that begin, end at a cut": at_cuts,
    }  # fmt: skip


def answered(world: Path, library: Path, run: Path, *words: str) -> dict[str, float]:
    """nDCG of the library's answers to the test queries, by pictures alone."""
    how = ("--library", library, "--top-k", 100, "--by", "visual", "--out", run)
    moviola("answer", world / "test.json", *how, *words)
    measures = [word for name in MEASURES for word in ("-m", name)]
    found = json.loads(moviola("evaluate", run, world / "test.json", *measures, "--json"))
    return {name: round(found["measures"][name], 4) for name in MEASURES}


def milliseconds(library: Library, world: Path) -> float:
    """Processor time of a query in an open library, the median of all test queries, one by one."""
    taken = []
    for query in json.loads((world / "test.json").read_text()):
        started = time.process_time()
        library.search(query["query"], top_k=10, by="visual")
        taken.append(time.process_time() - started)
    return round(1000 * median(taken), 1)


def found_shots(library: Library, world: Path) -> dict[str, Any] | None:
    """Recall of the transitions by kind and precision of all, over the films; None where nothing was cut."""
    if not (world / "edits.json").is_file():
        return None
    edits = json.loads((world / "edits.json").read_text())
    there, found, right, all_found = Counter[str](), Counter[str](), 0, 0
    for video in library.catalogue.videos():
        left = [shot.start for shot in library.catalogue.shots(video.row)[1:]]
        all_found += len(left)
        for shot in edits[video.video_id]["shots"][1:]:
            there[shot["opening"]] += 1
            begins = shot["start"] - (shot["mixed"] if shot["opening"] == "fade" else 0.0)
            ends = shot["start"] + shot["mixed"]
            hits = [time for time in left if begins - NEAR <= time <= ends + NEAR]
            if hits:
                found[shot["opening"]] += 1
                right += 1
                left.remove(hits[0])
    recall = {kind: [found[kind], count] for kind, count in sorted(there.items())}
    return {"found of": recall, "right of those found": [right, all_found]}


def moments_at_cuts(world: Path) -> list[float] | None:
    """Share of the moments that begin and that end at a cut; None where nothing was cut."""
    if not (world / "edits.json").is_file():
        return None
    edits = json.loads((world / "edits.json").read_text())
    moments = {
        (one["video_name"], *one["timestamp"])
        for query in json.loads((world / "test.json").read_text())
        for one in query["relevant_moment"]
    }
    at = [
        [any(abs(shot["start"] - time) < AT_CUT for shot in edits[video]["shots"][1:]) for time in span]
        for video, *span in sorted(moments)
    ]
    return [round(sum(own) / len(at), 3) for own in zip(*at, strict=True)]


def moviola(*words: object) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "moviola", *map(str, words)]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main()
