"""Segment retrieval and the CLIP refiner: what holds whatever the weights."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.models.batches import PairBatch
from moviola.study.models.losses import (
    CONTRASTIVE,
    frame_contrast,
    in_batch_ranking_loss,
    mil_nce,
    video_contrast,
)
from moviola.study.models.refining import Windows
from moviola.study.models.spans import window_spans
from moviola.study.models.spr import SegmentRetriever, SegmentRetrieverConfig, SprClip, SprClipConfig

DIM = 8


def retriever(**options: object) -> SegmentRetriever:
    torch.manual_seed(1)
    model = SegmentRetriever(
        replace(SegmentRetrieverConfig(hidden_size=DIM, layers=2, max_clips=12), **options)
    )
    if not model.config.identity_start:
        randomise(model)
    return model


def refiner(**options: object) -> SprClip:
    torch.manual_seed(2)
    model = SprClip(replace(SprClipConfig(hidden_size=DIM, layers=2, max_clips=24), **options))
    if not model.config.identity_start:
        randomise(model)
    return model


def randomise(model: torch.nn.Module) -> None:
    """Weights far from their quiet start, so that what they touch shows."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)


def masks(lengths: list[int], length: int) -> Tensor:
    return (torch.arange(length) < torch.tensor(lengths)[:, None]).float()


def random_batch(windows: int = 4, length: int = 10, *, seed: int = 0) -> PairBatch:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(4, length + 1, (windows,), generator=generator).tolist()
    mask = masks(lengths, length)
    pairs = windows + 1  # the last two pairs share a window
    video = torch.tensor([*range(windows), windows - 1])
    return PairBatch(
        query=torch.randn(pairs, 1, DIM, generator=generator),
        query_mask=torch.ones(pairs, 1),
        visual=torch.randn(windows, length, DIM, generator=generator) * mask[..., None],
        mask=mask,
        subtitles=None,
        video=video,
        labels=torch.tensor([[1, 2]] * pairs),
        similarity=torch.ones(pairs),
        positives=video[:, None] == video,
    )


def random_windows(batch: PairBatch, seed: int) -> Windows:
    generator = torch.Generator().manual_seed(seed)
    shape = (len(batch), *batch.visual.shape[1:])
    return Windows(torch.randn(shape, generator=generator), torch.ones(shape[:2]), None)


# --- stage 1 ---


def test_the_published_size() -> None:
    config = SegmentRetrieverConfig()
    assert (config.hidden_size, config.layers, config.head_count, config.max_clips) == (768, 6, 12, 32)
    with torch.device("meta"):
        keys = SegmentRetriever(SegmentRetrieverConfig(hidden_size=128, layers=2)).state_dict()
    assert keys["seq_transf.resblocks.1.mlp.c_fc.weight"].shape == (512, 128)
    assert keys["frame_position_embeddings.weight"].shape == (32, 128)


@given(lengths=st.lists(st.integers(0, 5), min_size=1, max_size=4), more=st.integers(0, 7))
@settings(max_examples=25, deadline=None)
@torch.inference_mode()
def test_padding_more_changes_no_segment(lengths: list[int], more: int) -> None:
    model = retriever()
    frames, mask = torch.randn(len(lengths), 5, DIM), masks(lengths, 5)
    expected = model.encode_segments(frames, mask)
    padded = torch.cat([frames, torch.randn(len(lengths), more, DIM)], dim=1)
    found = model.encode_segments(padded, masks(lengths, 5 + more))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@torch.inference_mode()
def test_a_segment_without_a_frame_is_the_bias() -> None:
    model = retriever()
    found = model.encode_segments(torch.randn(2, 4, DIM), torch.zeros(2, 4, dtype=torch.bool))
    assert torch.equal(found, model.temp_proj.bias.expand(2, -1))


