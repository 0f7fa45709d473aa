"""Each result in the sentences of the papers' pages is the stored number, rounded once."""

from __future__ import annotations

from math import comb

import pytest

from printed import compared, sentences
from stored import ROOT, SMALL, THIRD, cell, rows

PAPERS = ROOT / "docs" / "papers"
NDCG = "nDCG@20,IoU>=0.5"
Numbers = list[float | None]


def spreads(*jobs: str) -> Numbers:
    return [number for job in jobs for number in THIRD.spread(job)]


def in_pool(*jobs: str) -> Numbers:
    return [number for job in jobs for number in SMALL.spread(job)]


def small(row: str, seed: str = "0", column: str = NDCG) -> float:
    """A row of 003's sweeps in small."""
    return cell("benchmarks/related_captions.csv", column, {"row": row, "seed": seed})


def equal_confidence() -> dict[str, float]:
    """By row, how much better it is with C = 1, to the digits that are printed."""
    whole = {"pr": "pr-np-vp-0.9", "sl-pr": "sl-pr-np-vp-0.9"}
    found = {}
    for row in rows("benchmarks/related_captions.csv"):
        if row["row"].endswith("-c1"):
            other = row["row"].removesuffix("-c1")
            found[other] = round(float(row[NDCG]) - small(whole.get(other, other), row["seed"]), 3)
    return found


def sign_test() -> float:
    """Two-sided p of the signs of :func:`equal_confidence`, equal ones left out."""
    signs = [gain > 0 for gain in equal_confidence().values() if abs(gain) > 0.001]
    fewer = min(signs.count(True), signs.count(False))
    return float(min(1.0, 2 * sum(comb(len(signs), n) for n in range(fewer + 1)) / 2 ** len(signs)))


def loss_left(job: str) -> float:
    """The share of the sum of its losses that a training ends with."""
    first, *_, last = (sum(own.values()) for own in THIRD.job(job)["phases"][-1]["losses"])
    return float(last / first)


def first_right(job: str) -> float:
    return THIRD.over_seeds(job, lambda own: own["recall"]["VR R@1"])[0]


def stored() -> dict[str, dict[str, Numbers]]:
    """By page, and the first words of a paragraph, the numbers that it prints, in order."""
    xml = [small("xml"), small("xml", "1")]
    kinds = ("xml-n1", "xml-sl", "xml-pr", "xml-sl-pr")
    prem = [own["test"][NDCG] for own in THIRD.seeds("prem-n20")]
    parts = ("mean-pooling", "no-gate", "no-shared-norm", "no-adversarial", "no-weak")
    gains = equal_confidence()
    better = [gain for gain in gains.values() if gain > 0.001]
    return {
        "003-relevant-pairs.md": {
            "§4.2, Eq. 9: the sum": [None],  # a weight
            "**What came out.**": [
                *spreads(*kinds),
                *map(first_right, kinds),
                0.01,
                *xml,
                small("pr-sent-0.7", column="related"),
                small("pr-np-vp-0.9", column="related"),
                4_045_230 / (12_404 * 12_403),
                *(THIRD.ndcg(job) for job in ("xml-pr-related", "xml-sl-pr-related", "xml-n1")),
            ],
            "**In one pool, on pictures": in_pool(
                "xml-n1",
                "xml-sl",
                "xml-pr",
                "xml-sl-pr",
                "xml-pr-related",
                "xml-pr-c1",
                "xml-pr-c1-related",
                "xml-pr-sent",
                "xml-pr-vp",
            ),
            "**The sweeps and the ablation": [*xml, xml[0] - xml[1]],
            "- *The threshold.*": [
                small("pr-sent-0.5"),
                small("pr-sent-0.5", column="related"),
                small("pr-sent-0.7"),
                small("pr-sent-0.9"),
                small("pr-sent-0.9", column="related"),
                *(small(f"sl-pr-sent-{theta}") for theta in (0.5, 0.7, 0.9)),
            ],
            "- *Φ.*": [
                small("pr-sent-0.9"),
                small("pr-vp-0.9"),
                (small("pr-np-vp-0.9") + small("pr-np-vp-0.9", "1")) / 2,
            ],
            "- *Whether C ≡ 1": [
                sign_test(),
                min(better),
                max(better),
                small("sl-pr-without-spans"),
                small("sl-pr-without-spans-c1"),
                -min(gains.values()),
            ],
            "- *The terms*": [
                small("pr-without-videos"),
                small("pr-np-vp-0.9"),
                small("sl-pr-without-videos"),
                small("sl-pr-np-vp-0.9"),
                small("pr-without-spans"),
                small("sl-pr-without-spans"),
                small("sl-pr-without-moments"),
            ],
            "- *+SL* has": [small("sl"), small("sl", "1"), *xml],
        },
        "004-prem.md": {
            "**What came out.**": [
                *spreads("prem-n20", "xml-n20", "reloclnet-n20", "conquer-exclusive-n20"),
                THIRD.ndcg("prem-longer"),
                *(THIRD.ndcg(f"prem-{part}") for part in parts),
                min(prem),
                max(prem),
                THIRD.ndcg("prem-n20"),
                THIRD.ndcg("prem-video-only"),
                THIRD.ndcg("prem-truth"),
                THIRD.ndcg("prem-n20"),
                THIRD.ndcg("prem-video-only-truth"),
                THIRD.ndcg("prem-video-only"),
            ],
            "**In one pool**": in_pool("prem-n20", "xml-n20", "prem-longer", "xml-longer", "prem-given-n20"),
        },
    }


@pytest.mark.parametrize("page", list(stored()))
def test_each_result_of_a_sentence_is_stored(page: str) -> None:
    """A wrong digit, a figure without a result, a sentence that was added and that nothing computes."""
    numbers = stored()[page]
    found, wrong = compared(page, sentences(PAPERS / page), numbers)
    assert sorted(found) == sorted(numbers)
    assert wrong == [], "\n".join(wrong)


def test_what_the_sentences_say_of_seeds_holds() -> None:
    """PREM ahead of both with each seed, parts below all seeds, +PR behind with each, memorised pairs."""
    seeds = {
        job: [own["test"][NDCG] for own in THIRD.seeds(job)]
        for job in ("prem-n20", "xml-n20", "reloclnet-n20", "xml-n1", "xml-pr", "xml-sl-pr")
    }
    assert min(seeds["prem-n20"]) > max(seeds["xml-n20"] + seeds["reloclnet-n20"])
    parts = ("mean-pooling", "no-gate", "no-shared-norm", "no-adversarial", "no-weak")
    assert max(THIRD.ndcg(f"prem-{part}") for part in parts) < min(seeds["prem-n20"])
    for job in ("xml-pr", "xml-sl-pr"):
        assert all(pr < xml for pr, xml in zip(seeds[job], seeds["xml-n1"], strict=True))
    assert loss_left("xml-n1") < 0.01
    gains = equal_confidence().values()
    assert [len(gains), sum(gain > 0.001 for gain in gains), sum(abs(gain) <= 0.001 for gain in gains)] == [
        7,
        5,
        1,
    ]
