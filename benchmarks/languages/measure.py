"""What queries in many languages find, without a hub: pictures, and lines of other languages.

    python benchmarks/languages/measure.py [--videos FOLDER] [--library FOLDER] [--out FILE]

Pictures: the mean reciprocal rank of the first right file over all files of the folder, of the queries of
`pictures.csv` in nine languages and of `german_chinese.csv`, the 66 queries of `benchmarks/footage` in three;
by pictures alone, as a search has them. Beside it how well the best score parts them from queries that
nothing answers (`absent.csv`), and what strong and possible moments are worth. Lines: `lines.csv` has 60
lines in German and Chinese, what they say in English, and a paraphrased query in both languages; the share
whose line comes first, and among five, by e5-small, by its linear map to MiniLM, and by MiniLM alone;
`second_lines.csv` has 40 more, written after all was chosen. The library is made where it is missing, and
stays where it is named.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola import Library
from moviola.encoders import E5, MINILM, SentenceEncoder, conse, load_sentence_encoder
from moviola.encoders.e5 import open_bridge
from moviola.search import Text
from moviola.study.measures.no_answer import auroc
from moviola.types import POSSIBLE, STRONG, Moment

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "footage"))

from query_films import Query, read_queries
from report import reciprocal_ranks
from scipy.optimize import minimize

from measuring import VIDEOS, arguments, csv_rows, print_rows, say

HERE = Path(__file__).resolve().parent
Floats = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Floats]
ENGLISH, OTHERS = "query", ("de", "fr", "es", "ru", "zh", "ja", "ar", "hi")


def main() -> None:
    options = arguments(__doc__, videos=VIDEOS, library=None, out=None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.library or Path(scratch) / "library"
        with Library(folder, encoder="conse-lite1", sentence_encoder=MINILM) as library:
            library.index(options.videos, ocr=False)
            results = {
                "cost": [of_cost()],
                "pictures": of_pictures(library),
                "scale": [fitted(library)],
                "lines": of_lines("lines.csv"),
                "second lines": of_lines("second_lines.csv"),
            }
    for rows in results.values():
        print_rows(rows)
    say(results, options.out)


_COST = """
import json, resource, time
from moviola.encoders import load_sentence_encoder
encoder = load_sentence_encoder("e5-small")
start = time.process_time()
encoder.encode_text(["ein Hund läuft über die Wiese"])
first, start = time.process_time() - start, time.process_time()
for number in range(20):
    encoder.encode_text([f"ein Mann mit {number} Hunden geht über die Straße"])
each, peak = (time.process_time() - start) / 20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"first, s": round(first, 3), "each, ms": round(1e3 * each, 1),
                  "peak, MB": peak >> 10}))
