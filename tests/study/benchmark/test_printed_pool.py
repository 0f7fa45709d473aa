"""Each figure of the page on one pool is the stored one, and no finished row is left out."""

from __future__ import annotations

import printed
from comparison.plan import RISING
from stored import OVERLAPS, ROOT, Comparison, Numbers

PAGE = ROOT / "docs" / "benchmark" / "pool.md"
SMALL = Comparison("pool-small")
FOLDER = ROOT / "benchmarks" / "comparison" / SMALL.name
ROWS = {
    "stage 1, coarse proposals": "spr-stage1", "ReLoCLNet": "reloclnet", "XML": "xml",
    "CONQUER, general": "conquer-general", "CONQUER, exclusive": "conquer-exclusive", "PREM": "prem",
    "PREM†": "prem-given", "SPR_ReLo-S": "spr-relo", "SPR_CLIP": "spr-clip", "Reel": "reel",
}  # fmt: skip
KINDS = ("longer", "unseen", "scrambled", "aligned")
BASELINES = ("reloclnet", "xml", "conquer-general", "conquer-exclusive", "prem", "prem-given")


def ndcg(*jobs: str) -> Numbers:
    return [SMALL.ndcg(job) for job in jobs]


def ahead(job: str, other: str) -> float:
    return SMALL.ndcg(job) / SMALL.ndcg(other) - 1


def test_the_table_has_every_finished_row() -> None:
    """A dash is a row that is not trained; a row whose file is there must be shown."""
    table = next(table for table in printed.tables(PAGE) if "scrambled texts" in table.head)
    shown = set()
    for row in table.rows:
        model = ROWS[row.label]
        jobs = [f"{model}-n20", *(f"{model}-{kind}" for kind in KINDS)]
        expected: list[float | None] = [*SMALL.three(jobs[0]), SMALL.late_gain(jobs[0])]
        expected += [SMALL.ndcg(job) if (FOLDER / f"{job}.json").is_file() else None for job in jobs[1:]]
        for cell, number in zip(row.cells[1:], expected, strict=True):
            assert (cell == "–") == (number is None), (row.label, cell)
            if number is not None:
                assert printed.differences(row.label, printed.figures(cell), [number]) == []
        shown |= {job for job in jobs if (FOLDER / f"{job}.json").is_file()}
    first = {path.stem for path in FOLDER.glob("*.json") if "-seed" not in path.stem}
    assert shown == first


def test_sentences_have_stored_figures() -> None:
    spr = "spr-relo-n20"
    others = [f"{name}-n20" for name in BASELINES] + ["xml-longer", "reloclnet-longer"]
    assert max(others, key=SMALL.ndcg) == "xml-longer"
    assert all(SMALL.ndcg(spr, over) > SMALL.ndcg(name, over) for name in others for over in OVERLAPS)
    assert all(SMALL.late_gain(name) < RISING for name in (spr, "xml-longer"))
    rising = ("prem-given-n20", "prem-n20", "xml-n20", "conquer-exclusive-n20", "reloclnet-n20")
    assert all(SMALL.late_gain(name) > RISING for name in rising)
    untrained = SMALL.job("spr-stage1-n20")["untrained"]["CLIP, mean pooled"]["nDCG@20,IoU>=0.5"]
    sentences: dict[str, list[float | None]] = {
        "- **SPR is ahead": [*ndcg(spr, "xml-longer"), ahead(spr, "xml-longer"), None, None],
        "- **Not by what": [
            *ndcg("spr-relo-scrambled", spr, "xml-aligned", "xml-n20"),
            *ndcg("reloclnet-aligned", "reloclnet-n20", "prem-aligned", "prem-n20"),
        ],
        "- **ReLoCLNet": [
            SMALL.ndcg("reloclnet-longer"), SMALL.late_gain("reloclnet-longer"), SMALL.ndcg("xml-longer"),
        ],
        "- **Steps decide": ndcg(*rising),
        "- **A trained stage 1": [
            SMALL.ndcg("spr-stage1-n20"), untrained, SMALL.ndcg("spr-stage1-scrambled"),
        ],
    }  # fmt: skip
    found, wrong = printed.compared("pool.md", printed.paragraphs(PAGE), sentences)
    assert sorted(found) == sorted(sentences)
    assert wrong == [], "\n".join(wrong)
