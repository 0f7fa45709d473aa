"""Each figure of the page on one pool is the stored one, and no finished row is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import printed
from comparison.plan import REGULARISED, RISING, THETAS
from moviola.study.measures.significance import permutation_test
from stored import OVERLAPS, ROOT, SMALL, Numbers

PAGE = ROOT / "docs" / "benchmark" / "pool.md"
FOLDER = ROOT / "benchmarks" / "comparison" / SMALL.name
ROWS = {
    "stage 1, coarse proposals": "spr-stage1", "ReLoCLNet": "reloclnet", "XML": "xml",
    "CONQUER, general": "conquer-general", "CONQUER, exclusive": "conquer-exclusive", "PREM": "prem",
    "PREM†": "prem-given", "SPR_ReLo-S": "spr-relo", "SPR_CLIP": "spr-clip", "Reel": "reel",
}  # fmt: skip
KINDS = ("longer", "unseen", "scrambled", "aligned")
PAIRS = {
    "XML": "xml-n1", "+SL": "xml-sl", "+PR": "xml-pr", "+SL +PR": "xml-sl-pr", "+PR, C ≡ 1": "xml-pr-c1",
    "+PR, θ = .9": "xml-pr-related", "+SL +PR, θ = .9": "xml-sl-pr-related",
    "+PR, C ≡ 1, θ = .9": "xml-pr-c1-related",
    **{f"+PR, θ = {str(theta).removeprefix('0')}": f"xml-pr-{theta}" for theta in THETAS},
}  # fmt: skip
READINGS = {
    "standard": "spr-relo-n40", "5++, 20+, weak ones below": "spr-relo-5-20",
    "5++, 20+, weak ones trained": "spr-relo-5-20-trained",
}  # fmt: skip
KEPT_FROM = {"as it is": "", **{kind: f"-{kind}" for kind in REGULARISED}}
BASELINES = ("reloclnet", "xml", "conquer-general", "conquer-exclusive", "prem", "prem-given")
Stored = Numbers | list[float | None]


def there(job: str) -> bool:
    return (FOLDER / f"{job}.json").is_file()


def main_row(model: str) -> tuple[list[str], list[Stored]]:
    return with_seeds(f"{model}-n20")


def first_seed(model: str) -> tuple[list[str], list[Stored]]:
    jobs = [f"{model}-n20", *(f"{model}-{kind}" for kind in KINDS)]
    return jobs, [[SMALL.ndcg(job)] if there(job) else [] for job in jobs]


def by_n(model: str) -> tuple[list[str], list[Stored]]:
    jobs = [f"{model}-n{n}" for n in (1, 20, 40)]
    return jobs, [SMALL.spread(job) if there(job) else [] for job in jobs]


def with_seeds(job: str) -> tuple[list[str], list[Stored]]:
    """Mean and deviation at each overlap, the number of seeds, and how val rose in the last quarter."""
    cells: list[Stored] = [SMALL.spread(job, over) for over in OVERLAPS]
    return [job], [*cells, [float(len(SMALL.seeds(job)))], [SMALL.late_gain(job)]]


def reading(job: str) -> tuple[list[str], list[Stored]]:
    return [job], [*([SMALL.ndcg(job, over)] for over in OVERLAPS), [SMALL.val(job)]]


def regularised(ending: str) -> tuple[list[str], list[Stored]]:
    jobs = [f"{row}-unseen{ending}" for row in ("xml", "reloclnet")]
    return jobs, [[value(job)] if there(job) else [] for job in jobs for value in (SMALL.val, SMALL.ndcg)]


TABLES: dict[str, tuple[Mapping[str, str], Callable[[str], tuple[list[str], list[Stored]]]]] = {
    "| model | IoU ≥ 0.3": (ROWS, main_row),
    "| IoU ≥ 0.5, first seed": (ROWS, first_seed),
    "| model, N": (ROWS, by_n),
    "| N = 1": (PAIRS, with_seeds),
    "| strategy": (READINGS, reading),
    "| unseen films": (KEPT_FROM, regularised),
}


def test_the_tables_have_every_finished_row() -> None:
    """A dash is a row that is not trained; a row whose file is there must be shown."""
    shown, wrong = set[str](), list[str]()
    for head, (names, stored) in TABLES.items():
        (table,) = (table for table in printed.tables(PAGE) if table.head.startswith(head))
        for row in table.rows:
            jobs, cells = stored(names[row.label])
            shown |= {job for job in jobs if there(job)}
            for cell, numbers in zip(row.cells[1:], cells, strict=True):
                assert (cell == "–") == (numbers == []), (row.label, cell)
                wrong += printed.differences(f"{head}: {row.label}", printed.figures(cell), numbers)
    assert wrong == [], "\n".join(wrong)
    first = {path.stem for path in FOLDER.glob("*.json") if "-seed" not in path.stem}
    assert shown == first


def ndcg(*jobs: str) -> list[float | None]:
    return [SMALL.ndcg(job) for job in jobs]


def p_of(job: str, other: str) -> float:
    """Of the difference between the queries of two rows."""
    both = (SMALL.job(own) for own in (job, other))
    first, second = (np.array(own["per_query"]["nDCG@20,IoU>=0.5"]) for own in both)
    return permutation_test(first - second)


def ahead(job: str, other: str) -> float:
    return SMALL.ndcg(job) / SMALL.ndcg(other) - 1


def mean(job: str, over: float = 0.5) -> float:
    return SMALL.spread(job, over)[0]


def test_sentences_have_stored_figures() -> None:
    spr, clip, rival, stage1 = "spr-relo-n20", "spr-clip-n20", "xml-longer", "spr-stage1-n20"
    below, standard = "spr-relo-5-20", "spr-relo-n40"
    sentences: dict[str, list[float | None]] = {
        "- **SPR is ahead": [
            *ndcg(spr, rival), ahead(spr, rival), p_of(spr, rival), None, *ndcg("spr-relo-unseen"),
            SMALL.late_gain("conquer-exclusive-unseen"), *ndcg("conquer-exclusive-unseen"),
        ],
        "- **Not by what": [
            *ndcg("spr-relo-scrambled", spr), p_of(spr, "spr-relo-scrambled"),
            *ndcg("spr-clip-scrambled", clip), p_of(clip, "spr-clip-scrambled"),
            *ndcg("xml-aligned", "xml-n20", "reloclnet-aligned", "reloclnet-n20", "prem-aligned", "prem-n20"),
        ],
        "- **ReLoCLNet": [
            *SMALL.spread("reloclnet-n20"), *SMALL.spread("xml-n20"), *ndcg("reloclnet-longer"),
            SMALL.late_gain("reloclnet-longer"), *ndcg(rival),
        ],
        "- **Steps decide": [
            *ndcg("prem-n20", "prem-given-n20", "xml-n20", rival), SMALL.late_gain("prem-longer"),
            *ndcg("prem-longer", "prem-unseen", "xml-unseen"),
        ],
        "- **Another first": [*ndcg("prem-given-n20", "prem-n20"), p_of("prem-given-n20", "prem-n20")],
        "- **A trained stage 1": [
            *ndcg(stage1), SMALL.untrained(stage1), *ndcg("spr-stage1-scrambled"),
            SMALL.untrained("spr-stage1-scrambled"),
        ],
        "XML finds less": [
            SMALL.job("xml-pr")["related"],
            4_045_230 / (12_404 * 12_403),  # Charades-STA's training captions, see docs/papers/003
            *map(SMALL.late_gain, ("xml-sl-pr", "xml-n1")),
            SMALL.job("xml-pr-related")["related"],
            *ndcg("xml-pr-related", "xml-n1"), p_of("xml-pr-related", "xml-n1"),
            *(SMALL.recall(job, "VR R@1") for job in ("xml-n1", "xml-sl", "xml-pr", "xml-sl-pr")),
        ],
        "Where films are apart val": [None],  # a setting
        "For XML val chooses": [
            *map(SMALL.val, ("xml-unseen-decay", "xml-unseen")),
            *ndcg("xml-unseen-decay", "xml-unseen", "xml-unseen-mean"),
            p_of("xml-unseen-mean", "xml-unseen"), *ndcg("xml-unseen-dropout", "xml-unseen-rate"),
        ],
        "For ReLoCLNet, too": [
            *map(SMALL.val, ("reloclnet-unseen-decay", "reloclnet-unseen")),
            *ndcg("reloclnet-unseen-decay", "reloclnet-unseen"),
        ],
        "SPR_ReLo-S at N = 40": [
            *ndcg(below, standard), p_of(below, standard), *ndcg(f"{below}-trained"),
            p_of(f"{below}-trained", below), p_of(f"{below}-trained", standard),
        ],
        "- **SPR_CLIP": [
            mean(clip, 0.7) / mean(spr, 0.7) - 1, None, *ndcg("spr-clip-unseen", "spr-relo-unseen"),
        ],
    }  # fmt: skip
    found, wrong = printed.compared("pool.md", printed.paragraphs(PAGE), sentences)
    assert sorted(found) == sorted(sentences)
    assert wrong == [], "\n".join(wrong)


def test_what_sentences_say_of_order_is_so() -> None:
    spr, clip, rival = "spr-relo-n20", "spr-clip-n20", "xml-longer"
    others = [f"{name}-n20" for name in BASELINES] + ["xml-longer", "reloclnet-longer", "prem-longer"]
    assert max(others, key=SMALL.ndcg) == rival
    ahead_of_all = (spr, clip, "spr-relo-scrambled", "spr-clip-scrambled")
    assert all(
        SMALL.ndcg(own, over) > SMALL.ndcg(name, over)
        for own in ahead_of_all
        for name in others
        for over in OVERLAPS
    )
    still = (spr, rival, "xml-unseen", "xml-n1", "xml-pr-related", "spr-relo-5-20", "spr-relo-n40")
    assert all(SMALL.late_gain(name) < RISING for name in still)
    rising = ("prem-given-n20", "prem-n20", "xml-n20", "reloclnet-longer", "prem-longer")
    assert all(SMALL.late_gain(name) > RISING for name in (*rising, "conquer-exclusive-unseen"))
    assert all(mean(clip, over) > mean(spr, over) for over in OVERLAPS)
    assert all(SMALL.ndcg("spr-clip-unseen", over) < SMALL.ndcg("spr-relo-unseen", over) for over in OVERLAPS)
    several = [name for name in ROWS.values() if len(SMALL.seeds(f"{name}-n20")) > 1]
    assert max(several, key=lambda name: SMALL.spread(f"{name}-n20")[1]) == "reloclnet"
    for row in ("xml", "reloclnet"):
        tried = [ending for ending in KEPT_FROM.values() if there(f"{row}-unseen{ending}")]
        values = {ending: SMALL.val(f"{row}-unseen{ending}") for ending in tried}
        assert max(values, key=values.__getitem__) == "-decay"
