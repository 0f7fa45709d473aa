"""How well copies are found: precision and recall on a library in which it is known what is a copy of what.

    python benchmarks/footage/copies.py [--videos FOLDER] [--work FOLDER] [--seed 0]

`copied_films.py` makes the videos. Recall counts, for each kind, the copies that are reported together with
their film. Precision counts all reported pairs, copies with copies too; pairs that share less than three
seconds, such as two compilations with one short shot in common, count neither way. A part is placed well
where its beginning in both videos is right to the second.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

from clips import HERE, VIDEOS
from copied_films import KINDS, Made, make_corpus, overlapping, shared

from moviola.files.writing import write_json
from moviola.library.near_copies import NearCopies, find_near_copies
from moviola.search import Library


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of real files")
    parser.add_argument("--work", type=Path, help="where the library stays; a temporary folder by default")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        results = measure(options.videos, options.work or Path(scratch), options.seed)
    write_json(HERE / "copies.json", results, indent=1)
    print(json.dumps(results, indent=1))


def measure(videos: Path, work: Path, seed: int) -> dict[str, Any]:
    """Make the corpus, index it, find copies, and compare with the truth."""
    made = {one.video_id: one for one in make_corpus(videos, work / "videos", seed)}
    with Library(work / "library", encoder="conse-lite1") as library:
        library.index(work / "videos", ocr=False)
        began = process_time()
        found = find_near_copies(library.store)
        return {"seed": seed, **compared(found, made), "processor seconds": round(process_time() - began, 1)}


def compared(found: list[NearCopies], made: dict[str, Made]) -> dict[str, Any]:
    """What was found beside the truth."""
    pairs = {frozenset(pair.video_ids): pair for pair in found}
    films = {one.film: one for one in made.values() if not one.kind}
    recall, placed, judged = {}, {}, []
    for kind in KINDS:
        copies = [one for one in made.values() if one.kind == kind]
        reported = [one for one in copies if frozenset((one.video_id, films[one.film].video_id)) in pairs]
        recall[kind] = len(reported) / len(copies)
        good = [
            is_placed(pairs[frozenset((one.video_id, films[one.film].video_id))], made) for one in reported
        ]
        placed[kind] = sum(good) / max(len(good), 1)
    for pair in found:
        one, other = (made[video_id] for video_id in pair.video_ids)
        if shared(one, other) or not overlapping(one, other):
            judged.append(shared(one, other) is not None)
    return {
        "videos": len(made),
        "recall": {kind: round(value, 3) for kind, value in recall.items()},
        "recall of all": round(sum(recall.values()) / len(recall), 3),
        "placed to the second": {kind: round(value, 3) for kind, value in placed.items()},
        "pairs reported": len(judged),
        "precision": round(sum(judged) / max(len(judged), 1), 3),
    }


def is_placed(pair: NearCopies, made: dict[str, Made]) -> bool:
    """Whether both videos show the same at the times given, to the second."""
    one, other = (made[video_id] for video_id in pair.video_ids)
    truth = shared(one, other)
    assert truth is not None
    later = pair.spans[1].start - pair.spans[0].start
    return abs(later - (truth.other_start - truth.start)) <= 1 and pair.spans[0].start >= truth.start - 1


if __name__ == "__main__":
    main()
