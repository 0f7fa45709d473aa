"""The losses of potentially relevant pairs, on batches small enough to do by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.models.relevant_pairs import (
    BOUNDARY_SCORES,
    RelevantPairsConfig,
    moment_scores,
    positive_over_relevant,
    relevant_over_negative,
    relevant_pair_losses,
    relevant_span_loss,
)

# Pairs 0 and 1 resemble each other; pair 2 resembles nothing.
SCORES = torch.tensor([[0.9, 0.6, 0.5], [0.3, 0.8, 0.7], [0.2, 0.4, 0.6]])
RELEVANCE = torch.tensor([[False, True, False], [True, False, False], [False, False, False]])
CONFIDENCE = torch.tensor([[0.0, 0.5, 0.0], [0.8, 0.0, 0.0], [0.0, 0.0, 0.0]])
NEGATIVES = torch.tensor([[False, False, True], [False, False, True], [True, True, False]])
NOTHING = torch.zeros(3, 3, dtype=torch.bool)


def test_relevant_over_negative_is_equation_11() -> None:
    # Rows: (0, 1) against (0, 2), (1, 0) against (1, 2); columns: against (2, 1) and (2, 0).
    rows = (0.1 + 0.5 - 0.5 * 0.6) + (0.1 + 0.7 - 0.8 * 0.3)
    columns = (0.1 + 0.4 - 0.5 * 0.6) + (0.1 + 0.2 - 0.8 * 0.3)
    loss = relevant_over_negative(SCORES, RELEVANCE, CONFIDENCE, NEGATIVES, margin=0.1)
    assert loss.item() == pytest.approx((rows + columns) / 2)


def test_the_hardest_negative_is_taken_from_a_pool_of_one() -> None:
    relevance = torch.tensor([[False, True, False, False]] + [[False] * 4] * 3)
    scores = torch.tensor(
        [[0.9, 0.5, 0.2, 0.4], [0.1, 0.9, 0.1, 0.1], [0.1, 0.3, 0.9, 0.1], [0.1, 0.1, 0.1, 0.9]]
    )
    negatives = ~(relevance | torch.eye(4, dtype=torch.bool))
    ones = torch.ones(4, 4)
    loss = relevant_over_negative(scores, relevance, ones, negatives, margin=0.2, pool=1)
    assert loss.item() == pytest.approx((0.2 + 0.4 - 0.5) + (0.2 + 0.3 - 0.5))
    easy = relevant_over_negative(
        scores, relevance, ones, negatives, margin=0.2, generator=torch.Generator().manual_seed(0)
    )
    assert easy.item() <= loss.item() + 1e-7


def test_positive_over_relevant_is_equation_12() -> None:
    rows = (0.6 - 0.5 * 0.9) + max(0.0, 0.3 - 0.8 * 0.8)
    columns = (0.6 - 0.5 * 0.8) + max(0.0, 0.3 - 0.8 * 0.9)
    loss = positive_over_relevant(SCORES, RELEVANCE, CONFIDENCE)
    assert loss.item() == pytest.approx((rows + columns) / 2)


def spans() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Logits of 3 queries in 2 videos of 4 clips, one of them padded; pairs 0 and 2 share a video."""
    generator = torch.Generator().manual_seed(3)
    start, end = torch.randn(2, 3, 2, 4, generator=generator)
    start[:, 1, 3] = end[:, 1, 3] = -1e10
    return start, end, torch.tensor([0, 1, 0]), torch.tensor([[0, 2], [1, 2], [2, 3]])


def test_relevant_span_loss_is_equation_17() -> None:
    start, end, video, labels = spans()
    expected = 0.0
    for i, j in ((0, 1), (1, 0)):
        for logits, clip in ((start, labels[j, 0]), (end, labels[j, 1])):
            expected -= CONFIDENCE[i, j].item() * logits[i, video[j]].log_softmax(-1)[clip].item()
    loss = relevant_span_loss(start, end, video, labels, relevance=RELEVANCE, confidence=CONFIDENCE)
    assert loss.item() == pytest.approx(expected / 2, rel=1e-5)


@pytest.mark.parametrize("form", BOUNDARY_SCORES)
def test_moment_scores_are_equation_14(form: str) -> None:
    start, end, video, labels = spans()
    found = moment_scores(SCORES, start, end, video, labels, alpha=20.0, boundary_score=form)
    for i in range(3):
        for j in range(3):
            logits = (start[i, video[j], labels[j, 0]].item(), end[i, video[j], labels[j, 1]].item())
            if form == "literal":
                parts = [math.log(max(logit, 1e-6)) for logit in logits]
            else:
                parts = [math.log(1 + math.log(1 + math.exp(logit))) for logit in logits]
            assert found[i, j].item() == pytest.approx(sum(parts) + 20 * SCORES[i, j].item(), rel=1e-5)


def test_boundary_scores_differ_in_sign_and_gradient() -> None:
    logits = torch.tensor([-3.0, 0.5, 100.0], requires_grad=True)
    literal = BOUNDARY_SCORES["literal"](logits)
    assert literal[0].item() == pytest.approx(math.log(1e-6))
    (gradient,) = torch.autograd.grad(literal.sum(), logits)
    assert gradient[0] == 0 and gradient[1] > 0
    smooth = BOUNDARY_SCORES["softplus"](logits)
    (gradient,) = torch.autograd.grad(smooth.sum(), logits)
    assert (smooth > 0).all() and (gradient > 0).all() and (smooth.diff() > 0).all()
    assert smooth[2].item() == pytest.approx(literal[2].item(), abs=0.02)


