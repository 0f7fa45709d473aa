"""Reel's stage 1: gains and loss against brute force; padding changes nothing; it learns a tiny corpus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.study.models.test_reel import ANSWERS, batch_of

from moviola.errors import InvalidValue
from moviola.retrieval import stage1_of
from moviola.study.models.reel import AnswerBatch, ReelStage1, ReelStage1Config
from moviola.study.models.running import TorchRunner

TINY = ReelStage1Config(
    visual_size=6, query_size=5, hidden_size=16, heads=2, dilations=(1, 2), kernel=3, dropout=0.0
)


def network(seed: int = 0) -> ReelStage1:
    torch.manual_seed(seed)
    model = ReelStage1(TINY)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) / 20)
    return model.eval()


def tiny_batch(lengths: list[int] | None = None) -> AnswerBatch:
    return batch_of(lengths or [5, 7, 3], [2, 4, 3], ANSWERS)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_gains_are_the_largest_share_in_any_answer(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    size, least = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.7]))
    quarter = st.integers(0, 36).map(lambda n: n / 4)
    answers = []
    for _ in range(data.draw(st.integers(1, 5))):
        video, start = data.draw(st.integers(0, len(lengths) - 1)), data.draw(quarter)
        more, similarity = data.draw(st.integers(1, 16)) / 4, data.draw(st.sampled_from([0.5, 1.0]))
        answers.append((data.draw(st.integers(0, 1)), video, start, start + more, similarity))
    found = network().gains(batch_of(lengths, [2, 2], answers), size, least)
    expected = np.zeros((2, len(lengths), -(-max(lengths) // size)))
    for query, video, start, end, similarity in answers:
        for segment in range(expected.shape[2]):
            left = segment * size
            share = max(0.0, min(left + size, end) - max(left, start)) / size
            worth = share * similarity**2 if share >= least else 0.0
            expected[query, video, segment] = max(expected[query, video, segment], worth)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("size", [1, 3, 4])
def test_the_loss_is_over_the_segments_that_a_library_would_index(size: int) -> None:
    """Those of :class:`moviola.retrieval.stage1.PooledStage1`, one video and one query at a time."""
    model, batch = network(), tiny_batch()
    stage1 = stage1_of("reel-stage1", TorchRunner(model), "r")
    counts = batch.mask.sum(dim=1).int().tolist()
    segments = [stage1.segments(own[:n].numpy(), size) for own, n in zip(batch.visual, counts, strict=True)]
    tokens = batch.query_mask.sum(dim=1).int().tolist()
    gains, losses = model.gains(batch, size, 0.3), []
    for query, count in enumerate(tokens):
        vector = stage1.model.encode_query(batch.query[query, :count].numpy())[0]  # type: ignore[attr-defined]
        scores = np.concatenate([own @ vector for own in segments]) * model.log_scale.exp().item()
        own = np.concatenate([gains[query, video, : len(each)] for video, each in enumerate(segments)])
        if own.sum():
            losses.append(-(own / own.sum() * (scores - np.log(np.exp(scores).sum()))).sum())
    assert model.loss(batch, size, 0.3)["list"].item() == pytest.approx(np.mean(losses), abs=1e-5)


def test_subtitles_that_it_would_not_read_are_refused() -> None:
    with pytest.raises(InvalidValue, match="subtitle_size 4: segments are pictures alone"):
        replace(TINY, subtitle_size=4)


def test_an_answer_that_goes_on_after_the_features_counts_as_far_as_they_go() -> None:
    """Segments that are only padding had a gain, and a loss of hundreds of millions."""
    model = network()
    longer, cut = (batch_of([3, 8], [2], [(0, 0, 2.0, end, 1.0)]) for end in (8.0, 4.0))
    assert model.loss(longer, 2, 0.3)["list"].item() == model.loss(cut, 2, 0.3)["list"].item()


def test_without_an_answer_the_loss_is_zero() -> None:
    assert network().loss(batch_of([4], [2], []), 4, 0.3)["list"].item() == 0


def test_it_learns_a_tiny_corpus() -> None:
    model, batch = network().train(), tiny_batch()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    first = model.loss(batch, 2, 0.3)["list"].item()
    for _ in range(60):
        optimizer.zero_grad()
        loss = model.loss(batch, 2, 0.3)["list"]
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert loss.item() < first - 0.5
