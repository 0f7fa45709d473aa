"""What scores of lines promise, and what is right: by words, by meaning, and in languages.

    python benchmarks/no_match/lines.py [--sentence-encoder NAME] [--words FILE] [--out FILE]

Seventy-two lines in six films without a picture worth searching (`lines.csv`), and 115 queries
(`spoken.csv`): words that a line holds, some of which it does not, paraphrases, and what nobody says. With
`--words`, a JSON file of lines and queries by language, each with its line or none
(`{"lines": {LANGUAGE: [LINE]}, "queries": [{"language", "query", "line"}]}`): how often the right line comes
first, how many wrong ones are strong, and how many words of the same languages that no line holds
(`absent_words.csv`) have a strong one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bands import figures, judged
from labels import HERE, LabelledQuery, Scene
from numpy.typing import NDArray

from measuring import VIDEOS, arguments, csv_rows, print_rows, say
from moviola import Library
from moviola.media import write_video
from moviola.search import Text
from moviola.types import Span

APART = 5.0
"""Seconds from the start of a line to that of the next; each lasts half of that, so that none is joined."""

WORDS = VIDEOS.parent / "data" / "languages" / "words.json"


def main() -> None:
    options = arguments(__doc__, sentence_encoder="minilm", words=WORDS, out=None)
    with tempfile.TemporaryDirectory() as scratch:
        results = {"lines": of_lines(Path(scratch) / "lines", options.sentence_encoder)}
        if options.words.is_file():
            found = of_languages(Path(scratch) / "words", options.words, options.sentence_encoder)
            results["languages"] = [found]
    for rows in results.values():
        print_rows(rows)
    say(results, options.out)


def of_lines(folder: Path, encoder: str) -> list[dict[str, Any]]:
    """Figures of all queries of `spoken.csv`, and of each kind."""
    by_film: dict[str, list[str]] = {}
    for row in csv_rows(HERE / "lines.csv"):
        by_film.setdefault(row["film"], []).append(row["line"])
    place = {line: scene_of(film, at) for film, own in by_film.items() for at, line in enumerate(own)}
    queries = [
        LabelledQuery(row["kind"], row["query"], (place[row["line"]],) if row["line"] else ())
        for row in csv_rows(HERE / "spoken.csv")
    ]
    kinds = {"all": queries}
    kinds |= {
        kind: [one for one in queries if one.kind == kind] for kind in dict.fromkeys(q.kind for q in queries)
    }
    with library_of(folder, by_film, encoder) as library:
        return [
            {
                "queries of": kind,
                **figures(judged(own, library.search_many([Text(q.text) for q in own], top_k=30))),
            }
            for kind, own in kinds.items()
        ]


def of_languages(folder: Path, words: Path, encoder: str) -> dict[str, Any]:
    """How often the right line comes first, among three and ten; and wrong strong moments a query."""
    given = json.loads(words.read_text(encoding="utf-8"))
    first = three = ten = wrong = 0
    with library_of(folder, given["lines"], encoder) as library:
        for query in given["queries"]:
            right = scene_of(query["language"], query["line"])
            found = library.search(query["query"], top_k=10)
            ranks = [one.rank for one in found if right.is_in(one)]
            first, three, ten = (
                first + (ranks[:1] == [1]),
                three + bool(ranks and ranks[0] <= 3),
                ten + bool(ranks),
            )
            wrong += sum(one.strong and not right.is_in(one) for one in found)
        absent = [row["query"] for row in csv_rows(HERE / "absent_words.csv")]
        strong = sum(any(one.strong for one in library.search(word, top_k=10)) for word in absent)
    count = len(given["queries"])
    return {
        "queries": count, "first": first, "among three": three, "among ten": ten,
        "wrong strong a query": round(wrong / count, 3), "absent": len(absent), "absent strong": strong,
    }  # fmt: skip


def scene_of(film: str, number: int) -> Scene:
    """Where a line of a film is said."""
    return Scene(f"{film} {number}", "", film, Span(APART * number, APART * number + APART / 2))


def library_of(folder: Path, lines: Mapping[str, Sequence[str]], encoder: str) -> Library:
    """A library of films that say some lines, without pictures."""
    (folder / "films").mkdir(parents=True)
    for seed, (film, own) in enumerate(lines.items()):
        path = folder / "films" / f"{film}.mp4"
        write_video(path, noise(seed, round(APART * len(own))), rate=1)
        cues = (
            f"{number + 1}\n{_stamp(APART * number)} --> {_stamp(APART * number + APART / 2)}\n{line}\n"
            for number, line in enumerate(own)
        )
        path.with_suffix(".srt").write_text("\n".join(cues), encoding="utf-8")
    library = Library(folder / "library", encoder="none", sentence_encoder=encoder)
    library.index(folder / "films")
    return library


def noise(seed: int, count: int) -> Iterator[NDArray[np.uint8]]:
    """Pictures of which no two films have the same, (32, 32, 3)."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        yield generator.integers(0, 256, (32, 32, 3), dtype=np.uint8)


def _stamp(seconds: float) -> str:
    whole, rest = divmod(round(1000 * seconds), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{rest:03}"


if __name__ == "__main__":
    main()
