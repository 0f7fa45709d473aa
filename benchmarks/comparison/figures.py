"""Figures of a finished piece: all that any table of the report shows, as plain numbers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comparison.bench import Bench
from comparison.bounds import upper_bounds
from comparison.lines import proposals_and_lines
from comparison.plan import OWN_STAGE1, WORLDS, Job
from comparison.recall import in_corpus, in_video
from comparison.world import World
from moviola.retrieval import MeanPooling, Proposals, Retrieval, Stage1, load_stage1, segment_index
from moviola.retrieval.saved.description import revision_of
from moviola.retrieval.segments import normalised, whole_segments
from moviola.retrieval.trained_models import STAGE1S
from moviola.study.measures import Results, Run, evaluate, temporal_nms
from moviola.study.training.answering import AnsweringModel
from moviola.study.training.data import Split
from moviola.study.training.one_video import SEGMENTS_IN_VIDEO
from moviola.study.training.tasks.segments import SegmentGrid, recall
from moviola.study.training.validation import MEASURES, judge, run_of

__all__ = [
    "CONTEXTS", "COUNTS", "FINE", "GRIDS", "MAIN", "OVER", "RECALL_DEPTHS", "TYPES", "Coarse", "figures",
    "trained_stage1",
]  # fmt: skip

OVER = tuple(f"nDCG@20,IoU>={overlap}" for overlap in (0.3, 0.5, 0.7))
_, MAIN, FINE = OVER
"""The measures of most tables; the one at 0.5 is what is said where one figure has to do."""

TYPES = ("v", "t", "vt")
"""Queries about what is seen, about what is said, and about both."""

PADDING = 4.0
CONTEXTS = (0.0, 4.0, 8.0)
GRIDS = (None, 1.0, 1.5)
"""Clips of the practical upper bound in seconds; None for the exact bound."""

COUNTS = (10, 20, 50, 100, 200)
"""Segments retrieved a query (SPR, Table 6)."""

RECALL_DEPTHS = (50, 100, 200)
LINES = (5, 10, 15, 20)
"""Subtitle lines that stand for as many of a query's segments."""

THINNED = (0.7, 0.5)


def figures(bench: Bench, job: Job) -> dict[str, Any]:
    """What a job's trained model is worth."""
    world, answering = bench.world(job.world), bench.answering(job)
    val, test = world.split("val"), world.split("test")
    on_val = judge(answering.run(val), val)
    ready = answering.completed(test)
    begun = time.process_time()
    run = answering.recipe.run(answering.model, ready, answering.how)
    answered = time.process_time() - begun
    found = evaluate(run, test.pairs.qrels, MEASURES)
    # A stage 1 has no answer of its own in one video: all its segments are one proposal. And a run of what it
    # proposes in all videos, which clips of another length are given, has too little of a single one.
    one_video = job.stage1 and WORLDS[job.world].clip_seconds == 1
    alone = in_video(bench.answering(job, SEGMENTS_IN_VIDEO).run, test) if one_video else {}
    is_first = job.name == f"spr-stage1-n{bench.preset.top}"
    is_scrambled = job.recipe in STAGE1S and WORLDS[job.world].scrambled
    return {
        "val": on_val,
        "test": judge(run, test),
        "query_ids": list(found.query_ids),
        "per_query": {name: found.per_query[name].round(5).tolist() for name in OVER},
        "types": _by_type(found, world.types("test")),
        "thinned": {str(most): judge(temporal_nms(run, most), test) for most in THINNED},
        "recall": in_corpus(run, test, answering.video_run(test)) | alone,
        "query_seconds": answered / len(test.queries),
        **(_of_stage1(bench, job, test) if job.recipe in STAGE1S else {}),
        **(_of_first(bench, job, test) if is_first else {}),
        **({"untrained": _untrained(bench, job, test)} if is_first or is_scrambled else {}),
        **(_of_weight(answering, world) if answering.how.proposal_weight else {}),
        **({"counts": _counted(answering, bench, job, test)} if job.recipe == "reel" else {}),
    }


