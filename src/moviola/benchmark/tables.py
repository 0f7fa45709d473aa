"""The tables of a report, each of the jobs that are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from moviola.benchmark.bounds import upper_bounds
from moviola.benchmark.findings import FINE, MAIN, OVER, Findings, MiddleClip
from moviola.benchmark.plan import CONQUERS, LONG, SEEDED, STRATEGIES, jobs
from moviola.benchmark.table import Row, Table
from moviola.measures import Results, Run, compare, read_run, temporal_nms
from moviola.retrieval import MeanPooling, Stage1
from moviola.training.experiment import AnsweringModel
from moviola.training.judging import MEASURES, judge
from moviola.training.one_video import SEGMENTS_IN_VIDEO
from moviola.training.tasks.segments import recall

__all__ = ["NAMES", "TABLES"]

REFINERS = ("spr-clip", "spr-relo", "spr-relo-large", "reel")
BASELINES = ("xml", "reloclnet", *(f"conquer-{kind}" for kind in CONQUERS), "prem")
PADDING = 4.0
CONTEXTS = (0.0, 4.0, 8.0)
COUNTS = (20, 50, 100, 200, 400)
NAMES = {
    "spr-clip": "SPR_CLIP",
    "spr-relo": "SPR_ReLo-S",
    "spr-relo-large": "SPR_ReLo-L",
    "reel": "Reel (ours)",
    "xml": "XML",
    "reloclnet": "ReLoCLNet",
    "prem": "PREM",
    "conquer-general": "CONQUER, general",
    "conquer-disjoint": "CONQUER, disjoint",
    "conquer-exclusive": "CONQUER, exclusive",
}


def _cells(values: Results | dict[str, float], names: Iterable[str]) -> Row:
    table = values.measures if isinstance(values, Results) else values
    return tuple(f"{table[name]:.4f}" for name in names)


def _main(found: Findings) -> Table:
    names = [str(measure) for measure in MEASURES]
    rows: list[Row] = [
        ("random spans", "–", *_cells(found.results(_random(found)), names)),
        ("CLIP, mean pooled, coarse", "–", *_cells(found.mean_pooled, names)),
    ]
    for top in found.preset.tops:
        first = f"spr-stage1-n{top}"
        if found.done(first):
            rows.append(("SP: trained stage 1, coarse", str(top), *_cells(found.coarse(first), names)))
            padded = found.results(_padded(found.run(found.proposals(first))))
            rows.append((f"SP, {PADDING:g} s in front", str(top), *_cells(padded, names)))
        rows += [
            (NAMES[model], str(top), *_cells(found.of(f"{model}-n{top}"), names))
            for model in (*BASELINES, *REFINERS)
            if found.done(f"{model}-n{top}")
        ]
    return Table("All models", ("model", "N", *names), rows)


def _on_val(found: Findings) -> Table:
    """The columns of val beside those of test (TVR-Ranking, Table 6)."""
    names = [str(measure) for measure in MEASURES]
    labels = {"spr-stage1": "SP: trained stage 1, coarse"} | {m: NAMES[m] for m in (*BASELINES, *REFINERS)}
    rows = [
        (label, str(top), *_cells(found.val(f"{model}-n{top}"), names))
        for top in found.preset.tops
        for model, label in labels.items()
        if found.done(f"{model}-n{top}")
    ]
    text = "The same measures on val, by which weights and the rows of the claims are chosen."
    return Table("All models on val", ("model", "N", *names), rows, text)


def _random(found: Findings) -> Run:
    draw, features = np.random.default_rng(0), found.test.features
    queries = len(found.test.queries)
    video = draw.integers(len(features), size=(queries, 40))
    length = draw.uniform(4, 16, size=video.shape)
    start = draw.uniform(0, 1, size=video.shape) * np.maximum(features.durations[video] - length, 0)
    return Run.from_columns(
        np.repeat(np.array(found.test.queries.query_ids, dtype=object), 40),
        np.array(features.video_ids, dtype=object)[video.ravel()],
        start.ravel(),
        np.minimum(start + length, features.durations[video]).ravel(),
        np.tile(np.arange(40, 0, -1.0), queries),
    )


def _padded(run: Run) -> Run:
    return replace(run, start=np.maximum(run.start - PADDING, 0))


def _claims(found: Findings) -> Table:
    """The papers' claims, and ours, with what was found."""
    top = found.preset.top
    trained = {
        name: found.of(f"{name}-n{top}") for name in (*REFINERS, *BASELINES) if found.done(f"{name}-n{top}")
    }
    text = (
        f"N = {top}, seed 0; the best of several is the best on val. Reel's differences are given for each "
        "seed that both were trained with, and p is the largest of their paired permutation tests. It is "
        "given where all of them have one sign and val had stopped rising for both models: of a model that "
        "still learned nothing follows."
    )
    rows = [*_claims_of_spr(found, trained), *_claims_of_reel(found, trained)]
    return Table("Claims", ("claim", "expected", "found"), rows, text)


