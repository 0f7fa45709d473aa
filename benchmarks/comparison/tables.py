"""The tables of a report, each of the jobs that are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from comparison.figures import FINE, MAIN, OVER, RECALL_DEPTHS, TYPES
from comparison.findings import Findings
from comparison.plan import HARD, OWN_STAGE1, RISING, SHARES, seed_mark
from comparison.rows import (
    ALL,
    BASELINES,
    NAMES,
    REFINERS,
    ROWS,
    cells,
    finished,
    main,
    more_steps,
    seed_names,
    spread,
    with_seeds,
)  # fmt: skip
from comparison.studies import STUDIES
from comparison.table import Row, Table
from moviola.study.measures import compare

__all__ = ["TABLES"]

# ---- the main rows ---------------------------------------------------------------------------------------


def _main(found: Findings) -> Table:
    first = found.result(found.first)
    rows: list[Row] = [
        ("random spans", "–", *cells(first["random"], ALL)),
        ("CLIP, mean pooled, coarse", "–", *cells(first["untrained"]["CLIP, mean pooled"], ALL)),
    ]
    for top in found.preset.tops:
        for label, name in finished(found, ROWS, top):
            rows.append((label, str(top), *cells(found.test(name), ALL)))
            if "padded" in found.result(name):
                rows.append(("SP, 4 s in front", str(top), *cells(found.result(name)["padded"], ALL)))
    return Table("All models", ("model", "N", *ALL), rows)


def _on_val(found: Findings) -> Table:
    """The columns of val beside those of test (TVR-Ranking, Table 6)."""
    rows = [
        (label, str(top), *cells(found.val(name), ALL))
        for top in found.preset.tops
        for label, name in finished(found, ROWS, top)
    ]
    text = "The same measures on val, by which weights and the rows of the claims are chosen."
    return Table("All models on val", ("model", "N", *ALL), rows, text)


def _types(found: Findings) -> Table:
    """The main rows by what answers a query: pictures, subtitles, or both."""
    counts = {kind: int(row["queries"]) for kind, row in found.result(found.first)["types"].items()}
    kinds = [kind for kind in TYPES if kind in counts]
    rows = [
        (label, *(f"{found.result(name)['types'][kind][measure]:.4f}" for kind in kinds for measure in OVER))
        for label, name in finished(found, ROWS)
    ]
    text = (
        f"N = {found.preset.top}. Queries about what is seen (v), what the narrator says (t), or both (vt): "
        + ", ".join(f"{counts[kind]} {kind}" for kind in kinds)
        + ". Stage 1 and SPR_CLIP read pictures alone, and every SPR row has the proposals of stage 1."
    )
    return Table("By type of query", ("model", *(f"{k} {m}" for k in kinds for m in OVER)), rows, text)


def _trainings(found: Findings) -> Table:
    """How far each main row was trained, and what it cost."""
    rows = []
    for label, name in finished(found, ROWS):
        result = found.result(name)
        phases = result["phases"]
        rows.append((
            label, f"{result['parameters']:,}",
            " + ".join(str(phase["steps"]) for phase in phases),
            " + ".join(f"{phase['epochs']:.0f}" for phase in phases), _hard_from(result["job"]),
            " + ".join(str(phase["best_step"]) for phase in phases), f"{found.late_gain(name):+.1%}",
            f"{result['cpu_seconds'] / 60:.1f}", f"{1000 * result['query_seconds']:.1f}",
        ))  # fmt: skip
    head = (
        "model", "parameters", "steps", "epochs", "hard negatives from epoch", "best step",
        "gain of the last quarter", "CPU minutes", "ms a query",
    )  # fmt: skip
    text = (
        f"N = {found.preset.top}, seed 0; phases are added up. The gain of the last quarter is by how much "
        "the best value on val rose in it. CPU minutes are of the whole piece, evaluations and answers "
        "included, on one thread. The time of a query is that of the whole test run, encoding the videos (or "
        "windows, each once for all queries) included, proposals not; what is left online is in SPR's Table "
        "2 ([scale](../scale/report.md))."
    )
    return Table("Trainings and their cost", head, rows, text)


def _hard_from(job: Mapping[str, Any]) -> str:
    """The epoch from which a job drew hard negatives, as its settings have it."""
    named = HARD.get(job["recipe"], "")
    return next((value for name, value in (o.split("=", 1) for o in job["overrides"]) if name == named), "–")


def _hours(found: Findings) -> Table:
    """CPU hours of all pieces that are done, by recipe, and GPU minutes where a GPU trained some."""
    spent: dict[str, list[tuple[float, float]]] = {}
    for job in found.bench.jobs():
        if found.done(job.name):
            result = found.result(job.name)
            on_gpu = result["seconds"] if result.get("device", "cpu") != "cpu" else 0.0
            spent.setdefault(job.recipe, []).append((result["cpu_seconds"] / 3600, on_gpu / 60))
    rows = [_spent(NAMES[name], own) for name, own in spent.items()]
    rows.append(_spent("all", [each for own in spent.values() for each in own]))
    return Table("CPU hours", ("model", "trainings", "CPU hours", "on a GPU", "GPU minutes"), rows)


def _spent(name: str, trainings: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    """A row of what trainings cost, each in CPU hours and GPU minutes."""
    hours, minutes = (sum(own) for own in zip(*trainings, strict=True))
    on_gpu = sum(own > 0 for _, own in trainings)
    return name, str(len(trainings)), f"{hours:.2f}", str(on_gpu), f"{minutes:.1f}"


# ---- claims ----------------------------------------------------------------------------------------------


def _claims(found: Findings) -> Table:
    """The papers' claims, and ours, with what was found."""
    text = (
        f"N = {found.preset.top}, seed 0; the best of several is the best on val, of the main rows, or (more "
        "steps counted) of those under Longer training too. Reel's differences are given for each seed that "
        "both were trained with, and p is the largest of their paired permutation tests. It is given where "
        "all of them have one sign and val had stopped rising for both models (by less than "
        f"{RISING:.0%} in the last quarter, of this training or of one with more steps): of a "
        "model that still learned nothing follows."
    )
    rows = [*_claims_of_spr(found), *_claims_of_stages(found), *_claims_of_reel(found)]
    return Table("Claims", ("claim", "expected", "found"), rows, text)


