"""Model cards: description, training data, results and use of a trained model.

A card is written from the model's ``config.json`` alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moviola.retrieval.calibration import KEY

if TYPE_CHECKING:
    from moviola.features import SourceFacts
    from moviola.training.data import Split
    from moviola.training.recipe import Trained

__all__ = ["ABOUT", "About", "described", "facts", "model_card", "plain"]

_SPR = (
    "Zhang et al., *A Flexible and Scalable Framework for Video Moment Search* (SPR)",
    "Zhang et al., *Video Corpus Moment Retrieval with Contrastive Learning* (ReLoCLNet), SIGIR 2021",
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
        ("moviola's own; the design is explained in `moviola.models.reel_stage1`",),
    ),
    "spr-clip": About(f"{_REFINES} Reads frames of an image-text encoder.", _SPR[:1]),
    "spr-relo": About(_REFINES, _SPR),
    "spr-relo-large": About(f"{_REFINES} The larger of the paper's two sizes.", _SPR),
    "reel": About(
        f"{_REFINES} Every video is read once, without knowing the query, and every span of every video is "
        "scored by one number that is comparable everywhere.",
        ("moviola's own; the design is explained in `moviola.models.reel`",),
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
    "prem": About(
        _RANKS,
        (
            "Hou et al., *Improving Video Corpus Moment Retrieval with Partial Relevance Enhancement* "
            "(PREM), ICMR 2024",
        ),
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
    """The card in Markdown.

    Args:
        name: the recipe, a key of :data:`ABOUT`.
        config: the model's settings, field by field.
        extra: the other facts in ``config.json``, as `moviola train` writes them.
    """
    about = ABOUT[name]
    data, settings = extra["data"], extra["settings"]
    stage1, candidates = extra["stage1"], extra.get("candidates")
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
        "moviola answer PAIRS.json --model THIS_FOLDER --features FEATURES"
        + (" --stage1 STAGE1_FOLDER" if stage1 else " --candidates OTHER_RUN" if candidates else "")
        + " --out run.jsonl",
        "moviola evaluate run.jsonl PAIRS.json",
        "```",
        "",
        f"It reads features of the encoder `{extra['encoder']}` (revision `{extra['encoder_revision']}`), "
        f"one every {extra['clip_seconds']:g} s; with those of another encoder it is of no use.",
        *(
            [f"It was trained on the proposals of `{stage1}`, and needs those of a stage 1."]
            if stage1
            else []
        ),
        *(
            [f"It was trained on what another system found, `{candidates}`, and needs such a run."]
            if candidates
            else []
        ),
        "",
        "## Data",
        "",
        *_table(
            ("split", "file", "queries", "pairs", "videos"),
            [
                (split, *(data[split][key] for key in ("file", "queries", "pairs", "videos")))
                for split in data
            ],
        ),
        "",
        "## Measured",
        "",
        f"On the val split, which also chose the weights: {extra['steps']:,} steps in "
        f"{extra['seconds']:.1f} s without evaluations on {extra['device']}, "
        f"the best after {extra['best_step']:,}.",
        "",
        *_table(("measure", "value"), [(measure, f"{value:.4f}") for measure, value in extra["val"].items()]),
        "",
        *_scores(extra.get(KEY), extra.get("proposal_weight", 0.0)),
        *_cuts(extra.get("crossing")),
        "## Settings",
        "",
        *_table(("setting", "value"), [(key, f"`{value}`") for key, value in _flat({"model": config})]),
        "",
        *_table(
            ("training", "value"),
            [
                (key, f"`{value}`")
                for key, value in _flat({**settings["loops"], "sampling": settings["sampling"] or {}})
            ],
        ),
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


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [
        f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else cell for cell in row)} |" for row in lines
    ]


def _flat(settings: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def described(split: Split, file: str) -> dict[str, Any]:
    """Size of a split, and its file."""
    return {
        "file": file,
        "queries": len(split.queries),
        "pairs": len(split.pairs),
        "videos": len(split.features),
    }


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
        name: the recipe.
        trained: the model.
        source: of its training features.
        data: its splits by name, each as :func:`described`.
        stage1: name of the stage 1 of its training proposals; None without.
        calibration: of a refiner, see :func:`moviola.training.fit_calibration.calibration_of`.
    """
    last, last_loop = trained.fitted[-1], list(trained.settings.loops.values())[-1]
    best = next((row for row in last.history if row["step"] == last.best_step), {})
    return {
        "recipe": name,
        "encoder": source.encoder,
        "encoder_revision": source.encoder_revision,
        "clip_seconds": source.clip_seconds,
        "segment_clips": source.segment_clips,
        "unit": source.unit,
        "stage1": stage1,
        "settings": plain(trained.settings.described()),
        "val": {key: value for key, value in best.items() if _is_measure(key)},
        "steps": sum(fitted.steps for fitted in trained.fitted),
        "best_step": last.best_step,
        "seconds": round(sum(fitted.seconds for fitted in trained.fitted), 3),
        "device": last_loop.device,
        "data": dict(data),
        **({KEY: dict(calibration)} if calibration else {}),
    }


def _is_measure(column: str) -> bool:
    return column not in {"step", "epoch", "seconds"} and not column.startswith("loss/")
