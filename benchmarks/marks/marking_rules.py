"""Rules by which marks on an answer change the next one; each with the ranges from which settings are drawn.

A rule is a function of :class:`Given` and of its settings, and returns a number for every piece; only their
order counts. Prior log odds are those of :class:`moviola.retrieval.Chance`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moviola.retrieval import Chance, Marks

Floats = NDArray[np.float32]
Scores = NDArray[np.float64]
Places = NDArray[np.int64]
Settings = Mapping[str, float]


@dataclass(frozen=True)
class Given:
    """What a rule sees.

    Attributes:
        texts, pictures: (n, d) and (n, p) float32 unit rows, features of the pieces.
        alike: (n, n) float32, cosines of ``pictures``.
        query: (d,) float32 unit vector of the text.
        right, wrong: places of the marked pieces.
    """

    texts: Floats
    pictures: Floats
    alike: Floats
    query: Floats
    right: Places
    wrong: Places

    @property
    def marked(self) -> Places:
        """Places of all marked pieces, right ones first."""
        return np.concatenate([self.right, self.wrong])

    @property
    def signs(self) -> Scores:
        """1 of right ones, -1 of wrong ones."""
        return np.repeat([1.0, -1.0], [len(self.right), len(self.wrong)])

    def prior(self) -> Scores:
        """(n,) in [0, 1], what the text says."""
        cosines = self.texts @ self.query
        return Chance.of(cosines, len(cosines)).scores(cosines.astype(np.float64))

    def log_odds(self) -> Scores:
        """The same as log odds."""
        cosines = (self.texts @ self.query).astype(np.float64)
        chance = Chance.of(cosines, len(cosines))
        standing: Scores = 2 * (chance.standing(cosines) - np.sqrt(2 * np.log(len(cosines))))
        return standing


Rule = Callable[[Given, Settings], Scores]


def text_alone(given: Given, settings: Settings) -> Scores:
    """Marks change nothing."""
    return given.log_odds()


def marks(given: Given, settings: Settings) -> Scores:
    """What the package does: :class:`moviola.retrieval.Marks`."""
    taught = Marks.of(given.pictures[given.right], given.pictures[given.wrong])
    return taught.scores(given.pictures, given.prior())


def density(given: Given, settings: Settings) -> Scores:
    """The same rule with other numbers."""
    right, wrong = (
        np.exp((given.alike[:, some].astype(np.float64) - 1) / settings["width"])
        for some in (given.right, given.wrong)
    )
    elsewhere = settings["elsewhere"]
    apart = 1 - right.max(axis=1, initial=0.0)
    added = np.log1p(right.sum(axis=1) / elsewhere)
    added = added - settings["wrong"] * apart * np.log1p(wrong.sum(axis=1) / elsewhere)
    moved: Scores = given.log_odds() + settings["weight"] * added
    return moved


def rocchio(given: Given, settings: Settings) -> Scores:
    """The text's vector moved to the mean of right ones and away from that of wrong ones (Rocchio 1971)."""
    query = given.query
    if len(given.right):
        query = query + settings["right"] * given.texts[given.right].mean(axis=0)
    if len(given.wrong):
        query = query - settings["wrong"] * given.texts[given.wrong].mean(axis=0)
    return (given.texts @ query).astype(np.float64)


def nearest(given: Given, settings: Settings) -> Scores:
    """Standard scores: of the text, plus of the nearest right piece, minus of the nearest wrong one."""
    scores = _standardised(given.log_odds())
    if len(given.right):
        scores = scores + settings["right"] * _standardised(given.alike[:, given.right].max(axis=1))
    if len(given.wrong):
        scores = scores - settings["wrong"] * _standardised(given.alike[:, given.wrong].max(axis=1))
    return scores


def somhunter(given: Given, settings: Settings) -> Scores:
    """SOMHunter's: times s(x, r) / (s(x, r) + sum of s(x, w)) for each right r, s falling with distance."""
    close = np.exp((given.alike.astype(np.float64) - 1) / settings["width"])
    scores = np.exp(given.log_odds() * settings["text"])
    others = close[:, given.wrong].sum(axis=1) + 1e-9
    for place in given.right.tolist():
        scores = scores * close[:, place] / (close[:, place] + others)
    return scores if len(given.right) else scores / (1 + others)


