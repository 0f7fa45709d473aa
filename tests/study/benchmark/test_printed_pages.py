"""Each result in the sentences of the pages with figures is the stored number, rounded once.

The comparison's own page is in ``test_printed_prose.py``, claims in ``test_printed_claims.py``, the
sentences of 003 and 004 in ``test_printed_papers.py``.
"""

from __future__ import annotations

import re

import pytest

from printed import PROSE, compared, figures, paragraphs, sentences, tables
from stored import OVERLAPS, ROOT, SMALL, THIRD, cell, read, rows

DOCS = ROOT / "docs"
HELD = "benchmarks/hard_negatives.csv"
LABELS = "docs/benchmark/third/pseudo-labels.csv"
Numbers = list[float | None]
SETTING = None
"""A setting, a version or a paper's figure: nothing that we measured."""


def card(row: str, column: str) -> float:
    """A share on the card of the demo's encoder."""
    path = ROOT / "src" / "moviola" / "encoders" / "demo_clip" / "README.md"
    (table,) = tables(path)
    columns = [own.strip() for own in table.head.strip("|").split("|")]
    (found,) = (own.cells for own in table.rows if own.cells[0] == row)
    return float(found[columns.index(column)]) / 100


def reel_ahead(kind: str) -> Numbers:
    """How far Reel is ahead of SPR_ReLo-S, of the models that edited and plain films taught."""
    found = read("edited_models.json")[kind]
    names = [f"nDCG@20,IoU>={over}" for over in OVERLAPS]
    return [found["Reel"][name] - found["SPR_ReLo-S"][name] for name in names]


def scored(queries: str) -> dict[str, list[float]]:
    """What answers by all evidence are right, for a set of queries; an interval behind each share."""
    found = {(row["by"], row["queries of"]): row for row in read("no_match/results.json")["moments"]}
    return {name: own if isinstance(own, list) else [own] for name, own in found["all", queries].items()}


def lost(model: str) -> float:
    """What a model loses at IoU >= 0.5 by labels of a sentence encoder."""
    over = "nDCG@20,IoU>=0.5"
    slots, sentences = (cell(LABELS, over, {"model": f"{model}, {kind}"}) for kind in ("slots", "sentences"))
    return 1 - sentences / slots


def true_labels() -> float:
    """The greatest distance of true labels from those of slots, either way."""
    found = {row["model"]: row for row in rows(LABELS)}
    names = [f"nDCG@20,IoU>={over}" for over in OVERLAPS]
    return max(
        abs(float(found[model.replace("true labels", "slots")][name]) - float(row[name]))
        for model, row in found.items()
        if model.endswith("true labels")
        for name in names
    )


def moved_labels() -> dict[str, list[float]]:
    """Mean IoU of labels by generator, Charades-STA first, levels rising."""
    found: dict[str, list[float]] = {"literal": [], "paper_fit": []}
    for name in ("charades-sta-test", "activitynet-val_2"):
        for row in read(f"real_annotations/results/studies-{name}.json")["label_iou"]:
            found[row["model"]].append(row["iou"])
    return found


PRINTED_LABELS = ((0.846, 0.650), (0.906, 0.802))
"""Of the paper, first and last level; ActivityNet's are beside our Charades-STA, and the other way round."""


def off() -> float:
    """How far the fitted generator is from the paper's rows at most, first and last level."""
    fitted = moved_labels()["paper_fit"]
    ours = (fitted[0], fitted[3]), (fitted[4], fitted[7])
    return max(
        abs(own - theirs)
        for both in zip(ours, PRINTED_LABELS, strict=True)
        for own, theirs in zip(*both, strict=True)
    )


def windows(system: str, name: str) -> float:
    (found,) = (row for row in read("refiners.json") if row["system"] == system)
    return float(found[name])


def megabytes() -> float:
    """How much less Reel stores than SPR with all its windows."""
    return windows("SPR_CLIP, kept", "mb_an_hour") / windows("Reel", "mb_an_hour")


def raters() -> float:
    """The share of the release's pairs that four raters saw, of its ratings and pairs."""
    return (227_808 - 2 * 96_483) / 2 / 96_483


def charades(system: str, measure: str) -> float:
    found = read("real_annotations/results/studies-charades-sta-test.json")["effectiveness"]
    return float(found[system][measure])