"""


def of_cost() -> dict[str, float]:
    """Processor time and memory of queries in a process of their own."""
    done = subprocess.run([sys.executable, "-c", _COST], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def of_pictures(library: Library) -> list[dict[str, Any]]:
    """A row for each set of queries and language."""
    right = {query.text: query for query in read_queries()}
    absent = csv_rows(HERE / "absent.csv")
    found = []
    for file in ("pictures.csv", "german_chinese.csv"):
        rows = csv_rows(HERE / file)
        queries = [right[row[ENGLISH]] for row in rows]
        own = {}
        for language in rows[0]:
            texts = [row[language] for row in rows]
            own[language] = _figures(library, queries, texts, [row[language] for row in absent])
            found.append(
                {"queries": f"{len(rows)}", "language": language.replace(ENGLISH, "en"), **own[language]}
            )
        if all(name in own for name in OTHERS):
            mean = {
                name: round(float(np.mean([own[language][name] for language in OTHERS])), 3)
                for name in own[ENGLISH]
            }
            found.append({"queries": f"{len(rows)}", "language": "mean of eight", **mean})
    return found


def _figures(
    library: Library, queries: Sequence[Query], texts: Sequence[str], absent: Sequence[str]
) -> dict[str, float]:
    answers, nothing = _answers(library, texts), _answers(library, absent)
    scored = _judged(queries, answers)
    strong, likely = (scored[scored[:, 0] >= least, 1] for least in (STRONG, POSSIBLE))
    best, best_absent = (np.array([own[0].score for own in each]) for each in (answers, nothing))
    return {
        "MRR": round(float(reciprocal_ranks(queries, answers).mean()), 3),
        "AUROC": round(auroc(best, best_absent), 3),
        "strong": len(strong),
        "strong ones right": round(float(strong.mean()), 2) if len(strong) else 0.0,
        "strong and possible": len(likely),
        "of these right": round(float(likely.mean()), 2) if len(likely) else 0.0,
        "absent with a strong one": round(float(np.mean(best_absent >= STRONG)), 2),
    }


def _answers(library: Library, texts: Sequence[str]) -> list[list[Moment]]:
    """The best moment of each file, best first, by pictures."""
    queries = [Text(text) for text in texts]
    return [[*one] for one in library.search_many(queries, by="visual", top_k=len(library), per_video=1)]


def _judged(queries: Sequence[Query], answers: Sequence[Sequence[Moment]]) -> Floats:
    """Score of each moment, and whether its file is right, (n, 2)."""
    rows = [
        (one.score, right)
        for query, own in zip(queries, answers, strict=True)
        for one, right in zip(own, reciprocal_ranks([query] * len(own), [[one] for one in own]), strict=True)
    ]
    return np.array(rows, np.float32)


def fitted(library: Library) -> dict[str, Any]:
    """The scale that makes the judgements of `pictures.csv` and `absent.csv` in eight languages likeliest:
    what is shipped, with its log odds times a factor and raised. Those of `german_chinese.csv` judge it.
    """
    right = {query.text: query for query in read_queries()}
    nowhere = Query("", frozenset())
    rows, absent = csv_rows(HERE / "pictures.csv"), csv_rows(HERE / "absent.csv")
    judged = [
        _judged(queries, _answers(library, [row[language] for row in own]))
        for language in OTHERS
        for queries, own in (
            ([right[row[ENGLISH]] for row in rows], rows), ([nowhere] * len(absent), absent),
        )
    ]  # fmt: skip
    score, good = np.concatenate(judged).astype(np.float64).T
    odds = np.log(np.clip(score, 1e-9, 1 - 1e-9) / (1 - np.clip(score, 1e-9, 1 - 1e-9)))

    def loss(numbers: NDArray[np.float64]) -> float:
        scaled = numbers[0] * odds + numbers[1]
        return float(np.mean(np.logaddexp(0, scaled) - good * scaled))

    factor, raised = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead").x
    slope = factor * conse.FOREIGN_SLOPE
    return {
        "moments": len(odds), "right": int(good.sum()), "slope": round(float(slope), 2),
        "line": round(float(conse.FOREIGN_LINE - raised / slope), 2),
        "certainty": round(float(factor * conse.FOREIGN_CERTAINTY), 2),
    }  # fmt: skip


def of_lines(name: str) -> list[dict[str, Any]]:
    """Shares of right lines, first and among five."""
    rows = csv_rows(HERE / name)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    minilm, e5 = (load_sentence_encoder(name) for name in (MINILM, E5))
    bridge = open_bridge(minilm, minilm.choice)
    assert bridge is not None
    ways: tuple[tuple[str, SentenceEncoder, SentenceEncoder], ...] = (
        ("MiniLM", minilm, minilm), ("e5", e5, e5), ("e5 mapped to MiniLM", bridge, minilm),
    )  # fmt: skip
    pairs = (
        ("English to German and Chinese", "english_query", "line"),
        ("German and Chinese to English", "query", "english"),
        ("same language", "query", "line"),
        ("English to English", "english_query", "english"),
    )
    return [
        {
            "from, to": name,
            "by": way,
            **_found(reader.encode_text(columns[query]), encoder.encode_text(columns[line])),
        }
        for name, query, line in pairs
        for way, reader, encoder in ways
    ]


def _found(queries: Floats, lines: Floats) -> Mapping[str, float]:
    cosines = queries @ lines.T
    before = (cosines > cosines.diagonal()[:, None]).sum(1)
    return {f"R@{k}": round(float((before < k).mean()), 3) for k in (1, 5)}


if __name__ == "__main__":
    main()