@torch.inference_mode()
def test_identity_start_is_the_mean_of_the_frames_and_the_query_itself() -> None:
    model = retriever(identity_start=True)
    frames, mask = torch.randn(3, 6, DIM), masks([6, 3, 1], 6)
    units = frames / frames.norm(dim=-1, keepdim=True)
    mean = (units * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
    torch.testing.assert_close(model.encode_segments(frames, mask), mean)
    query = torch.randn(2, DIM)
    torch.testing.assert_close(model.encode_queries(query), query)
    expected = 100 * torch.nn.functional.cosine_similarity(query[:, None], mean[None], dim=-1)
    torch.testing.assert_close(model.similarity(query, mean), expected)


def test_identity_start_learns_in_every_part() -> None:
    """After one step all parameters have a gradient: nothing is stuck at its zeros."""
    model = retriever(identity_start=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        terms = model.loss(torch.randn(4, 3, DIM), torch.ones(4, 3), torch.randn(4, DIM), torch.eye(4))
        sum(terms.values()).backward()
        optimizer.step()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@torch.inference_mode()
def test_the_random_start_keeps_features_in_reach() -> None:
    torch.manual_seed(0)
    model = SegmentRetriever(SegmentRetrieverConfig(hidden_size=64, layers=6))
    frames = torch.randn(50, 4, 64)
    cosine = torch.nn.functional.cosine_similarity(
        model.frame_features(frames, torch.ones(50, 4)), frames, -1
    )
    assert cosine.mean() > 0.5


def test_training_brings_pairs_together() -> None:
    model = retriever(identity_start=True)
    generator = torch.Generator().manual_seed(5)
    frames, queries = torch.randn(6, 4, DIM, generator=generator), torch.randn(6, DIM, generator=generator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    totals = []
    for _ in range(80):
        total = sum(model.loss(frames, torch.ones(6, 4), queries, torch.eye(6)).values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        totals.append(total.item())
    assert totals[-1] < totals[0] / 10


@pytest.mark.parametrize(
    ("frames", "message"), [((1, 13, DIM), "T <= 12"), ((1, 4, 9), "4, 9"), ((4, DIM), "wants")]
)
def test_frames_that_do_not_fit(frames: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        retriever().encode_segments(torch.zeros(frames), torch.ones(frames[:-1]))


def test_settings_that_cannot_be() -> None:
    with pytest.raises(InvalidValue, match="hidden_size 10: must be a multiple of heads 4"):
        SegmentRetrieverConfig(hidden_size=10, heads=4)
    with pytest.raises(InvalidValue, match="loss 'nce': unknown; choose mil-nce"):
        SegmentRetrieverConfig(loss="nce")
    with pytest.raises(InvalidValue, match="kernel 4: must be odd"):
        SprClipConfig(kernel=4)
    with pytest.raises(InvalidValue, match="labels 'mine': unknown; choose"):
        SprClipConfig(labels="mine")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_keeps_scores_and_empty_segments_finite(dtype: torch.dtype) -> None:
    model, clip, batch = retriever(identity_start=True), refiner(identity_start=True), random_batch()
    frames, mask, queries = torch.randn(3, 4, DIM), masks([4, 2, 0], 4), torch.randn(3, DIM)
    expected = model.loss(frames, mask, queries, torch.eye(3))
    generator = torch.Generator()
    expected |= clip.loss(batch, hard_pool=1, generator=generator)
    with torch.autocast("cpu", dtype):
        found = model.loss(frames, mask, queries, torch.eye(3))
        found |= clip.loss(batch, hard_pool=1, generator=generator)
    for name, value in found.items():
        assert value.dtype == torch.float32, name
        torch.testing.assert_close(value, expected[name], rtol=0.05, atol=0.05)


# --- the contrastive losses ---


@given(st.integers(1, 5), st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_mil_nce_is_the_naive_formula_in_double(rows: int, columns: int, random: object) -> None:
    generator = torch.Generator().manual_seed(random.getrandbits(32))  # type: ignore[attr-defined]
    logits = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    relevance = torch.rand(rows, columns, generator=generator) > 0.5
    mass = [
        -math.log((logits[row].softmax(0) * relevance[row]).sum().item())
        for row in range(rows)
        if relevance[row].any()
    ]
    expected = sum(mass) / len(mass) if mass else 0.0
    assert mil_nce(logits, relevance).item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", CONTRASTIVE)
def test_contrastive_losses_stay_finite_where_softmax_underflows(name: str) -> None:
    logits = torch.tensor([[-200.0, 200.0], [200.0, -200.0]], requires_grad=True)
    loss = CONTRASTIVE[name](logits, torch.eye(2))
    loss.backward()
    assert loss.item() == pytest.approx(400.0)
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_rows_without_positives_count_for_nothing() -> None:
    logits = torch.randn(3, 4, requires_grad=True)
    relevance = torch.tensor([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]]).float()
    loss = mil_nce(logits, relevance)
    torch.testing.assert_close(loss, mil_nce(logits[[0, 2]], relevance[[0, 2]]))
    loss.backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert mil_nce(logits, torch.zeros(3, 4)).item() == 0


def test_graded_losses_by_hand() -> None:
    """A row's relevance counts within the row, not within the column."""
    logits = [[1.0, 0.0, 2.0], [0.5, -1.0, 0.0]]
    relevance = [[1.0, 0.25, 0.0], [0.0, 0.5, 0.5]]
    crossed, weighted = [], []
    for row, weights in zip(logits, relevance, strict=True):
        masses = [math.exp(value) for value in row]
        shares = [mass / sum(masses) for mass in masses]
        both = list(zip(weights, shares, strict=True))
        crossed.append(-sum(weight / sum(weights) * math.log(share) for weight, share in both))
        weighted.append(-math.log(sum(weight / max(weights) * share for weight, share in both)))
    given = torch.tensor(logits), torch.tensor(relevance)
    assert CONTRASTIVE["mil-ce"](*given).item() == pytest.approx(sum(crossed) / 2, abs=1e-6)
    assert CONTRASTIVE["weighted-mil-nce"](*given).item() == pytest.approx(sum(weighted) / 2, abs=1e-6)


def test_info_nce_wants_pairs() -> None:
    with pytest.raises(InvalidValue, match="2 queries and 3 segments must be pairs"):
        CONTRASTIVE["info-nce"](torch.zeros(2, 3), torch.ones(2, 3))
    with pytest.raises(InvalidValue, match="must be pairs"):
        CONTRASTIVE["info-nce"](torch.zeros(2, 2), torch.zeros(2, 2))


@pytest.mark.parametrize(
    ("similarity", "last", "mask"),
    [([1.0, 2.0, -1.0, 9.0], 1, [1.0, 1.0, 1.0, 0.0]), ([1.0, 9.0, 2.0, -1.0], 2, [1.0, 0.0, 1.0, 1.0])],
)
def test_frame_contrast_by_hand(similarity: list[float], last: int, mask: list[float]) -> None:
    """A clip that takes no part counts nowhere, outside the moment or inside."""
    found = frame_contrast(torch.tensor([similarity]), torch.tensor([[0, last]]), torch.tensor([mask]))
    outside = math.log1p(math.exp(-1)) - math.log(2)
    inside = [math.log(2) - math.log1p(math.exp(-value)) for value in (1, 2)]
    assert found.item() == pytest.approx(outside - sum(inside) / 2, abs=1e-6)


def test_ranking_loss_by_hand() -> None:
    """Query 0 has an answer in video 1, not query 1 in video 0: each direction has its own negatives."""
    scores = torch.tensor([[0.5, 0.9, 0.2], [0.6, 0.5, 0.1], [0.3, 0.4, 0.5]])
    positives = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 1]]).bool()
    context, query = in_batch_ranking_loss(scores, positives, margin=0.1, pool=1)
    # The hardest videos of the queries score .2, .6 and .4, the hardest queries of the videos .6, .4 and .2.
    assert context.item() == pytest.approx((0 + 0.2 + 0) / 3, abs=1e-6)
    assert query.item() == pytest.approx((0.2 + 0 + 0) / 3, abs=1e-6)


def test_video_contrast_by_hand() -> None:
    scores = torch.tensor([[1.0, 0.5, 0.0], [0.2, 2.0, 0.1], [0.3, 0.4, 3.0]])
    positives = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 1]]).bool()
    more = torch.tensor([0.7, 0.0, 0.0])
    found = video_contrast(scores, positives, more=more, sum_positives=False)
    # Query 0: its second video answers it, so it is no negative; queries 1 and 2 are negatives of video 0.
    compared = [math.exp(value) for value in (1.0, 0.0, 0.2, 0.3, 0.7)]
    assert found[0].item() == pytest.approx(math.log(sum(compared)) - 1.0, abs=1e-6)
    summed = video_contrast(scores, positives, more=more)
    share = math.exp(1.0) + math.exp(0.5)
    assert summed[0].item() == pytest.approx(
        math.log(sum(compared) + math.exp(0.5)) - math.log(share), abs=1e-6
    )


