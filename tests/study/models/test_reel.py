"""Reel: spans and gains against brute force; padding and slicing change nothing; it learns a tiny corpus."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from moviola.study.models.reel import AnswerBatch, Reel, ReelConfig, ReelContext

TINY = ReelConfig(
    visual_size=6, query_size=5, subtitle_size=4, hidden_size=16, heads=2, dilations=(1, 2), kernel=3,
    longest_span=4, dropout=0.0, cuts=True,
)  # fmt: skip


def reel(seed: int = 0, **changes: object) -> Reel:
    torch.manual_seed(seed)
    model = Reel(replace(TINY, **changes))  # type: ignore[arg-type]
    # Biases and scales away from their round starting values, so that each of them shows.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) / 20)
        if model.config.cuts:
            model.crossing.fill_(0.3)
    return model.eval()


def batch_of(
    lengths: list[int],
    tokens: list[int],
    answers: list[tuple[int, int, float, float, float]],
    *,
    config: ReelConfig = TINY,
    seed: int = 0,
) -> AnswerBatch:
    """Videos and queries of some lengths; an answer is query, video, start, end and similarity."""
    draw = torch.Generator().manual_seed(seed)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).float()
    token_mask = (torch.arange(max(tokens)) < torch.tensor(tokens)[:, None]).float()

    def values(shape: torch.Tensor, size: int) -> torch.Tensor:
        return torch.randn(*shape.shape, size, generator=draw) * shape[..., None]

    return AnswerBatch(
        query=values(token_mask, config.query_size),
        query_mask=token_mask,
        visual=values(mask, config.visual_size),
        mask=mask,
        subtitles=values(mask, config.subtitle_size) if config.subtitle_size else None,
        cuts=(torch.rand(mask.shape, generator=draw) < 0.3) * mask,
        answer=torch.tensor([row[:2] for row in answers], dtype=torch.int64).reshape(-1, 2),
        span=torch.tensor([row[2:4] for row in answers], dtype=torch.float32).reshape(-1, 2),
        similarity=torch.tensor([row[4] for row in answers], dtype=torch.float32),
        answered=torch.ones(len(tokens)),
    )


def encoded(model: Reel, batch: AnswerBatch) -> ReelContext:
    return model.encode_context(batch.visual, batch.mask, batch.subtitles, batch.cuts)


ANSWERS = [(0, 0, 0.0, 2.0, 1.0), (0, 1, 1.5, 4.0, 0.5), (1, 1, 0.0, 3.2, 0.8), (2, 2, 1.0, 2.0, 1.0)]


def tiny_batch(**changes: object) -> AnswerBatch:
    return batch_of([5, 7, 3], [2, 4, 3], ANSWERS, **changes)  # type: ignore[arg-type]


# ---- spans -----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=3), seed=st.integers(0, 999))
def test_a_span_scores_its_edges_and_the_mean_of_what_lies_between(lengths: list[int], seed: int) -> None:
    model = reel()
    draw = torch.Generator().manual_seed(seed)
    length = max(lengths)
    curves = torch.randn(2, len(lengths), 3, length, generator=draw)
    mask = (torch.arange(length) < torch.tensor(lengths)[:, None]).float()
    curves = curves * mask[:, None]
    cuts = (torch.rand(mask.shape, generator=draw) < 0.3) * mask
    found = model.span_scores(curves, mask, cuts)
    assert found.shape == (2, len(lengths), length, TINY.longest_span)
    for query in range(2):
        for video, count in enumerate(lengths):
            inside, start, end = curves[query, video]
            for first in range(length):
                for more in range(TINY.longest_span):
                    last = first + more
                    cell = found[query, video, first, more].item()
                    if last >= count:
                        assert cell < -1e9
                        continue
                    expected = start[first] + end[last] + inside[first : last + 1].mean()
                    expected = expected + model.length_bias[more]
                    expected = expected - 0.3 * cuts[video, first + 1 : last + 1].sum()
                    assert cell == pytest.approx(expected.item(), abs=1e-5)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_gains_are_the_best_overlap_with_any_answer(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    power, least = data.draw(st.sampled_from([(1.0, 0.5), (2.0, 0.3), (1.0, 0.0)]))
    quarter = st.integers(0, 28).map(lambda n: n / 4)
    answers = []
    for _ in range(data.draw(st.integers(1, 5))):
        video = data.draw(st.integers(0, len(lengths) - 1))
        start, more = data.draw(quarter), data.draw(st.integers(1, 16)) / 4
        answers.append(
            (data.draw(st.integers(0, 1)), video, start, start + more, data.draw(st.sampled_from([0.5, 1.0])))
        )
    model = reel(least_overlap=least, sharpness=power)
    found = model.gains(batch_of(lengths, [2, 2], answers))
    expected = np.zeros(found.shape)
    for query, video, start, end, similarity in answers:
        for first in range(max(lengths)):
            for more in range(TINY.longest_span):
                after = first + more + 1
                if after > lengths[video]:
                    continue
                shared = max(0.0, min(after, end) - max(first, start))
                overlap = shared / (after - first + end - start - shared)
                worth = max(0.0, (overlap - least) / (1 - least)) ** power * similarity**2
                expected[query, video, first, more] = max(expected[query, video, first, more], worth)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


def test_the_loss_is_the_cross_entropy_between_gains_and_all_spans_of_all_videos() -> None:
    model, batch = reel(), tiny_batch()
    context = encoded(model, batch)
    curves = model.curves(model.encode_query(batch.query, batch.query_mask), context)
    scores = model.span_scores(curves, batch.mask, batch.cuts).flatten(1).double()
    gains = model.gains(batch).flatten(1).double()
    expected = torch.stack([
        -(gains[q] / gains[q].sum() * scores[q].log_softmax(0)).sum() for q in range(len(gains))
    ]).mean()  # fmt: skip
    terms = model.loss(batch)
    torch.testing.assert_close(sum(terms.values()), expected.float(), rtol=1e-5, atol=1e-6)


def test_of_an_answer_it_is_as_sure_as_at_the_surest_clip_of_any_video() -> None:
    """The log odds of a query are the largest over the clips of all videos; padding is no clip, and other
    videos do not matter. They are learned from which queries have an answer, whatever its place.
    """
    model = reel(answerable=True)
    batch = replace(tiny_batch(), answered=torch.tensor([1.0, 0.0, 1.0]))
    query, sure = model.encode_query(batch.query, batch.query_mask), []
    assert query.shape[1] == 4
    for video, count in enumerate(batch.mask.sum(dim=1).int().tolist()):
        alone = model.encode_context(
            batch.visual[[video], :count], batch.mask[[video], :count], batch.subtitles[[video], :count],  # type: ignore[index]
            batch.cuts[[video], :count],
        )  # fmt: skip
        *_, odds = model.refine(query, ReelContext(*(
            column.expand(3, *column.shape[1:]) for column in (alone.clips, alone.mask, alone.cuts)
        )))  # fmt: skip
        sure.append(odds)
    *_, padded = model.refine(query[[1]], encoded(model, batch))
    torch.testing.assert_close(padded, torch.stack(sure)[:, 1], rtol=1e-4, atol=1e-5)
    most = torch.stack(sure).amax(dim=0).double()
    expected = -(most[0].sigmoid().log() + (1 - most[1].sigmoid()).log() + most[2].sigmoid().log()) / 3
    torch.testing.assert_close(model.loss(batch)["answerable"].double(), expected, rtol=1e-4, atol=1e-5)


def test_what_it_says_of_answers_leaves_spans_as_they_are() -> None:
    """The fourth vector, whatever it is, changes no score of a span."""
    model, batch = reel(answerable=True), tiny_batch()
    query, context = model.encode_query(batch.query, batch.query_mask), encoded(model, batch)
    other = torch.cat([query[:, :3], -query[:, 3:]], dim=1)
    for one, two in zip(model.refine(query, context)[:3], model.refine(other, context)[:3], strict=True):
        torch.testing.assert_close(one, two)
    assert not torch.equal(model.refine(query, context)[3], model.refine(other, context)[3])


def test_a_query_whose_answers_are_out_of_reach_is_left_out() -> None:
    """An answer longer than the longest span can be, and a batch without any answer."""
    model = reel()
    answers = [*ANSWERS[:2], (1, 1, 0.0, 100.0, 1.0), *ANSWERS[3:]]
    without = batch_of([5, 7, 3], [2, 4, 3], answers)
    others = AnswerBatch(
        without.query[[0, 2]], without.query_mask[[0, 2]], without.visual, without.mask, without.subtitles,
        without.cuts, torch.tensor([[0, 0], [0, 1], [1, 2]]), without.span[[0, 1, 3]],
        without.similarity[[0, 1, 3]], without.answered[[0, 2]],
    )  # fmt: skip
    torch.testing.assert_close(
        sum(model.loss(without).values()), sum(model.loss(others).values()), rtol=1e-5, atol=1e-6
    )


def test_a_batch_whose_answers_are_all_out_of_reach_teaches_nothing() -> None:
    model = reel()
    total = sum(model.loss(batch_of([5], [2], [(0, 0, 0.0, 100.0, 1.0)])).values())
    assert torch.isfinite(total)
    assert total == 0
    total.backward()


# ---- padding and slices ----------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(clips=st.integers(0, 6), tokens=st.integers(0, 3), seed=st.integers(0, 99))
def test_padding_changes_nothing(clips: int, tokens: int, seed: int) -> None:
    model, batch = reel(), tiny_batch(seed=seed)
    assert batch.subtitles is not None

    def longer(values: torch.Tensor, more: int, fill: float) -> torch.Tensor:
        rest = torch.full((len(values), more, *values.shape[2:]), fill)
        return torch.cat([values, rest], dim=1)

    padded = replace(
        batch,
        query=longer(batch.query, tokens, 7.0),
        query_mask=longer(batch.query_mask, tokens, 0.0),
        visual=longer(batch.visual, clips, -3.0),
        mask=longer(batch.mask, clips, 0.0),
        subtitles=longer(batch.subtitles, clips, 5.0),
        cuts=longer(batch.cuts, clips, 0.0),
    )
    with torch.no_grad():
        torch.testing.assert_close(
            sum(model.loss(padded).values()), sum(model.loss(batch).values()), rtol=1e-4, atol=1e-5
        )
        answers = []
        for one in (batch, padded):
            context = encoded(model, one)
            answers.append(model.refine(model.encode_query(one.query, one.query_mask), context))
    torch.testing.assert_close(answers[0][0], answers[1][0], rtol=1e-4, atol=1e-5)
    assert torch.equal(answers[0][1], answers[1][1])
    assert torch.equal(answers[0][2], answers[1][2])


def test_a_video_is_stored_the_same_alone_and_beside_others() -> None:
    model, batch = reel(), tiny_batch()
    assert batch.subtitles is not None
    with torch.no_grad():
        together = encoded(model, batch)
        for row, count in enumerate(batch.mask.sum(dim=1).long().tolist()):
            alone = model.encode_context(
                batch.visual[[row], :count], batch.mask[[row], :count], batch.subtitles[[row], :count]
            )
            torch.testing.assert_close(together.clips[row, :count], alone.clips[0], rtol=1e-4, atol=1e-5)


def test_a_window_of_the_whole_video_is_refined_as_in_training() -> None:
    """The curves of refining are those of the loss, query by query."""
    model, batch = reel(), tiny_batch()
    with torch.no_grad():
        context = encoded(model, batch)
        query = model.encode_query(batch.query, batch.query_mask)
        scores = model.span_scores(model.curves(query, context), batch.mask, batch.cuts)
        for row in range(len(query)):
            best, first, last = model.refine(query[[row]], context)
            cells = scores[row].flatten(1)
            torch.testing.assert_close(best, cells.max(dim=1).values, rtol=1e-5, atol=1e-5)
            assert torch.equal(first * TINY.longest_span + last - first, cells.argmax(dim=1))


def test_far_from_its_edges_a_window_sees_what_the_video_sees() -> None:
    """Stored features of a clip know the whole video; the last smoothing alone ends with the window."""
    model = reel()
    batch = batch_of([30], [3], [(0, 0, 0.0, 1.0, 1.0)])
    with torch.no_grad():
        whole = encoded(model, batch)
        window = ReelContext(whole.clips[:, 5:25], whole.mask[:, 5:25], whole.cuts[:, 5:25])
        query = model.encode_query(batch.query, batch.query_mask)
        all_curves, own = model.curves(query, whole), model.curves(query, window)
    torch.testing.assert_close(own[..., 2:-2], all_curves[..., 7:23], rtol=1e-4, atol=1e-5)


def test_select_takes_rows() -> None:
    model, batch = reel(), tiny_batch()
    context = encoded(model, batch)
    chosen = context.select(torch.tensor([2, 0]))
    assert torch.equal(chosen.clips, context.clips[[2, 0]])
    assert torch.equal(chosen.mask, context.mask[[2, 0]])
    assert torch.equal(chosen.cuts, context.cuts[[2, 0]])


# ---- cuts ------------------------------------------------------------------------------------------------


def test_where_nothing_is_cut_cuts_change_nothing() -> None:
    """Neither answers nor training: the parameters of cuts get no gradient."""
    model, blind = reel(), reel(cuts=False)
    batch = replace(tiny_batch(), cuts=torch.zeros_like(tiny_batch().cuts))
    shared = {name: value for name, value in model.state_dict().items() if name in blind.state_dict()}
    blind.load_state_dict(shared)
    assert set(model.state_dict()) - set(shared) == {"cut_kernel", "crossing"}
    losses = [sum(one.loss(batch).values()) for one in (model, blind)]
    assert torch.equal(*losses)
    losses[0].backward()
    assert model.cut_kernel.grad is not None and not model.cut_kernel.grad.any()


def test_a_span_that_crosses_a_cut_loses_by_it() -> None:
    model, batch = reel(), batch_of([12], [3], [(0, 0, 2.0, 6.0, 1.0)])
    batch = replace(batch, cuts=torch.zeros(1, 12).index_fill(1, torch.tensor([5]), 1.0))
    with torch.no_grad():
        context, query = encoded(model, batch), model.encode_query(batch.query, batch.query_mask)
        model.crossing.fill_(50.0)
        _, first, last = model.refine(query, context)
    assert not first < 5 <= last


# ---- learning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subtitles", [4, 0])
def test_every_parameter_learns(subtitles: int) -> None:
    model = reel(subtitle_size=subtitles).train()
    sum(model.loss(tiny_batch(config=model.config)).values()).backward()
    silent = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.abs().sum() > 0
    ]
    assert not silent
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_without_subtitles_there_are_no_such_parameters() -> None:
    model = reel(subtitle_size=0)
    assert not [name for name in model.state_dict() if "subtitle" in name]


def test_it_learns_a_tiny_corpus_and_ranks_its_answers_first() -> None:
    model = reel(dropout=0.1).train()
    answers = [(0, 0, 0.0, 2.0, 1.0), (1, 1, 3.0, 6.0, 1.0), (2, 2, 1.0, 2.0, 1.0), (3, 3, 2.0, 5.0, 1.0)]
    batch = batch_of([5, 7, 3, 6], [2, 4, 3, 3], answers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = sum(model.loss(batch).values())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    model.eval()
    with torch.no_grad():
        context = encoded(model, batch)
        query = model.encode_query(batch.query, batch.query_mask)
        for row, (_, video, start, end, _) in enumerate(answers):
            score, first, last = model.refine(query[[row]], context)
            assert score.argmax() == video
            assert (first[video], last[video] + 1) == (start, end)


def test_autocast_stays_close() -> None:
    model, batch = reel(), tiny_batch()
    with torch.no_grad():
        exact = float(sum(model.loss(batch).values()))
        with torch.autocast("cpu", torch.bfloat16):
            near = float(sum(model.loss(batch).values()))
    assert near == pytest.approx(exact, rel=0.05)