def _claims_of_spr(found: Findings, trained: dict[str, Results]) -> Iterator[Row]:
    spr, base = _best(found, REFINERS[:3]), _best(found, BASELINES)
    if spr and base:
        claim = f"best SPR ({NAMES[spr]}) over best baseline ({NAMES[base]}), {MAIN}"
        rising = _still_rising(found, [f"{name}-n{found.preset.top}" for name in (spr, base)])
        yield claim, "+29 %", _gain(trained[spr], trained[base], MAIN) + rising
    if spr:
        gain = _gain(trained[spr], found.coarse(), FINE)
        yield f"{NAMES[spr]} over coarse proposals, {FINE}", "+60 %", gain
    times = found.coarse().measures[MAIN] / max(found.mean_pooled.measures[MAIN], 1e-9)
    yield f"trained stage 1 over mean-pooled CLIP, coarse, {MAIN}", "several times", f"{times:.2f} times"
    for name in (name for name in (spr, "reel") if name in trained):
        part = trained[name].measures[MAIN] / max(found.bound, 1e-9)
        yield f"{NAMES[name]}: part of the practical upper bound, {MAIN}", "62 %; goal 70 %", f"{part:.0%}"


def _claims_of_reel(found: Findings, trained: dict[str, Results]) -> Iterator[Row]:
    for other in REFINERS[:3]:
        if other in trained and "reel" in trained:
            for measure in OVER:
                gains = _over_seeds(found, other, measure)
                yield f"Reel minus {NAMES[other]}, {measure}", "above 0 with every seed", gains


def _best(found: Findings, names: Iterable[str]) -> str:
    """The best of them on val, of those that are trained; "" if none is."""
    jobs_of = {name: f"{name}-n{found.preset.top}" for name in names}
    own = [name for name, job in jobs_of.items() if found.done(job)]
    return max(own, key=lambda name: found.val(jobs_of[name])[MAIN], default="")


def _still_rising(found: Findings, jobs_of: Sequence[str]) -> str:
    """A remark where val still rose for one of them when its training ended."""
    return "" if all(found.converged(name) for name in jobs_of) else "; val still rose: nothing follows"


def _over_seeds(found: Findings, other: str, measure: str) -> str:
    """Reel minus another refiner, for each seed of both; with p where something follows."""
    both = [
        pair
        for pair in zip(_seeded(found, other), _seeded(found, "reel"), strict=True)
        if all(found.done(name) for name in pair)
    ]
    tests = [compare(found.of(theirs), found.of(ours), measure) for theirs, ours in both]
    gains = ", ".join(f"{test.difference:+.4f}" for test in tests)
    if rising := _still_rising(found, [name for pair in both for name in pair]):
        return gains + rising
    if len({test.difference > 0 for test in tests}) > 1:
        return f"{gains}; not of one sign"
    return f"{gains}; p = {max(test.permutation for test in tests):.4f}"


