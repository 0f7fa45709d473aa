"""Write a library of the present format that holds all that one can hold, to be opened by later versions.

    python tests/formats/make.py tests/formats/format-7

Run it with the code of the commit before a change of the format. ``later-films`` are made where they are
missing; libraries have them under ``/tmp/fmt/films``, where they are while this runs.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "worlds"))

from furnished import furnish, small_film  # noqa: E402
from moviola.search import Library  # noqa: E402

PLACE = Path("/tmp/fmt")
QUERIES = ("a red square", "the lighthouse keeper", "harbour")


def main() -> None:
    out, later = Path(sys.argv[1]), HERE / "later-films"
    if not later.is_dir():
        shutil.copytree(HERE / "films", later)
        small_film(later / "trip.mp4", 3, "A trip to the mountains.")
    shutil.rmtree(PLACE, ignore_errors=True)
    shutil.copytree(later, PLACE / "films")
    folder = out / "library"
    with Library(folder, encoder="demo", sentence_encoder="none", segment_seconds=2) as library:
        furnish(library, PLACE / "films", "market", "trip", "deep/street")
    with Library(folder, read_only=True) as library:
        found = {query: library.search(query, top_k=5) for query in QUERIES}
    answers = {
        query: [[m.video_id, m.start, m.end, m.score, m.source] for m in moments]
        for query, moments in found.items()
    }
    (out / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")
    for path in (*folder.glob(".lock*"), *folder.glob("*.sqlite-*")):
        path.unlink()
    shutil.rmtree(folder / "cache" / "compiled", ignore_errors=True)
    shutil.rmtree(PLACE)


if __name__ == "__main__":
    main()