def _claims_of_spr(found: Findings) -> Iterator[Row]:
    coarse, (spr, job) = found.test(found.first), _best(found, REFINERS[:3])
    efforts = (False, True) if any(map(found.done, more_steps(found, ROWS).values())) else (False,)
    for longer in efforts:
        yield from _best_over_best(found, longer=longer)
    if spr:
        yield f"{spr} over coarse proposals, {FINE}", "+70 %", _gain(found.test(job), coarse, FINE)
    untrained = found.result(found.first)["untrained"]["CLIP, mean pooled"]
    times = f"{coarse[MAIN] / max(untrained[MAIN], 1e-9):.2f} times"
    yield f"trained stage 1 over mean-pooled CLIP, coarse, {MAIN}", "several times", times
    for longer in efforts:
        label, job = _best(found, REFINERS[:3], longer=longer)
        if label:
            yield _part_of_bound(found, label + _counted(longer), job)


def _counted(longer: bool) -> str:
    return ", more steps counted" if longer else ""


def _best(found: Findings, models: Sequence[str], *, longer: bool = False) -> tuple[str, str]:
    """Label and job of the best on val among some models, or among those with more steps too; "" if none."""
    jobs = main(found, models)
    jobs |= more_steps(found, models) if longer else {}
    done = [(label, job) for label, job in jobs.items() if found.done(job)]
    return max(done, key=lambda row: found.val(row[1])[MAIN], default=("", ""))


def _best_over_best(found: Findings, *, longer: bool) -> Iterator[Row]:
    """The best SPR over the best baseline, of the main rows, or of those with more steps too."""
    (spr, ours), (base, theirs) = (_best(found, m, longer=longer) for m in (REFINERS[:3], BASELINES))
    if not (spr and base):
        return
    claim = f"best SPR ({spr}) over best baseline ({base}){_counted(longer)}"
    rising = _still_rising(found, (ours, theirs))
    yield f"{claim}, {MAIN}", "+29 %", _gain(found.test(ours), found.test(theirs), MAIN) + rising
    own, other = (found.result(job)["thinned"]["0.5"] for job in (ours, theirs))
    yield f"{claim}, duplicates dropped from both, {MAIN}", "", _gain(own, other, MAIN) + rising


