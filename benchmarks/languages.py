"""Words in thirteen languages: how fast lines are found by them, and how often the right one.

    python benchmarks/languages.py [--lines 20000] [--words FILE]

Lines of English, repeated with numbers, fill a library; those of a JSON file (`no_match/lines.py` says its
form) come besides, a film for each language. Given are milliseconds of processor time to detect the language
of a thousand lines, and to make terms of them; the same of a query in English and in other languages; and how
many queries have the right line first, and among three.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).with_name("no_match")))

from lines import WORDS, library_of

from moviola import Library
from moviola.words import each_detected, terms_of_text

ENGLISH = ("the door", "umbrella", "a train leaves", "old houses", "rain in the harbour")
SENTENCES = (
    "The lighthouse keeper lost his umbrella in the storm, number {n}.",
    "It has been raining in harbour {n} since Monday.",
    "Who has opened door {n} of the old house?",
    "Train {n} leaves in a minute, said the guard.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lines", type=int, default=5_000, help="lines of English around the others")
    parser.add_argument("--words", type=Path, default=WORDS, help="lines and queries by language")
    options = parser.parse_args()
    given = json.loads(options.words.read_text(encoding="utf-8"))
    lines, queries = given["lines"], given["queries"]
    english = [SENTENCES[n % len(SENTENCES)].format(n=n) for n in range(options.lines)]
    print(f"detection  {1000 * _seconds(lambda: each_detected(english[:1000])):8.1f} ms a thousand lines")
    print(f"terms      {1000 * _seconds(lambda: [terms_of_text(one, 'en') for one in english[:1000]]):8.1f}")
    films = {f"english{at}": english[at : at + 500] for at in range(0, len(english), 500)}
    with (
        tempfile.TemporaryDirectory() as scratch,
        library_of(Path(scratch), {**lines, **films}, "none") as library,
    ):
        print(f"English    {_of_query(library, ENGLISH):8.2f} ms a query")
        print(f"others     {_of_query(library, [one['query'] for one in queries]):8.2f} ms a query")
        places = [_place(library, lines, one) for one in queries]
    first, three = (sum(0 <= place < most for place in places) for most in (1, 3))
    print(f"right line first {first} and among three {three} of {len(places)}")


def _place(library: Library, lines: dict[str, list[str]], asked: dict[str, object]) -> int:
    """The rank of the right line from 0 on; -1 where it is not among ten."""
    line = lines[str(asked["language"])][int(str(asked["line"]))]
    found = library.search(str(asked["query"]), by="said", top_k=10)
    return next((place for place, one in enumerate(found) if line in one.snippet), -1)


def _of_query(library: Library, texts: Sequence[str]) -> float:
    """Milliseconds of processor time a query, the median of three runs."""
    library.search(texts[0], by="said")
    runs = [
        _seconds(lambda: [library.search(text, by="said") for text in texts]) / len(texts) for _ in range(3)
    ]
    return 1000 * statistics.median(runs)


def _seconds(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return process_time() - began


if __name__ == "__main__":
    main()
