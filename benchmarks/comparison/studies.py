"""The tables of studies: rows whose training differs from the main ones, beside these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from comparison.figures import MAIN, OVER, TYPES
from comparison.findings import Findings
from comparison.plan import (
    MORE_QUERIES,
    OTHER_LABELS,
    REGULARISED,
    SENTENCES,
    STRATEGIES,
    TRUTH,
    WITH_LINES,
    WORLDS,
    strategy_job,
)  # fmt: skip
from comparison.rows import (
    ALL,
    BASELINES,
    NAMES,
    REFINERS,
    cells,
    main,
    more_steps,
    spread,
    table_of,
    table_of_seeds,
    with_seeds,
)  # fmt: skip
from comparison.table import Row, Table
from moviola.study.training.one_video import SEGMENTS_IN_VIDEO

__all__ = ["STUDIES"]

_LABELS = {
    "standard": "standard", "hard-negative": "HN", "5-20": "HN, 5++, 20+", "5-30": "HN, 5++, 30+",
    "10-20": "HN, 10++, 20+",
}  # fmt: skip


def _strategies(found: Findings) -> Table:
    rows = {
        f"{NAMES[model]}, {_LABELS[name]}": strategy_job(model, name, found.preset)
        for model in ("spr-relo", "spr-relo-large", "spr-clip")
        for name in STRATEGIES
    }
    text = (
        f"N = {max(found.preset.tops)}, so that 30 weak positives differ from 20; mean and standard "
        "deviation over seeds where there are several."
    )
    return table_of_seeds(found, "Training strategies (SPR, Table 5)", rows, ALL, text)


def _pool(found: Findings) -> Table:
    """Main rows with one pool of films, and the same on films of their own for each split."""
    rows: list[Row] = []
    models = [model for model in found.preset.unseen if model != "conquer"]
    models += [f"conquer-{kind}" for kind in found.preset.conquers if "conquer" in found.preset.unseen]
    for model in models:
        for where, job in (("one pool", f"{model}-n{found.preset.top}"), ("unseen films", f"{model}-unseen")):
            if jobs := with_seeds(found, job):
                rows.append((f"{NAMES[model]}, {where}", *_seeds_by_type(found, jobs)))
    text = (
        f"N = {found.preset.top}, mean and standard deviation over seeds where there are several. With one "
        "pool training and test queries, which are apart, search the same films, as in the papers; unseen "
        "films are those of each split alone, of which fewer are searched: rows of a setting are compared "
        "with each other, not with those of the other setting."
    )
    return Table("One pool and unseen films", ("model", *_head_by_type(found)), rows, text)


def _regularised(found: Findings) -> Table:
    """The baselines with each kind of regularisation, on val, which chooses, and on test."""
    rows: list[Row] = []
    for row in (*found.preset.regularised, *(f"{own}-unseen" for own in found.preset.regularised_unseen)):
        label = NAMES[row.removesuffix("-unseen")]
        if row.endswith("-unseen"):
            label += ", unseen films"
        jobs = {label: row} if row.endswith("-unseen") else main(found, [row])
        jobs |= {f"{label}, {kind}": f"{row}-{kind}" for kind in REGULARISED}
        for label, job in jobs.items():
            if found.done(job):
                val, best = found.val(job), found.result(job)["phases"][-1]
                steps = f"{best['best_step']} of {best['steps']}"
                rows.append((label, f"{val[MAIN]:.4f}", steps, *cells(found.test(job), OVER)))
    text = f"N = {found.preset.top}, one seed. The best on val is a baseline's best row."
    return Table("The baselines regularised", ("model", f"val {MAIN}", "best step", *OVER), rows, text)


def _readings(found: Findings) -> Table:
    rows = {
        f"{NAMES['spr-relo']}, {_LABELS['5-20']}, weak ones {kind}": f"spr-relo-{name}"
        for kind, name in (("below strong ones alone", "5-20"), ("answers too", "5-20-trained"))
    }
    text = (
        f"N = {max(found.preset.tops)}: SPR's section 4.7 can be read in both ways (docs/papers/002-spr.md)."
    )
    return table_of(found, "Readings of weak positives", rows, ALL, text)


def _longer(found: Findings) -> Table:
    rows: dict[str, str] = {}
    for model in found.preset.longer:
        rows |= main(found, [model]) | more_steps(found, [model])
    text = f"N = {found.preset.top}; the schedule is as much longer."
    return table_of(found, "Longer training", rows, ALL, text)


def _with_types(found: Findings, label: str, part: Mapping[str, Any]) -> Row:
    """A label, a job's figures on all test queries, and on those of each type."""
    types = (f"{part['types'][kind][MAIN]:.4f}" for kind in _kinds(found))
    return label, *cells(part["test"], OVER), *types


