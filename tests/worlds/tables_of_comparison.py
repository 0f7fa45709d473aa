"""The tables of the comparison of models on pages, with what is stored for each row."""

from __future__ import annotations

from printed import Printed
from stored import (
    AT_K,
    LARGE,
    OVERLAPS,
    THIRD,
    TYPES,
    agreement,
    noise,
    read,
    selections,
    self_agreement,
    tied,
)  # fmt: skip

__all__ = ["PRINTED"]

Numbers = list[float]


# ---- the comparison --------------------------------------------------------------------------------------


def _untrained() -> Numbers:
    plain = THIRD.job("spr-stage1-n20")["untrained"]["CLIP, mean pooled"]
    return [plain[f"nDCG@20,IoU>={over}"] for over in OVERLAPS]


MAIN_ROWS = {
    "trained stage 1, coarse proposals": "spr-stage1-n20",
    "Reel's own stage 1, coarse proposals": "reel-stage1-n20",
    "ReLoCLNet": "reloclnet-n20",
    "XML": "xml-n20",
    "CONQUER, general": "conquer-general-n20",
    "CONQUER, disjoint": "conquer-disjoint-n20",
    "PREM": "prem-n20",
    "CONQUER, exclusive": "conquer-exclusive-n20",
    "SPR_ReLo-S": "spr-relo-n20",
    "SPR_CLIP": "spr-clip-n20",
    "SPR_ReLo-L": "spr-relo-large-n20",
    "Reel (ours)": "reel-n20",
    "Reel, second edition (ours)": "reel-second",
}
RENAMED = {"Reel (ours)": "Reel, first edition (ours)", "Reel, second edition (ours)": "Reel (ours)"}


def _main(*, val: bool) -> list[tuple[str, Numbers]]:
    made = [("CLIP, mean pooled, coarse proposals", _untrained())]
    for label, job in MAIN_ROWS.items():
        more = [THIRD.val(job), THIRD.late_gain(job)] if val else []
        made.append((label if val else RENAMED.get(label, label), [*THIRD.spread(job, *OVERLAPS), *more]))
    return made


def _epochs(job: str) -> Numbers:
    """Steps times batch over the pairs of training: 500 queries times 20 moments."""
    settings = dict(own.split("=", 1) for own in THIRD.job(job)["job"]["overrides"])
    phases = [name.removesuffix(".steps") for name in settings if name.endswith(".steps")]
    return [int(settings[f"{p}.steps"]) * int(settings[f"{p}.batch_size"]) / 10_000 for p in phases]


EPOCHS = [
    ("XML", _epochs("xml-n20")),
    ("ReLoCLNet", _epochs("reloclnet-n20")),
    ("CONQUER", _epochs("conquer-general-n20")),
    ("PREM's retriever, localizer", _epochs("prem-n20")),
    ("stage 1 (an epoch has each segment of a moment)", [THIRD.job("spr-stage1-n20")["phases"][0]["epochs"]]),
    ("SPR_CLIP", _epochs("spr-clip-n20")),
    ("SPR_ReLo-S, SPR_ReLo-L", _epochs("spr-relo-n20")),
]


def _strategy(name: str) -> Numbers:
    found: Numbers = []
    for recipe in ("spr-clip", "spr-relo", "spr-relo-large"):
        job = f"{recipe}-n40" if name == "standard" else f"{recipe}-{name}"
        found += [*THIRD.spread(job), THIRD.mean_val(job)]
    return found


STRATEGIES = {
    "standard": "standard",
    "hard negatives": "hard-negative",
    "and 5++, 20+": "5-20",
    "and 5++, 30+": "5-30",
    "and 10++, 20+": "10-20",
}
TOPS = {
    label: job.removesuffix("-n20")
    for label, job in MAIN_ROWS.items()
    if job.endswith("-n20") and "stage1" not in job
}
ORDER_OF_TOPS = (
    "XML", "ReLoCLNet", "CONQUER, general", "CONQUER, disjoint", "CONQUER, exclusive", "PREM", "SPR_CLIP",
    "SPR_ReLo-S", "SPR_ReLo-L", "Reel (ours)",
)  # fmt: skip


def _tops(label: str) -> Numbers:
    found: Numbers = []
    for top in (1, 20, 40):
        job = f"{TOPS[label]}-n{top}"
        found += [*THIRD.spread(job), THIRD.val(job)]
    return found


