"""Each figure of the page on one pool is the stored one, and no finished row is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import printed
from comparison.plan import PRESETS, REGULARISED, RISING, THETAS, jobs, seed_mark
from moviola.study.measures.significance import permutation_test
from stored import OVERLAPS, ROOT, SMALL, Comparison, Numbers

PAGE = ROOT / "docs" / "benchmark" / "pool.md"
FOLDER = ROOT / "benchmarks" / "comparison" / SMALL.name
ROWS = {
    "stage 1, coarse proposals": "spr-stage1", "ReLoCLNet": "reloclnet", "XML": "xml",
    "CONQUER, general": "conquer-general", "CONQUER, exclusive": "conquer-exclusive", "PREM": "prem",
    "PREM†": "prem-given", "SPR_ReLo-S": "spr-relo", "SPR_CLIP": "spr-clip", "Reel": "reel",
}  # fmt: skip
OTHER_FILMS = Comparison(f"{SMALL.name}/films7")
KINDS = ("longer", "unseen", "scrambled", "aligned")
PAIRS = {
    "XML": "xml-n1", "+SL": "xml-sl", "+PR": "xml-pr", "+SL +PR": "xml-sl-pr", "+PR, C ≡ 1": "xml-pr-c1",
    "+PR, θ = .9": "xml-pr-related", "+SL +PR, θ = .9": "xml-sl-pr-related",
    "+PR, C ≡ 1, θ = .9": "xml-pr-c1-related", "+PR, θ = .9, sentences": "xml-pr-sent",
    "+PR, θ = .9, verb phrases": "xml-pr-vp",
    **{f"+PR, θ = {str(theta).removeprefix('0')}": f"xml-pr-{theta}" for theta in THETAS},
}  # fmt: skip
READINGS = {
    "standard": "spr-relo-n40", "5++, 20+, weak ones below": "spr-relo-5-20",
    "5++, 20+, weak ones trained": "spr-relo-5-20-trained",
}  # fmt: skip
KEPT_FROM = {"as it is": "", **{kind: f"-{kind}" for kind in REGULARISED}}
KEPT = {"xml": "decay", "reloclnet": "decay", "conquer-exclusive": "mean", "prem": "mean"}
"""Regularised baselines, and what val chooses for them."""
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
    """Mean and deviation at each overlap, the number of seeds, and val's greatest late rise."""
    cells: list[Stored] = [SMALL.spread(job, over) for over in OVERLAPS]
    return [job], [*cells, [float(len(SMALL.seeds(job)))], [SMALL.latest_gain(job)]]


def reading(job: str) -> tuple[list[str], list[Stored]]:
    return [job], [*([SMALL.ndcg(job, over)] for over in OVERLAPS), [SMALL.val(job)]]


def regularised(ending: str) -> tuple[list[str], list[Stored]]:
    jobs = [f"{row}-unseen{ending}" for row in KEPT]
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


def test_every_planned_row_is_there() -> None:
    """As the page says; a row that is planned later must be trained."""
    planned = {job.name for job in jobs(PRESETS[SMALL.name])}
    assert planned == {path.stem for path in FOLDER.glob("*.json")}
    said = f"All {len(planned)} planned trainings are there"
    assert said in PAGE.read_text(encoding="utf-8")


def ndcg(*jobs: str) -> list[float | None]:
    return [SMALL.ndcg(job) for job in jobs]


def p_of(job: str, other: str, over: float = 0.5) -> float:
    """Of the difference between the queries of two rows."""
    both = (SMALL.job(own) for own in (job, other))
    first, second = (np.array(own["per_query"][f"nDCG@20,IoU>={over}"]) for own in both)
    return permutation_test(first - second)


def marks(*jobs: str) -> list[str]:
    """The ends of the names of the seeds that all of some rows have."""
    return [seed_mark(seed) for seed in (0, 1, 2) if all(there(f"{job}{seed_mark(seed)}") for job in jobs)]