def _claims_of_stages(found: Findings) -> Iterator[Row]:
    """Whether a model gains by its hard negatives: the same budget with and without."""
    for model in ("xml", "reloclnet"):
        names = f"{model}-n{found.preset.top}", f"{model}-without-hard"
        if all(map(found.done, names)):
            gain = _gain(found.test(names[0]), found.test(names[1]), MAIN) + _still_rising(found, names)
            yield f"{NAMES[model]} with its hard negatives over without, {MAIN}", "above 0", gain


def _part_of_bound(found: Findings, label: str, job: str) -> Row:
    part = f"{found.part_of_bound(job):.1%}"
    return f"{label}: part of the practical upper bound, {MAIN}", "62 %; goal 70 %", part


def _claims_of_reel(found: Findings) -> Iterator[Row]:
    for label, job in (("Reel", f"reel-n{found.preset.top}"), ("Reel, second edition", "reel-second")):
        if found.done(job):
            yield _part_of_bound(found, label, job)
        others = main(found, REFINERS[:3])
        for other, theirs in {**others, **more_steps(found, REFINERS[:3])}.items():
            if found.done(theirs) and found.done(job):
                for measure in OVER:
                    gains = _over_seeds(found, theirs, job, measure)
                    yield f"{label} minus {other}, {measure}", "above 0 with every seed", gains


def _still_rising(found: Findings, jobs_of: Sequence[str]) -> str:
    """A remark where val still rose for one of them when its training ended."""
    return "" if all(found.converged(name) for name in jobs_of) else "; val still rose: nothing follows"


def _over_seeds(found: Findings, other: str, job: str, measure: str) -> str:
    """A job minus another, for each seed of both; with p where something follows."""
    both = [
        pair
        for pair in zip(*(seed_names(found, name) for name in (other, job)), strict=True)
        if all(found.done(name) for name in pair)
    ]
    tests = [compare(found.of(theirs), found.of(ours), measure) for theirs, ours in both]
    gains = ", ".join(f"{test.difference:+.4f}" for test in tests)
    if rising := _still_rising(found, [name for pair in both for name in pair]):
        return gains + rising
    if len({test.difference > 0 for test in tests}) > 1:
        return f"{gains}; not of one sign"
    return f"{gains}; p = {max(test.permutation for test in tests):.4f}"


def _gain(system: Mapping[str, float], other: Mapping[str, float], measure: str) -> str:
    return f"{system[measure] / max(other[measure], 1e-9) - 1:+.0%}"


def _seeds(found: Findings) -> Table:
    rows = [
        (NAMES[model], str(top), str(len(jobs)), *spread([found.test(name) for name in jobs], OVER))
        for top in found.preset.tops
        for model in ROWS
        if (jobs := with_seeds(found, f"{model}-n{top}"))
    ]
    text = "Mean and standard deviation over seeds, stage 1 trained again with each."
    return Table("Seeds", ("model", "N", "seeds", *OVER), rows, text)


# ---- stages ----------------------------------------------------------------------------------------------


def _bounds(found: Findings) -> Table:
    rows = [
        (f"{row['context']:g}", f"PUB, {row['grid']:g} s" if row["grid"] else "UB", *cells(row, OVER))
        for row in found.result(found.first)["bounds"]
    ]
    head = ("context (s)", "bound", *OVER)
    return Table("Upper bounds of refinement and re-ranking (SPR, Table 4)", head, rows)


def _stages(found: Findings) -> Table:
    """SP against SPR."""
    coarse = found.test(found.first)
    rows: list[Row] = [("SP", *cells(coarse, OVER), "")]
    for label, name in finished(found, REFINERS):
        fine = found.test(name)
        gains = " / ".join(_gain(fine, coarse, measure) for measure in OVER)
        rows.append((f"SP + {label}", *cells(fine, OVER), gains))
    text = f"N = {found.preset.top}."
    return Table("Coarse proposals against refined moments", ("system", *OVER, "gain"), rows, text)