def _of_weight(answering: AnsweringModel, world: World) -> dict[str, Any]:
    """The weight of proposals' scores that val chose, and what the model is worth without them."""
    plain = replace(answering, how=replace(answering.how, proposal_weight=0.0))
    val, test = world.split("val"), world.split("test")
    run = plain.run(test)
    types = _by_type(evaluate(run, test.pairs.qrels, MEASURES), world.types("test"))
    without = {"val": judge(plain.run(val), val), "test": judge(run, test), "types": types}
    return {"proposal_weight": answering.how.proposal_weight, "without_proposals": without}


def _by_type(found: Results, types: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Means over the queries of each type, and how many these are."""
    own = np.array([types[query] for query in found.query_ids])
    return {
        kind: {"queries": int((own == kind).sum())}
        | {name: float(found.per_query[name][own == kind].mean()) for name in OVER}
        for kind in TYPES
        if (own == kind).any()
    }


def _counted(answering: AnsweringModel, bench: Bench, job: Job, test: Split) -> dict[str, float]:
    """A refiner after other numbers of segments."""
    return {
        str(count): judge(bench.answering(job, count).run(test), test)[MAIN]
        for count in COUNTS
        if count <= len(SegmentGrid(test.features, answering.how.segment_clips))
    }


# ---- of a stage 1 ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MiddleClip(MeanPooling):
    """A segment is its middle clip: CLIP without training on one frame (SPR, appendix B.2)."""

    recipe = "middle frame"

    def segments(self, clips: NDArray[np.float32], segment_clips: int) -> NDArray[np.float32]:
        """(ceil(n / T), d) float32, L2-normalised."""
        return normalised(whole_segments(clips, segment_clips)[:, segment_clips // 2])


@dataclass(frozen=True)
class Coarse:
    """The segments of a split's videos as a stage 1 embeds them, and what it proposes."""

    retrieval: Retrieval
    split: Split
    grid: SegmentGrid

    @classmethod
    def of(cls, stage1: Stage1, split: Split, bench: Bench, job: Job) -> Coarse:
        length = bench.world(job.world).features.facts.segment_clips
        index = segment_index(stage1, split.features, length)
        retrieval = Retrieval(split.features, index, stage1, None, length, segments=bench.preset.segments)
        return cls(retrieval, split, SegmentGrid(split.features, length))

    def proposals(self, count: int | None = None) -> Proposals:
        """Proposals after this number of segments, by default the preset's."""
        retrieval = replace(self.retrieval, segments=count or self.retrieval.segments)
        return retrieval.proposals(self.split.queries)

    def with_lines(self, count: int, lines: int) -> Proposals:
        """Proposals after this number of segments, and this number of subtitle lines."""
        return proposals_and_lines(self.proposals(count), self.split, lines)

    def run(self, proposals: Proposals) -> Run:
        """Proposals as answers."""
        return run_of(self.retrieval.moments(self.split.queries, proposals, scored=False), self.split)

    def bound(self, proposals: Proposals) -> float:
        """The practical upper bound of proposals at IoU >= 0.5, with 8 s of context and clips of a second."""
        return upper_bounds(self.split, proposals, context=8.0, overlaps=(0.5,), grid=1.0)[MAIN]

    def recalls(self) -> dict[str, float]:
        """Recall of segments, weighted by overlap."""
        deep = replace(self.retrieval, segments=max(RECALL_DEPTHS)).hits(self.split.queries)
        best, shares = self.grid.rows_of(deep), self.grid.shares(self.split.pairs)
        return {f"recall@{depth}": recall(best, shares, depth) for depth in RECALL_DEPTHS}

    def found(self) -> dict[str, float]:
        """NDCG of the proposals, and recall of segments."""
        return judge(self.run(self.proposals()), self.split) | self.recalls()


def trained_stage1(bench: Bench, job: Job) -> Stage1:
    """The stage 1 that a job has trained.

    Raises:
        NotFound: its model is not there.
    """
    folder = bench.model(job.name)
    return load_stage1(folder, revision_of(folder))


def _trained(bench: Bench, job: Job, test: Split) -> Coarse:
    return Coarse.of(trained_stage1(bench, job), test, bench, job)


def _of_stage1(bench: Bench, job: Job, test: Split) -> dict[str, Any]:
    """Recall of segments, proposals that begin earlier, and the practical bound."""
    coarse = _trained(bench, job, test)
    proposals = coarse.proposals()
    run = coarse.run(proposals)
    padded = replace(run, start=np.maximum(run.start - PADDING, 0))
    found: dict[str, Any] = {"padded": judge(padded, test), "segments": coarse.recalls()}
    found["bound"] = coarse.bound(proposals)
    if job.recipe == OWN_STAGE1:
        found["counts"] = _counts(coarse)
    if bench.preset.lines:
        found["with_lines"] = _bound_with_lines(bench, job)
    return found


def _bound_with_lines(bench: Bench, job: Job) -> dict[str, Any]:
    """The bound of a stage 1 with subtitle lines: instead of the last segments, as many as val chooses
    ("bound"), and beside all of them, the preset's number, as rows with lines have them ("beside").
    """
    val, test = (_trained(bench, job, bench.world(job.world).split(name)) for name in ("val", "test"))
    segments = bench.preset.segments
    on_val = {n: val.bound(val.with_lines(segments - n, n)) for n in LINES if n < segments}
    lines = max(on_val, key=lambda n: on_val[n])
    bound = test.bound(test.with_lines(segments - lines, lines))
    return {
        "lines": lines,
        "val": {str(n): value for n, value in on_val.items()},
        "bound": bound,
        "beside": test.bound(test.with_lines(segments, bench.preset.lines)),
    }


def _counts(coarse: Coarse) -> list[dict[str, float]]:
    return [_count(coarse, count) for count in COUNTS if count <= len(coarse.grid)]


def _untrained(bench: Bench, job: Job, test: Split) -> dict[str, dict[str, float]]:
    """What needs no training on the features of a stage 1."""
    untrained = {"CLIP, one frame": MiddleClip(), "CLIP, mean pooled": MeanPooling()}
    return {name: Coarse.of(own, test, bench, job).found() for name, own in untrained.items()}


def _of_first(bench: Bench, job: Job, test: Split) -> dict[str, Any]:
    """Of the stage 1 that everything is compared with: bounds, counts of segments, the world."""
    coarse = _trained(bench, job, test)
    return {
        "random": judge(_random(test), test),
        "bounds": list(_bounds(test, coarse.proposals())),
        "counts": _counts(coarse),
        "world": {
            "videos": {name: len(bench.world(job.world).videos(name)) for name in ("train", "val", "test")},
            "queries": len(test.queries),
            "answers": len(test.pairs) / len(test.queries),
            "encoder": bench.world(job.world).features.facts.encoder,
        },
    }


def _bounds(test: Split, proposals: Proposals) -> Iterator[dict[str, Any]]:
    for context in CONTEXTS:
        for grid in GRIDS:
            bound = upper_bounds(test, proposals, context=context, grid=grid)
            yield {"context": context, "grid": grid, **bound}


def _count(coarse: Coarse, count: int) -> dict[str, float]:
    """NDCG of the proposals of a number of segments, and its bound."""
    proposals = coarse.proposals(count)
    mean = float(np.diff(proposals.offsets).mean())
    value = judge(coarse.run(proposals), coarse.split)[MAIN]
    return {"segments": count, "proposals": mean, MAIN: value, "bound": coarse.bound(proposals)}


def _random(test: Split) -> Run:
    """Forty spans a query, drawn from all videos."""
    draw, features = np.random.default_rng(0), test.features
    queries = len(test.queries)
    video = draw.integers(len(features), size=(queries, 40))
    length = draw.uniform(4, 16, size=video.shape)
    start = draw.uniform(0, 1, size=video.shape) * np.maximum(features.durations[video] - length, 0)
    return Run.from_columns(
        np.repeat(np.array(test.queries.query_ids, dtype=object), 40),
        np.array(features.video_ids, dtype=object)[video.ravel()],
        start.ravel(),
        np.minimum(start + length, features.durations[video]).ravel(),
        np.tile(np.arange(40, 0, -1.0), queries),
    )
