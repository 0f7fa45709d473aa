"""Each result in the sentences about the comparison is the stored number, rounded once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import printed
from comparison.figures import OVER
from comparison.plan import STRATEGIES
from moviola.study.measures import permutation_test
from printed import PROSE, differences, figures
from stored import LARGE, OVERLAPS, ROOT, THIRD, Comparison, cell

PAGE = ROOT / "docs" / "benchmark" / "README.md"
Numbers = list[float | None]
PAPERS = None
"""A figure of a paper's, or one below which nothing is said."""


def paragraphs() -> Iterator[tuple[int, str]]:
    """Line and text of the paragraphs and bullets from "What it shows" to the next study, tables left out."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first, last = (lines.index(f"## {title}") for title in ("What it shows", "AxIoU on trained models"))
    begun, own = first, list[str]()
    for number, line in enumerate([*lines[first:last], ""], first + 1):
        text = line.strip()
        if not text or text.startswith(("- ", "|", "#")):
            if own:
                yield begun, " ".join(own)
            own = []
        if text and not text.startswith(("|", "#")):
            begun = begun if own else number
            own.append(text)


def three(*jobs: str) -> Numbers:
    return [number for job in jobs for number in THIRD.three(job)]


def ndcg(*jobs: str) -> Numbers:
    return [THIRD.ndcg(job) for job in jobs]


def spreads(*jobs: str) -> Numbers:
    return [number for job in jobs for number in THIRD.spread(job)]


def ahead(job: str, other: str) -> float:
    """With the first seed."""
    return THIRD.ndcg(job) / THIRD.ndcg(other) - 1


def mean_ahead(job: str, other: str) -> float:
    return THIRD.spread(job)[0] / THIRD.spread(other)[0] - 1


def thinned_ahead(job: str, other: str) -> float:
    """The same, duplicates dropped from both, each by the better of the two thresholds."""
    best = [
        max(
            own["nDCG@20,IoU>=0.5"] for own in [THIRD.job(name)["test"], *THIRD.job(name)["thinned"].values()]
        )
        for name in (job, other)
    ]
    return float(best[0] / best[1] - 1)


def minus(job: str, other: str) -> Numbers:
    """Differences of the seeds at the three overlaps, seed by seed."""
    return [
        first["test"][over] - second["test"][over]
        for first, second in zip(THIRD.seeds(job), THIRD.seeds(other), strict=True)
        for over in OVER
    ]


def p_of(comparison: Comparison, job: str, other: str) -> float:
    """The largest p of the paired permutation tests at the three overlaps, first seed."""
    gains = [
        np.array(comparison.job(job)["per_query"][over]) - np.array(comparison.job(other)["per_query"][over])
        for over in OVER
    ]
    return max(permutation_test(own) for own in gains)


def last_and_best_before(comparison: Comparison, job: str) -> Numbers:
    """Val at the last evaluation of a training, and the best of those before."""
    *before, last = (row[2] for row in comparison.job(job)["phases"][-1]["curve"])
    return [last, max(before)]


def bound(job: str) -> float:
    """A stage 1's practical bound."""
    return float(THIRD.job(job)["bound"])


def with_seeds(job: str) -> list[str]:
    return [job, f"{job}-seed1", f"{job}-seed2"]


def recalls(job: str) -> Numbers:
    return [own["segments"]["recall@200"] for own in THIRD.seeds(job)]


def vals(job: str) -> Numbers:
    found = [own["val"]["nDCG@20,IoU>=0.5"] for own in THIRD.seeds(job)]
    return [min(found), max(found)]


def first_right(*jobs: str) -> Numbers:
    return [THIRD.recall(job, "VR R@1") for job in jobs]


def lost(job: str, other: str) -> float:
    return 1 - THIRD.ndcg(job) / THIRD.ndcg(other)


def gained(job: str, fifth: str) -> Numbers:
    more, less = LARGE.ndcg(job), LARGE.ndcg(fifth)
    return [more - less, more / less - 1]


def of_type(job: str, kind: str) -> float:
    return THIRD.types(job, (kind,))[0]


def answering(kind: str, known: str = "all of the file") -> float:
    where = {"N": "20", "answers known": known, "type": kind}
    return cell("benchmarks/hard_negatives.csv", "hold a relevant moment", where)


def untrained(preset: str, stage1: str, column: str) -> float:
    return cell(f"docs/benchmark/{preset}/untrained-and-trained.csv", column, {"stage 1": stage1})