def _thinned(found: Findings) -> Table:
    """The same answers after temporal suppression, which refiners and PREM have, and others lack."""
    rows = []
    for label, name in finished(found, (*BASELINES, *REFINERS)):
        thinned = found.result(name)["thinned"]
        tables = (found.test(name), *thinned.values())
        rows.append((label, *(cell for values in tables for cell in cells(values, OVER))))
    head = ("model", *OVER, *(f"NMS {n} {o}" for n in (0.7, 0.5) for o in OVER))
    text = (
        f"N = {found.preset.top}. Of two answers of one video that overlap more than the threshold the worse "
        "one is dropped: first as answered, then at 0.7 and at 0.5."
    )
    return Table("Duplicates dropped", head, rows, text)


def _counts(found: Findings) -> Table:
    name = f"reel-n{found.preset.top}"
    reel = found.result(name)["counts"] if found.done(name) else {}
    rows = [
        (
            str(row["segments"]), f"{row['proposals']:.1f}", f"{row[MAIN]:.4f}",
            f"{reel[str(row['segments'])]:.4f}" if reel else "–", f"{row['bound']:.4f}",
        )
        for row in found.result(found.first)["counts"]
    ]  # fmt: skip
    head = ("segments", "proposals a query", f"SP {MAIN}", f"Reel {MAIN}", "PUB")
    return Table("Number of segments (SPR, Table 6)", head, rows)


def _untrained(found: Findings) -> Table:
    """CLIP without training, and what stage 1 learns from what (SPR, Table 7)."""
    top, recalls = found.preset.top, [f"recall@{depth}" for depth in RECALL_DEPTHS]
    rows = [
        (label, *cells(values, (*recalls, *OVER)))
        for label, values in found.result(found.first)["untrained"].items()
    ]
    trained = {f"trained, top {n}, share 0.3": f"spr-stage1-n{n}" for n in found.preset.tops}
    trained |= {f"trained, top {top}, share {share}": f"spr-stage1-share{share}" for share in SHARES}
    rows += [
        (label, *cells(found.result(name)["segments"], recalls), *cells(found.test(name), OVER))
        for label, name in trained.items()
        if found.done(name)
    ]
    text = "Recall of segments is weighted by overlap."
    return Table(
        "CLIP without training against trained (SPR, Table 7)", ("stage 1", *recalls, *OVER), rows, text
    )


def _own_stage1(found: Findings) -> Table:
    """Reel's own stage 1 beside SPR's, and Reel on the proposals of each."""
    top, recalls = found.preset.top, [f"recall@{depth}" for depth in RECALL_DEPTHS]
    seeds = found.preset.seeds if found.preset.own_stage1 else ()
    rows = []
    for name, label, refined in (
        ("spr-stage1", "SPR's", "reel-n{top}{mark}"),
        (OWN_STAGE1, "Reel's own", "reel-own{mark}"),
    ):
        for seed in seeds:
            mark = seed_mark(seed)
            first, second = f"{name}-n{top}{mark}", refined.format(top=top, mark=mark)
            if not (found.done(first) and found.done(second)):
                continue
            own = found.result(first)
            rows.append((
                f"{label}, seed {seed}", *cells(own["segments"], recalls),
                f"{own['bound']:.4f}" if "bound" in own else "–",
                f"{own['with_lines']['bound']:.4f}" if "with_lines" in own else "–",
                *cells(found.test(first), OVER), *cells(found.test(second), OVER),
            ))  # fmt: skip
    head = (
        "stage 1", *recalls, "PUB", "PUB, lines among them", *(f"coarse {name}" for name in OVER),
        *(f"Reel {name}" for name in OVER),
    )  # fmt: skip
    text = (
        f"Recall of segments is weighted by overlap; PUB is {MAIN} with {found.preset.segments} segments, or "
        "with subtitle lines instead of the last of them, as many as val chose. "
        "Planned after the other rows had been reported; all settings were chosen on val."
    )
    return Table("Reel's own stage 1", head, rows, text)


TABLES: dict[str, Callable[[Findings], Table]] = {
    "all-models": _main,
    "all-models-val": _on_val,
    "types-of-queries": _types,
    "claims": _claims,
    "seeds": _seeds,
    "trainings": _trainings,
    "hours": _hours,
    "upper-bounds": _bounds,
    "coarse-and-refined": _stages,
    "duplicates-dropped": _thinned,
    "number-of-segments": _counts,
    "untrained-and-trained": _untrained,
    "own-stage-1": _own_stage1,
    **STUDIES,
}
"""What makes each table, by the name of its file, in the order of the report."""
