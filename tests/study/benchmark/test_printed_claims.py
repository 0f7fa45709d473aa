"""Each figure of ours in the tables of claims is the stored number, rounded once.

Sentences behind the paper's own figures are read for results: two decimals or more, percentages, multiples.
"""

from __future__ import annotations

from comparison.plan import RISING
from printed import PROSE, compared, differences, figures, paragraphs, tables
from stored import (
    AT_K,
    LARGE,
    OVERLAPS,
    POOL_STUDY,
    ROOT,
    SMALL,
    THIRD,
    agreement,
    cell,
    noise,
    read,
    selections,
    self_agreement,
    tied,
)  # fmt: skip

PAGE = ROOT / "docs" / "benchmark" / "claims.md"
Numbers = list[float]

BASELINES = ("xml", "reloclnet", "conquer-general", "conquer-disjoint", "conquer-exclusive", "prem")
IN_POOL = ("xml", "reloclnet", "conquer-general", "conquer-exclusive", "prem", "prem-given")
MADE = {
    name: read(f"real_annotations/results/studies-{name}.json")
    for name in ("charades-sta-test", "activitynet-val_2")
}


def spreads(*jobs: str, over: float = 0.5) -> Numbers:
    """Mean and deviation of each."""
    return [number for job in jobs for number in THIRD.spread(job, over)]


def seeds(job: str, split: str = "test") -> Numbers:
    """Least and greatest value of a row's seeds."""
    found = [own[split]["nDCG@20,IoU>=0.5"] for own in THIRD.seeds(job)]
    return [min(found), max(found)]


def lost(job: str) -> float:
    """The share that a row loses from IoU .3 to .7, in the mean of its seeds."""
    at_3, _, at_7, _ = THIRD.spread(job, 0.3, 0.7)
    return 1 - at_7 / at_3


def ahead(job: str, other: str, *, means: bool = False) -> float:
    """By what share a row is ahead of another one, by default with the first seed."""
    first, second = (THIRD.spread(own)[0] if means else THIRD.ndcg(own) for own in (job, other))
    return first / second - 1


def bound(context: str, kind: str, over: str = "0.5") -> float:
    """UB or PUB with so much context."""
    where = {"context (s)": context, "bound": kind}
    return cell("docs/benchmark/third/upper-bounds.csv", f"nDCG@20,IoU>={over}", where)


def gaps(rule: str, over: str = "nDCG@20,IoU>=0.5") -> float:
    """Proposals of the trained stage 1, merged by a rule."""
    return cell("benchmarks/gaps.csv", over, {"segments of": "trained stage 1", "rule": rule})


def counted(column: str, segments: str) -> float:
    """After a number of segments."""
    return cell("docs/benchmark/third/number-of-segments.csv", column, {"segments": segments})


def untrained(stage1: str, column: str) -> float:
    """CLIP without training, and trained stages 1."""
    return cell("docs/benchmark/third/untrained-and-trained.csv", column, {"stage 1": stage1})


def related(row: str, column: str = "nDCG@20,IoU>=0.5", seed: str = "0") -> float:
    """A row of 003's sweeps in small."""
    return cell("benchmarks/related_captions.csv", column, {"row": row, "seed": seed})


def scale(name: str, column: str, **where: str) -> float:
    """Types of index at the papers' sizes."""
    return cell(f"docs/benchmark/scale/{name}.csv", column, where)


def made(data: str, first: str, *second: str) -> Numbers:
    """Least and greatest tau of made systems."""
    found = [
        row["tau_b"] for row in MADE[data]["agreement"] if row["first"] == first and row["second"] in second
    ]
    return [min(found), max(found)]


def answering() -> float:
    """Share of a v query's hard negatives that hold a relevant moment."""
    where = {"N": "20", "answers known": "all of the file", "type": "v"}
    return cell("benchmarks/hard_negatives.csv", "hold a relevant moment", where)


def extremes(taus: list[Numbers]) -> Numbers:
    """The least and the greatest of several ranges."""
    return [min(own[0] for own in taus), max(own[1] for own in taus)]


def beside(*jobs: str) -> Numbers:
    """How often the first video is right, then nDCG, of each."""
    return [*(THIRD.recall(job, "VR R@1") for job in jobs), *map(THIRD.ndcg, jobs)]


def ahead_at(job: str, other: str, over: float) -> float:
    """By what share a row is ahead at one overlap, with the first seed."""
    return THIRD.ndcg(job, over) / THIRD.ndcg(other, over) - 1