def counted(preset: str, column: str, *segments: str) -> Numbers:
    name = f"docs/benchmark/{preset}/number-of-segments.csv"
    return [cell(name, column, {"segments": number}) for number in segments]


def apart(baseline: str) -> Numbers:
    return [*spreads(f"{baseline}-apart"), *spreads(f"{baseline}-n20")]


def strategies() -> Numbers:
    """Distances of SPR_ReLo-S from standard training, and what twice the queries give."""
    standard = THIRD.spread("spr-relo-n40")[0]
    weak = [
        standard - THIRD.spread(f"spr-relo-{name}")[0] for name in STRATEGIES if "-" in name and "0" in name
    ]
    more = ("spr-relo-5-20-more-queries", "spr-relo-standard-more-queries")
    return [
        THIRD.spread("spr-clip-5-20", 0.3)[0],
        THIRD.spread("spr-clip-n40", 0.3)[0],
        PAPERS,
        PAPERS,
        PAPERS,
        min(weak),
        max(weak),
        *THIRD.spread("spr-relo-hard-negative", 0.7),
        *THIRD.spread("spr-relo-n40", 0.7),
        THIRD.ndcg(more[0]),
        THIRD.val(more[0]),
        THIRD.ndcg(more[1]),
        THIRD.val(more[1]),
        THIRD.ndcg("spr-relo-n40") - THIRD.ndcg("spr-relo-5-20"),
        THIRD.ndcg(more[1]) - THIRD.ndcg(more[0]),
        answering("v", "those N"),
        answering("v"),
        answering("vt"),
    ]


