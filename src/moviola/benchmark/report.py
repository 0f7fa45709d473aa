"""The report of a comparison: Markdown, CSV and figures, from what the jobs kept."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from moviola.benchmark.bounds import upper_bounds
from moviola.benchmark.plan import CONQUERS, LONG, MODELS, SEEDED, STRATEGIES, Preset, jobs
from moviola.benchmark.run import IN_VIDEO, Bench
from moviola.errors import InvalidValue
from moviola.measures import Results, Run, compare, evaluate, read_run, temporal_nms
from moviola.measures.figures import lines, save
from moviola.models.spr import SegmentRetriever
from moviola.training.recipes import MEASURES, Split, judge
from moviola.training.segments import (
    SegmentGrid,
    coarse_run,
    embed_segments,
    mean_pooled,
    proposals_of,
    propose_for,
    recall,
)
from moviola.types import Proposal

__all__ = ["write_report"]

Row = tuple[str, ...]
REFINERS = ("spr-clip", "spr-relo", "spr-relo-large", "reel")
BASELINES = ("xml", "reloclnet", *(f"conquer-{kind}" for kind in CONQUERS), "prem")
COARSE, MAIN, FINE = OVER = tuple(f"nDCG@20,IoU>={overlap}" for overlap in (0.3, 0.5, 0.7))
PADDING = 4.0
CONTEXTS = (0.0, 4.0, 8.0)
COUNTS = (20, 50, 100, 200, 400)
_NAMES = {
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


@dataclass(frozen=True)
class Table:
    """A table with its title, and what it says in words."""

    title: str
    head: Row
    rows: Sequence[Row]
    text: str = ""

    def markdown(self) -> str:
        """As Markdown."""
        cells = [self.head, ("---",) * len(self.head), *self.rows]
        body = "\n".join(f"| {' | '.join(row)} |" for row in cells)
        return f"## {self.title}\n\n{self.text + chr(10) + chr(10) if self.text else ''}{body}\n"


@dataclass(frozen=True)
class _Findings:
    """What all tables are made from."""

    bench: Bench
    preset: Preset

    @cached_property
    def test(self) -> Split:
        return self.bench.world.split("test")

    @cached_property
    def grid(self) -> SegmentGrid:
        return SegmentGrid.of(self.test.clips, self.bench.world.features.segment_clips)

    def stage1(self, name: str | None = None) -> SegmentRetriever:
        return self.bench.stage1(name or f"spr-stage1-n{self.preset.top}")

    def proposals(self, name: str | None = None, count: int | None = None) -> list[list[Proposal]]:
        return propose_for(self.stage1(name), self.test, count=count or self.bench.segments)

    def results(self, run: Run) -> Results:
        return evaluate(run, self.test.pairs.qrels, MEASURES)

    def of(self, name: str) -> Results:
        """A trained job's results, from its answers."""
        return self.results(read_run(self.bench.run_file(name)))

    def done(self, name: str) -> bool:
        return self.bench.result_file(name).is_file()


