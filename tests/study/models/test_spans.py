from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.retrieval.saved.clip_windows import LABELS, clip_windows, pool_clips
from moviola.study.models.spans import SUM, best_spans, corpus_spans, span_band, top_scores

INSIDE, FURTHER = LABELS["spr"], LABELS["tvr_ranking"]


def all_cells(start: Tensor, end: Tensor, shortest: int, longest: int) -> list[tuple[float, int, int]]:
    """Every allowed span by its map, best first, ties in the map's order."""
    cells = [
        (float(start[m] * end[n]), m, n)
        for m in range(len(start))
        for n in range(len(end))
        if shortest <= n - m < longest and start[m] * end[n] > 0
    ]
    return sorted(cells, key=lambda cell: -cell[0])


curves = st.integers(1, 12).flatmap(
    lambda length: st.tuples(
        *[st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5]), min_size=length, max_size=length)] * 2
    )
)


@settings(deadline=None)
@given(curves, st.integers(0, 3), st.integers(1, 6), st.integers(1, 9))
def test_decoding_equals_the_whole_map(
    pair: tuple[list[float], list[float]], shortest: int, extent: int, k: int
) -> None:
    start, end = torch.tensor(pair[0]), torch.tensor(pair[1])
    expected = all_cells(start, end, shortest, shortest + extent)
    _, spans = corpus_spans(
        torch.ones(1, 1),
        start[None, None],
        end[None, None],
        shortest=shortest,
        longest=shortest + extent,
        k=k,
    )
    found = list(zip(*(column[0].tolist() for column in (spans.score, spans.start, spans.end)), strict=True))
    assert [cell for cell in found if cell[1] >= 0] == expected[:k]
    assert all(cell == (-torch.inf, -1, -1) for cell in found[len(expected) :])

    best = best_spans(start, end, shortest=shortest, longest=shortest + extent)
    first = expected[0] if expected else (-torch.inf, -1, -1)
    assert (best.score.item(), best.start.item(), best.end.item()) == first


@settings(deadline=None)
@given(st.lists(st.sampled_from([-2.5, -1.0, -0.0, 0.0, 1e-30, 0.5, 3.0, -torch.inf]), min_size=1), st.data())
def test_top_scores_is_a_stable_sort(values: list[float], data: st.DataObject) -> None:
    scores, k = torch.tensor(values), data.draw(st.integers(1, len(values) + 2))
    found, places = top_scores(scores, k)
    ordered, order = scores.sort(descending=True, stable=True)
    assert places.tolist() == order[:k].tolist()
    assert found.tolist() == ordered[:k].tolist()


def test_corpus_decoding_equals_the_whole_map() -> None:
    random = torch.Generator().manual_seed(1)
    start, end = (torch.randint(0, 4, (3, 5, 9), generator=random) / 8 for _ in range(2))
    weight = torch.rand(3, 5, generator=random)
    video, spans = corpus_spans(weight, start, end, shortest=1, longest=4, k=20)
    for q in range(3):
        cells = [
            (float(weight[q, v] * (start[q, v, m] * end[q, v, n])), v, m, n)
            for v in range(5)
            for m in range(9)
            for n in range(m + 1, min(m + 4, 9))
        ]
        expected = sorted(cells, key=lambda cell: -cell[0])[:20]
        assert expected[-1][0] > 0
        columns = (spans.score[q], video[q], spans.start[q], spans.end[q])
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


def test_logits_are_added_and_padding_is_no_span() -> None:
    start = torch.tensor([[1.0, -2.0, -1e10, -1e10]])
    end = torch.tensor([[0.5, -3.0, -1e10, -1e10]])
    _, spans = corpus_spans(
        torch.zeros(1, 1), start[None], end[None], shortest=0, longest=3, k=5, combine=SUM
    )
    assert spans.start.tolist() == [[0, 0, 1, -1, -1]]
    assert spans.end.tolist() == [[0, 1, 1, -1, -1]]
    assert spans.score[0, :3].tolist() == [1.5, -2.0, -5.0]
    video, best = corpus_spans(
        torch.tensor([[-1.0]]), start[None], end[None], shortest=0, longest=3, k=9, combine=SUM
    )
    assert video.tolist() == [[0, 0, 0] + [-1] * 6]
    assert best.score[0, :3].tolist() == [0.5, -3.0, -6.0]


def test_the_band_is_a_view_of_the_ends() -> None:
    start, end = torch.rand(2, 3, 100), torch.rand(2, 3, 100)
    band = span_band(start, end, shortest=2, longest=16)
    assert band.shape == (2, 3, 100, 14)
    assert band[1, 2, 7, 3] == start[1, 2, 7] * end[1, 2, 12]
    assert (band[..., 98:, :] == 0).all()