def stored() -> dict[str, Numbers]:
    """By the first words of a paragraph the numbers that it prints, in order."""
    longer = (
        "conquer-exclusive-longer",
        "conquer-exclusive-n20",
        "conquer-general-longer",
        "conquer-general-n20",
    )
    excl, excl_n, gen, gen_n = longer
    reel, second = minus("reel-n20", "spr-relo-n20"), minus("reel-second", "spr-relo-n20")
    editions = [THIRD.spread("reel-second", o)[0] - THIRD.spread("reel-n20", o)[0] for o in OVERLAPS]
    weight = THIRD.job("reel-n20")
    return {
        "First seed alone": [
            *three("prem-longer"),
            THIRD.val("prem-longer"),
            THIRD.late_gain("prem-longer"),
            *three("spr-relo-large-longer"),
            THIRD.val("spr-relo-large-longer"),
            THIRD.late_gain("spr-relo-large-longer"),
            *three("spr-relo-lines", "spr-relo-lines-apart"),
            *three("reel-lines", "reel-second-lines"),
        ],
        "Rows of studies have one seed": [PAPERS],
        "- **SPR is ahead of every baseline": [
            mean_ahead("spr-relo-n20", excl_n),
            mean_ahead("spr-relo-n20", "prem-n20"),
            PAPERS,
            ahead("spr-relo-n20", excl),
            mean_ahead("spr-relo-n20", "prem-apart"),
            *spreads("prem-apart"),
            ahead("spr-relo-large-n20", "prem-n20"),
            thinned_ahead("spr-relo-large-n20", "prem-n20"),
            ahead("spr-relo-large-longer", "prem-n20"),
            thinned_ahead("spr-relo-large-longer", "prem-n20"),
        ],
        "- **CONQUER (exclusive) and PREM are the best": [
            max(
                own
                for name in with_seeds(gen_n) + with_seeds(excl_n) + with_seeds("conquer-disjoint-n20")
                for own in [THIRD.late_gain(name)]
            ),
            *three(excl, excl_n),
            THIRD.job(excl)["selected"],
            THIRD.job(excl_n)["selected"],
            THIRD.late_gain(excl),
            *three(gen, gen_n),
            THIRD.job(gen)["selected"],
            THIRD.job(gen_n)["selected"],
            THIRD.late_gain(gen),
            ahead("spr-relo-large-longer", excl),
        ],
        "- **Reel is ahead of SPR_ReLo-S**": [
            *reel,
            *minus("reel-n20", "spr-clip-n20"),
            p_of(THIRD, "reel-n20", "spr-clip-n20"),
            *minus("reel-n20", "spr-relo-large-n20"),
            THIRD.late_gain("spr-relo-large-n20-seed2"),
            weight["proposal_weight"],
            *(weight["without_proposals"]["test"][over] for over in OVER),
        ],
        "- **SPR_CLIP is not ahead": [THIRD.ndcg("spr-relo-1.5s", 0.7), THIRD.ndcg("spr-relo-n20", 0.7)],
        "**For SPR_CLIP standard training": strategies(),
        "**1 is the worst for every model**": [*vals(excl_n), *vals("conquer-exclusive-n40")],
        "- **With streams apart they are found": [
            *(
                number
                for own in ("xml", "reloclnet", "prem")
                for number in THIRD.spread_of_type(f"{own}-apart", "t")
            ),
            *(number for own in ("xml", "reloclnet", "prem") for number in apart(own)),
            *THIRD.spread_of_type("prem-apart", "v"),
            *THIRD.spread_of_type("prem-image", "v"),
        ],
        "- **Hard negatives do not help": ndcg(
            "xml-n20", "xml-without-hard", "reloclnet-n20", "reloclnet-without-hard"
        ),
        "- **PREM's parts**": [
            *ndcg(*with_seeds("prem-n20")),
            *ndcg(
                *(
                    f"prem-{part}"
                    for part in (
                        "mean-pooling",
                        "no-gate",
                        "no-shared-norm",
                        "no-adversarial",
                        "no-weak",
                        "text",
                        "image",
                        "max-pooling",
                        "no-query-term",
                        "video-only",
                    )
                )
            ),
            *first_right("prem-video-only"),
            *ndcg("prem-truth", "prem-video-only-truth"),
            *first_right("prem-video-only-truth"),
            THIRD.late_gain("prem-n20"),
        ],
        "- **Of the practical upper bound** (.820": [
            bound("spr-stage1-n20"),
            *map(THIRD.part_of_bound, ("spr-relo-n20", "spr-relo-large-n20", "spr-relo-large-longer")),
            PAPERS,
            *map(THIRD.part_of_bound, ("reel-n20", "reel-n20-seed2", "reel-second", "reel-second-seed2")),
            THIRD.job("spr-stage1-n20")["with_lines"]["beside"],
            THIRD.part_of_bound("reel-second-lines", lines=True),
        ],
        "- **What only subtitles answer is found where": [
            *(of_type(f"{row}-lines", "t") for row in ("reel", "spr-relo", "conquer-disjoint")),
            *(of_type(f"{row}-n20", "t") for row in ("reel", "spr-relo", "conquer-disjoint")),
            of_type("spr-relo-lines-apart", "t"),
            of_type("spr-relo-lines-apart", "v"),
            of_type("spr-relo-lines", "v"),
            PAPERS,  # measured once, see benchmarks/README.md
            *(
                number
                for row in ("reloclnet-n20", "xml-n20", "prem-n20")
                for number in THIRD.spread_of_type(row, "t")
            ),
        ],
        "- **Ten subtitle lines instead of ten": [
            THIRD.job(job)["with_lines"]["bound"]
            for first in ("reel-stage1-n20", "spr-stage1-n20")
            for job in with_seeds(first)
        ],
        "- **The order of the figures stays**": [
            *(LARGE.ndcg("reel-n20", over) - LARGE.ndcg("spr-clip-n20", over) for over in OVERLAPS),
            p_of(LARGE, "reel-n20", "spr-clip-n20"),
            LARGE.ndcg("spr-clip-n20") / LARGE.ndcg("xml-longer"),
            LARGE.late_gain("prem-longer"),
            *last_and_best_before(LARGE, "prem-longer"),
            *(LARGE.ndcg("spr-relo-longer", over) - LARGE.ndcg("spr-relo-n20", over) for over in (0.5, 0.7)),
            max(THIRD.late_gain(name) for name in with_seeds("spr-relo-n20")),
        ],
        "- **Of the practical upper bound** (.812": [
            LARGE.job("spr-stage1-n20")["bound"],
            *map(LARGE.part_of_bound, ("spr-relo-n20", "spr-relo-longer", "spr-clip-n20", "reel-n20")),
            THIRD.part_of_bound("reel-n20"),
            *counted("large", "PUB", "100", "200"),
            *counted("large", "Reel nDCG@20,IoU>=0.5", "100", "200"),
        ],
        "- **+SL and +PR on XML**": [
            *spreads("xml-pr", "xml-sl-pr", "xml-n1", "xml-sl"),
            *ndcg("xml-pr-related", "xml-sl-pr-related", "xml-n1", "xml-pr-c1", "xml-pr-c1-related"),
        ],
        "- **Labels by MiniLM**": [
            lost("spr-relo-minilm", "spr-relo-n20"),
            *ndcg("spr-relo-minilm", "spr-relo-n20"),
            lost("reel-minilm", "reel-n20"),
            *ndcg("reel-minilm"),
            lost("xml-minilm", "xml-n20"),
            *ndcg("xml-minilm"),
            PAPERS,
            *ndcg(
                "spr-relo-truth",
                "reel-truth",
                "reel-n20",
                "xml-truth",
                "prem-truth",
                "spr-stage1-truth",
                "spr-stage1-n20",
            ),
        ],
        "- **Twice the training queries**": ndcg(
            "xml-more-queries",
            "xml-n20",
            "spr-relo-5-20-more-queries",
            "spr-relo-5-20",
            "spr-relo-standard-more-queries",
            "spr-relo-n40",
            "reel-more-queries",
            "reel-n20",
        ),
        "- **Reel's second edition**": [
            *editions,
            *second,
            *minus("reel-second", "spr-clip-n20"),
            *(
                THIRD.ndcg("reel-second", over) - THIRD.ndcg("spr-relo-large-longer", over)
                for over in OVERLAPS
            ),
            p_of(THIRD, "reel-second", "spr-relo-large-longer"),
        ],
        "- **More segments never hurt Reel**": counted(
            "third", "Reel nDCG@20,IoU>=0.5", "10", "20", "50", "100", "200"
        ),
        "- **A trained stage 1 is no better": [
            THIRD.ndcg("spr-stage1-n20"),
            untrained("third", "CLIP, mean pooled", "nDCG@20,IoU>=0.5"),
            recalls("spr-stage1-n20")[0],
            untrained("third", "CLIP, mean pooled", "recall@200"),
            *ndcg("spr-stage1-share0.1", "spr-stage1-n20", "spr-stage1-share0.5", "spr-stage1-share0.7"),
        ],
        "- **Reel's own stage 1**": [
            *recalls("reel-stage1-n20"),
            *recalls("spr-stage1-n20"),
            *three(*with_seeds("reel-own")),
            *three(*with_seeds("reel-n20")),
            bound("spr-stage1-n20"),
            *map(bound, with_seeds("reel-stage1-n20")),
        ],
        "- **Everything gains by five times": [
            *(
                number
                for row in ("spr-clip", "spr-relo", "reel", "prem", "xml", "spr-stage1")
                for number in gained(f"{row}-n20", f"{row}-fifth")
            ),
            *gained("prem-longer", "prem-fifth-longer"),
            *gained("xml-longer", "xml-fifth-longer"),
            *map(LARGE.ndcg, ("xml-fifth-longer", "xml-fifth", "prem-fifth-longer", "prem-fifth")),
        ],
        "- **t queries are learned from enough": [
            *(
                LARGE.types(job, ("t",))[0]
                for job in ("xml-n20", "xml-fifth", "xml-longer", "xml-fifth-longer")
            ),
            max(
                LARGE.types(job, ("t",))[0]
                for job in ("prem-n20", "prem-fifth", "prem-longer", "prem-fifth-longer")
            ),
        ],
        "- **A trained stage 1 is now better": [
            LARGE.ndcg("spr-stage1-n20", 0.3),
            untrained("large", "CLIP, mean pooled", "nDCG@20,IoU>=0.3"),
            untrained("large", "trained, top 20, share 0.3", "recall@200"),
            untrained("large", "CLIP, mean pooled", "recall@200"),
            PAPERS,
        ],
    }