def linear_machine(given: Given, settings: Settings) -> Scores:
    """A linear support vector machine on both features (as Exquisitor's), with the text's score as offset.

    Squared hinge loss, so that it is solved in a few steps (Chapelle 2007).
    """
    prior, marked, signs = given.log_odds() * settings["text"] + settings["offset"], given.marked, given.signs
    if not len(marked):
        return prior
    both = np.hstack([given.texts, given.pictures]).astype(np.float64)
    inner = both @ both[marked].T
    needed = 1 - signs * prior[marked]
    active = needed > 0
    weights = np.zeros(len(marked))
    for _ in range(30):
        weights[:] = 0
        some = inner[np.ix_(marked[active], np.flatnonzero(active))]
        ridge = np.eye(int(active.sum())) / settings["cost"]
        weights[active] = np.linalg.solve(some + ridge, (signs * needed)[active])
        violated = needed - signs * (inner[marked] @ weights) > 0
        if (violated == active).all():
            break
        active = violated
    moved: Scores = prior + inner @ weights
    return moved


def gaussian_process(given: Given, settings: Settings) -> Scores:
    """Gaussian-process regression on what the text's score leaves open, a sharp and a wide kernel summed."""
    prior, marked, signs = given.log_odds() * settings["text"] + settings["offset"], given.marked, given.signs
    if not len(marked):
        return prior
    kernel = _kernel(given, settings)
    # A mark that the text exceeds already asks for nothing.
    rest = signs * np.maximum(settings["target"] - signs * prior[marked], 0)
    noise = settings["noise"] * np.eye(len(marked))
    moved: Scores = prior + kernel @ np.linalg.solve(kernel[marked] + noise, rest)
    return moved


def logistic(given: Given, settings: Settings) -> Scores:
    """Kernel logistic regression with the text's log odds as offset, by Newton's steps."""
    prior, marked, signs = given.log_odds() * settings["text"] + settings["offset"], given.marked, given.signs
    if not len(marked):
        return prior
    kernel = _kernel(given, settings)
    weights, truth = np.zeros(len(marked)), (signs + 1) / 2
    for _ in range(25):
        odds = np.clip(prior[marked] + kernel[marked] @ weights, -50, 50)
        chance = 1 / (1 + np.exp(-odds))
        slope = np.maximum(chance * (1 - chance), 1e-6)
        step = weights - truth + chance
        weights = weights - np.linalg.solve(np.eye(len(marked)) + slope[:, None] * kernel[marked], step)
    moved: Scores = prior + kernel @ weights
    return moved


def _kernel(given: Given, settings: Settings) -> Scores:
    """(n, m) float64, of all pieces with the marked ones."""
    apart = given.alike[:, given.marked].astype(np.float64) - 1
    alike = given.texts @ given.texts[given.marked].T
    kernel: Scores = (
        settings["sharp"] * np.exp(apart / settings["sharp_width"])
        + settings["wide"] * np.exp(apart / settings["wide_width"])
        + settings["meaning"] * np.exp((alike.astype(np.float64) - 1) / settings["wide_width"])
    )
    return kernel


def _standardised(values: NDArray[np.floating]) -> Scores:
    scores: Scores = (values - values.mean()) / max(float(values.std()), 1e-9)
    return scores


_RESIDUAL = {
    "text": (0.05, 0.5), "sharp": (0.5, 20), "sharp_width": (0.03, 0.15), "wide": (0.05, 10),
    "wide_width": (0.2, 1.5), "meaning": (0.01, 10),
}  # fmt: skip

RANGES: dict[str, tuple[Rule, dict[str, tuple[float, float]]]] = {
    "text alone": (text_alone, {}),
    "Rocchio": (rocchio, {"right": (0.1, 5), "wrong": (0.02, 2)}),
    "nearest marked": (nearest, {"right": (0.3, 10), "wrong": (0.1, 5)}),
    "SOMHunter": (somhunter, {"width": (0.02, 0.5), "text": (0.02, 2)}),
    "linear machine": (linear_machine, {"text": (0.05, 1), "offset": (-2, 2), "cost": (0.05, 50)}),
    "logistic": (logistic, _RESIDUAL | {"offset": (-2, 2)}),
    "Gaussian process": (
        gaussian_process,
        _RESIDUAL | {"offset": (-2, 2), "noise": (0.05, 5), "target": (0.5, 5)},
    ),
    "density": (
        density,
        {"width": (0.03, 0.2), "elsewhere": (0.02, 0.5), "weight": (0.7, 5), "wrong": (0.15, 1.2)},
    ),
    "Marks, as it is": (marks, {}),
}
"""Rules by name, and from where their settings are drawn: by logarithm, or evenly where 0 lies between."""


def drawn(ranges: Mapping[str, tuple[float, float]], random: np.random.Generator) -> dict[str, float]:
    """Settings of a rule."""
    return {
        name: float(
            np.exp(random.uniform(np.log(low), np.log(high))) if low > 0 else random.uniform(low, high)
        )
        for name, (low, high) in ranges.items()
    }