def idea(row: str, over: float, *, seed: int | None = None, split: str = "test") -> float:
    """How far an idea for Reel is above the first row."""
    (found,) = (own for own in read("reel_ideas/results.json") if own["row"] == row)
    place = OVERLAPS.index(over)
    own = found[split]
    return float(own["mean_above"][place] if seed is None else own["above"][seed][place])


def ideas() -> dict[str, Numbers]:
    """The sentences of ``reel-ideas.md``, with what they say beyond single figures."""
    found = {row["row"]: row for row in read("reel_ideas/results.json")}
    helped = [name for name, row in found.items() if min(own[1] for own in row["val"]["above"]) > 0]
    above = [idea(name, 0.5) for name in helped]
    assert len(helped) == 9
    assert {name for name in helped if idea(name, 0.5) >= 0.006} == {
        "average", "longer-average", "vectors-4", "repeated",
    }  # fmt: skip
    looks = [idea(name, 0.5) for name in ("vectors-4", "vectors-8", "second-look", "span-map")]
    on_demo = {row["row"]: row["val"]["mean"] for row in read("reel_ideas/demo.json")}
    worst = [idea("average", over, seed=seed) for over in OVERLAPS for seed in range(3)]
    assert sum(own < -0.0001 for own in worst) == 1
    return {
        "On the films of the demo's models": [*on_demo["reel"], *on_demo["average"]],
        "- **A running mean": [
            SETTING,
            min(worst),
            found["average"]["cpu_seconds"] / found["reel"]["cpu_seconds"] - 1,
        ],
        "- **On val nearly everything": [
            min(own for own in above if own >= 0.006),
            max(own for own in above if own < 0.006),
            SETTING,
            found["reel"]["test"]["deviation"][1],
        ],
        "- **Negatives as in use": [-idea("negatives", 0.7), -idea("negatives-known", 0.7)],
        "- **Stretched time": [-idea("stretched", 0.7)],
        "- **A proposal's own score**": [-idea("no-proposals", 0.5)],
        "- **Four and eight vectors": [min(looks), max(looks)],
    }


