"""Model cards: description, training data, results and use of a trained model.

A card is written from the model's ``config.json`` alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moviola.retrieval.calibration import KEY

if TYPE_CHECKING:
    from moviola.features import SourceFacts
    from moviola.study.training.data import Split
    from moviola.study.training.recipe import Trained

__all__ = ["ABOUT", "About", "described", "facts", "model_card", "plain"]

_SPR = (
    "Zhang et al., *A Flexible and Scalable Framework for Video Moment Search* (SPR)",
    "Zhang et al., *Video Corpus Moment Retrieval with Contrastive Learning* (ReLoCLNet), SIGIR 2021",
)
_OF_FEATURES = ("encoder", "encoder_revision", "clip_seconds", "segment_clips", "unit")
_COUNTS = ("step", "epoch", "seconds")
"""Columns of a training's log that are no measures, besides the terms of the loss."""

_PREM = (
    "Hou et al., *Improving Video Corpus Moment Retrieval with Partial Relevance Enhancement* (PREM), "
    "ICMR 2024",
)
_RANKS = "Ranks the moments of a whole corpus for a query, without another model before it."
_REFINES = "Finds the exact span within each proposal of a trained stage 1, and re-ranks the proposals."


@dataclass(frozen=True)
class About:
    """Description of a kind of model, with its papers."""

    does: str
    papers: tuple[str, ...]


ABOUT: dict[str, About] = {
    "spr-stage1": About(
        "Segment retrieval: brings segments of a few seconds and queries into one space, where the cosine "
        "says how well they match. The best segments, merged where they touch, are coarse proposals.",
        _SPR[:1],
    ),
    "reel-stage1": About(
        "Segment retrieval, as the first stage of SPR, in which clips know what is around them and queries "
        "are read token by token.",
        ("moviola's own; the design is explained in `moviola.study.models.reel`",),
    ),
    "spr-clip": About(f"{_REFINES} Reads frames of an image-text encoder.", _SPR[:1]),
    "spr-relo": About(_REFINES, _SPR),
    "spr-relo-large": About(f"{_REFINES} The larger of the paper's two sizes.", _SPR),
    "reel": About(
        f"{_REFINES} Every video is read once, without knowing the query, and every span of every video is "
        "scored by one number that is comparable everywhere.",
        ("moviola's own; the design is explained in `moviola.study.models.reel`",),
    ),
    "xml": About(
        _RANKS,
        ("Lei et al., *TVR: A Large-Scale Dataset for Video-Subtitle Moment Retrieval* (XML), ECCV 2020",),
    ),
    "reloclnet": About(_RANKS, _SPR[1:]),
    "conquer": About(
        "Ranks moments within the best videos of another retriever, whose scores it takes into account.",
        (
            "Hou et al., *CONQUER: Contextual Query-aware Ranking for Video Corpus Moment Retrieval*, "
            "ACM Multimedia 2021",
        ),
    ),
    "prem": About(_RANKS, _PREM),
    "prem-apart": About(
        f"{_RANKS} It is two models, of pictures and of subtitles; a query's type chooses the one to answer.",
        _PREM,
    ),
    "prem-given": About(
        "Finds moments within the best videos of another retriever, whose scores it adds to its own (PREM†).",
        _PREM,
    ),
}
"""Descriptions by the name of the recipe."""


def plain(value: Any) -> Any:
    """Settings as JSON holds them: tuples as lists, and infinite numbers as text that reads back."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def model_card(name: str, config: Mapping[str, Any], extra: Mapping[str, Any]) -> str:
    """The card of a recipe's model in Markdown, from its settings and the other facts in ``config.json``."""
    about, stage1, candidates = ABOUT[name], extra["stage1"], extra.get("candidates")
    source = " --stage1 STAGE1_FOLDER" if stage1 else " --candidates OTHER_RUN" if candidates else ""
    needs = {
        f"the proposals of `{stage1}`, and needs those of a stage 1.": stage1,
        f"what another system found, `{candidates}`, and needs such a run.": candidates,
    }
    counted = ("file", "queries", "pairs", "videos")
    splits = [(split, *(facts[key] for key in counted)) for split, facts in extra["data"].items()]
    measured = [(measure, f"{value:.4f}") for measure, value in extra["val"].items()]
    training = {**extra["settings"]["loops"], "sampling": extra["settings"]["sampling"] or {}}
    lines = [
        f"# {name}",
        "",
        about.does,
        "",
        *(f"- {paper}" for paper in about.papers),
        "",
        "## Use",
        "",
        "```",
        f"moviola answer PAIRS.json --model THIS_FOLDER --features FEATURES{source} --out run.jsonl",
        "moviola evaluate run.jsonl PAIRS.json",
        "```",
        "",
        f"It reads features of the encoder `{extra['encoder']}` (revision `{extra['encoder_revision']}`), "
        f"one every {extra['clip_seconds']:g} s; with those of another encoder it is of no use.",
        *(f"It was trained on {found}" for found, given in needs.items() if given),
        "",
        "## Data",
        "",
        *_table(("split", *counted), splits),
        "",
        "## Measured",
        "",
        f"On the val split, which also chose the weights: {extra['steps']:,} steps in "
        f"{extra['seconds']:.1f} s without evaluations on {extra['device']}, "
        f"the best after {extra['best_step']:,}.",
        "",
        *_table(("measure", "value"), measured),
        "",
        *_scores(extra.get(KEY), extra.get("proposal_weight", 0.0)),
        *_answerable(config, extra),
        *_cuts(extra.get("crossing")),
        "## Settings",
        "",
        *_table(("setting", "value"), _flat({"model": config})),
        "",
        *_table(("training", "value"), _flat(training)),
    ]
    return "\n".join(lines) + "\n"


