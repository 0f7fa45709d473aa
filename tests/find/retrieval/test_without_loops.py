"""Computations for all proposals at once, against the same one by one."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from moviola.features import QueryFeatures, VideoFeatures, clips_by_video
from moviola.retrieval import CurveRefiner, Proposals, ShotRefiner
from moviola.retrieval.proposals import cut_at_shots
from moviola.retrieval.refiners.curve import cosines, query_vector, smoothed
from moviola.temporal import overlap, places_in_groups, suppress

DIM = 6


@dataclass(frozen=True)
class Rows:
    """Clips in memory."""

    arrays: Sequence[NDArray[np.float16]]
    dim: int = DIM

    def read(self, video: int) -> NDArray[np.float16]:
        return self.arrays[video]

    def select(self, videos: Sequence[int]) -> Rows:
        return Rows([self.arrays[video] for video in videos])


@dataclass(frozen=True)
class World:
    features: VideoFeatures
    queries: QueryFeatures
    proposals: Proposals


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Videos of some clips and shots, and proposals in them that may touch, overlap and repeat."""
    counts = np.array(draw(st.lists(st.integers(1, 40), min_size=1, max_size=4)))
    generator = np.random.default_rng(draw(st.integers(0, 999)))
    arrays = [generator.normal(size=(count, DIM)).astype(np.float16) for count in counts.tolist()]
    seconds = draw(st.sampled_from([0.5, 1.0, 1.5]))
    durations = counts * seconds
    starts = [
        np.unique([0.0, *np.round(generator.uniform(0, end * 0.95, generator.integers(0, 6)), 1)])
        for end in durations.tolist()
    ]
    features = VideoFeatures(
        tuple(f"v{place}" for place in range(len(counts))), durations, seconds, counts, Rows(arrays),
        shots=lambda keys: [starts[key] for key in keys],
    )  # fmt: skip
    if draw(st.booleans()):
        features = replace(features, shots=None)
    size = draw(st.integers(1, 12))
    video = generator.integers(0, len(counts), size)
    first = np.round(generator.uniform(0, durations[video] * 0.9), 1)
    last = np.minimum(first + np.round(generator.uniform(0.3, 12, size), 1), durations[video])
    last = np.maximum(last, first + 0.05)
    score = generator.uniform(-1, 1, size)
    query = np.sort(generator.integers(0, 2, size))
    proposals = Proposals.of_columns(query, video, first, last, score, queries=2)
    queries = QueryFeatures.of(["a", "b"], ["a", "b"], list(generator.normal(size=(2, 1, DIM))))
    return World(features, queries, proposals)


# ---- one by one --------------------------------------------------------------------------------------------


def one_curve(
    refiner: CurveRefiner, world: World, query: int, row: int, bounds: tuple[float, float] = (0, np.inf)
) -> tuple[float, float, float]:
    """Start, end and score of one proposal by the words of :class:`CurveRefiner`."""
    features, proposals = world.features, world.proposals.of(query)
    video, seconds = int(proposals.video[row]), features.clip_seconds
    clips = features.visual.read(video)
    begin = max(0, math.floor(max(proposals.start[row] - refiner.context, bounds[0]) / seconds))
    stop = min(len(clips), math.ceil(min(proposals.end[row] + refiner.context, bounds[1]) / seconds))
    begin = min(begin, stop - 1)
    curve = smoothed(cosines(clips[begin:stop], query_vector(world.queries, query)))
    inside = int(np.clip(round(proposals.start[row] / seconds - begin), 0, len(curve) - 1))
    behind = int(np.clip(np.ceil(proposals.end[row] / seconds - begin), inside + 1, len(curve)))
    low, peak = float(np.quantile(curve, refiner.floor)), float(curve[inside:behind].max())
    gains = np.concatenate(([0.0], np.cumsum(curve - (low + refiner.level * (peak - low)))))
    best, first, last = -np.inf, 0, 0
    for start in range(len(curve)):
        for end in range(start, len(curve)):
            if gains[end + 1] - gains[start] > best:
                best, first, last = gains[end + 1] - gains[start], start, end
    span = features.clip_spans(
        video,
        max((begin + first) * seconds - refiner.before, bounds[0]),
        min((begin + last + 1) * seconds + refiner.after, bounds[1]),
    )
    if span[1] - span[0] < seconds / 2:
        span = (min(span[0], max(span[1] - seconds, bounds[0])), span[1])
    own = float(curve[first : last + 1].mean())
    score = refiner.coarse_share * proposals.score[row] + (1 - refiner.coarse_share) * own
    return float(span[0]), float(span[1]), float(score)


def one_shot(refiner: ShotRefiner, world: World, query: int, row: int) -> tuple[float, float, float]:
    """The same by the words of :class:`ShotRefiner`."""
    features, proposals = world.features, world.proposals.of(query)
    video, seconds = int(proposals.video[row]), features.clip_seconds
    edges = features.shot_edges_of(np.array([video]))[1]
    if len(edges) == 2:
        return one_curve(refiner.curve, world, query, row)
    middle = (proposals.start[row] + proposals.end[row]) / 2
    shot = min(max(bisect_right(edges.tolist(), middle) - 1, 0), len(edges) - 2)
    opens, closes = edges[shot : shot + 2].tolist()
    if closes - opens > refiner.longest_shot:
        return one_curve(refiner.curve, world, query, row, (opens, closes))
    clips = features.visual.read(video)
    first = min(math.ceil(opens / seconds), len(clips) - 1)
    stop = max(min(math.ceil(closes / seconds), len(clips)), first + 1)
    similar = np.sort(cosines(clips[first:stop], query_vector(world.queries, query)))
    return opens, closes, float(similar[-refiner.best :].mean())