def test_each_result_of_a_sentence_is_stored() -> None:
    """A wrong digit, a figure that was rounded twice, a row that was changed and not its sentence."""
    numbers, found = stored(), dict.fromkeys(stored(), 0)
    wrong = []
    for line, text in paragraphs():
        for begin, own in numbers.items():
            if text.startswith(begin):
                found[begin] += 1
                wrong += differences(f"README.md:{line} {begin}", figures(text, PROSE), own)
    assert [begin for begin, count in found.items() if count != 1] == []
    assert wrong == [], "\n".join(wrong)


def test_each_result_of_the_other_sections_is_stored() -> None:
    """A sentence before or behind the studies above whose figure nothing computes."""
    others: dict[str, Numbers] = {
        "**Two streams.**": [PAPERS],
        "**Budgets of steps": [None],
        "Trained on all types": [None],
        "With a shared encoder PREM": [
            own["types"]["t"]["nDCG@20,IoU>=0.5"] for own in THIRD.seeds("prem-apart")
        ],
    }
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first, last = (lines.index(f"## {title}") for title in ("What it shows", "AxIoU on trained models"))
    texts = ((line, text) for line, text in printed.paragraphs(PAGE) if not first < line <= last)
    found, wrong = printed.compared("README.md", texts, others)
    assert sorted(found) == sorted(others)
    assert wrong == [], "\n".join(wrong)