@pytest.mark.parametrize(("shortest", "longest"), [(-1, 4), (3, 3), (5, 2)])
def test_impossible_limits_are_refused(shortest: int, longest: int) -> None:
    with pytest.raises(InvalidValue, match=f"{shortest} <= end - start < {longest}"):
        span_band(torch.rand(4), torch.rand(4), shortest=shortest, longest=longest)


moments = st.tuples(st.floats(0, 100), st.floats(0.01, 60)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(moments, st.integers(1, 90), st.sampled_from([1.0, 1.5, 3.0]))
def test_labels_cover_the_moment(moment: tuple[float, float], clips: int, clip_seconds: float) -> None:
    for convention in (INSIDE, FURTHER):
        start, end = convention.labels([moment[0]], [moment[1]], clips, clip_seconds)[0]
        assert 0 <= start <= end < clips
    (start, end), duration = INSIDE.labels(*moment, clips, clip_seconds), clips * clip_seconds
    if moment[0] < duration:
        assert start * clip_seconds <= moment[0]
        stop = INSIDE.end_clip(np.asarray(end)) * clip_seconds
        assert stop >= min(moment[1], duration) - 1e-9
        assert stop < moment[1] + clip_seconds + 1e-9


def test_the_conventions_differ_by_a_clip() -> None:
    assert INSIDE.labels([2.9], [21.1], 45, 1.5).tolist() == [[1, 14]]
    assert FURTHER.labels([2.9], [21.1], 45, 1.5).tolist() == [[1, 15]]
    # the last clip has no further one
    assert FURTHER.labels([60.0], [67.5], 45, 1.5).tolist() == [[40, 44]]
    assert INSIDE.end_clip(torch.tensor([14])).tolist() == FURTHER.end_clip(torch.tensor([15])).tolist()


@given(moments, moments, st.integers(1, 400), st.sampled_from([8, 128]))
def test_windows_hold_what_they_are_asked_for(
    window: tuple[float, float], moment: tuple[float, float], clips: int, longest: int
) -> None:
    windows = clip_windows([window[0]], [window[1]], [clips], longest=longest)
    assert 0 <= windows.first[0] < windows.stop[0] <= clips
    assert 1 <= windows.clips[0] <= longest
    assert windows.end[0] == pytest.approx(windows.stop[0] * 1.5)
    if window[1] <= clips * 1.5:
        assert windows.start[0] <= window[0]
        assert windows.end[0] >= window[1] - 1e-9
    start, end = windows.labels([moment[0]], [moment[1]], INSIDE)[0]
    assert 0 <= start <= end < windows.clips[0]


def test_seconds_of_a_pooled_window_are_cut_at_the_duration() -> None:
    windows = clip_windows([0.0, 12.0], [209.23, 33.0], [140, 52])
    assert windows.clip_seconds.tolist() == [1.640625, 1.5]
    starts, ends = windows.seconds([0, 3], [127, 4], INSIDE, [209.23, 76.8])
    assert starts.tolist() == [0.0, 16.5]
    assert ends.tolist() == [209.23, 19.5]


def test_a_video_without_clips_has_no_window() -> None:
    with pytest.raises(InvalidValue, match="0 stored clips"):
        clip_windows([0.0], [4.0], [0])


@given(st.integers(1, 300), st.integers(1, 128))
def test_pooling_averages_neighbours(n: int, longest: int) -> None:
    features = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    pooled = pool_clips(features, longest)
    assert pooled.shape == (min(n, longest), 2)
    assert pooled.dtype == np.float32
    assert (np.diff(pooled[:, 0]) > 0).all()
    assert (pooled >= features[0]).all()
    assert (pooled <= features[-1]).all()


def test_pooling_in_halves() -> None:
    features = np.array([[1], [3], [5], [7], [100]], dtype=np.float32)
    # edges 0, round(2.5) = 2, 4: the last clip is left out, as in the releases
    assert pool_clips(features, 2).tolist() == [[2.0], [6.0]]


@pytest.mark.parametrize("convention", LABELS)
def test_a_moment_without_length_lies_in_one_clip(convention: str) -> None:
    labels = LABELS[convention].labels([0.0, 3.0, 4.5, 12.0], [0.0, 3.0, 4.5, 12.0], [8], 1.5)
    assert (labels[:, 0] <= labels[:, 1]).all()
    assert labels[:, 0].tolist() == [0, 2, 3, 7]
