"""The scale of ConSE's cosines, fitted on one set of queries and checked on the other.

    python benchmarks/no_match/fit.py LIBRARY [--out FILE]

The library is the one that `run.py --library FOLDER` leaves. The log odds of a moment are slope * (z - line)
+ certainty * u + nearest * n + unknown * w, with z its standing among the classes, u how certain it is what
its pictures show, n how near the nearest class is to the query, and w the number of its words that MiniLM
knows by parts alone. The five numbers are fitted by maximum likelihood to the moments of the labelled
queries, of the earlier ones, and of both, each set with equal weight, and so are the first three without the
others; figures are given of both sets. Texts that e5 reads have numbers of their own, and are left out.
`MATCH_SLOPE` and the others of `moviola.encoders.conse` were chosen near to what the earlier queries give,
with a line that is a little lower (`docs/decisions/bands.md`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bands import Judged, figures
from labels import NO_ANSWER, LabelledQuery, earlier, labelled
from numpy.typing import NDArray
from scipy.optimize import minimize

from measuring import arguments, print_rows, say
from moviola import Library
from moviola.encoders import conse
from moviola.library import background_of
from moviola.retrieval.phrases import named_words, unframed
from moviola.types import Moment
from run import MOST, answers

Floats = NDArray[np.float64]

NUMBERS = ("slope", "line", "certainty", "nearest", "unknown")


def main() -> None:
    options = arguments(__doc__, "library", out=None)
    sets = {
        name: evidence(options.library, queries)
        for name, queries in {"labelled": labelled(), "earlier": earlier()}.items()
    }
    shipped = np.array([getattr(conse, f"MATCH_{name.upper()}") for name in NUMBERS])
    wanted = {**{name: [own] for name, own in sets.items()}, "both": [*sets.values()]}
    fits = {name: fitted(own) for name, own in wanted.items()}
    fits |= {f"{name}, three numbers": fitted(own, 3) for name, own in wanted.items()}
    rows = [
        {
            "fitted on": fit, "judged on": name,
            **{key: round(float(value), 2) for key, value in zip(NUMBERS, numbers, strict=True)},
            **figures(scored(sets[name], numbers)),
        }
        for fit, numbers in (*fits.items(), ("as shipped", shipped))
        for name in sets
    ]  # fmt: skip
    print_rows(rows)
    say(rows, options.out)


def evidence(folder: Path, queries: Sequence[LabelledQuery]) -> tuple[Judged, Floats]:
    """The moments of all answers by pictures, and z, u, n and w of each, (n, 4)."""
    known = of_texts(folder, [query.text for query in queries])
    sure, plain = conse.MATCH_CERTAINTY, answered(folder, queries, 2 * MOST, certainty=0.0)
    rows = []
    for place, (query, answer) in enumerate(
        zip(queries, answered(folder, queries, MOST, certainty=sure), strict=True)
    ):
        before = {_key(one): _log_odds(one) for one in plain[place]}
        for one in answer:
            right, odds = query.judged(one), before.get(_key(one))
            if right is not None and odds is not None and query.text in known:
                near, unknown = known[query.text]
                own = conse.MATCH_NEAREST * near + conse.MATCH_UNKNOWN * unknown
                z = (odds - own) / conse.MATCH_SLOPE + conse.MATCH_LINE
                u = (_log_odds(one) - odds) / sure
                rows.append((place, one.score, right, z, u, near, unknown))
    values = np.array(rows, np.float64)
    answerable = np.array([at for at, one in enumerate(queries) if one.right], np.int64)
    absent = np.array([at for at, one in enumerate(queries) if one.kind in NO_ANSWER], np.int64)
    found = Judged(values[:, 0].astype(np.int64), values[:, 1], values[:, 2].astype(bool), answerable, absent)
    return found, values[:, 3:]


def of_texts(folder: Path, texts: Sequence[str]) -> dict[str, tuple[float, int]]:
    """Of texts in English the cosine with the nearest class, and the words that MiniLM knows by parts."""
    with Library(folder, read_only=True) as library:
        encoder, background = library.store.encoders.visual, background_of(library.store)
        assert isinstance(encoder, conse.ConseEncoder) and background.references is not None
        own = [text for text in texts if encoder.reader_of(text).match is encoder.match]
        reader = encoder.reader_of("a photo")  # that of English, which draws queries to what is known
        cosines = background.centred(reader.encode_text([unframed(text) for text in own]))
        nearest = (cosines @ background.references.T).max(1)
        return {
            text: (float(near), sum(not encoder.has_word(word.lower()) for word in named_words(text)))
            for text, near in zip(own, nearest, strict=True)
        }


def answered(
    folder: Path, queries: Sequence[LabelledQuery], top_k: int, *, certainty: float
) -> list[list[Moment]]:
    """Answers by pictures with some weight of what is known of them."""
    kept, conse.MATCH_CERTAINTY = conse.MATCH_CERTAINTY, certainty
    try:
        with Library(folder, read_only=True) as library:
            return [[*one] for one in answers(library, [query.text for query in queries], "visual", top_k)]
    finally:
        conse.MATCH_CERTAINTY = kept


def fitted(sets: Sequence[tuple[Judged, Floats]], free: int = len(NUMBERS)) -> Floats:
    """The numbers (5,) that make the judgements of some sets likeliest; 0 but for the first ``free``."""
    values = np.concatenate([own for _, own in sets])
    right = np.concatenate([found.right for found, _ in sets])
    weight = np.concatenate([np.full(len(own), 1 / len(own)) for _, own in sets])
    weight /= weight.sum()

    def loss(numbers: Floats) -> float:
        odds = _odds(values, _padded(numbers))
        return float(weight @ (np.logaddexp(0, odds) - right * odds))

    start = np.array([1.0, 4.0, 1.0, -1.0, -1.0])[:free]
    return _padded(minimize(loss, start, method="Nelder-Mead", options={"maxiter": 4000}).x)


def _padded(numbers: Floats) -> Floats:
    return np.concatenate([numbers, np.zeros(len(NUMBERS) - len(numbers))])


def scored(moments: tuple[Judged, Floats], numbers: Floats) -> Judged:
    """The moments with the scores that the numbers (5,) give."""
    found, values = moments
    score: Floats = 1 / (1 + np.exp(-_odds(values, numbers)))
    return Judged(found.query, score, found.right, found.answerable, found.absent)


def _odds(values: Floats, numbers: Floats) -> Floats:
    slope, line, *others = numbers
    return np.asarray(slope * (values[:, 0] - line) + values[:, 1:] @ np.array(others))


def _key(one: Moment) -> tuple[Any, ...]:
    return one.video_id, one.start, one.end


def _log_odds(one: Moment) -> float:
    score = min(max(one.score, 1e-12), 1 - 1e-7)
    return float(np.log(score / (1 - score)))


if __name__ == "__main__":
    main()