def cut_one_by_one(world: World, longest: float) -> list[tuple[int, int, float, float, float, int]]:
    """Query, video, start, end, score and rank of every piece, in order."""
    found: list[tuple[int, int, float, float, float, int]] = []
    known: set[tuple[int, int, float, float]] = set()
    proposals = world.proposals
    rows = zip(
        proposals.query.tolist(), proposals.video.tolist(), proposals.start.tolist(), proposals.end.tolist(),
        proposals.score.tolist(), proposals.rank.tolist(), strict=True,
    )  # fmt: skip
    for query, video, start, end, score, rank in rows:
        edges = world.features.shot_edges_of(np.array([video]))[1].tolist()
        if len(edges) == 2:
            found.append((query, video, start, end, score, rank))
            continue
        for shot in range(
            max(bisect_right(edges, start) - 1, 0), min(bisect_left(edges, end), len(edges) - 1)
        ):
            opens, closes = edges[shot], edges[shot + 1]
            if closes - opens > longest:
                opens, closes = max(opens, start), min(closes, end)
            if (query, video, opens, closes) not in known:
                known.add((query, video, opens, closes))
                found.append((query, video, opens, closes, score, rank))
    return found


def suppressed_one_by_one(
    spans: list[tuple[int, int, int, int]], threshold: float, keep: int | None
) -> list[int]:
    """Places of (video, start, end, score) that survive."""
    best: list[int] = []
    for place in sorted(range(len(spans)), key=lambda place: -spans[place][3]):
        video, start, end, _ = np.array(spans[place], np.float64)
        rivals = [np.array(spans[other], np.float64) for other in best if spans[other][0] == video]
        if all(overlap(start, end, other[1], other[2]) <= threshold for other in rivals):
            best.append(place)
    return best[:keep]


# ---- the same ----------------------------------------------------------------------------------------------


def refines_as(refiner: Any, one: Callable[..., Any], world: World) -> None:
    """All proposals of a query at once give what each gives by itself."""
    for query in (0, 1):
        own = world.proposals.of(query)
        if not len(own.video):
            continue
        found = refiner.refine(world.queries, query, world.features, own)
        expected = np.array([one(refiner, world, query, row) for row in range(len(own.video))])
        np.testing.assert_array_equal(found.start, expected[:, 0])
        np.testing.assert_array_equal(found.end, expected[:, 1])
        np.testing.assert_allclose(found.score, expected[:, 2], rtol=1e-5, atol=1e-6)


@given(worlds(), st.sampled_from([CurveRefiner(), CurveRefiner(3.0, 0.7, 0.5, 0.4, 1.1, 0.25)]))
def test_curves(world: World, refiner: CurveRefiner) -> None:
    refines_as(refiner, one_curve, world)


@given(worlds(), st.sampled_from([2.0, 5.0, 20.0]), st.integers(1, 3))
def test_shots(world: World, longest: float, best: int) -> None:
    refines_as(ShotRefiner(longest_shot=longest, best=best), one_shot, world)


@given(worlds(), st.sampled_from([0.5, 3.0, 20.0]))
def test_proposals_cut_at_shots(world: World, longest: float) -> None:
    found = cut_at_shots(world.proposals, world.features, longest)
    columns = (found.query, found.video, found.start, found.end, found.score, found.rank)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == cut_one_by_one(world, longest)


spans = st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 6), st.integers(0, 3)).map(
    lambda row: (row[0], row[1], row[1] + row[2], row[3])
)


@given(
    st.lists(spans, max_size=14), st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]), st.sampled_from([None, 1, 4])
)
def test_suppression(rows: list[tuple[int, int, int, int]], threshold: float, keep: int | None) -> None:
    video, start, end, score = np.array(rows, np.float64).reshape(-1, 4).T
    found = suppress(start, end, score, threshold, keep, video=video.astype(np.int64))
    assert found.tolist() == suppressed_one_by_one(rows, threshold, keep)


@given(
    st.lists(st.lists(st.integers(0, 9)), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 10))),
    st.sampled_from(["left", "right"]),
)
def test_places_in_groups(groups: list[list[int]], asked: list[tuple[int, int]], side: str) -> None:
    rising = [sorted(group) for group in groups]
    offsets = np.cumsum([0, *map(len, rising)])
    wanted = [(group % len(rising), value) for group, value in asked]
    group, value = np.array(wanted, np.int64).reshape(-1, 2).T
    flat = np.array([value for own in rising for value in own], np.int64)
    found = places_in_groups(flat, offsets, group, value, side)  # type: ignore[arg-type]
    assert found.tolist() == [int(np.searchsorted(rising[own], one, side)) for own, one in wanted]  # type: ignore[call-overload]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1))
def test_each_clip_is_read_once(wanted: list[tuple[int, int]]) -> None:
    video, clip = np.array(wanted).T
    parts, place = clips_by_video(video, clip)
    flat = [(one, own) for one, clips in parts for own in clips.tolist()]
    assert flat == sorted(set(wanted))
    assert [flat[at] for at in place.tolist()] == wanted
