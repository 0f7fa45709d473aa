from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from moviola.errors import InvalidValue
from moviola.study.models.layers import (
    MASKED,
    Attention,
    AttentionBlock,
    InputProjection,
    LearnedPositions,
    ModularQuery,
    best_clip_score,
    clip_cosine,
    cross_attention_bias,
    initialise,
    masked_fill,
    present,
    self_attention_bias,
    span_logits,
)


def mask_of(lengths: list[int], length: int) -> torch.Tensor:
    return (torch.arange(length) < torch.tensor(lengths)[:, None]).float()


def test_blocks_bear_the_published_names() -> None:
    assert set(InputProjection(3, 4).state_dict()) == {
        "LayerNorm.weight",
        "LayerNorm.bias",
        "net.1.weight",
        "net.1.bias",
    }
    assert {name.rsplit(".", 1)[0] for name in AttentionBlock(4, 2).state_dict()} == {
        "self.query",
        "self.key",
        "self.value",
        "output.dense",
        "output.LayerNorm",
    }
    assert "position_embeddings.weight" in LearnedPositions(5, 4).state_dict()
    assert set(ModularQuery(4).state_dict()) == {"weight"}


@torch.inference_mode()
def test_tokens_and_streams_weigh_by_the_same_logits() -> None:
    """A token by softmax over the tokens that are there, a stream by its logsumexp over them."""
    torch.manual_seed(0)
    pool, tokens = ModularQuery(4), torch.randn(2, 3, 4)
    mask = mask_of([3, 2], 3)
    for b, valid in enumerate((3, 2)):
        odds = torch.exp(tokens[b, :valid] @ pool.weight.T)
        weights, sums = odds / odds.sum(dim=0), odds.sum(dim=0)
        torch.testing.assert_close(pool.token_weights(tokens, mask)[b, :valid], weights)
        torch.testing.assert_close(pool(tokens, mask)[b], weights.T @ tokens[b, :valid])
        torch.testing.assert_close(pool.stream_weights(tokens, mask)[b], sums / sums.sum())
    assert not pool.token_weights(tokens, mask)[1, 2].any()


@torch.inference_mode()
def test_attention_is_the_formula() -> None:
    torch.manual_seed(0)
    attention = Attention(6, 2, dropout=0.0)
    main, side = torch.randn(2, 3, 6), torch.randn(2, 4, 6)
    mask = mask_of([4, 2], 4)
    found = attention(main, side, self_attention_bias(mask))
    query, key, value = attention.query(main), attention.key(side), attention.value(side)
    for head in (slice(0, 3), slice(3, 6)):
        for b, valid in enumerate((4, 2)):
            logits = query[b, :, head] @ key[b, :valid, head].T / 3**0.5
            expected = logits.softmax(dim=-1) @ value[b, :valid, head]
            torch.testing.assert_close(found[b, :, head], expected)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 4), st.integers(0, 2**16))
@torch.inference_mode()
def test_padding_changes_nothing(length: int, side_length: int, more: int, seed: int) -> None:
    torch.manual_seed(seed)
    block, cross, pool = AttentionBlock(4, 2).eval(), Attention(4, 2).eval(), ModularQuery(4)
    main, side = torch.randn(1, length, 4), torch.randn(1, side_length, 4)
    longer, longer_side = (torch.cat([x, torch.randn(1, more, 4)], 1) for x in (main, side))
    mask, side_mask = torch.ones(1, length), torch.ones(1, side_length)
    longer_mask, longer_side_mask = (
        mask_of([length], length + more),
        mask_of([side_length], side_length + more),
    )
    torch.testing.assert_close(
        block(longer, self_attention_bias(longer_mask))[:, :length], block(main, self_attention_bias(mask))
    )
    torch.testing.assert_close(
        cross(longer, longer_side, cross_attention_bias(longer_mask, longer_side_mask))[:, :length],
        cross(main, side, cross_attention_bias(mask, side_mask)),
    )
    torch.testing.assert_close(pool(longer, longer_mask), pool(main, mask))
    query = torch.randn(3, 4)
    torch.testing.assert_close(
        best_clip_score(query, longer, longer_mask), best_clip_score(query, main, mask)
    )
    predictor = nn.Conv1d(1, 1, 5, padding=2, bias=False)
    similarity = torch.randn(3, length + more)
    torch.testing.assert_close(
        span_logits(similarity, longer_mask, predictor)[:, :length],
        span_logits(similarity[:, :length], mask, predictor),
    )