def test_without_relevant_pairs_every_term_is_zero() -> None:
    start, end, video, labels = spans()
    scores = SCORES.clone().requires_grad_()
    for loss in (
        relevant_over_negative(scores, NOTHING, CONFIDENCE, NEGATIVES),
        positive_over_relevant(scores, NOTHING, CONFIDENCE),
        relevant_span_loss(
            start.requires_grad_(), end, video, labels, relevance=NOTHING, confidence=CONFIDENCE
        ),
    ):
        loss.backward()  # type: ignore[no-untyped-call]
        assert loss.item() == 0


def test_a_relevant_pair_without_any_negative_adds_nothing() -> None:
    assert relevant_over_negative(SCORES, RELEVANCE, CONFIDENCE, NOTHING).item() == 0


def losses(config: RelevantPairsConfig, confidence: Tensor = CONFIDENCE) -> dict[str, float]:
    start, end, video, labels = spans()
    terms = relevant_pair_losses(
        config, video_scores=SCORES, start=start, end=end, video=video, labels=labels, negatives=NEGATIVES,
        relevance=RELEVANCE, confidence=confidence, alpha=20.0, span_weight=0.01, pool=1,
    )  # fmt: skip
    return {name: term.item() for name, term in terms.items()}


def test_variants_add_their_terms() -> None:
    pairs = {"relevant_over_negative", "positive_over_relevant", "relevant_span"}
    segments = {"segment_context", "segment_query"}
    both = pairs | segments | {"segment_relevant_over_negative", "segment_positive_over_relevant"}
    assert set(losses(RelevantPairsConfig())) == pairs
    assert set(losses(RelevantPairsConfig(pairs=False, segments=True))) == segments
    assert set(losses(RelevantPairsConfig(segments=True))) == both


def test_every_weight_scales_its_term() -> None:
    names = {
        "relevant_over_negative": {"relevant_over_negative"},
        "positive_over_relevant": {"positive_over_relevant"},
        "relevant_span": {"relevant_span"},
        "segment_relevant_over_negative": {"segment_relevant_over_negative"},
        "segment_positive_over_relevant": {"segment_positive_over_relevant"},
        "segment": {
            "segment_context",
            "segment_query",
            "segment_relevant_over_negative",
            "segment_positive_over_relevant",
        },
    }
    base = losses(RelevantPairsConfig(segments=True, margin=30.0))
    assert all(value > 0 for value in base.values())
    for option, terms in names.items():
        options = {"segments": True, "margin": 30.0, option: 3.0}
        found = losses(RelevantPairsConfig(**options))  # type: ignore[arg-type]
        for name, value in found.items():
            assert value == pytest.approx((3.0 if name in terms else 1.0) * base[name], rel=1e-5), (
                option,
                name,
            )


def test_low_confidence_weakens_the_well_behaved_score_and_strengthens_the_literal_one() -> None:
    """Why ``softplus`` is the default: under the printed form a doubtful pair satisfies Eq. 11 better."""
    video_scores = torch.zeros(3, 3)
    start = torch.full((3, 3, 2), -1.0)
    video, labels = torch.arange(3), torch.tensor([[0, 1]] * 3)
    found = {}
    for form in BOUNDARY_SCORES:
        scores = moment_scores(video_scores, start, start, video, labels, alpha=20.0, boundary_score=form)
        found[form] = [
            relevant_over_negative(scores, RELEVANCE, level * torch.ones(3, 3), NEGATIVES, margin=50.0).item()
            for level in (0.2, 0.9)
        ]
    assert found["softplus"][0] > found["softplus"][1]
    assert found["literal"][0] < found["literal"][1]


def test_unknown_boundary_scores_are_refused() -> None:
    with pytest.raises(InvalidValue, match="'log'"):
        RelevantPairsConfig(boundary_score="log")


def test_all_terms_draw_from_the_pool_by_the_given_generator() -> None:
    """With a pool of 1 the hardest negative, whatever is drawn; PyTorch's own generator is left alone."""
    chance = torch.Generator().manual_seed(1)
    scores, (start, end) = torch.rand(6, 6, generator=chance), torch.randn(2, 6, 6, 4, generator=chance)
    relevance = torch.zeros(6, 6, dtype=torch.bool)
    relevance[0, 1] = True

    def terms(seed: int, pool: int | None) -> dict[str, float]:
        found = relevant_pair_losses(
            RelevantPairsConfig(segments=True, margin=30.0), video_scores=scores, start=start, end=end,
            video=torch.arange(6), labels=torch.tensor([[0, 2]] * 6), relevance=relevance,
            negatives=~(relevance | torch.eye(6, dtype=torch.bool)), confidence=torch.ones(6, 6),
            alpha=20.0, span_weight=0.01, pool=pool, generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip
        return {name: term.item() for name, term in found.items()}

    before = torch.get_rng_state()
    hardest, drawn = ([terms(seed, pool) for seed in range(9)] for pool in (1, None))
    assert all(found == hardest[0] for found in hardest)
    for name in ("relevant_over_negative", "segment_relevant_over_negative", "segment_context"):
        assert len({found[name] for found in drawn}) > 1
    assert torch.equal(torch.get_rng_state(), before)