def _seeded(found: Findings, model: str) -> list[str]:
    """Names of a model's jobs, one a seed."""
    return [f"{model}-n{found.preset.top}" + (f"-seed{seed}" if seed else "") for seed in found.preset.seeds]


def _gain(system: Results, other: Results, measure: str) -> str:
    return f"{system.measures[measure] / max(other.measures[measure], 1e-9) - 1:+.0%}"


def _seeds(found: Findings) -> Table:
    top, names = found.preset.top, OVER
    rows: list[Row] = []
    table: dict[str, NDArray[np.float64]] = {}
    firsts = _seeded(found, "spr-stage1")
    coarse = [found.coarse(first) for first in firsts if found.done(first)]
    table["SP: trained stage 1, coarse"] = _values(coarse, names)
    for model in SEEDED:
        runs = [found.of(name) for name in _seeded(found, model) if found.done(name)]
        table[NAMES[model]] = _values(runs, names)
    for label, values in table.items():
        if len(values):
            cells = (
                f"{m:.4f} ± {s:.4f}"
                for m, s in zip(values.mean(0), values.std(0, ddof=len(values) > 1), strict=True)
            )
            rows.append((label, str(len(values)), *cells))
    text = f"N = {top}; mean and standard deviation over seeds, stage 1 trained anew with each."
    return Table("Seeds", ("model", "seeds", *names), rows, text)


def _values(results: Sequence[Results], names: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[r.measures[name] for name in names] for r in results]).reshape(len(results), len(names))


def _bounds(found: Findings) -> Table:
    rows: list[Row] = []
    proposals = found.proposals()
    for context in CONTEXTS:
        for label, grid in (("UB", None), ("PUB, 1 s", 1.0), ("PUB, 1.5 s", 1.5)):
            bound = upper_bounds(found.test, proposals, context=context, grid=grid)
            rows.append((f"{context:g}", label, *_cells(bound, bound)))
    head = ("context (s)", "bound", *OVER)
    return Table("Upper bounds of refinement and re-ranking (SPR, Table 4)", head, rows)


def _stages(found: Findings) -> Table:
    """SP against SPR."""
    top = found.preset.top
    names = OVER
    coarse = found.coarse()
    rows: list[Row] = [("SP", *_cells(coarse, names), "")]
    for model in REFINERS:
        if found.done(f"{model}-n{top}"):
            fine = found.of(f"{model}-n{top}")
            gains = " / ".join(f"{fine.measures[n] / max(coarse.measures[n], 1e-9) - 1:+.0%}" for n in names)
            rows.append((f"SP + {NAMES[model]}", *_cells(fine, names), gains))
    return Table("Coarse proposals against refined moments", ("system", *names, "gain"), rows, f"N = {top}.")


def _thinned(found: Findings) -> Table:
    """The same answers after temporal suppression, which refiners and PREM have, and others lack."""
    rows: list[Row] = []
    for model in (*BASELINES, *REFINERS):
        name = f"{model}-n{found.preset.top}"
        if found.done(name):
            run = read_run(found.bench.run_file(name))
            thinned = (found.results(temporal_nms(run, overlap)) for overlap in (0.7, 0.5))
            rows.append(
                (NAMES[model], *(cell for r in (found.results(run), *thinned) for cell in _cells(r, OVER)))
            )
    head = ("model", *OVER, *(f"NMS {n} {o}" for n in (0.7, 0.5) for o in OVER))
    text = (
        f"N = {found.preset.top}. Of two answers of one video that overlap more than the threshold the worse "
        "one is dropped: first as answered, then at 0.7 and at 0.5."
    )
    return Table("Duplicates dropped", head, rows, text)