# --- the refiner ---


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4), more=st.integers(0, 9))
@settings(max_examples=25, deadline=None)
@torch.inference_mode()
def test_padding_more_changes_nothing_in_a_window(lengths: list[int], more: int) -> None:
    model, count = refiner(), len(lengths)
    frames, query = torch.randn(count, 9, DIM), torch.randn(count, DIM)
    mask = masks(lengths, 9)
    padded = torch.cat([frames, torch.randn(count, more, DIM)], dim=1)
    longer = masks(lengths, 9 + more)
    context = model.encode_context(frames, mask)
    padded_context = model.encode_context(padded, longer)
    queries = model.encode_query(query)
    close = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(model.scores(queries, padded_context), model.scores(queries, context), **close)
    for expected, found in zip(
        model.span_logits(queries, context), model.span_logits(queries, padded_context), strict=True
    ):
        torch.testing.assert_close(found[:, :9][mask > 0], expected[mask > 0], **close)
        assert (found[longer == 0] < -1e9).all()


@torch.inference_mode()
def test_pairs_and_selection_are_parts_of_the_whole() -> None:
    model, batch = refiner(), random_batch()
    context, queries = model.encode_context(batch.visual, batch.mask), model.encode_query(batch.query)
    table = model.scores(queries, context)
    assert table.shape == (5, 4)
    assert (table.abs() <= 1 + 1e-6).all()
    own = model.pair_scores(queries, context.select(batch.video))
    torch.testing.assert_close(own, table[torch.arange(5), batch.video])
    one = model.pair_scores(queries[:1], context)
    torch.testing.assert_close(one, table[0])