def write_report(
    bench: Bench, preset: Preset, out: Path, *, title: str, tell: Callable[[str], None] = print
) -> Path:
    """Write ``report.md``, one CSV a table and the figures.

    Args:
        bench: a comparison whose jobs are done; rows of missing jobs are left out, and named.
        preset: what was planned.
        out: the report's folder.
        title: its first line.
        tell: told what is being done.

    Returns:
        the Markdown file.

    Raises:
        InvalidValue: the stage 1 that everything is compared with is not trained yet.
    """
    found = _Findings(bench, preset)
    if not found.done(f"spr-stage1-n{preset.top}"):
        raise InvalidValue(
            f"{bench.out}: spr-stage1-n{preset.top} is not trained yet, and no table can do without; "
            "run the comparison first"
        )
    out.mkdir(parents=True, exist_ok=True)
    makers = [
        _main,
        _claims,
        _seeds,
        _bounds,
        _stages,
        _thinned,
        _counts,
        _untrained,
        _long,
        _strategies,
        _recall,
        _relevant,
    ]
    tables = []
    for make in (*makers, _prem, _cost):
        tell(f"table: {make.__name__.strip('_')}")
        tables.append(make(found))
    _figures(found, out)
    for number, table in enumerate(tables, start=1):
        with (out / f"table-{number:02d}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([table.head, *table.rows])
    text = [f"# {title}", "", _about(found), "", "![NDCG@20 over overlap](ndcg.png)", ""]
    path = out / "report.md"
    path.write_text("\n".join(text) + "\n" + "\n".join(table.markdown() for table in tables))
    return path


def _about(found: _Findings) -> str:
    world, preset = found.bench.world, found.preset
    missing = [job.name for job in jobs(preset) if not found.done(job.name)]
    counts = {name: len(world.videos(name)) for name in ("train", "val", "test")}
    return (
        f"Gridhouse, {preset.videos} films (seed {preset.seed}): {counts['train']} for training, "
        f"{counts['val']} to choose by, {counts['test']} to test on, each split searched and judged alone. "
        f"{len(found.test.queries)} test queries, {len(found.test.pairs) / len(found.test.queries):.1f} "
        f"relevant moments each. Frames once a second by `{world.features.encoder[0]}`; all models see the "
        f"same features. Stage 1 retrieves {found.bench.segments} segments of 4 s. Sizes and steps are cut "
        "to what two CPU cores can train; every model's settings are in its folder's config.json."
        + (f" Not trained, and missing below: {', '.join(missing)}." if missing else "")
    )


def _cells(values: Results | dict[str, float], names: Iterable[str]) -> Row:
    table = values.measures if isinstance(values, Results) else values
    return tuple(f"{table[name]:.4f}" for name in names)


# ---- tables ------------------------------------------------------------------------------------------------


def _main(found: _Findings) -> Table:
    names = [str(measure) for measure in MEASURES]
    rows: list[Row] = [
        (label, "–", *_cells(results, names)) for label, results in _without_training(found).items()
    ]
    for top in found.preset.tops:
        first = f"spr-stage1-n{top}"
        if found.done(first):
            own = found.proposals(first)
            coarse = found.results(coarse_run(own, found.test.queries.query_ids))
            rows.append(("SP: trained stage 1, coarse", str(top), *_cells(coarse, names)))
            padded = found.results(_padded(found, own))
            rows.append((f"SP, {PADDING:g} s in front", str(top), *_cells(padded, names)))
        rows += [
            (_NAMES[model], str(top), *_cells(found.of(f"{model}-n{top}"), names))
            for model in (*BASELINES, *REFINERS)
            if found.done(f"{model}-n{top}")
        ]
    return Table("All models", ("model", "N", *names), rows)


def _without_training(found: _Findings) -> dict[str, Results]:
    queries = F.normalize(found.test.queries.vectors, dim=-1)
    pooled = proposals_of(queries, mean_pooled(found.grid), found.grid, count=found.bench.segments)
    ids = found.test.queries.query_ids
    return {
        "random spans": found.results(_random(found)),
        "CLIP, mean pooled, coarse": found.results(coarse_run(pooled, ids)),
    }


def _random(found: _Findings) -> Run:
    draw, clips = np.random.default_rng(0), found.test.clips
    queries = len(found.test.queries)
    video = draw.integers(len(clips.videos), size=(queries, 40))
    length = draw.uniform(4, 16, size=video.shape)
    start = draw.uniform(0, 1, size=video.shape) * np.maximum(clips.durations[video] - length, 0)
    return Run.from_columns(
        np.repeat(np.array(found.test.queries.query_ids, dtype=object), 40),
        np.array(clips.videos, dtype=object)[video.ravel()],
        start.ravel(),
        np.minimum(start + length, clips.durations[video]).ravel(),
        np.tile(np.arange(40, 0, -1.0), queries),
    )


def _padded(found: _Findings, proposals: Sequence[Sequence[Proposal]]) -> Run:
    run = coarse_run(proposals, found.test.queries.query_ids)
    return replace(run, start=np.maximum(run.start - PADDING, 0))


def _claims(found: _Findings) -> Table:
    """The papers' claims, and ours, with what was found."""
    top = found.preset.top
    coarse = found.results(coarse_run(found.proposals(), found.test.queries.query_ids))
    pooled = _without_training(found)["CLIP, mean pooled, coarse"]
    bound = upper_bounds(found.test, found.proposals(), context=8.0, overlaps=(0.5,), grid=1.0)[MAIN]
    trained = {
        name: found.of(f"{name}-n{top}") for name in (*REFINERS, *BASELINES) if found.done(f"{name}-n{top}")
    }

    def best(names: Iterable[str]) -> list[str]:
        """The best of them, if any is trained."""
        own = [name for name in names if name in trained]
        return [max(own, key=lambda name: trained[name].measures[MAIN])] if own else []

    spr, base = best(REFINERS[:3]), best(BASELINES)
    rows: list[Row] = [
        (
            f"best SPR ({_NAMES[one]}) over best baseline ({_NAMES[other]}), {MAIN}",
            "+29 %",
            _gain(trained[one], trained[other], MAIN),
        )
        for one in spr
        for other in base
    ]
    rows += [
        (f"{_NAMES[name]} over coarse proposals, {FINE}", "+60 %", _gain(trained[name], coarse, FINE))
        for name in spr
    ]
    rows.append(
        (
            f"trained stage 1 over mean-pooled CLIP, coarse, {MAIN}",
            "several times",
            f"{coarse.measures[MAIN] / max(pooled.measures[MAIN], 1e-9):.2f} times",
        )
    )
    rows += [
        (
            f"{_NAMES[name]}: part of the practical upper bound, {MAIN}",
            "62 %; goal 70 %",
            f"{trained[name].measures[MAIN] / max(bound, 1e-9):.0%}",
        )
        for name in (*spr, *best(["reel"]))
    ]
    rows += [
        (
            f"Reel minus {_NAMES[other]}, {measure}",
            "above 0 with every seed",
            _over_seeds(found, other, measure),
        )
        for other in REFINERS[:3]
        if other in trained and "reel" in trained
        for measure in OVER
    ]
    text = (
        f"N = {top}, seed 0; Reel's differences are given for each seed that both were trained with, and p "
        "is the largest of their paired permutation tests."
    )
    return Table("Claims", ("claim", "expected", "found"), rows, text)


def _over_seeds(found: _Findings, other: str, measure: str) -> str:
    """Reel minus another refiner, for each seed of both."""
    tests = [
        compare(found.of(theirs), found.of(ours), measure)
        for theirs, ours in zip(_seeded(found, other), _seeded(found, "reel"), strict=True)
        if found.done(theirs) and found.done(ours)
    ]
    gains = ", ".join(f"{test.difference:+.4f}" for test in tests)
    return f"{gains}; p = {max(test.permutation for test in tests):.4f}"


def _seeded(found: _Findings, model: str) -> list[str]:
    """Names of a model's jobs, one a seed."""
    return [f"{model}-n{found.preset.top}" + (f"-seed{seed}" if seed else "") for seed in found.preset.seeds]


def _gain(system: Results, other: Results, measure: str) -> str:
    return f"{system.measures[measure] / max(other.measures[measure], 1e-9) - 1:+.0%}"


def _seeds(found: _Findings) -> Table:
    top, names = found.preset.top, OVER
    rows: list[Row] = []
    table: dict[str, NDArray[np.float64]] = {}
    firsts = _seeded(found, "spr-stage1")
    ids = found.test.queries.query_ids
    coarse = [found.results(coarse_run(found.proposals(first), ids)) for first in firsts if found.done(first)]
    table["SP: trained stage 1, coarse"] = _values(coarse, names)
    for model in SEEDED:
        runs = [found.of(name) for name in _seeded(found, model) if found.done(name)]
        table[_NAMES[model]] = _values(runs, names)
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


def _bounds(found: _Findings) -> Table:
    rows: list[Row] = []
    proposals = found.proposals()
    for context in CONTEXTS:
        for label, grid in (("UB", None), ("PUB, 1 s", 1.0)):
            bound = upper_bounds(found.test, proposals, context=context, grid=grid)
            rows.append((f"{context:g}", label, *_cells(bound, bound)))
    head = ("context (s)", "bound", *OVER)
    return Table("Upper bounds of refinement and re-ranking (SPR, Table 4)", head, rows)


def _stages(found: _Findings) -> Table:
    """SP against SPR."""
    top = found.preset.top
    names = OVER
    coarse = found.results(coarse_run(found.proposals(), found.test.queries.query_ids))
    rows: list[Row] = [("SP", *_cells(coarse, names), "")]
    for model in REFINERS:
        if found.done(f"{model}-n{top}"):
            fine = found.of(f"{model}-n{top}")
            gains = " / ".join(f"{fine.measures[n] / max(coarse.measures[n], 1e-9) - 1:+.0%}" for n in names)
            rows.append((f"SP + {_NAMES[model]}", *_cells(fine, names), gains))
    return Table("Coarse proposals against refined moments", ("system", *names, "gain"), rows, f"N = {top}.")


def _thinned(found: _Findings) -> Table:
    """The same answers after temporal suppression, which Reel and PREM have and the others' papers lack."""
    rows: list[Row] = []
    for model in (*BASELINES, *REFINERS):
        name = f"{model}-n{found.preset.top}"
        if found.done(name):
            run = read_run(found.bench.run_file(name))
            thinned = (found.results(temporal_nms(run, overlap)) for overlap in (0.7, 0.5))
            rows.append(
                (_NAMES[model], *(cell for r in (found.results(run), *thinned) for cell in _cells(r, OVER)))
            )
    head = ("model", *OVER, *(f"NMS {n} {o}" for n in (0.7, 0.5) for o in OVER))
    text = (
        f"N = {found.preset.top}. Of two answers of one video that overlap more than the threshold the worse "
        "one is dropped: first as answered, then at 0.7 and at 0.5."
    )
    return Table("Duplicates dropped", head, rows, text)


def _counts(found: _Findings) -> Table:
    from moviola.training.registry import recipe

    rows: list[Row] = []
    top = found.preset.top
    reel = _trained(found, f"reel-n{top}")
    for count in (c for c in COUNTS if c <= len(found.grid)):
        proposals = found.proposals(count=count)
        coarse = judge(coarse_run(proposals, found.test.queries.query_ids), found.test)
        bound = upper_bounds(found.test, proposals, context=8.0, overlaps=(0.5,), grid=1.0)
        fine: Row = ("–",)
        if reel:
            run = recipe("reel").run(reel, replace(found.test, proposals=proposals))
            fine = _cells(judge(run, found.test), [MAIN])
        mean = float(np.mean([len(own) for own in proposals]))
        rows.append((str(count), f"{mean:.1f}", *_cells(coarse, [MAIN]), *fine, *_cells(bound, [MAIN])))
    head = ("segments", "proposals a query", f"SP {MAIN}", f"Reel {MAIN}", "PUB")
    return Table("Number of segments (SPR, Table 6)", head, rows)


def _trained(found: _Findings, name: str) -> torch.nn.Module | None:
    from moviola.models.pretrained import from_pretrained

    return from_pretrained(found.bench.model(name)) if found.done(name) else None


def _untrained(found: _Findings) -> Table:
    """CLIP without training, and what stage 1 learns from what (SPR, Table 7)."""
    shares = found.grid.shares(found.test.pairs)
    queries = found.test.queries.vectors
    ids = found.test.queries.query_ids
    middle = F.normalize(found.grid.frames[:, found.grid.length // 2], dim=-1)
    systems = {"CLIP, one frame": (queries, middle), "CLIP, mean pooled": (queries, mean_pooled(found.grid))}
    trained = {f"trained, top {top}, share 0.3": f"spr-stage1-n{top}" for top in found.preset.tops}
    trained |= {
        f"trained, top {found.preset.top}, share {share}": f"spr-stage1-share{share}"
        for share in (0.1, 0.5, 0.7)
    }
    for label, name in trained.items():
        if found.done(name):
            model = found.stage1(name)
            with torch.inference_mode():
                systems[label] = (model.encode_queries(queries), embed_segments(model, found.grid))
    rows: list[Row] = []
    for label, (asked, segments) in systems.items():
        scores = (F.normalize(asked, dim=-1) @ segments.T).numpy()
        proposals = proposals_of(F.normalize(asked, dim=-1), segments, found.grid, count=found.bench.segments)
        values = judge(coarse_run(proposals, ids), found.test)
        recalls = (f"{recall(scores, shares, k):.4f}" for k in (50, 100, 200))
        rows.append((label, *recalls, *_cells(values, OVER)))
    head = (
        "stage 1",
        "recall@50",
        "recall@100",
        "recall@200",
        *OVER,
    )
    return Table(
        "CLIP without training against trained (SPR, Table 7)",
        head,
        rows,
        "Recall of segments is weighted by overlap.",
    )


def _jobs_table(
    found: _Findings, title: str, rows: dict[str, str], names: Sequence[str], text: str = ""
) -> Table:
    """One row a job that is done: measures of NDCG and recall by name."""
    cells: list[Row] = []
    for label, name in rows.items():
        if found.done(name):
            values = found.bench.result(name)
            cells.append((label, *_cells(values["test"] | values["recall"], names)))
    return Table(title, ("model", *names), cells, text)


def _long(found: _Findings) -> Table:
    """Whether the order of the main rows is one of speed."""
    top = found.preset.top
    bound = upper_bounds(found.test, found.proposals(), context=8.0, overlaps=(0.5,), grid=1.0)[MAIN]
    rows: list[Row] = []
    for model in LONG:
        for name in (f"{model}-n{top}", f"{model}-long"):
            if found.done(name):
                r = found.bench.result(name)
                part = f"{r['test'][MAIN] / max(bound, 1e-9):.0%}" if model in REFINERS else "–"
                rows.append((_NAMES[model], str(r["steps"]), *_cells(r["test"], OVER), part))
    text = (
        f"N = {top}: the main rows, and the same trained four times as long. The last column is the part of "
        f"the practical upper bound of refining these proposals, {MAIN}."
    )
    return Table("Longer training", ("model", "steps", *OVER, "of the bound"), rows, text)


def _strategies(found: _Findings) -> Table:
    top = found.preset.top
    rows: dict[str, str] = {}
    for model in ("spr-clip", "spr-relo"):
        rows |= {f"{_NAMES[model]}, {s}": f"{model}-{s}" for s in STRATEGIES}
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


def _recall(found: _Findings) -> Table:
    rows = {_NAMES[name]: f"{name}-n{found.preset.top}" for name in (*BASELINES, *REFINERS)}
    text = (
        "The truth of a query are its moments of the highest grade; any of them counts (VCMR), as do their "
        "videos (VR), which are in order of their best moment. SVMR searches the video of the first of them "
        f"alone; SPR then takes proposals of its {IN_VIDEO} best segments."
    )
    return _jobs_table(
        found, "Recall of moments in the corpus and in one video, and of videos", rows, RECALLS, text
    )


def _relevant(found: _Findings) -> Table:
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


def _prem(found: _Findings) -> Table:
    rows = {
        "PREM": f"prem-n{found.preset.top}",
        "without the weak term": "prem-no-weak",
        "whole videos as positives": "prem-video-only",
        "without L^q": "prem-no-query-term",
        "without the gate": "prem-no-gate",
        "without the adversarial task": "prem-no-adversarial",
    }
    return _jobs_table(found, "PREM's parts", rows, (*RECALLS, MAIN))


def _cost(found: _Findings) -> Table:
    rows: list[Row] = []
    for model in (*BASELINES, *REFINERS):
        name = f"{model}-n{found.preset.top}"
        if found.done(name):
            r = found.bench.result(name)
            rows.append((_NAMES[model], f"{r['parameters']:,}", str(r["steps"]), f"{r['seconds']:.0f}",
                         f"{1000 * r['query_seconds']:.1f}"))  # fmt: skip
    text = (
        "One thread of a shared machine each. The time of a query is that of the whole test run, encoding "
        "the videos (or windows, each once for all queries) included; `benchmarks/refiners.py` times what is "
        "left online."
    )
    return Table("Cost", ("model", "parameters", "steps", "seconds of training", "ms a query"), rows, text)


# ---- figures -----------------------------------------------------------------------------------------------


def _figures(found: _Findings, out: Path) -> None:
    overlaps = (0.3, 0.5, 0.7)
    rows: dict[str, Sequence[float]] = {}
    ids = found.test.queries.query_ids
    coarse = found.results(coarse_run(found.proposals(), ids)).measures
    rows["SP (coarse)"] = [coarse[f"nDCG@20,IoU>={o}"] for o in overlaps]
    for model in MODELS:
        name = f"{model}-n{found.preset.top}"
        if found.done(name):
            values = found.bench.result(name)["test"]
            rows[_NAMES[model]] = [values[f"nDCG@20,IoU>={o}"] for o in overlaps]
    save(lines(overlaps, rows, "Gridhouse test queries", "IoU threshold", "NDCG@20"), out / "ndcg.png")