def p_of_all(job: str, other: str, over: float = 0.5) -> float:
    """The greatest of the seeds that both have."""
    return max(p_of(f"{job}{mark}", f"{other}{mark}", over) for mark in marks(job, other))


def gaps(job: str, other: str, over: float = 0.5) -> list[float]:
    """By how much a row is ahead of another one, with each seed that both have."""
    return [
        SMALL.ndcg(f"{job}{mark}", over) - SMALL.ndcg(f"{other}{mark}", over) for mark in marks(job, other)
    ]


def mean(job: str, over: float = 0.5) -> float:
    return SMALL.spread(job, over)[0]


def spreads(*jobs: str) -> list[float | None]:
    return [number for job in jobs for number in SMALL.spread(job)]


def first_right(job: str) -> float:
    """The share of queries whose first video is right, mean over seeds."""
    return SMALL.over_seeds(job, lambda own: own["recall"]["VR R@1"])[0]


def times_seen(job: str, phase: str = "loop") -> float:
    """How often a training saw each of its 377 queries times N moments, or each query."""
    own = SMALL.job(job)["job"]
    settings = dict(override.split("=", 1) for override in own["overrides"])
    seen = int(settings[f"{phase}.steps"]) * int(settings[f"{phase}.batch_size"])
    return seen / (377 * (1 if own["recipe"] == "reel" else own["top"]))


def ahead(job: str, other: str) -> float:
    return SMALL.ndcg(job) / SMALL.ndcg(other) - 1