def _lines(found: Findings) -> Table:
    """Rows with subtitle lines as candidates, and Reel without the scores of its proposals."""
    rows: list[Row] = []
    for row in WITH_LINES:
        lines = {f"{NAMES[row]}, lines": f"{row}-lines"}
        lines |= {f"{NAMES[row]}, lines, streams apart": f"{row}-lines-apart"}
        for label, job in (main(found, [row]) | lines).items():
            if found.done(job):
                whole = found.result(job)
                rows.append(_with_types(found, label, whole))
                if apart := whole.get("without_proposals"):
                    rows.append(_with_types(found, f"{label}, without proposals' scores", apart))
    text = (
        f"N = {found.preset.top}. The {found.preset.lines} subtitle lines nearest to a query are candidates "
        "beside the proposals of stage 1, which reads no subtitles. Val chose how much a proposal's score "
        "counts in Reel."
    )
    head = ("model", *OVER, *(f"{kind} {MAIN}" for kind in _kinds(found)))
    return Table("Subtitle lines as candidates, and the scores of proposals", head, rows, text)


def _second_edition(found: Findings) -> Table:
    """Reel's editions, each with all its seeds, without and with subtitle lines as candidates."""
    own = main(found, ["reel"])
    reel = {
        "second edition": "reel-second",
        "lines": "reel-lines",
        "second edition, lines": "reel-second-lines",
    }
    rows: list[Row] = []
    for label, job in (own | {f"{NAMES['reel']}, {kind}": job for kind, job in reel.items()}).items():
        if jobs := with_seeds(found, job):
            parts = ", ".join(f"{found.part_of_bound(name):.1%}" for name in jobs)
            rows.append((label, *_seeds_by_type(found, jobs), parts))
    text = (
        f"N = {found.preset.top}, mean and standard deviation over seeds. The second edition is trained with "
        "a running mean of weights, and completes moments at the edge of a window. The last column is how "
        f"much each seed reaches, in {MAIN}, of the practical upper bound of its own candidates, lines among "
        "them."
    )
    head = ("model", *_head_by_type(found), "part of the bound")
    return Table("Reel's second edition", head, rows, text)


def _clips(found: Findings) -> Table:
    rows = main(found, ["spr-clip", "spr-relo"]) | {f"{NAMES['spr-relo']}, clips of 1.5 s": "spr-relo-1.5s"}
    text = (
        f"N = {found.preset.top}. Clips of one second where nothing else is said; all refine the proposals "
        "of the stage 1 that reads one frame a second."
    )
    return table_of(found, "The length of clips", rows, ALL, text)


def _hard(found: Findings) -> Table:
    rows: dict[str, str] = {}
    for model in ("xml", "reloclnet"):
        rows |= main(found, [model]) | {f"{NAMES[model]}, without hard negatives": f"{model}-without-hard"}
    text = f"N = {found.preset.top}; the same budget of steps."
    return table_of(found, "The baselines' hard negatives", rows, ALL, text)


