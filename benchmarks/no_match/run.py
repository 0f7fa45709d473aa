"""What scores promise, and what is right.

    python benchmarks/no_match/run.py [--videos FOLDER] [--library FOLDER] [--gridhouse WORLD] [--out FILE]

Real footage and films of photographs that packages carry (`photo_films.py`), labelled by file and by time
(`labels.py`): the moments of all answers, by kind of evidence (all, pictures, names, text in pictures,
likeness, marks; `lines.py` has lines) and by kind of query. A moment is right where it has half of the
shorter one in common with a scene that answers the query. Columns: promised (the sum of the scores) and right
moments; the expected calibration error of all with a score of .05 or more; of the strong ones, and of these
with the possible ones, how many are right, the share of answerable queries that have a right one, and that of
absent and senseless ones that have any. Intervals are in the file.

Then, of the videos that names alone find, how many are right by the share of the query that the name has.

Then files that are renamed to everyday words which they do not show (`renamed.csv`).

Then, of each query, its best score: AUROC of queries that something answers against others, with those of
`benchmarks/footage/queries.csv`, `queries.txt` and `second.csv`, and of gridhouse (`moviola gridhouse`, with
the demo's models), whose `gridhouse.csv` asks for things, deeds and nonsense that no world shows.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from bands import figures, judged
from labels import HERE, NO_ANSWER, LabelledQuery, alike, earlier, labelled, scenes
from photo_films import make_films

from measuring import VIDEOS, arguments, csv_rows, print_rows, say
from moviola import Library
from moviola.search import By, LikeMoment, Marked, MarkedMoment, SearchQuery, SearchResult, Text
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.measures.no_answer import auroc, auroc_interval, refused_share

MOST = 30
"""Moments of an answer that are looked at."""
BY: tuple[By, ...] = ("all", "visual", "named")

Answers = list[tuple[LabelledQuery, SearchResult]]


def main() -> None:
    options = arguments(__doc__, videos=VIDEOS, library=None, gridhouse=None, encoder="conse-lite1", out=None)
    results: dict[str, list[dict[str, Any]]] = {}
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = options.library or scratch / "library"
        library = stack.enter_context(Library(folder, encoder=options.encoder))
        if not len(library):
            make_films(scratch / "films")
            for films in (options.videos, scratch / "films"):
                library.index(films, ocr=True)
        results["moments"], results["queries"], results["names"] = [], [], []
        for by in BY:
            found = {name: answered(library, queries, by) for name, queries in sets().items()}
            results["moments"] += of_moments(found, by)
            if by == "named":
                results["names"] += [of_shares(name, own) for name, own in found.items()]
            else:
                results["queries"] += of_queries(found, library, by)
        results["moments"] += of_other_evidence(library)
        results["renamed"] = [of_renamed(options.videos, scratch / "renamed", options.encoder)]
        if options.gridhouse:
            results["queries"] += of_gridhouse(scratch / "gridhouse", options.gridhouse)
    for rows in results.values():
        print_rows(rows)
    say(results, options.out)


def sets() -> dict[str, list[LabelledQuery]]:
    """The queries by where their labels are from."""
    return {"labelled": labelled(), "earlier": earlier()}


def answered(library: Library, queries: Sequence[LabelledQuery], by: By) -> Answers:
    """Queries with their answers."""
    return [*zip(queries, answers(library, [query.text for query in queries], by), strict=True)]


def answers(library: Library, texts: Sequence[str], by: By, top_k: int = MOST) -> list[SearchResult]:
    """The answer to each text."""
    return library.search_many([Text(text) for text in texts], top_k=top_k, by=by)


def of_moments(found: Mapping[str, Answers], by: By) -> list[dict[str, Any]]:
    """Figures of all moments: of each set of queries, and of each kind of the labelled ones."""
    kinds = dict.fromkeys(query.kind for query, _ in found["labelled"])
    own = {kind: [one for one in found["labelled"] if one[0].kind == kind] for kind in kinds}
    return [
        {"by": by, "queries of": name, **figures(judged(*zip(*pairs, strict=True)))}
        for name, pairs in {**found, **own}.items()
    ]


def of_shares(name: str, found: Answers) -> dict[str, Any]:
    """How often a video is right that names alone find, by the share of the query that its name has."""
    judged_ones = [
        (max(reason.score for reason in one.why), verdict)
        for query, answer in found
        for one in answer
        if (verdict := query.judged(one)) is not None
    ]
    share = np.array([share for share, _ in judged_ones])
    right = np.array([verdict for _, verdict in judged_ones], bool)
    bands = {"all": (0.95, 1.01), "a half": (0.4, 0.6), "a quarter": (0.2, 0.3), "less": (0.0, 0.2)}
    within = {band: right[(share >= low) & (share < high)] for band, (low, high) in bands.items()}
    return {
        "queries of": name,
        **{band: f"{int(own.sum())} of {len(own)}" for band, own in within.items()},
    }


def of_other_evidence(library: Library) -> list[dict[str, Any]]:
    """Figures of text in pictures, and of scenes that are asked for by one of their frames, or by a mark."""
    written, same, known = labelled("written.csv"), alike(), scenes()
    frames, marks = list[SearchQuery](), list[SearchQuery]()
    for one in same:
        scene = known[one.text]
        length = library.catalogue.video(scene.video_id).duration
        time = min((scene.span.start + scene.span.end) / 2, length - 0.01)
        frames.append(LikeMoment(scene.video_id, time))
        marks.append(Marked(None, (MarkedMoment(scene.video_id, max(time - 0.5, 0), time + 0.5),)))
    return [
        {"by": name, "queries of": kind, **figures(judged(queries, found))}
        for name, kind, queries, found in (
            ("text", "written", written, answers(library, [query.text for query in written], "text")),
            ("like", "scenes", same, library.search_many(frames, top_k=MOST)),
            ("marks", "scenes", same, library.search_many(marks, top_k=MOST)),
        )
    ]


def of_renamed(videos: Path, folder: Path, encoder: str) -> dict[str, Any]:
    """What a name alone does: files with names of things that they do not show, asked for by these names."""
    names = {row["file"]: row["name"] for row in csv_rows(HERE / "renamed.csv")}
    (folder / "films").mkdir(parents=True)
    for path in videos.iterdir():
        if path.suffix not in (".json", ".md", ".srt", ".mp3"):
            shutil.copy(path, folder / "films" / f"{names.get(path.name, path.stem)}{path.suffix}")
    strong = told_apart = among_ten = count = 0
    with Library(folder / "library", encoder=encoder) as library:
        library.index(folder / "films", ocr=False)
        for name in names.values():
            for text in (name, f"{'an' if name[0] in 'aeu' else 'a'} {name}"):
                own = [one for one in library.search(text, top_k=10) if one.video_id == name]
                count, among_ten = count + 1, among_ten + bool(own)
                told_apart += any(one.strong and one.source == "named" for one in own)
                strong += sum(one.strong and one.source != "named" for one in own)
    return {
        "queries": count, "named file among ten": among_ten, "strong as a video named so": told_apart,
        "strong by other evidence": strong,
    }  # fmt: skip


def of_queries(found: Mapping[str, Answers], library: Library, by: By) -> list[dict[str, Any]]:
    """How well the best score of a query says whether something answers it."""
    second = _by_kind(HERE / "second.csv")
    cases = {
        name: (
            [one for query, one in own if query.right],
            [one for query, one in own if query.kind in NO_ANSWER],
        )
        for name, own in found.items()
    }
    cases["second"] = (
        answers(library, second["answerable"], by, 1), answers(library, second["absent"], by, 1)
    )  # fmt: skip
    return [{"case": f"{name}, by {by}", **refusal(sure, unsure)} for name, (sure, unsure) in cases.items()]


def of_gridhouse(folder: Path, world: Path) -> list[dict[str, Any]]:
    """The same in a world of gridhouse, with the demo's models."""
    with Library(folder, encoder="demo", sentence_encoder="none") as library:
        library.index(world / "videos", ocr=False)
        library.indexer.use(stage1="demo", refiner="demo")
        texts = [query.text for query in read_queries(world / "test.json")]
        answerable = answers(library, texts, "visual", 1)
        absent = {
            kind: answers(library, own, "visual", 1) for kind, own in _by_kind(HERE / "gridhouse.csv").items()
        }
    absent = {"all": [one for own in absent.values() for one in own], **absent}
    return [
        {"case": f"gridhouse, demo models: {kind}", **refusal(answerable, own)}
        for kind, own in absent.items()
    ]


def refusal(sure: Sequence[SearchResult], unsure: Sequence[SearchResult]) -> dict[str, Any]:
    """What the best scores of answers say, to answerable queries and to absent ones."""
    best, of_absent = (np.array([a[0].score if a else -np.inf for a in own]) for own in (sure, unsure))
    low, high = auroc_interval(best, of_absent)
    return {
        "answerable": len(best),
        "absent": len(of_absent),
        "AUROC": [round(value, 3) for value in (auroc(best, of_absent), low, high)],
        "answerable confident": round(float(np.mean([answer.confident for answer in sure])), 3),
        "absent confident": round(float(np.mean([answer.confident for answer in unsure])), 3),
        "refused at 95 % kept": round(refused_share(best, of_absent), 3),
    }


def _by_kind(path: Path) -> dict[str, list[str]]:
    rows = csv_rows(path)
    return {
        kind: [row["query"] for row in rows if row["kind"] == kind]
        for kind in dict.fromkeys(row["kind"] for row in rows)
    }


if __name__ == "__main__":
    main()