def stored() -> dict[str, dict[str, Numbers]]:
    """By page, and the first words of a paragraph or row, the numbers that it prints, in order."""
    labelled, earlier = scored("labelled"), scored("earlier")
    edited = {name: read("edited.json")[name] for name in ("plain", "edited", "hour", "large")}
    steps = read("edited_models.json")["SPR_ReLo-S"]["val"]
    decoding = read("ingest/decoding.json")["now"]
    both = read("pseudo_similarity.json")
    literal, imprecise = moved_labels()["literal"], read("real_annotations/results/tvr-val.json")["imprecise"]
    similar = read("real_annotations/results/charades-sta.json")["splits"]["test"]["similarity_at_rank"]
    copies = read("footage/copies.json")
    (languages,) = read("no_match/lines.json")["languages"]
    negatives = {"type": "v", "N": "20"}
    return {
        "figures.md": {
            "Training on plain films": [
                card("colour right", "edited"),
                card("type right", "edited"),
                card("colour right", "plain"),
                card("type right", "plain"),
                card("second colour right", "edited, two things"),
                card("second type right", "edited, two things"),
            ],
            "Models beside each other": [steps["3000"], steps["4800"]],
            "On edited films every refiner": [*reel_ahead("plain"), *reel_ahead("edited")],
            "Of the true moments": edited["edited"]["moments that begin, end at a cut"],
            "Scores are close": [own["calibration error"] for own in edited.values()],
            "Refining a query's proposals": [decoding["frames"]["cpu"] / decoding["ffmpeg"]["cpu"]],
        },
        "scores.md": {
            "Every moment of an answer": [
                labelled["strong right"][0],
                SETTING,
                labelled["strong or possible right"][0],
                SETTING,
                *labelled["calibration error"],
                labelled["absent with a strong"][0],
                labelled["answerable with a strong right"][0],
                earlier["strong right"][0],
                earlier["strong or possible right"][0],
                *earlier["calibration error"],
                earlier["absent with a strong"][0],
                earlier["answerable with a strong right"][0],
            ],
            "- *SigLIP, SigLIP 2*": [SETTING],
            "**A trained refiner**": [SETTING],
            "**Names.**": [SETTING],
            "**What files say.**": [SETTING],
            "**Lines.**": [SETTING],
            "**A model that looked**": [SETTING],
            "`python benchmarks/no_match/run.py": [SETTING],
            "Twelve files renamed": [languages["wrong strong a query"]],
        },
        "studies.md": {
            "Models on generated films": [
                THIRD.spread(job)[0]
                for job in (
                    "reel-second",
                    "spr-relo-large-n20",
                    "conquer-exclusive-n20",
                    "prem-n20",
                    "xml-n20",
                    "reloclnet-n20",
                )
            ],
        },
        "papers/000-tvr-ranking.md": {
            "§3.1: two checks": [
                imprecise["with_names_left"] / imprecise["captions"],
                SETTING,
                imprecise["below"]["0.4"] / imprecise["captions"],
                SETTING,
                SETTING,
            ],
            "The two orders agree": [
                both["Spearman of both"],
                both["Spearman of both, mean of queries"],
                both["share of the best 20 in both"],
                both["same best moment"],
                both["minilm"]["share of the best 20 that is not relevant"],
                both["minilm"]["squared, 20th beside 1st of a query"],
                both["slots"]["squared, 20th beside 1st of a query"],
            ],
            "At IoU ≥ .5 SPR_ReLo-S": [lost("SPR_ReLo-S"), lost("Reel (ours)"), lost("XML"), true_labels()],
        },
        "papers/001-axiou.md": {
            "**Label noise.**": [min(literal), max(literal), *([SETTING] * 4), off()],
        },
        "papers/002-spr.md": {
            "§3.2: adjacent segments": [SETTING],
            "§4.7: hard negatives": [
                cell(HELD, "hold a relevant moment", {**negatives, "answers known": known})
                for known in ("all of the file", "those N")
            ],
            "Table 2: time per query": [
                windows(f"{name}, kept", "ratio") for name in ("SPR_CLIP", "SPR_ReLo-S")
            ],
            "Table 5: strategies": [SETTING] * 7,
            "Which of the paper's claims": [
                THIRD.spread("spr-relo-n20")[0] / THIRD.spread("conquer-exclusive-n20")[0] - 1,
                THIRD.part_of_bound("spr-relo-n20"),
                SMALL.ndcg("spr-relo-n20") / SMALL.ndcg("xml-longer") - 1,
            ],
            "So Reel's advantage": [megabytes(), megabytes() / 2],
        },
        "benchmark/copies.md": {"Of 1494 pairs": [copies["precision"]]},
        "benchmark/real-annotations.md": {
            "Charades-STA agrees": [
                SETTING,
                read("real_annotations/results/tacos-val.json")["statistics"]["moment_hours"],
            ],
            "(The paper counts candidates": [similar["40"]],
            "Nobody has rated these": [
                raters(),
                read("real_annotations/results/tvr-val.json")["splits"]["test"]["made_raters"]["noise"],
            ],
            "So 18.1 %": [SETTING, SETTING],
            "On Charades-STA the stronger": [
                charades("strong-nonms", "R@5,IoU>0.5"),
                charades("strong-nonms", "R@1,IoU>0.5"),
                charades("strong", "R@1,IoU>0.5"),
            ],
        },
        "benchmark/reel-ideas.md": ideas(),
    }


@pytest.mark.parametrize("page", list(stored()))
def test_each_result_of_a_sentence_is_stored(page: str) -> None:
    """A wrong digit, a figure without a result, a sentence that was added and that nothing computes."""
    numbers = stored()[page]
    found, wrong = compared(page, sentences(DOCS / page), numbers)
    assert sorted(found) == sorted(numbers)
    assert wrong == [], "\n".join(wrong)


def test_no_figure_stands_without_its_results() -> None:
    """A sentence that says itself that nothing was kept, and prints a figure all the same."""
    pages = [*(DOCS / "benchmark").glob("*.md"), *(DOCS / "papers").glob("*.md"), DOCS / "figures.md"]
    loose = [
        f"{page.name}:{line}"
        for page in pages
        for line, text in paragraphs(page)
        for sentence in re.split(r"(?<=[.)]) (?=[A-Z(*])", text)
        if "no results" in sentence.lower() and figures(sentence, PROSE)
    ]
    assert loose == []