@torch.inference_mode()
def test_the_mean_of_the_frames_is_the_segment_of_stage_1() -> None:
    first, model = retriever(), refiner()
    model.start_from(first)
    frames, mask = torch.randn(3, 4, DIM), masks([4, 2, 1], 4)
    projected = model.temp_proj(model.frame_features(frames, mask)) * mask[..., None]
    mean = projected.sum(dim=1) / mask.sum(dim=1, keepdim=True)
    torch.testing.assert_close(mean, first.encode_segments(frames, mask))
    query = torch.randn(2, DIM)
    assert torch.equal(model.encode_query(query), first.encode_queries(query))


def test_stage_1_of_another_size_cannot_start_a_refiner() -> None:
    with pytest.raises(InvalidValue, match="stage 1 with layers 2: this refiner has 1"):
        refiner(layers=1).start_from(retriever())


@torch.inference_mode()
def test_refine_takes_the_best_cell_of_each_window() -> None:
    model = refiner(shortest_span=1, longest_span=4)
    batch = random_batch(windows=6)
    context, query = model.encode_context(batch.visual, batch.mask), batch.query[:1]
    score, start, end = model.refine(query, None, context)
    assert score.shape == start.shape == end.shape == (6,)
    queries = model.encode_query(query)
    starts, ends = (logits.softmax(-1) for logits in model.span_logits(queries, context))
    phi = model.scores(queries, context)[0]
    for row in range(6):
        cells = {
            (m, n): (starts[row, m] * ends[row, n] * math.exp(30 * phi[row])).item()
            for m in range(10)
            for n in range(m + 1, min(m + 4, 10))
        }
        best = max(cells, key=lambda cell: cells[cell])
        assert (start[row].item(), end[row].item()) == best
        assert score[row].item() == pytest.approx(cells[best], rel=1e-4)


@torch.inference_mode()
def test_a_window_too_short_for_any_span_is_returned_whole() -> None:
    model = refiner(shortest_span=2)
    context = model.encode_context(torch.randn(2, 5, DIM), masks([1, 2], 5))
    score, start, end = model.refine(torch.randn(1, 1, DIM), torch.ones(1, 1), context)
    assert start.tolist() == [0, 0]
    assert end.tolist() == [0, 1]
    assert (score > 0).all()


def test_a_span_is_found_where_its_probability_underflows() -> None:
    start, end = torch.tensor([[0.0, 1.0, 200.0]]), torch.tensor([[200.0, 0.0, 1.0]])
    found = window_spans(start, end, torch.ones(1, 3), shortest=1, longest=3)
    assert (found.start.item(), found.end.item()) == (1, 2)
    assert found.score.item() == pytest.approx(-398)


def test_what_the_refiner_refuses() -> None:
    model = refiner()
    with pytest.raises(InvalidValue, match="one sentence feature per query"):
        model.encode_query(torch.zeros(2, 3, DIM))
    with pytest.raises(InvalidValue, match="pictures alone"):
        model.encode_context(torch.zeros(1, 3, DIM), torch.ones(1, 3), torch.zeros(1, 3, DIM))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="T <= 24"):
        model.encode_context(torch.zeros(1, 25, DIM), torch.ones(1, 25))