SIZES = ("383,828", "860,917")
CLIPS = ("spr-clip-n40", "spr-clip-hard-negative", "spr-clip-5-20")
OTHERS = ("hard-negative", "5-20", "5-30", "10-20")
ONE, TEN = ([f"R@{k},IoU>{theta}" for theta in OVERLAPS] for k in (1, 10))


def stored() -> dict[str, Numbers]:
    """By claim the numbers that its row prints, in order."""
    return {
        "N = 1 is the worst for all (Tables 5, 6)": spreads("reloclnet-n1", "reloclnet-n20", "reloclnet-n40"),
        "XML is best with N = 20, ReLoCLNet with 40": [
            *spreads("xml-n20", "xml-n40", "reloclnet-n20", "reloclnet-n40"),
            *map(THIRD.val, ("xml-n20", "xml-n40", "reloclnet-n20", "reloclnet-n40")),
        ],
        "ReLoCLNet is the best baseline": [
            *spreads("reloclnet-n20", "xml-n20", "conquer-exclusive-n20", "prem-n20"),
            THIRD.ndcg("reloclnet-without-hard"),
        ],
        "seeds hardly matter (Table 7)": [
            min(spreads(f"{row}-n20")[1] for row in BASELINES),
            max(spreads(f"{row}-n20")[1] for row in BASELINES),
        ],
        "test is slightly below val": [
            value(job)
            for job in ("xml-n20", "reloclnet-n20", "spr-relo-n20")
            for value in (THIRD.ndcg, THIRD.val)
        ],
        "with N = 20 and 40 nDCG@K rises from K = 10 to 40 for XML and ReLoCLNet, and falls for CONQUER": [
            THIRD.ndcg(job, depth=depth)
            for job in ("xml-n20", "reloclnet-n20", "conquer-general-n20")
            for depth in (10, 40)
        ],
        "a higher IoU costs XML most, ReLoCLNet less": [
            lost("xml-n20"),
            lost("reloclnet-n20"),
            max(lost(f"{row}-n20") for row in BASELINES[2:5]),
        ],
        "CONQUER is as good with N = 20 as with 40": [
            *spreads(
                *(f"conquer-{kind}-n{n}" for kind in ("general", "disjoint", "exclusive") for n in (20, 40))
            ),
            *seeds("conquer-exclusive-n20", "val"),
            *seeds("conquer-exclusive-n40", "val"),
        ],
        "the order of models in VCMR is not that in ranking (Table 8)": [
            THIRD.recall(f"{row}-n20", "VCMR R@1,IoU>0.7")
            for row in ("conquer-general", "conquer-exclusive", "prem", "xml", "reloclnet")
        ],
        "the similarity of captions is a good proxy for relevance (Figure 4)": [
            read("pseudo_similarity.json")[kind]["Spearman with relevance, relevant pairs alone"]
            for kind in ("slots", "minilm")
        ],
        "AxIoU fulfils both axioms, R@K,θ does not": [],
        "AxIoU@10 agrees with every R@K,θ (Figure 4)": [
            *agreement("AxIoU@10", *AT_K),
            *made("charades-sta-test", "AxIoU@10", *AT_K),
        ],
        "R@10,θ does not agree with R@1,θ": [
            *extremes([agreement(own, *ONE) for own in TEN]),
            *extremes([made("charades-sta-test", own, *ONE) for own in TEN[:2]]),
        ],
        "R@K,.3 and R@K,.5 are less stable than AxIoU (Figure 6)": [
            self_agreement()[0],
            *self_agreement()[3:],
        ],
        "noisy labels move R@K,.7 most, AxIoU less, R@K,.3 least (Figure 7)": noise(),
        "models that AxIoU chooses on val are good by all measures (Figure 8)": selections(),
        "all systems tie on fewest queries by AxIoU (Figure 9)": [
            tied(),
            max(row["share"] for found in MADE.values() for row in found["tied"]),
        ],
        "R@10,.3 of a system that sees no video is nearly 1 on Charades-STA (Figure 5)": [
            MADE["charades-sta-test"]["effectiveness"]["blind"]["R@10,IoU>0.3"],
        ],
        "R@1,.7 agrees with nothing on ActivityNet": [
            made("activitynet-val_2", "R@1,IoU>0.7", *AT_K)[0],
            *(
                pick(own["R@1,IoU>0.7"] for own in MADE["activitynet-val_2"]["effectiveness"].values())
                for pick in (min, max)
            ),
        ],
        "SPR is ahead of the best baseline": [
            ahead("spr-relo-n20", "conquer-exclusive-n20", means=True),
            *spreads("spr-relo-n20", "conquer-exclusive-n20"),
            ahead("spr-relo-n20", "conquer-exclusive-longer"),
            THIRD.ndcg("spr-relo-n20"),
            THIRD.ndcg("conquer-exclusive-longer"),
            *spreads("spr-relo-large-n20"),
            THIRD.ndcg("spr-relo-large-longer"),
        ],
        "coarse proposals are ahead of ReLoCLNet at IoU ≥ .3, behind from .5 on": [
            number for over in (0.3, 0.5) for number in spreads("spr-stage1-n20", "reloclnet-n20", over=over)
        ],
        "refinement gains most at IoU ≥ .7": [
            1 + ahead_at("spr-relo-n20", "spr-stage1-n20", 0.7),
            THIRD.ndcg("spr-relo-n20", 0.7),
            THIRD.ndcg("spr-stage1-n20", 0.7),
        ],
        "SPR_CLIP is ahead at IoU ≥ .7": [
            *spreads("spr-clip-n20", "spr-relo-n20", over=0.7),
            THIRD.ndcg("spr-relo-1.5s", 0.7),
            THIRD.ndcg("spr-relo-n20", 0.7),
        ],
        "SPR_ReLo is ahead of SPR_CLIP at lower IoU": spreads(
            "spr-relo-n20", "spr-relo-large-n20", "spr-clip-n20", over=0.3
        ),
        "larger SPR_ReLo is better (Table 5, standard)": spreads(
            *(f"{row}-n{n}" for n in (40, 20, 1) for row in ("spr-relo", "spr-relo-large"))
        ),
        "62 % of the practical upper bound": [
            THIRD.part_of_bound("spr-relo-n20"),
            THIRD.ndcg("spr-relo-n20"),
            THIRD.job("spr-stage1-n20")["bound"],
            THIRD.part_of_bound("spr-relo-large-longer"),
            THIRD.ndcg("spr-relo-large-longer"),
            LARGE.part_of_bound("spr-clip-n20"),
            LARGE.ndcg("spr-clip-n20"),
            LARGE.job("spr-stage1-n20")["bound"],
            LARGE.part_of_bound("spr-relo-longer"),
        ],
        "the bound of proposals is high without context, and highest with 8 s (Table 4)": [
            bound(context, "UB", over) for over in ("0.5", "0.3") for context in ("0", "4", "8")
        ],
        "clips of 1 s bound less than clips of 1.5 s": [
            bound("8", f"PUB, {clip} s", over) for over in ("0.5", "0.7") for clip in ("1", "1.5")
        ],
        "standard training is best for SPR_CLIP (Table 5)": [
            *spreads(*CLIPS),
            *map(THIRD.mean_val, CLIPS),
            THIRD.spread("spr-clip-n40", 0.3)[0],
            THIRD.spread("spr-clip-5-20", 0.3)[0],
        ],
        "hard negatives, strong and weak positives help SPR_ReLo-S (Table 5)": [
            *spreads("spr-relo-n40", *(f"spr-relo-{name}" for name in OTHERS)),
            *spreads("spr-relo-large-n40", *(f"spr-relo-large-{name}" for name in OTHERS)),
            THIRD.ndcg("spr-relo-5-20-more-queries"),
            THIRD.ndcg("spr-relo-standard-more-queries"),
            answering(),
        ],
        "for SPR_ReLo-L standard training is nearly the best (Table 5)": [
            *spreads("spr-relo-large-n40"),
            THIRD.mean_val("spr-relo-large-n40"),
            *spreads(*(f"spr-relo-large-{name}" for name in OTHERS)),
        ],
        "more than 200 segments add noise to coarse proposals (Table 6)": [
            counted("SP nDCG@20,IoU>=0.5", "200"),
            counted("Reel nDCG@20,IoU>=0.5", "200"),
        ],
        "merging over gaps hardly helps (§3.2)": [
            *(
                gaps(rule)
                for rule in (
                    "adjacent",
                    "gap of 1",
                    "gap of 2",
                    "gap of 4",
                    "gap of 0.5 of the proposal",
                    "gap of 1.0 of the proposal",
                )
            ),
            gaps("adjacent", "bound"),
        ],
        "a trained stage 1 is several times better than CLIP (Table 7)": [
            THIRD.ndcg("spr-stage1-n20"),
            untrained("CLIP, mean pooled", "nDCG@20,IoU>=0.5"),
        ],
        "a share of .3 is best (Table 7)": [
            THIRD.ndcg("spr-stage1-n20"),
            THIRD.ndcg("spr-stage1-share0.5"),
            spreads("spr-stage1-n20")[1],
            *(untrained(f"trained, top 20, share {share}", "recall@200") for share in ("0.3", "0.5")),
        ],
        "more pseudo positives make a better stage 1 (Table 7)": [
            *spreads("spr-stage1-n40", "spr-stage1-n20"),
            *spreads("spr-stage1-n40", "spr-stage1-n20", over=0.3),
            *spreads("spr-stage1-n1"),
        ],
        "IVFPQ loses most of NDCG, IVF little (Table 3)": [
            scale("ndcg", "@20,IoU>=0.5", segments=SIZES[0], queries="text", type=kind)
            for kind in ("ivfpq", "ivf")
        ],
        "unrelated videos hardly harm, Flat and IVF (Table 3)": [
            scale("ndcg", "@20,IoU>=0.5", segments=size, type="ivf", queries="text") for size in SIZES
        ],
        "time grows linearly with Flat, less with IVF (Table 3)": [
            scale("batches", "s processor", segments=SIZES[1], type=kind)
            / scale("batches", "s processor", segments=SIZES[0], type=kind)
            for kind in ("flat", "ivf")
        ],
        "a query takes .7 to 1 s, Flat .126 s, IVF and IVFPQ below .01 s (Table 2)": [
            *(scale("stages", "segments", system=f"SP, {kind}") / 1000 for kind in ("flat", "ivf", "ivfpq")),
            *(
                scale("stages", "total", system=f"{kind}, flat") / 1000
                for kind in ("SPR_ReLo-S", "SPR_ReLo-L", "Reel (ours)")
            ),
        ],
        "+PR helps XML on Charades-STA, not alone on DiDeMo (Tables 5, 6)": [
            *spreads("xml-pr", "xml-n1"),
            THIRD.ndcg("xml-pr-related"),
            THIRD.ndcg("xml-n1"),
        ],
        "the confidence C helps +PR": [
            THIRD.ndcg(job) for job in ("xml-pr", "xml-pr-c1", "xml-pr-related", "xml-pr-c1-related")
        ],
        "+SL with +PR helps on DiDeMo; +SL, alone or with +PR, harms on Charades-STA": [
            *spreads("xml-sl", "xml-sl-pr"),
            THIRD.ndcg("xml-sl-pr-related"),
            *spreads("xml-n1"),
        ],
        "phrases find related pairs better than sentences (Tables 1 to 4)": [
            related("pr-sent-0.9"),
            related("pr-vp-0.9"),
            related("pr-np-vp-0.9"),
            related("pr-np-vp-0.9", seed="1"),
            related("xml"),
            related("xml", seed="1"),
        ],
        "θ = .7 is best with noun and verb phrases on Charades-STA": [
            *(related(f"pr-sent-{theta}") for theta in (0.5, 0.7, 0.9)),
            related("pr-sent-0.7", "related"),
            4_045_230 / (12_404 * 12_403),  # Charades-STA's training captions, see docs/papers/003
        ],
        "all terms together are best (Tables 7, 8)": [
            related("pr-np-vp-0.9"),
            related("pr-without-videos"),
            related("pr-without-spans"),
            related("sl-pr-np-vp-0.9"),
            related("sl-pr-without-videos"),
            related("sl-pr-without-spans"),
            related("sl-pr-without-moments"),
        ],
        "PREM is ahead of XML, ReLoCLNet and CONQUER": [
            *spreads("prem-n20", "xml-n20", "reloclnet-n20", "conquer-exclusive-n20"),
            spreads("conquer-disjoint-n20")[0],
            spreads("conquer-general-n20")[0],
            THIRD.ndcg("conquer-exclusive-longer"),
            THIRD.ndcg("prem-longer"),
        ],
        "strong and weak content is better than whole videos (Table 2)": [
            *beside("prem-n20", "prem-video-only"),
            *beside("prem-truth", "prem-video-only-truth"),
        ],
        "weak content adds to strong": [
            *beside("prem-n20", "prem-no-weak"),
            THIRD.late_gain("prem-n20"),
            *seeds("prem-n20"),
        ],
        "both streams are better than one (Tables 2, 6)": [
            *beside("prem-n20", "prem-image", "prem-text"),
            *spreads("prem-apart", "prem-image"),
        ],
        "own pooling for each stream (Table 3)": [
            *beside("prem-n20", "prem-mean-pooling", "prem-max-pooling"),
            THIRD.late_gain("prem-n20"),
        ],
        "gates, shared norm, adversarial task (Table 6)": [
            THIRD.ndcg("prem-n20"),
            *seeds("prem-n20"),
            *map(THIRD.ndcg, ("prem-no-gate", "prem-no-shared-norm", "prem-no-adversarial")),
            THIRD.late_gain("prem-n20"),
        ],
        "the localizer needs pictures more than text (Table 6)": [
            THIRD.recall(job, "SVMR R@1,IoU>0.7") for job in ("prem-n20", "prem-image", "prem-text")
        ],
    }