@torch.inference_mode()
def test_reference_padding_leaks() -> None:
    torch.manual_seed(0)
    predictor = nn.Conv1d(1, 1, 5, padding=2, bias=False)
    similarity, mask = torch.randn(1, 6), mask_of([4], 6)
    ours = span_logits(similarity, mask, predictor)
    theirs = span_logits(similarity, mask, predictor, reference_padding=True)
    assert torch.equal(ours[:, :2], theirs[:, :2])
    assert (ours[:, 2:4] != theirs[:, 2:4]).all()
    assert (ours[:, 4:] == MASKED).all()
    bias = cross_attention_bias(mask, mask, reference_padding=True)
    assert bias.shape == (1, 1, 6, 6)
    assert (bias[0, 0, 4:] == -1e4).all()
    assert bias[0, 0, 0].tolist() == [0, 0, 0, 0, -1e4, -1e4]


@torch.inference_mode()
def test_a_sequence_of_nothing_but_padding_gives_numbers() -> None:
    block = AttentionBlock(4, 2).eval()
    features = torch.randn(1, 3, 4)
    assert block(features, self_attention_bias(torch.zeros(1, 3))).isfinite().all()


def test_cosine_of_a_zero_clip_is_zero_and_has_a_gradient() -> None:
    clips = torch.zeros(1, 2, 3, requires_grad=True)
    cosine = clip_cosine(torch.tensor([[1.0, 2.0, 2.0]]), clips)
    assert cosine.tolist() == [[[0.0, 0.0]]]
    cosine.sum().backward()
    assert clips.grad is not None
    assert clips.grad.isfinite().all()


def test_a_clip_is_there_with_any_number_but_zero() -> None:
    clips = torch.tensor([[[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]]])
    assert present(clips, torch.tensor([[1.0, 1.0, 1.0, 0.0]])).tolist() == [[False, True, True, False]]


def test_cosine_is_between_directions() -> None:
    query, clips = (
        torch.tensor([[3.0, 4.0]]),
        torch.tensor([[[6.0, 8.0], [-4.0, 3.0]], [[-3.0, -4.0], [1.0, 0.0]]]),
    )
    torch.testing.assert_close(clip_cosine(query, clips), torch.tensor([[[1.0, 0.0], [-1.0, 0.6]]]))


def test_masked_values_stay_representable_in_half_precision() -> None:
    masked = masked_fill(torch.ones(2, dtype=torch.float16), torch.tensor([1.0, 0.0]))
    assert masked.tolist() == [1.0, MASKED]


def test_too_long_a_sequence_is_refused() -> None:
    with pytest.raises(InvalidValue, match="sequence of 6 positions: this model has 5"):
        LearnedPositions(5, 4)(torch.zeros(1, 6, 4))


def test_heads_must_divide_the_size() -> None:
    with pytest.raises(InvalidValue, match="hidden_size 6: must be a multiple of heads 4"):
        Attention(6, 4)


def test_initialisation() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(200, 200), nn.LayerNorm(7), nn.Embedding(300, 50), nn.Conv1d(1, 1, 5))
    before = model[3].weight.clone()
    with torch.no_grad():
        model[1].weight.fill_(3)
    initialise(model)
    for index in (0, 2):
        assert model[index].weight.std().item() == pytest.approx(0.02, rel=0.03)
    assert (model[0].bias == 0).all()
    assert (model[1].weight == 1).all()
    assert torch.equal(model[3].weight, before)