def _streams(found: Findings) -> Table:
    """Streams as in the papers, streams apart, and without subtitles."""
    rows: list[Row] = []
    for model, alone in {
        "xml": "xml-pictures",
        "reloclnet": "reloclnet-pictures",
        "prem": "prem-image",
    }.items():
        others = {
            f"{NAMES[model]}, streams apart": f"{model}-apart",
            f"{NAMES[model]}, pictures alone": alone,
        }
        for label, job in (main(found, [model]) | others).items():
            if jobs := with_seeds(found, job):
                rows.append((label, *_seeds_by_type(found, jobs)))
    text = (
        f"N = {found.preset.top}, mean and standard deviation over seeds; the same steps, and the same "
        "settings but for what a row names. Streams that are apart share nothing, that of subtitles reads "
        "queries with the encoder of its lines, and a query's stream is learned from its type."
    )
    return Table("Streams of pictures and of subtitles", ("model", *_head_by_type(found)), rows, text)


def _kinds(found: Findings) -> list[str]:
    """The types of the test queries."""
    return [kind for kind in TYPES if kind in found.result(found.first)["types"]]


def _head_by_type(found: Findings) -> Row:
    """The columns of :func:`_seeds_by_type`."""
    return ("seeds", *OVER, *(f"{kind} {MAIN}" for kind in _kinds(found)))


def _seeds_by_type(found: Findings, jobs: Sequence[str]) -> Row:
    """Number of seeds, with their mean and deviation on all test queries and on those of each type."""
    whole = [found.result(name) for name in jobs]
    types = (spread([own["types"][kind] for own in whole], [MAIN])[0] for kind in _kinds(found))
    return (str(len(jobs)), *spread([own["test"] for own in whole], OVER), *types)


def _labels(found: Findings) -> Table:
    rows: dict[str, str] = {}
    for model in OTHER_LABELS:
        rows |= {f"{NAMES[model]}, slots": f"{model}-n{found.preset.top}"}
        rows |= {f"{NAMES[model]}, sentences": f"{model}-{SENTENCES}"}
        rows |= {f"{NAMES[model]}, true labels": f"{model}-{TRUTH}"}
    rows |= {"PREM, slots": f"prem-n{found.preset.top}", "PREM, true labels": f"prem-{TRUTH}"}
    rows |= {"PREM, whole videos, slots": "prem-video-only"}
    rows |= {"PREM, whole videos, true labels": f"prem-video-only-{TRUTH}"}
    text = (
        f"N = {found.preset.top}. Pseudo labels by what the captions were generated from (slots), which is "
        "close to the rule of relevance, by the cosine of MiniLM's sentence embeddings, and, as a control, "
        "by relevance itself; settings were chosen with the first. Val and test are the same."
    )
    return table_of(found, "The similarity of pseudo labels", rows, ALL, text)


def _queries(found: Findings) -> Table:
    times, top = WORLDS["report-queries"].times, found.preset.top
    rows: dict[str, str] = {}
    for row, (recipe, strategy) in MORE_QUERIES.items():
        label = f"{NAMES[recipe]}, {_LABELS[strategy]}" if strategy else NAMES[recipe]
        usual = strategy_job(recipe, strategy, found.preset) if strategy else f"{row}-n{top}"
        rows |= {label: usual}
        rows |= {f"{label}, {times} times the queries": f"{row}-more-queries"}
    text = (
        f"N = {top}, {max(found.preset.tops)} for SPR's strategies. As many steps, so that each query is "
        "seen less often; the stage 1 is the same."
    )
    return table_of(found, "More training queries", rows, ALL, text)


def _fifth(found: Findings) -> Table:
    """The main rows, learned from a fifth of the films and queries and from all."""
    rows: list[Row] = []
    for model in found.preset.fifth:
        part = {f"{NAMES[model]}, a fifth": f"{model}-fifth"} | more_steps(found, [model], fifth=True)
        for label, job in (part | main(found, [model]) | more_steps(found, [model])).items():
            if found.done(job):
                rows.append((*_with_types(found, label, found.result(job)), f"{found.late_gain(job):+.1%}"))
    text = (
        f"N = {found.preset.top}. A row learns from all training films and queries, or from a fifth of both, "
        "stage 1 as well, for as many steps where nothing else is said; val and test are the same. The last "
        "column is by how much the best value on val rose in the last quarter of a training."
    )
    head = ("model", *OVER, *(f"{kind} {MAIN}" for kind in _kinds(found)), "gain of the last quarter")
    return Table("A fifth of the training films", head, rows, text)


