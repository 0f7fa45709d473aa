"""A warm search of a library as it is, in processor time: one text, and two in a sequence.

    python benchmarks/warm.py LIBRARY [--rounds 6]

LIBRARY is any library, for instance that of `moviola index -l LIBRARY ../shared/videos --no-ocr`, with the
packaged encoder. Medians over the texts and rounds, in ms; processor time is what a quiet machine would take,
whatever else computes.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median

from moviola import Library
from moviola.search import SearchQuery, Text

TEXTS = (
    "a car on a road", "somebody irons a shirt", "a red boat on water", "people dancing in a hall",
    "two men at a table", "a dog runs over grass", "a plane in the sky", "waves at a beach",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    one: list[float] = []
    two: list[float] = []
    with Library(options.library, read_only=True) as library:
        for text in TEXTS:
            library.search(text)
        for _ in range(options.rounds):
            for text, other in zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True):
                one.append(milliseconds(library, Text(text)))
                two.append(milliseconds(library, Text(text).then(Text(other))))
    print(f"one text {median(one):.1f} ms, two in a sequence {median(two):.1f} ms")


def milliseconds(library: Library, query: SearchQuery) -> float:
    """Processor time of a search."""
    begun = time.process_time()
    library.search(query)
    return 1e3 * (time.process_time() - begun)


if __name__ == "__main__":
    main()