def test_sentences_have_stored_figures() -> None:
    spr, clip, rival, stage1 = "spr-relo-n20", "spr-clip-n20", "xml-longer", "spr-stage1-n20"
    below, standard, given, reel = "spr-relo-5-20", "spr-relo-n40", "prem-given-n20", "reel-n20"
    rows, less = [f"{name}-n20" for name in BASELINES], ("spr-clip", "conquer-general", "reel")
    prems, by_phi = ("prem", "prem-given"), ("xml-pr-sent", "xml-pr-vp", "xml-pr-related")
    sentences: dict[str, list[float | None]] = {
        "What it says": [1 / 10_001],
        "- **SPR is ahead": [
            *spreads(spr, given), min(gap for row in rows for gap in gaps(spr, row)),
            max(p_of_all(spr, row) for row in rows),
            *ndcg(rival, spr), ahead(spr, rival), p_of(spr, rival), None, *ndcg("spr-relo-unseen"),
            SMALL.late_gain("conquer-exclusive-unseen"), *ndcg("conquer-exclusive-unseen"),
        ],
        "- **Not by what": [
            *ndcg("spr-relo-scrambled", spr), p_of(spr, "spr-relo-scrambled"),
            *ndcg("spr-clip-scrambled", clip), p_of(clip, "spr-clip-scrambled"),
            *ndcg("xml-aligned", "xml-n20", "reloclnet-aligned", "reloclnet-n20", "prem-aligned", "prem-n20"),
        ],
        "- **ReLoCLNet": [
            *spreads("reloclnet-n20", "xml-n20"), min(gaps("xml-n20", "reloclnet-n20")),
            p_of_all("xml-n20", "reloclnet-n20"), *ndcg("reloclnet-longer"),
            SMALL.late_gain("reloclnet-longer"), *ndcg(rival),
        ],
        "- **Steps decide": [
            mean(given), p_of_all(given, "xml-n20"), *spreads("prem-n20"), *gaps("prem-n20", "xml-n20"),
            *ndcg(rival), SMALL.late_gain("prem-longer"), *ndcg("prem-longer", "prem-unseen", "xml-unseen"),
        ],
        "- **CONQUER": [
            *spreads("conquer-exclusive-n20", "conquer-general-n20"),
            *gaps("conquer-exclusive-n20", "xml-n20"), SMALL.latest_gain("conquer-exclusive-n20"),
        ],
        "- **Another first": [
            *gaps(given, "prem-n20"), *(p_of(f"{given}{mark}", f"prem-n20{mark}") for mark in marks(given)),
        ],
        "- **A trained stage 1": [
            *spreads(stage1), SMALL.untrained(stage1), *ndcg("spr-stage1-scrambled"),
            SMALL.untrained("spr-stage1-scrambled"),
        ],
        "- **SPR_CLIP": [
            *gaps(clip, spr, 0.7), p_of_all(clip, spr, 0.7), mean(clip, 0.7) / mean(spr, 0.7) - 1, None,
            p_of_all(clip, spr), p_of_all(clip, spr, 0.3), SMALL.latest_gain(spr), SMALL.latest_gain(clip),
            *ndcg("spr-clip-unseen", "spr-relo-unseen"),
        ],
        "- **Reel": [*gaps(reel, clip), p_of_all(reel, clip), *ndcg("reel-unseen", "spr-relo-unseen")],
        "**1 is the worst": [
            SMALL.ndcg("prem-n40") - SMALL.ndcg("prem-n1"),
            min(p_of(f"{name}-n40", f"{name}-n20") for name in ("reloclnet", "xml", "conquer-exclusive")),
            *map(SMALL.late_gain, ("xml-n40", "conquer-exclusive-n40")),
            *(SMALL.ndcg(f"{name}-n20") - SMALL.ndcg(f"{name}-n40") for name in less),
            max(p_of(f"{name}-n40", f"{name}-n20") for name in less),
            *(SMALL.ndcg(f"{name}-n20") - SMALL.ndcg(f"{name}-n40") for name in prems),
            max(p_of(f"{name}-n40", f"{name}-n20") for name in prems),
            *(SMALL.late_gain(f"{name}-n40") for name in prems),
        ],
        "**Φ.**": [
            *(SMALL.job(job)["related"] for job in by_phi), *spreads(*by_phi),
            *gaps("xml-pr-related", "xml-pr-sent"), p_of_all("xml-pr-related", "xml-pr-sent"),
            *gaps("xml-pr-related", "xml-pr-vp"), p_of_all("xml-pr-related", "xml-pr-vp"),
        ],
        "At θ = .7": [
            SMALL.job("xml-pr")["related"],
            4_045_230 / (12_404 * 12_403),  # Charades-STA's training captions, see docs/papers/003
            *gaps("xml-n1", "xml-pr"), p_of_all("xml-n1", "xml-pr"), SMALL.latest_gain("xml-pr"),
            SMALL.job("xml-pr-related")["related"], *gaps("xml-n1", "xml-pr-related"),
            p_of_all("xml-n1", "xml-pr-related"),
        ],
        "**The confidence": [
            number
            for job, other in (
                ("xml-pr-c1", "xml-pr"),
                ("xml-pr-c1-related", "xml-pr-related"),
                ("xml-pr-c1-related", "xml-n1"),
            )
            for number in (*gaps(job, other), p_of_all(job, other))
        ],
        "**+SL is behind": [
            *gaps("xml-n1", "xml-sl"), p_of_all("xml-n1", "xml-sl"),
            *spreads("xml-sl-pr-related", "xml-pr-related"),
            *map(SMALL.late_gain, ("xml-sl-pr", "xml-sl-pr-related")),
            *(first_right(job) for job in ("xml-n1", "xml-sl", "xml-pr", "xml-sl-pr")),
        ],
        "Where films are apart val": [
            *(SMALL.late_gain(f"{name}-unseen") for name in ("conquer-exclusive", "prem")), None,  # a setting
        ],
        "For XML val chooses": [
            *map(SMALL.val, ("xml-unseen-decay", "xml-unseen")),
            *ndcg("xml-unseen-decay", "xml-unseen", "xml-unseen-mean"),
            p_of("xml-unseen-mean", "xml-unseen"), *ndcg("xml-unseen-dropout", "xml-unseen-rate"),
        ],
        "For ReLoCLNet, too": [
            *map(SMALL.val, ("reloclnet-unseen-decay", "reloclnet-unseen")),
            *ndcg("reloclnet-unseen-decay", "reloclnet-unseen", "reloclnet-unseen-rate"),
        ],
        "For CONQUER val": [
            number
            for row in ("conquer-exclusive-unseen", "prem-unseen")
            for number in (
                SMALL.val(f"{row}-mean"), SMALL.val(row), SMALL.ndcg(f"{row}-mean"), SMALL.ndcg(row),
                p_of(f"{row}-mean", row),
            )
        ],
        "SPR_ReLo-S at N = 40": [
            *ndcg(below, standard), p_of(below, standard), *ndcg(f"{below}-trained"),
            p_of(f"{below}-trained", below), p_of(f"{below}-trained", standard),
        ],
        "The second command": [
            *(OTHER_FILMS.ndcg(f"{name}-n20") for name in ("spr-stage1", "xml", "reloclnet", "spr-relo")),
        ],
        "Pairs seen": [
            *map(times_seen, ("xml-n20", "reloclnet-n20", "conquer-general-n20")),
            times_seen("prem-n20", "localizer"), times_seen("reel-n20"),
        ],
    }  # fmt: skip
    found, wrong = printed.compared("pool.md", printed.paragraphs(PAGE), sentences)
    assert sorted(found) == sorted(sentences)
    assert wrong == [], "\n".join(wrong)