RECALLS = (
    "SVMR R@1,IoU>0.7", "SVMR R@5,IoU>0.7", "VCMR R@1,IoU>0.7", "VCMR R@10,IoU>0.7", "VCMR R@100,IoU>0.7",
    "VR R@1", "VR R@5", "VR R@10", "VR R@100",
)  # fmt: skip


def _recall(found: Findings) -> Table:
    rows = main(found, (*BASELINES, *REFINERS))
    text = (
        "The truth of a query are its moments of the highest grade; any of them counts (VCMR), as do their "
        "videos (VR), ranked by XML, ReLoCLNet and PREM themselves, by CONQUER out of its first stage's, and "
        "by SPR in order of their best moment. SVMR searches the video of the first of them alone; SPR then "
        f"takes proposals of its {SEGMENTS_IN_VIDEO} best segments."
    )
    return table_of(
        found, "Recall of moments in the corpus and in one video, and of videos", rows, RECALLS, text
    )


def _relevant(found: Findings) -> Table:
    top = min(found.preset.tops)
    rows = {
        "XML": f"xml-n{top}", "+SL": "xml-sl", "+PR": "xml-pr", "+SL +PR": "xml-sl-pr",
        "+PR, C = 1": "xml-pr-c1", "+PR, theta = .9": "xml-pr-related",
        "+SL +PR, theta = .9": "xml-sl-pr-related", "+PR, C = 1, theta = .9": "xml-pr-c1-related",
    }  # fmt: skip
    text = (
        f"N = {top}; theta = .7 as in the paper where nothing else is said; mean and standard deviation over "
        "seeds where there are several."
    )
    return table_of_seeds(found, "Potentially relevant pairs on XML", rows, (*RECALLS, MAIN), text)


def _prem(found: Findings) -> Table:
    parts = {
        "without the weak term": "no-weak", "whole videos as positives": "video-only",
        "without L^q": "no-query-term", "text alone": "text", "image alone": "image",
        "mean of the tokens": "mean-pooling", "maximum of the tokens": "max-pooling",
        "without the gate": "no-gate", "without shared norm": "no-shared-norm",
        "without the adversarial task": "no-adversarial",
    }  # fmt: skip
    rows = main(found, ["prem"]) | {label: f"prem-{part}" for label, part in parts.items()}
    return table_of(found, "PREM's parts", rows, (*RECALLS, MAIN), f"N = {found.preset.top}.")


def _planned(group: str, make: Callable[[Findings], Table]) -> Callable[[Findings], Table]:
    """A study's table; without rows where the plan has no job of its group."""

    def made(found: Findings) -> Table:
        table = make(found)
        planned = any(job.group == group for job in found.bench.jobs())
        return table if planned else replace(table, rows=[])

    return made


STUDIES = {
    "pool": _planned("unseen", _pool),
    "readings": _planned("readings", _readings),
    "regularised": _planned("regularised", _regularised),
    "longer-training": _planned("longer", _longer),
    "subtitle-lines": _planned("lines", _lines),
    "second-edition": _planned("second-edition", _second_edition),
    "streams": _planned("streams", _streams),
    "length-of-clips": _planned("clips", _clips),
    "pseudo-labels": _planned("labels", _labels),
    "training-strategies": _planned("strategy", _strategies),
    "more-queries": _planned("queries", _queries),
    "fifth": _planned("fifth", _fifth),
    "hard-negatives": _planned("hard", _hard),
    "recall": _recall,
    "relevant-pairs": _planned("relevant", _relevant),
    "prem-parts": _planned("prem", _prem),
}
"""What makes each table, by the name of its file, in the order of the report."""