LARGE_ROWS = {
    "stage 1, a fifth": "spr-stage1-fifth",
    "stage 1": "spr-stage1-n20",
    "XML, a fifth": "xml-fifth",
    "XML, a fifth, twice the steps": "xml-fifth-longer",
    "XML": "xml-n20",
    "XML, twice the steps": "xml-longer",
    "SPR_CLIP, a fifth": "spr-clip-fifth",
    "SPR_CLIP": "spr-clip-n20",
    "SPR_ReLo-S, a fifth": "spr-relo-fifth",
    "SPR_ReLo-S": "spr-relo-n20",
    "SPR_ReLo-S, twice the steps": "spr-relo-longer",
    "PREM, a fifth": "prem-fifth",
    "PREM, a fifth, twice the steps": "prem-fifth-longer",
    "PREM": "prem-n20",
    "PREM, twice the steps": "prem-longer",
    "Reel, a fifth": "reel-fifth",
    "Reel": "reel-n20",
}


def _large(job: str) -> Numbers:
    return [*LARGE.three(job), *LARGE.types(job), LARGE.late_gain(job)]


STREAMS = (
    ("XML", "xml-n20"), ("pictures alone", "xml-pictures"), ("streams apart", "xml-apart"),
    ("ReLoCLNet", "reloclnet-n20"), ("pictures alone", "reloclnet-pictures"),
    ("streams apart", "reloclnet-apart"), ("PREM", "prem-n20"), ("pictures alone", "prem-image"),
    ("streams apart", "prem-apart"),
)  # fmt: skip


def _streams(job: str) -> Numbers:
    by_type = [number for kind in TYPES for number in THIRD.spread_of_type(job, kind)]
    found = [*THIRD.spread(job), *by_type]
    t = found[4:6]  # a row that finds nothing is printed without its deviation
    return [*found[:4], t[0], *found[6:]] if round(t[0], 3) == round(t[1], 3) == 0 else found


def _silent(row: str, *kinds: str) -> Numbers:
    found = read(f"comparison/silent-clips/{row}.json")["test"]
    return [found[kind] for kind in kinds]


SILENT = {
    "cosine of sentence vectors, untrained": ["untrained"],
    "XML": ["xml-t-literal", "xml-t"],
    "XML, streams apart": ["xml-t-apart"],
    "ReLoCLNet": ["reloclnet-t"],
    "ReLoCLNet, streams apart": ["reloclnet-t-apart"],
    "PREM, streams apart": ["prem-t-apart"],
}


def _labels(job: str) -> Numbers:
    """By slots, MiniLM and true labels."""
    jobs = (f"{job}-n20", f"{job}-minilm", f"{job}-truth")
    return [number for own in jobs for number in THIRD.three(own)]


# ---- measures --------------------------------------------------------------------------------------------

AXIOU = [
    ("AxIoU@10 agrees with every R@K,θ (.36 ≤ τ ≤ .87)", agreement("AxIoU@10", *AT_K)),
    ("R@K,.3 and R@K,.5 are less stable than AxIoU", self_agreement()),
    ("AxIoU ties on fewest queries", [tied()]),
    ("noisy labels move R@K,.7 most, AxIoU less, R@K,.3 least (K = 1, level 2)", noise()),
    ("of models chosen on validation data, AxIoU's are good by all measures", selections()),
]


PRINTED = [
    Printed("benchmark/README.md", "| row | epochs here", EPOCHS, (1, 2)),
    Printed("benchmark/README.md", "| model, N = 20", _main(val=True)),
    Printed("benchmark/README.md", "| strategy", [(k, _strategy(v)) for k, v in STRATEGIES.items()], (1, 4)),
    Printed("benchmark/README.md", "| model | N = 1", [(label, _tops(label)) for label in ORDER_OF_TOPS]),
    Printed("benchmark/README.md", "| | IoU ≥ .3", [(k, _large(v)) for k, v in LARGE_ROWS.items()]),
    Printed("benchmark/README.md", "| the paper says", AXIOU, prose=True),
    Printed(
        "benchmark/README.md",
        "| | silent clips",
        [(label, [_silent(own, "all")[0] for own in jobs]) for label, jobs in SILENT.items()],
    ),
    Printed(
        "benchmark/README.md",
        "| XML | all",
        [
            ("pictures alone", _silent("xml-pictures", "all", *TYPES)),
            (
                "silent clips left out, streams weighed by the query, types drawn evenly, no hard negatives",
                _silent("xml-weighed-even", "all", *TYPES),
            ),
        ],
    ),
    Printed("benchmark/README.md", "| | all | v", [(label, _streams(job)) for label, job in STREAMS]),
    Printed(
        "figures.md",
        "| model | IoU ≥ 0.3",
        [
            *_main(val=False),
            ("Reel, subtitle lines as candidates too (one seed)", THIRD.three("reel-second-lines")),
        ],
    ),
    Printed(
        "papers/000-tvr-ranking.md",
        "| | slots | MiniLM | true labels",
        [
            ("stage 1", _labels("spr-stage1")),
            ("XML", _labels("xml")),
            ("SPR_ReLo-S", _labels("spr-relo")),
            ("Reel", _labels("reel")),
        ],
    ),
]