def _counts(found: Findings) -> Table:
    rows: list[Row] = []
    reel = _answering(found, f"reel-n{found.preset.top}")
    for count in (c for c in COUNTS if c <= len(found.grid)):
        proposals = found.proposals(count=count)
        coarse = judge(found.run(proposals), found.test)
        fine: Row = ("–",)
        if reel:
            run = reel.recipe.run(reel.model, replace(found.test, proposals=proposals), reel.how)
            fine = _cells(judge(run, found.test), [MAIN])
        mean = float(np.diff(proposals.offsets).mean())
        bound = f"{found.bound_of(proposals):.4f}"
        rows.append((str(count), f"{mean:.1f}", *_cells(coarse, [MAIN]), *fine, bound))
    head = ("segments", "proposals a query", f"SP {MAIN}", f"Reel {MAIN}", "PUB")
    return Table("Number of segments (SPR, Table 6)", head, rows)


def _answering(found: Findings, name: str) -> AnsweringModel | None:
    """A job's model, if it is done."""
    planned = {job.name: job for job in jobs(found.preset)}
    return found.bench.answering(planned[name]) if found.done(name) else None


RECALL_DEPTHS = (50, 100, 200)


def _untrained(found: Findings) -> Table:
    """CLIP without training, and what stage 1 learns from what (SPR, Table 7)."""
    systems: dict[str, Stage1] = {"CLIP, one frame": MiddleClip(), "CLIP, mean pooled": MeanPooling()}
    trained = {f"trained, top {top}, share 0.3": f"spr-stage1-n{top}" for top in found.preset.tops}
    trained |= {
        f"trained, top {found.preset.top}, share {share}": f"spr-stage1-share{share}"
        for share in (0.1, 0.5, 0.7)
    }
    systems |= {label: found.stage1(name) for label, name in trained.items() if found.done(name)}
    rows = [(label, *_retrieved(found, stage1)) for label, stage1 in systems.items()]
    head = ("stage 1", *(f"recall@{k}" for k in RECALL_DEPTHS), *OVER)
    text = "Recall of segments is weighted by overlap."
    return Table("CLIP without training against trained (SPR, Table 7)", head, rows, text)


def _retrieved(found: Findings, stage1: Stage1) -> Row:
    """Recall of segments, and what their proposals are worth."""
    deep = replace(found.retrieval(stage1), segments=max(RECALL_DEPTHS)).hits(found.test.queries)
    best, shares = found.grid.rows_of(deep), found.grid.shares(found.test.pairs)
    values = judge(found.run(found.proposed(stage1)), found.test)
    return (*(f"{recall(best, shares, k):.4f}" for k in RECALL_DEPTHS), *_cells(values, OVER))


def _jobs_table(
    found: Findings, title: str, rows: dict[str, str], names: Sequence[str], text: str = ""
) -> Table:
    """One row a job that is done: measures of NDCG and recall by name."""
    cells: list[Row] = []
    for label, name in rows.items():
        if found.done(name):
            values = found.bench.result(name)
            cells.append((label, *_cells(values["test"] | values["recall"], names)))
    return Table(title, ("model", *names), cells, text)


def _long(found: Findings) -> Table:
    """Whether the order of the main rows is one of speed."""
    top = found.preset.top
    rows: list[Row] = []
    for model in LONG:
        for name in (f"{model}-n{top}", f"{model}-long"):
            if found.done(name):
                r = found.bench.result(name)
                part = f"{r['test'][MAIN] / max(found.bound, 1e-9):.0%}" if model in REFINERS else "–"
                rows.append((NAMES[model], str(r["steps"]), *_cells(r["test"], OVER), part))
    text = (
        f"N = {top}: the main rows, and the same trained four times as long. The last column is the part of "
        f"the practical upper bound of refining these proposals, {MAIN}."
    )
    return Table("Longer training", ("model", "steps", *OVER, "of the bound"), rows, text)