def test_what_sentences_say_of_order_is_so() -> None:
    spr, clip, reel, rival = "spr-relo-n20", "spr-clip-n20", "reel-n20", "xml-longer"
    baselines = [f"{name}-n20" for name in BASELINES]
    assert max(baselines, key=mean) == "prem-given-n20"
    others = [*baselines, "xml-longer", "reloclnet-longer", "prem-longer"]
    assert max(others, key=SMALL.ndcg) == rival
    scrambled = ("spr-relo-scrambled", "spr-clip-scrambled")
    assert all(
        SMALL.ndcg(own, over) > SMALL.ndcg(name, over)
        for own in (spr, clip, *scrambled)
        for name in others
        for over in OVERLAPS
    )
    for job, other in ((clip, spr), (reel, clip)):
        assert all(min(gaps(job, other, over)) > 0 for over in OVERLAPS)
    for job, other in (("xml", "reloclnet"), ("prem-given", "xml"), ("prem-given", "prem")):
        assert min(gaps(f"{job}-n20", f"{other}-n20")) > 0
    still = (spr, rival, "xml-unseen", "spr-relo-5-20", "spr-relo-n40")
    assert all(SMALL.late_gain(name) < RISING for name in still)
    assert all(SMALL.latest_gain(name) < RISING for name in ("xml-n1", "xml-pr-related", reel))
    rising = ("reloclnet-longer", "prem-longer", "conquer-exclusive-unseen")
    assert all(SMALL.late_gain(name) > RISING for name in rising)
    assert all(SMALL.ndcg("spr-clip-unseen", over) < SMALL.ndcg("spr-relo-unseen", over) for over in OVERLAPS)
    assert max(ROWS.values(), key=lambda name: SMALL.spread(f"{name}-n20")[1]) == "reloclnet"
    for name in ("xml", "reloclnet", "spr-relo"):
        usual, deviation = SMALL.spread(f"{name}-n20")
        assert abs(OTHER_FILMS.ndcg(f"{name}-n20") - usual) < deviation
    for name in ROWS.values():
        assert (
            max(gaps(f"{name}-n1", f"{name}-n20")) < 0 < SMALL.ndcg(f"{name}-n40") - SMALL.ndcg(f"{name}-n1")
        )
    for row, chosen in KEPT.items():
        values = {ending: SMALL.val(f"{row}-unseen{ending}") for ending in KEPT_FROM.values()}
        assert max(values, key=values.__getitem__) == f"-{chosen}"
        gains = SMALL.ndcg(f"{row}-unseen-{chosen}") > SMALL.ndcg(f"{row}-unseen")
        assert gains == (row == "prem")