def in_pool() -> dict[str, Numbers]:
    """The same of the column on one pool."""
    seeds = {name: SMALL.spread(f"{name}-n20", *OVERLAPS) for name in ("spr-stage1", "reloclnet", "spr-relo")}
    bounds = {(own["context"], own["grid"]): own for own in SMALL.job("spr-stage1-n20")["bounds"]}
    counts = {own["segments"]: own["nDCG@20,IoU>=0.5"] for own in SMALL.job("spr-stage1-n20")["counts"]}
    spr, first, longer = "spr-relo-n20", "spr-stage1-n20", ("reloclnet-longer", "xml-longer", "prem-longer")
    deviations = [small(f"{name}-n20")[1] for name in IN_POOL]
    return {
        "N = 1 is the worst for all (Tables 5, 6)": small("reloclnet-n1", "reloclnet-n20", "reloclnet-n40"),
        "XML is best with N = 20, ReLoCLNet with 40": small(
            "xml-n20", "xml-n40", "reloclnet-n20", "reloclnet-n40"
        ),
        "ReLoCLNet is the best baseline": [
            *small("reloclnet-n20", "xml-n20", "conquer-exclusive-n20", "prem-n20"),
            *map(SMALL.ndcg, longer),
        ],
        "seeds hardly matter (Table 7)": [min(deviations), max(deviations)],
        "CONQUER is as good with N = 20 as with 40": small(
            *(f"conquer-{kind}-n{n}" for kind in ("general", "exclusive") for n in (20, 40))
        ),
        "phrases find related pairs better than sentences (Tables 1 to 4)": small(
            "xml-pr-sent", "xml-pr-vp", "xml-pr-related"
        ),
        "AxIoU@10 agrees with every R@K,θ (Figure 4)": agreement("AxIoU@10", *AT_K, study=POOL_STUDY),
        "R@10,θ does not agree with R@1,θ": extremes([agreement(own, *ONE, study=POOL_STUDY) for own in TEN]),
        "R@K,.3 and R@K,.5 are less stable than AxIoU (Figure 6)": [
            self_agreement(POOL_STUDY)[0],
            *self_agreement(POOL_STUDY)[3:],
        ],
        "noisy labels move R@K,.7 most, AxIoU less, R@K,.3 least (Figure 7)": noise(POOL_STUDY),
        "models that AxIoU chooses on val are good by all measures (Figure 8)": selections(POOL_STUDY),
        "all systems tie on fewest queries by AxIoU (Figure 9)": [tied(POOL_STUDY)],
        "test is slightly below val": [
            value(job) for job in ("xml-n20", "reloclnet-n20", spr) for value in (SMALL.ndcg, SMALL.val)
        ],
        "with N = 20 and 40 nDCG@K rises from K = 10 to 40 for XML and ReLoCLNet, and falls for CONQUER": [
            SMALL.ndcg(job, depth=depth)
            for job in ("xml-n20", "reloclnet-n20", "conquer-general-n20")
            for depth in (10, 40)
        ],
        "a higher IoU costs XML most, ReLoCLNet less": [
            1 - SMALL.ndcg(f"{row}-n20", 0.7) / SMALL.ndcg(f"{row}-n20", 0.3)
            for row in ("xml", "reloclnet", "conquer-general")
        ],
        "the order of models in VCMR is not that in ranking (Table 8)": [
            SMALL.recall(f"{row}-n20", "VCMR R@1,IoU>0.7")
            for row in ("conquer-general", "conquer-exclusive", "prem", "xml", "reloclnet")
        ],
        "SPR is ahead of the best baseline": [
            *small(spr, "prem-given-n20"), SMALL.ndcg(spr) / SMALL.ndcg("xml-longer") - 1,
            SMALL.ndcg(spr), SMALL.ndcg("xml-longer"),
        ],
        "coarse proposals are ahead of ReLoCLNet at IoU ≥ .3, behind from .5 on": [
            number
            for place in (0, 2, 4)
            for name in ("spr-stage1", "reloclnet")
            for number in seeds[name][place : place + 2]
        ],
        "refinement gains most at IoU ≥ .7": [
            SMALL.ndcg(spr, 0.7) / SMALL.ndcg(first, 0.7), SMALL.ndcg(spr, 0.7), SMALL.ndcg(first, 0.7),
        ],
        "SPR_CLIP is ahead at IoU ≥ .7": [*SMALL.spread("spr-clip-n20", 0.7), *seeds["spr-relo"][4:]],
        "SPR_ReLo is ahead of SPR_CLIP at lower IoU": [
            *seeds["spr-relo"][:2], *SMALL.spread("spr-clip-n20", 0.3),
        ],
        "62 % of the practical upper bound": [
            SMALL.part_of_bound(spr), SMALL.ndcg(spr), SMALL.job(first)["bound"],
        ],
        "the bound of proposals is high without context, and highest with 8 s (Table 4)": [
            bounds[context, None]["nDCG@20,IoU>=0.5"] for context in (0.0, 4.0, 8.0)
        ],
        "clips of 1 s bound less than clips of 1.5 s": [
            bounds[8.0, grid][f"nDCG@20,IoU>={over}"] for over in (0.5, 0.7) for grid in (1.0, 1.5)
        ],
        "hard negatives, strong and weak positives help SPR_ReLo-S (Table 5)": [
            SMALL.ndcg(job) for job in ("spr-relo-n40", "spr-relo-5-20", "spr-relo-5-20-trained")
        ],
        "more than 200 segments add noise to coarse proposals (Table 6)": [counts[100], counts[200]],
        "a trained stage 1 is several times better than CLIP (Table 7)": [
            value(job) for job in (first, "spr-stage1-scrambled") for value in (SMALL.ndcg, SMALL.untrained)
        ],
        "more pseudo positives make a better stage 1 (Table 7)": small("spr-stage1-n40", first),
        "+PR helps XML on Charades-STA, not alone on DiDeMo (Tables 5, 6)": small(
            "xml-pr", "xml-n1", "xml-pr-related"
        ),
        "the confidence C helps +PR": small("xml-pr", "xml-pr-c1", "xml-pr-related", "xml-pr-c1-related"),
        "+SL with +PR helps on DiDeMo; +SL, alone or with +PR, harms on Charades-STA": small(
            "xml-sl", "xml-sl-pr", "xml-sl-pr-related", "xml-n1"
        ),
        "θ = .7 is best with noun and verb phrases on Charades-STA": small(
            "xml-pr-0.6", "xml-pr", "xml-pr-0.8", "xml-pr-related"
        ),
        "PREM is ahead of XML, ReLoCLNet and CONQUER": [
            *small("prem-n20", "xml-n20", "reloclnet-n20", "conquer-exclusive-n20"),
            *map(SMALL.ndcg, ("prem-longer", "xml-longer", "reloclnet-longer")),
        ],
    }  # fmt: skip