def test_the_terms_of_the_loss() -> None:
    model, batch = refiner(), random_batch()
    generator = torch.Generator().manual_seed(0)
    standard = model.loss(batch, hard_pool=1, generator=generator)
    assert set(standard) == {"frame", "video", "span", "context", "query"}
    everything = model.loss(
        batch,
        hard_pool=1,
        generator=generator,
        hard_negatives=random_windows(batch, 8),
        weak_positives=random_windows(batch, 9),
    )
    assert set(everything) == {*standard, "hard_negative", "weak"}
    assert everything["video"] > standard["video"], "a hard negative is one more negative"
    sum(everything.values()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@torch.inference_mode()
def test_hinges_compare_with_the_given_windows() -> None:
    model, batch = refiner(hard_negative_weight=0.5), random_batch()
    worse = random_windows(batch, 8)
    queries = model.encode_query(batch.query)
    own = model.pair_scores(queries, model.encode_context(batch.visual, batch.mask).select(batch.video))
    other = model.pair_scores(queries, model.encode_context(worse.visual, worse.mask))
    missed = (0.1 + other - own).clamp(min=0).mean()
    terms = model.loss(batch, hard_pool=None, generator=None, hard_negatives=worse, weak_positives=worse)
    assert missed > 0
    torch.testing.assert_close(terms["hard_negative"], 0.5 * missed)
    torch.testing.assert_close(terms["weak"], missed)


@torch.inference_mode()
def test_a_pair_compared_with_no_weak_window_does_not_count() -> None:
    """The mean is over the pairs that are compared; without any the term is 0."""
    model, batch = refiner(), random_batch()
    weak = random_windows(batch, 8)
    queries = model.encode_query(batch.query)
    own = model.pair_scores(queries, model.encode_context(batch.visual, batch.mask).select(batch.video))
    missed = (0.1 + model.pair_scores(queries, model.encode_context(weak.visual, weak.mask)) - own).clamp(
        min=0
    )
    first = torch.arange(len(batch)) == missed.argmax()
    for there, expected in ((first, missed.max()), (first & False, torch.tensor(0.0))):
        windows = replace(weak, there=there)
        terms = model.loss(batch, hard_pool=None, generator=None, weak_positives=windows)
        torch.testing.assert_close(terms["weak"], expected)
    assert missed.max() > 0


@torch.inference_mode()
def test_positives_are_no_negatives() -> None:
    """Where every window answers every query nothing is ranked."""
    model, batch = refiner(), random_batch()
    everything = replace(batch, positives=torch.ones_like(batch.positives))
    terms = model.loss(everything, hard_pool=None, generator=None)
    assert terms["context"] == 0
    assert terms["query"] == 0
    assert terms["video"].item() == pytest.approx(0, abs=1e-6)


def test_the_refiner_learns_where_moments_are() -> None:
    """Frames of the moment resemble the query; the refiner is to find their bounds in new windows."""
    torch.manual_seed(0)
    model = SprClip(SprClipConfig(hidden_size=DIM, layers=1, max_clips=12, identity_start=True))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

    def draw() -> PairBatch:
        batch = random_batch(windows=15, length=12)
        query = torch.randn(16, 1, DIM)
        labels = torch.stack([torch.randint(0, 4, (16,)), torch.randint(5, 10, (16,))], dim=1)
        inside = (torch.arange(12) >= labels[:, :1]) & (torch.arange(12) <= labels[:, 1:])
        visual = torch.randn(16, 12, DIM) * 0.5 + torch.where(inside[..., None], query, 0.0)
        return replace(
            batch,
            query=query,
            visual=visual,
            mask=torch.ones(16, 12),
            video=torch.arange(16),
            labels=labels,
        )

    for _ in range(120):
        terms = model.loss(draw(), hard_pool=None, generator=None)
        optimizer.zero_grad()
        sum(terms.values()).backward()
        optimizer.step()
    batch = draw()
    with torch.inference_mode():
        _, start, end = model.refine(batch.query, None, model.encode_context(batch.visual, batch.mask))
    missed = (torch.stack([start, end], dim=1) - batch.labels).abs().float().mean()
    assert missed < 0.7


def test_the_temperature_of_stage_1_is_not_taken_over() -> None:
    """Nor the positions that it does not have."""
    first, model = retriever(), refiner()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.start_from(first)
    assert model.pt_clip_logit_scale == before["pt_clip_logit_scale"] != first.pt_clip_logit_scale
    positions, known = model.frame_position_embeddings.weight, first.frame_position_embeddings.weight
    assert torch.equal(positions[:12], known)
    assert torch.equal(positions[12:], before["frame_position_embeddings.weight"][12:])


@pytest.mark.parametrize("summed", [True, False])
@torch.inference_mode()
def test_positives_of_a_query_are_summed_by_a_setting(summed: bool) -> None:
    """Two pairs share a window, so each has two positives."""
    model, batch = refiner(sum_positives=summed), random_batch()
    scores = model.scores(
        model.encode_query(batch.query), model.encode_context(batch.visual, batch.mask).select(batch.video)
    )
    missed = video_contrast(
        model.pt_clip_logit_scale.exp() * scores, batch.positives, sum_positives=summed
    ).mean()
    terms = model.loss(batch, hard_pool=None, generator=None)
    torch.testing.assert_close(terms["video"], model.config.video_weight * missed)