def _scores(calibration: Mapping[str, Any] | None, proposal_weight: float) -> list[str]:
    """Meaning of the scores of `moviola search` with this model."""
    if calibration is None:
        return []
    added = f" with {proposal_weight:.4g} times that of its proposal" if proposal_weight else ""
    return [
        "## Scores",
        "",
        f"With this model `moviola search` gives sigmoid({calibration['slope']:.4g} evidence "
        f"{'+' if calibration['intercept'] >= 0 else '-'} {abs(calibration['intercept']):.4g}): the "
        "probability that a moment overlaps one of positive relevance at IoU >= 0.5. The evidence is the "
        f"model's matching score{added}, or its logarithm where that is a product. This was measured on "
        f"{calibration['answers']:,} answers to the val queries, of which {calibration['right']:,} were "
        "right; in a library that is much larger or of another kind fewer may be.",
        "",
    ]


def _answerable(config: Mapping[str, Any], extra: Mapping[str, Any]) -> list[str]:
    """What it learned of queries without an answer; nothing of a model that says nothing of them."""
    if not config.get("answerable"):
        return []
    none = {split: facts.get("unanswered", 0) for split, facts in extra["data"].items()}
    weight = (extra.get(KEY) or {}).get("answerable", 0.0)
    use = f"count {weight:.4g} times in the evidence" if weight else "do not count in the scores"
    return [
        "## Queries without an answer",
        "",
        "It says by log odds how sure it is that a query has an answer at all, as learned from "
        f"{none['train']:,} queries that nothing answers, beside the others. They {use}, by {none['val']:,} "
        "such queries of val, beside the others.",
        "",
    ]


def _cuts(crossing: float | None) -> list[str]:
    """Price of cuts; None where val has none."""
    if crossing is None:
        return []
    return [
        "## Cuts",
        "",
        f"In a video that is cut, a moment's matching score loses {crossing:g} by each cut that it crosses, "
        "as val chose.",
        "",
    ]


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [
        f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else cell for cell in row)} |" for row in lines
    ]


def _flat(settings: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Names and values of nested settings, as cells."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", f"`{value}`"


def described(split: Split, file: str) -> dict[str, Any]:
    """Size of a split, and its file."""
    sizes: dict[str, Sized] = {"queries": split.queries, "pairs": split.pairs, "videos": split.features}
    unanswered = len(split.pairs.unanswered)
    return {
        "file": file, **{name: len(rows) for name, rows in sizes.items()},
        **({"unanswered": unanswered} if unanswered else {}),
    }  # fmt: skip


def facts(
    name: str,
    trained: Trained,
    source: SourceFacts,
    data: Mapping[str, Any],
    stage1: str | None,
    *,
    calibration: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Facts of ``config.json`` beside a trained model's settings.

    Args:
        name, trained: the recipe and the model.
        source: of its training features.
        data: its splits by name, each as :func:`described`.
        stage1: name of the stage 1 of its training proposals; None without.
        calibration: of a refiner, see :func:`moviola.study.training.fit_calibration.calibration_of`.
    """
    last, last_loop = trained.fitted[-1], list(trained.settings.loops.values())[-1]
    best = next((row for row in last.history if row["step"] == last.best_step), {})
    measures = [name for name in best if name not in _COUNTS and not name.startswith("loss/")]
    return {
        "recipe": name,
        **{name: getattr(source, name) for name in _OF_FEATURES},
        "stage1": stage1,
        "settings": plain(trained.settings.described()),
        "val": {name: best[name] for name in measures},
        "steps": sum(fitted.step for fitted in trained.fitted),
        "best_step": last.best_step,
        "seconds": round(sum(fitted.seconds for fitted in trained.fitted), 3),
        "device": last_loop.device,
        "data": dict(data),
        **({KEY: dict(calibration)} if calibration else {}),
    }