def small(*jobs: str) -> Numbers:
    """Mean and, of several seeds, deviation of each, in one pool."""
    return [number for job in jobs for number in SMALL.spread(job)]


def test_each_figure_of_a_claim_is_stored() -> None:
    numbers, pool = stored(), in_pool()
    wrong, columns = list[str](), set[int]()
    for table in tables(PAGE):
        extra = "one pool" in table.head
        for row in table.rows:
            columns.add(len(row.cells) - extra)
            ours, where = row.cells[2 : 5 + extra], f"{row.line} {row.label[:40]}"
            if extra:
                wrong += differences(f"{where}, one pool", figures(ours[1], PROSE), pool.get(row.label, []))
                ours = (ours[0], *ours[2:])
            wrong += differences(where, figures(" ; ".join(ours), PROSE), numbers.get(row.label, []))
    assert columns == {6}
    assert wrong == [], "\n".join(wrong)


def test_figures_before_a_table_are_stored() -> None:
    numbers = {"On unseen films the XML": [spreads("xml-n1")[0], *small("xml-n1")]}
    found, wrong = compared("claims.md", paragraphs(PAGE), numbers)
    assert found == list(numbers)
    assert wrong == [], "\n".join(wrong)
    assert SMALL.latest_gain("xml-n1") < RISING
    assert all(SMALL.latest_gain(job) > RISING for job in ("xml-sl", "xml-pr", "xml-sl-pr"))
