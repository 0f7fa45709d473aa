"""The scale of ConSE's cosines, fitted on one set of queries and checked on the other.

    python benchmarks/no_match/fit.py LIBRARY [--out FILE]

The library is the one that `run.py --library FOLDER` leaves. The log odds of a moment are slope * (z - line)
+ certainty * u, with z its standing among the classes and u how near its pictures are to some of them. The
three numbers are fitted by maximum likelihood to the moments of the labelled queries, of the earlier ones,
and of both, each set with equal weight; figures are given of both sets. `MATCH_SLOPE`, `MATCH_LINE` and
`MATCH_CERTAINTY` of `moviola.encoders.conse` are about what the earlier queries give, so that the labelled
ones judge them.
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
from moviola.types import Moment
from run import MOST, answers

Floats = NDArray[np.float64]


def main() -> None:
    options = arguments(__doc__, "library", out=None)
    sets = {
        name: evidence(options.library, queries)
        for name, queries in {"labelled": labelled(), "earlier": earlier()}.items()
    }
    shipped = np.array([conse.MATCH_SLOPE, conse.MATCH_LINE, conse.MATCH_CERTAINTY])
    fits = {name: fitted([own]) for name, own in sets.items()} | {"both": fitted([*sets.values()])}
    rows = [
        {
            "fitted on": fit, "judged on": name, "slope": round(float(numbers[0]), 2),
            "line": round(float(numbers[1]), 2), "certainty": round(float(numbers[2]), 2),
            **figures(scored(sets[name], numbers)),
        }
        for fit, numbers in (*fits.items(), ("as shipped", shipped))
        for name in sets
    ]  # fmt: skip
    print_rows(rows)
    say(rows, options.out)


def evidence(folder: Path, queries: Sequence[LabelledQuery]) -> tuple[Judged, Floats]:
    """The moments of all answers by pictures, and z and u of each, (n, 2)."""
    sure, plain = conse.MATCH_CERTAINTY, answered(folder, queries, 2 * MOST, certainty=0.0)
    rows = []
    for place, (query, answer) in enumerate(
        zip(queries, answered(folder, queries, MOST, certainty=sure), strict=True)
    ):
        before = {_key(one): _log_odds(one) for one in plain[place]}
        for one in answer:
            right, odds = query.judged(one), before.get(_key(one))
            if right is not None and odds is not None:
                z = odds / conse.MATCH_SLOPE + conse.MATCH_LINE
                rows.append((place, one.score, right, z, (_log_odds(one) - odds) / sure))
    values = np.array(rows, np.float64)
    answerable = np.array([at for at, one in enumerate(queries) if one.right], np.int64)
    absent = np.array([at for at, one in enumerate(queries) if one.kind in NO_ANSWER], np.int64)
    found = Judged(values[:, 0].astype(np.int64), values[:, 1], values[:, 2].astype(bool), answerable, absent)
    return found, values[:, 3:]


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


def fitted(sets: Sequence[tuple[Judged, Floats]]) -> Floats:
    """Slope, line and certainty (3,) that make the judgements of some sets likeliest."""
    values = np.concatenate([own for _, own in sets])
    right = np.concatenate([found.right for found, _ in sets])
    weight = np.concatenate([np.full(len(own), 1 / len(own)) for _, own in sets])
    weight /= weight.sum()

    def loss(numbers: Floats) -> float:
        odds = _odds(values, numbers)
        return float(weight @ (np.logaddexp(0, odds) - right * odds))

    return np.asarray(minimize(loss, np.array([1.0, 4.0, 1.0]), method="Nelder-Mead").x, np.float64)


def scored(moments: tuple[Judged, Floats], numbers: Floats) -> Judged:
    """The moments with the scores that some slope, line and certainty (3,) give."""
    found, values = moments
    score: Floats = 1 / (1 + np.exp(-_odds(values, numbers)))
    return Judged(found.query, score, found.right, found.answerable, found.absent)


def _odds(values: Floats, numbers: Floats) -> Floats:
    slope, line, certainty = numbers
    return np.asarray(slope * (values[:, 0] - line) + certainty * values[:, 1])


def _key(one: Moment) -> tuple[Any, ...]:
    return one.video_id, one.start, one.end


def _log_odds(one: Moment) -> float:
    score = min(max(one.score, 1e-12), 1 - 1e-7)
    return float(np.log(score / (1 - score)))


if __name__ == "__main__":
    main()