def _strategies(found: Findings) -> Table:
    top = found.preset.top
    rows: dict[str, str] = {}
    for model in ("spr-clip", "spr-relo"):
        rows |= {f"{NAMES[model]}, {s}": f"{model}-{s}" for s in STRATEGIES}
    return _jobs_table(found, "Training strategies (SPR, Table 5)", rows, OVER, f"N = {top}, half the steps.")


RECALLS = (
    "SVMR R@1,IoU>0.7",
    "SVMR R@5,IoU>0.7",
    "VCMR R@1,IoU>0.7",
    "VCMR R@10,IoU>0.7",
    "VCMR R@100,IoU>0.7",
    "VR R@1",
    "VR R@5",
    "VR R@10",
    "VR R@100",
)


def _recall(found: Findings) -> Table:
    rows = {NAMES[name]: f"{name}-n{found.preset.top}" for name in (*BASELINES, *REFINERS)}
    text = (
        "The truth of a query are its moments of the highest grade; any of them counts (VCMR), as do their "
        "videos (VR), ranked by XML, ReLoCLNet and PREM themselves, by CONQUER's first stage, and by SPR in "
        "order of their best moment. SVMR searches the video of the first of them alone; SPR then takes "
        f"proposals of its {SEGMENTS_IN_VIDEO} best segments."
    )
    return _jobs_table(
        found, "Recall of moments in the corpus and in one video, and of videos", rows, RECALLS, text
    )


def _relevant(found: Findings) -> Table:
    top = found.preset.tops[0]
    rows = {
        "XML": f"xml-n{top}",
        "+SL": "xml-sl",
        "+PR": "xml-pr",
        "+SL +PR": "xml-sl-pr",
        "+PR, C = 1": "xml-pr-c1",
        "+PR, theta = .9": "xml-pr-related",
        "+SL +PR, theta = .9": "xml-sl-pr-related",
        "+PR, C = 1, theta = .9": "xml-pr-c1-related",
    }
    names = (*RECALLS, MAIN)
    text = f"N = {top}; theta = .7 as in the paper where nothing else is said."
    return _jobs_table(found, "Potentially relevant pairs on XML", rows, names, text)


def _prem(found: Findings) -> Table:
    rows = {
        "PREM": f"prem-n{found.preset.top}",
        "without the weak term": "prem-no-weak",
        "whole videos as positives": "prem-video-only",
        "without L^q": "prem-no-query-term",
        "without the gate": "prem-no-gate",
        "without the adversarial task": "prem-no-adversarial",
    }
    return _jobs_table(found, "PREM's parts", rows, (*RECALLS, MAIN))


def _cost(found: Findings) -> Table:
    rows: list[Row] = []
    for model in (*BASELINES, *REFINERS):
        name = f"{model}-n{found.preset.top}"
        if found.done(name):
            r = found.bench.result(name)
            rows.append((NAMES[model], f"{r['parameters']:,}", str(r["steps"]), f"{r['seconds']:.0f}",
                         f"{1000 * r['query_seconds']:.1f}"))  # fmt: skip
    text = (
        "One thread of a shared machine each. The time of a query is that of the whole test run, encoding "
        "the videos (or windows, each once for all queries) included, proposals not; "
        "`benchmarks/refiners.py` times what is left online."
    )
    return Table("Cost", ("model", "parameters", "steps", "seconds of training", "ms a query"), rows, text)


TABLES: dict[str, Callable[[Findings], Table]] = {
    "all-models": _main,
    "all-models-val": _on_val,
    "claims": _claims,
    "seeds": _seeds,
    "upper-bounds": _bounds,
    "coarse-and-refined": _stages,
    "duplicates-dropped": _thinned,
    "number-of-segments": _counts,
    "untrained-and-trained": _untrained,
    "longer-training": _long,
    "training-strategies": _strategies,
    "recall": _recall,
    "relevant-pairs": _relevant,
    "prem-parts": _prem,
    "cost": _cost,
}
"""What makes each table, by the name of its file, in the order of the report."""
